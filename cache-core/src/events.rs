//! What entered and left the index: a ring of records that the caller reads.
//!
//! Folding all events over (group, key) gives the index. The ring never blocks: when it is full the oldest record is
//! lost and counted, and the reader starts again from a snapshot of the keys.

use crate::mem::Slots;

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// A page entered the index.
    #[default]
    Stored = 0,
    /// A page left it.
    Removed = 1,
    /// Everything left it.
    Cleared = 2,
}

/// One change of the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// Number of this event, from 1 on without gaps.
    pub sequence: u64,
    /// Exported key of the page: a chained hash of tokens and spans. For routers; the cache itself compares tokens.
    pub key: u64,
    /// Key of the page before it; 0 = it is the first.
    pub parent_key: u64,
    /// The page, within its group's pool.
    pub page: u32,
    /// Slot of its namespace.
    pub namespace: u32,
    /// Its group.
    pub group: u16,
    /// What happened.
    pub kind: EventKind,
    #[doc(hidden)]
    pub reserved: [u8; 5],
}

impl crate::records::Zero for EventKind {
    const ZERO: Self = Self::Stored;
}

crate::records::zero!(Event { sequence, key, parent_key, page, namespace, group, kind, reserved });

/// The ring of events.
pub(crate) struct Events<'m> {
    ring: Slots<'m, Event>,
    /// Events made so far, and read or lost so far.
    made: u64,
    gone: u64,
    lost: u64,
    is_muted: bool,
}

impl<'m> Events<'m> {
    pub(crate) fn new(ring: &'m mut [Event]) -> Self {
        Self { ring: Slots::new(ring), made: 0, gone: 0, lost: 0, is_muted: false }
    }

    /// Adds one event; the record is made only where events are kept.
    #[inline]
    pub(crate) fn push(&mut self, record: impl FnOnce() -> Event) {
        if self.ring.is_empty() || self.is_muted {
            return;
        }
        let capacity = u64::from(self.ring.len());
        if self.made.saturating_sub(self.gone) == capacity {
            self.gone = self.gone.saturating_add(1);
            self.lost = self.lost.saturating_add(1);
        }
        let slot = self.slot(self.made);
        self.made = self.made.saturating_add(1);
        self.ring.set(slot, Event { sequence: self.made, ..record() });
    }

    /// While muted, changes make no records: one `Cleared` stands for them.
    pub(crate) fn mute(&mut self, muted: bool) {
        self.is_muted = muted;
    }

    fn slot(&self, number: u64) -> u32 {
        u32::try_from(number.checked_rem(u64::from(self.ring.len())).unwrap_or(0)).unwrap_or(0)
    }

    /// Moves the oldest events to `out`; gives how many, and how many were lost since the last call.
    pub(crate) fn read(&mut self, out: &mut [Event]) -> (usize, u64) {
        let mut count = 0_usize;
        for slot in out.iter_mut() {
            if self.gone == self.made {
                break;
            }
            *slot = self.ring.get(self.slot(self.gone));
            self.gone = self.gone.saturating_add(1);
            count = count.saturating_add(1);
        }
        (count, core::mem::take(&mut self.lost))
    }

    /// Events made so far.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// Events waiting to be read.
    pub(crate) fn waiting(&self) -> u64 {
        self.made.saturating_sub(self.gone)
    }
}
