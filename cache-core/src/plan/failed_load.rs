//! What a load that failed changes in the open plan: nodes that a sequence was to copy, or has copied, leave the index.

use super::{IN_PAGE, OF_SHARED, OF_TIP};
use crate::cache::Cache;
use crate::index::Resume;
use crate::pages::{Holder, NULL};

impl Cache<'_> {
    /// Forgets which entries of private pages the plan being built replaces.
    pub(crate) fn unmark_replaced(&mut self) {
        for nth in 0..self.plan.entry_count {
            let growth = self.planned_growth(nth);
            for index in 0..self.limits.groups {
                let group = self.groups.get(index);
                let page = self.cut_page(index, &group, &growth);
                if page != NULL && !self.pages.is_indexed(page) && self.pages.replaced(page) != 0 {
                    self.pages.set_replaced(page, 0);
                }
            }
        }
    }

    /// Notes them anew, as each sequence found them when it was added.
    pub(crate) fn mark_all_replaced(&mut self) {
        let count = self.plan.entry_count;
        for nth in 0..count {
            self.plan.entry_count = nth;
            if self.plan.entries.get(nth).flags & IN_PAGE == 0 {
                let growth = self.planned_growth(nth);
                self.mark_replaced(&growth);
            }
        }
        self.plan.entry_count = count;
    }

    /// A node and all behind it are about to leave the index: sequences whose path ended there before the finished plan
    /// copied its last page do not get that path back, and publish nothing of the copy.
    pub(crate) fn leave_copied_tips(&mut self, slot: u32, through: Resume) {
        if !self.plan.is_finished() {
            return;
        }
        let keep = through.depth.saturating_sub(1);
        for nth in 0..self.plan.copy_count {
            let copy = self.plan.copy(nth);
            let holder = self.plan.entries.get(copy.entry).holder;
            let depth = copy.at.saturating_add(1);
            if copy.kind != OF_TIP
                || self.holders.get(holder).namespace != slot
                || depth < through.depth
                || self.index.ancestor(&self.pages, copy.source, depth.wrapping_sub(through.depth)) != through.node
            {
                continue;
            }
            self.plan.with_copy(nth, |copy| copy.kind = OF_SHARED);
            self.holders.with(holder, |state| state.inherited = state.inherited.min(keep));
            self.forget_ids(holder, keep << self.index.shift, Holder::Live);
        }
    }

    /// A sequence of the finished plan has given up its nodes from entry `end` on: of a copy among them only the source is
    /// left, which the plan keeps.
    pub(crate) fn leave_copied_nodes(&mut self, holder: u32, end: u32) {
        if !self.plan.is_finished() || self.holders.get(holder).plan == 0 {
            return;
        }
        for nth in 0..self.plan.copy_count {
            let copy = self.plan.copy(nth);
            let is_own = self.plan.entries.get(copy.entry).holder == holder;
            if is_own && copy.group == self.limits.anchor && copy.at >= end {
                self.plan.with_copy(nth, |copy| copy.target = NULL);
            }
        }
    }
}
