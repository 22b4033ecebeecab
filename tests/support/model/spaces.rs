//! Namespaces: which are open, and in which slot.
//!
//! A namespace keeps its label when it is closed and opened again, but each opening has a number of its own: what one
//! opening wrote is another owner's to the next.

use super::Model;
use crate::machine::{Event, EventKind, Outcome, Resource, Status};
use crate::op::{Owner, Seq, Ticket};
use crate::spec::{NULL, NamespaceSpec, Spec};

/// Slots and openings.
#[derive(Clone, Hash)]
pub(super) struct Spaces {
    /// The label in each slot. Slot 0 is that of the key with all zeros, whether or not the scenario names it.
    slots: Vec<Option<u16>>,
    /// Number of the present opening, by label.
    openings: Vec<Option<u64>>,
    opened: u64,
}

impl Spaces {
    /// All namespaces of a configuration, in their order, as far as there is room.
    pub(super) fn new(spec: &Spec) -> Self {
        let mut spaces =
            Self { slots: vec![None; spec.max_spaces()], openings: vec![None; spec.namespaces.len()], opened: 0 };
        for (label, key) in (0..).zip(&spec.namespaces) {
            spaces.enter(label, key);
        }
        spaces
    }

    /// Opens a closed namespace in the lowest free slot; false when there is none.
    fn enter(&mut self, label: u16, key: &NamespaceSpec) -> bool {
        let slot = match *key == NamespaceSpec::default() {
            true => Some(0),
            false => (1..self.slots.len()).find(|&slot| self.slots[slot].is_none()),
        };
        let Some(slot) = slot else { return false };
        self.slots[slot] = Some(label);
        self.opened += 1;
        self.openings[usize::from(label)] = Some(self.opened);
        true
    }

    /// The number of a namespace's present opening.
    pub(super) fn opening(&self, label: u16) -> Option<u64> {
        self.openings.get(usize::from(label)).copied().flatten()
    }
}

impl Model {
    /// How many namespaces the scenario names.
    pub fn spaces(&self) -> usize {
        self.spec.namespaces.len()
    }

    /// Refuses a namespace that is not open.
    pub(super) fn space(&self, ns: u16) -> Result<(), Outcome> {
        self.state.spaces.opening(ns).map(drop).ok_or(Outcome::of(Status::Stale))
    }

    pub(super) fn open_space(&mut self, ns: u16) -> Result<Outcome, Outcome> {
        let key = self.spec.namespaces[usize::from(ns)];
        if self.state.spaces.opening(ns).is_none() && !self.state.spaces.enter(ns, &key) {
            return Err(Outcome::capacity(Resource::Namespaces, 1, 0));
        }
        Ok(Outcome::OK)
    }

    pub(super) fn close_space(&mut self, ns: u16) -> Result<Outcome, Outcome> {
        self.space(ns)?;
        if self.spec.namespaces[usize::from(ns)] == NamespaceSpec::default() || self.user_of(ns).is_some() {
            return Err(Outcome::of(Status::Busy));
        }
        self.unindex_spaces(&|other| other == ns);
        if let Some(set) = self.state.quota_of.remove(&ns) {
            self.state.limits.retain(|key, _| key.0 != set);
        }
        let spaces = &mut self.state.spaces;
        spaces.openings[usize::from(ns)] = None;
        spaces.slots.iter_mut().filter(|slot| **slot == Some(ns)).for_each(|slot| *slot = None);
        Ok(Outcome::OK)
    }

    /// A sequence, ticket or transfer of a namespace; a transfer, or a sequence that waits to end, as `None`.
    pub(super) fn user_of(&self, ns: u16) -> Option<Option<Owner>> {
        let seq = |(seq, sequence): (&Seq, &super::Sequence)| {
            (sequence.ns == ns).then_some((sequence.closing.is_none()).then_some(Owner::Seq(*seq)))
        };
        let ticket = |(ticket, pins): (&Ticket, &super::Pins)| (pins.ns == ns).then_some(Some(Owner::Ticket(*ticket)));
        let mut transfers = self.state.transfers.values().filter(|running| running.ns == ns);
        let sequences = self.state.sequences.iter().find_map(seq);
        sequences.or_else(|| self.state.tickets.iter().find_map(ticket)).or_else(|| transfers.next().map(|_| None))
    }

    /// Says of open namespaces, by slot, that they left the index.
    pub(super) fn announce_cleared(&mut self, hit: &dyn Fn(u16) -> bool) {
        for ns in self.state.spaces.slots.clone().into_iter().flatten().filter(|&ns| hit(ns)) {
            self.emit(Event { kind: EventKind::Cleared, group: 0, page: NULL, ns: Some(ns), key: 0, parent: 0 });
        }
    }
}
