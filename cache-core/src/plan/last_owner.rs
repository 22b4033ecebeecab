//! Which owner of a shared private page need not copy it.
//!
//! Of the owners in one plan the last could write where the others have left. But an abort gives the page back to all of
//! them: tokens that one of them has beyond the writer's length must not have been written over.

use super::{Growth, Plan};
use crate::cache::Cache;

impl Cache<'_> {
    /// Whether an owner that leaves a page in the open plan has more tokens than a sequence of `len` that would stay.
    #[inline]
    pub(super) fn leaves_more(&self, index: u32, page: u32, len: u32) -> bool {
        len < self.plan.longest_leaver && self.finds_leaver(index, page, len)
    }

    #[inline(never)] // its stack is not that of what asks, which seldom gets so far
    fn finds_leaver(&self, index: u32, page: u32, len: u32) -> bool {
        if self.plan.is_building() {
            let Some(group) = self.groups.at(index) else { return false };
            let mut others = (0..self.plan.entry_count).map(|nth| self.planned_growth(nth));
            return others.any(|other| other.len > len && self.cut_page(index, group, &other) == page);
        }
        let mut copies = (0..self.plan.copy_count).map(|nth| self.plan.copy(nth));
        copies.any(|copy| copy.source == page && self.planned_growth(copy.entry).len > len)
    }
}

impl Plan<'_> {
    pub(super) fn note_leaver(&mut self, growth: &Growth) {
        self.longest_leaver = self.longest_leaver.max(growth.len);
    }
}
