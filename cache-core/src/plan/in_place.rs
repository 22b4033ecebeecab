//! Writing in place what should be copied, where no page is left to copy to.
//!
//! An indexed page that nobody else needs may be withdrawn from the index instead. The mark is in the page while the plan is
//! built; finish carries it out.

use super::Growth;
use crate::cache::Cache;
use crate::pages::NULL;

impl Cache<'_> {
    /// Where no page can be had for copying an indexed page that nobody else needs: it will be written in place. Groups
    /// ascending, only while their pool is short. Gives how many copies this saves.
    pub(super) fn mark_in_place(&mut self, growth: &Growth) -> u32 {
        let mut saved = 0_u32;
        for index in 0..self.limits.groups {
            let group = self.groups.get(index);
            let page = self.cut_page(index, &group, growth);
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
    pub(super) fn unmark_in_place(&mut self, growth: &Growth) {
        for index in 0..self.limits.groups {
            let group = self.groups.get(index);
            let page = self.cut_page(index, &group, growth);
            if page != NULL && self.pages.is_in_place(page) {
                self.pages.set_in_place(page, false);
                self.plan.in_place = self.plan.in_place.saturating_sub(1);
            }
        }
    }

    /// Whether an indexed page has one reference and nothing below it.
    fn only_ours(&self, page: u32) -> bool {
        self.pages.count(page) == 1 && (self.pages.is_hung(page) || self.pages.children(page) == 0)
    }
}
