//! Namespaces: what must be equal before tokens are compared.
//!
//! Each namespace is a tree of its own, so nothing crosses from one tenant, model, adapter or format to another.
//! Slot 0 is the default namespace: it has the all-zero key and is always open.

use crate::error::{Error, Resource, Shortage};
use crate::ids::NamespaceId;
use crate::mem::Slots;

/// The parts of a namespace's identity. Each has its own field of fixed width, so two different identities never
/// read the same; every byte is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct NamespaceKey {
    /// Tenant or salt; hash longer ones with a cryptographic hash first.
    pub tenant: [u64; 4],
    /// Model, as the caller numbers them.
    pub model: u64,
    /// Adapter (LoRA), 0 = none.
    pub adapter: u64,
    /// Changes whenever the adapter's weights do.
    pub adapter_generation: u64,
    /// Precision and scale epoch of the pages.
    pub format: u64,
}

crate::records::zero!(NamespaceKey { tenant, model, adapter, adapter_generation, format });

/// One slot of the table of namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct NamespaceSlot {
    key: NamespaceKey,
    generation: u32,
    is_open: u32,
    /// Live sequences, tickets and transfers.
    pub(crate) users: u32,
    /// Owner tag of its pages.
    pub(crate) owner: u32,
}

crate::records::zero!(NamespaceSlot { key, generation, is_open, users, owner });

/// A page whose content is unknown: whoever gets it next must have it scrubbed.
pub(crate) const UNKNOWN_OWNER: u32 = u32::MAX;
const SLOT_BITS: u32 = 20;

/// The namespace slot in an owner tag.
pub(crate) fn slot_of_owner(owner: u32) -> u32 {
    owner & ((1 << SLOT_BITS) - 1)
}

/// The table of namespaces.
pub(crate) struct Namespaces<'m> {
    slots: Slots<'m, NamespaceSlot>,
}

impl<'m> Namespaces<'m> {
    pub(crate) fn new(slots: &'m mut [NamespaceSlot]) -> Self {
        let mut table = Self { slots: Slots::new(slots) };
        table.occupy(0, NamespaceKey::default());
        table
    }

    fn occupy(&mut self, slot: u32, key: NamespaceKey) -> NamespaceId {
        let generation = self.slots.get(slot).generation.wrapping_add(1).max(1);
        // The tag must differ from the last one's and from "never owned".
        let owner = (generation.wrapping_sub(1) % 0xFFE).wrapping_add(1) << SLOT_BITS | slot;
        self.slots.set(slot, NamespaceSlot { key, generation, is_open: 1, users: 0, owner });
        NamespaceId::new(generation, slot)
    }

    /// Gives the namespace with this key, opening it if needed. O(namespaces).
    pub(crate) fn open(&mut self, key: &NamespaceKey) -> Result<NamespaceId, Error> {
        let mut empty = None;
        for (slot, state) in (0..self.slots.len()).zip(self.slots.iter()) {
            if state.is_open == 0 {
                empty = empty.or(Some(slot));
            } else if state.key == *key {
                return Ok(NamespaceId::new(state.generation, slot));
            }
        }
        match empty {
            Some(slot) => Ok(self.occupy(slot, *key)),
            None => Err(Shortage::of(Resource::Namespaces, 1, 0).into()),
        }
    }

    pub(crate) fn resolve(&self, id: NamespaceId) -> Result<u32, Error> {
        let (generation, slot) = id.parts();
        let state = self.slots.get(slot);
        if state.is_open != 0 && state.generation == generation { Ok(slot) } else { Err(Error::Stale) }
    }

    pub(crate) fn get(&self, slot: u32) -> NamespaceSlot {
        self.slots.get(slot)
    }

    pub(crate) fn id(&self, slot: u32) -> NamespaceId {
        NamespaceId::new(self.slots.get(slot).generation, slot)
    }

    pub(crate) fn key(&self, slot: u32) -> NamespaceKey {
        self.slots.get(slot).key
    }

    pub(crate) fn is_open(&self, slot: u32) -> bool {
        self.slots.get(slot).is_open != 0
    }

    pub(crate) fn close(&mut self, slot: u32) {
        self.slots.with(slot, |state| state.is_open = 0);
    }

    pub(crate) fn add_user(&mut self, slot: u32) {
        self.slots.with(slot, |state| state.users = state.users.saturating_add(1));
    }

    pub(crate) fn remove_user(&mut self, slot: u32) {
        self.slots.with(slot, |state| state.users = state.users.saturating_sub(1));
    }

    pub(crate) fn count(&self) -> u32 {
        self.slots.len()
    }
}
