//! Which namespace a slot stood for when an event was made.
//!
//! Events name slots, and a slot that was closed may be another namespace's next. So each occupation is remembered with the
//! number of events made before it.

use std::collections::BTreeMap;

/// Occupants of each slot, first come first: events made before, label.
#[derive(Default)]
pub(crate) struct SpaceNames(BTreeMap<u32, Vec<(u64, u16)>>);

impl SpaceNames {
    /// A handle was given for a namespace after `made` events. The slot is the handle's low half.
    pub(crate) fn opened(&mut self, handle: u64, label: u16, made: u64) {
        let occupants = self.0.entry(handle as u32).or_default();
        if occupants.last().is_none_or(|(_, last)| *last != label) {
            occupants.push((made, label));
        }
    }

    /// Whose slot it was at an event; `None` for the namespace with all zeros where the scenario does not name it.
    pub(crate) fn at(&self, slot: u32, number: u64) -> Option<u16> {
        let before = self.0.get(&slot)?.iter().rev().find(|(made, _)| *made < number);
        before.map(|(_, label)| *label)
    }
}
