//! Which owner of a shared private page need not copy it.
//!
//! Of the owners in one plan the last could write where the others have left. But an abort gives the page back to all of
//! them: tokens that one of them has beyond the writer's length must not have been written over.

use super::Plan;
use crate::cache::Cache;
use crate::sequence::Sequence;

impl Cache<'_> {
    /// Whether an owner that leaves a page in the open plan has more tokens than a sequence that would stay.
    pub(super) fn leaves_more(&self, index: u32, page: u32, sequence: &Sequence) -> bool {
        if sequence.len >= self.plan.longest_leaver {
            return false;
        }
        let group = self.groups.get(index);
        let is_longer = |entry: u32| {
            let holder = self.plan.entries.get(entry).holder;
            let other = self.holders.get(holder);
            (other.len > sequence.len).then_some((holder, other))
        };
        if self.plan.is_building() {
            let mut longer = (0..self.plan.entry_count).filter_map(is_longer);
            return longer.any(|(holder, other)| self.cut_page(holder, index, &group, &other) == page);
        }
        let mut copies = (0..self.plan.copy_count).map(|nth| self.plan.copy(nth));
        copies.any(|copy| copy.source == page && is_longer(copy.entry).is_some())
    }
}

impl Plan<'_> {
    pub(super) fn note_leaver(&mut self, sequence: &Sequence) {
        self.longest_leaver = self.longest_leaver.max(sequence.len);
    }
}
