//! Writing in place what should be copied, where no page is left to copy to.
//!
//! An indexed page that nobody else needs may be withdrawn from the index instead. The mark is in the page while the plan is
//! built; finish carries it out.

use crate::cache::Cache;
use crate::group::Group;
use crate::pages::NULL;
use crate::sequence::Sequence;

impl Cache<'_> {
    /// Where no page can be had for copying an indexed page that nobody else needs: it will be written in place. Groups
    /// ascending, only while their pool is short. Gives how many copies this saves.
    pub(super) fn mark_in_place(&mut self, holder: u32, sequence: &Sequence) -> u32 {
        let mut saved = 0_u32;
        for index in 0..self.limits.groups {
            let group = self.groups.get(index);
            let page = self.cut_page(holder, index, &group, sequence);
            let pool = self.pages.pools.get(group.pool);
            if page == NULL || pool.asked <= pool.available() || !self.pages.is_indexed(page) || !self.only_ours(page) {
                continue;
            }
            self.pages.set_in_place(page, true);
            self.pages.pools.with(group.pool, |pool| pool.asked = pool.asked.saturating_sub(1));
            saved = saved.saturating_add(1);
        }
        self.plan.in_place = self.plan.in_place.saturating_add(saved);
        saved
    }

    /// Takes the marks of a sequence back.
    pub(super) fn unmark_in_place(&mut self, holder: u32, sequence: &Sequence) {
        for index in 0..self.limits.groups {
            let group = self.groups.get(index);
            let page = self.cut_page(holder, index, &group, sequence);
            if page != NULL && self.pages.is_in_place(page) {
                self.pages.set_in_place(page, false);
                self.plan.in_place = self.plan.in_place.saturating_sub(1);
            }
        }
    }

    /// Whether the plan copies this page for a sequence that has tokens in it behind `len`. An abort gives that sequence the
    /// page back, so nothing may be written there. O(sequences and copies of the plan).
    pub(super) fn may_return_longer(&self, index: u32, group: &Group, page: u32, len: u32) -> bool {
        let entries = (0..self.plan.entry_count).map(|nth| self.plan.entries.get(nth).holder);
        let mut promised = entries.map(|holder| (holder, self.holders.get(holder)));
        let mut copies = (0..self.plan.copy_count).map(|nth| self.plan.copy(nth));
        let offset = len & group.page_tokens().wrapping_sub(1);
        promised.any(|(holder, other)| other.len > len && self.cut_page(holder, index, group, &other) == page)
            || copies.any(|copy| copy.source == page && copy.tokens > offset)
    }

    /// Whether an indexed page has one reference and nothing below it.
    fn only_ours(&self, page: u32) -> bool {
        self.pages.count(page) == 1 && (self.pages.is_hung(page) || self.pages.children(page) == 0)
    }
}
