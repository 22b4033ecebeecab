//! References: who keeps a page from being evicted.
//!
//! `hold` and `unhold` change one reference and walk up the tree while the change makes pages used or unused, so that
//! every ancestor of a used page is used and pinning a hot prefix costs nothing. Pages that only transfers keep are
//! counted apart the same way: `pending` of a page counts those of its references that are transfers or children that
//! only transfers keep, and the page is pending iff that is all of them.

use super::{NULL, Pages};
use crate::width::Id;

/// What keeps a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holder {
    /// A sequence, ticket or plan.
    Live,
    /// A transfer under way.
    Transfer,
}

impl Pages<'_> {
    /// Adds one reference.
    #[inline]
    pub(crate) fn hold(&mut self, page: u32, holder: Holder) {
        if holder == Holder::Transfer {
            self.by_transfers = self.by_transfers.saturating_add(u32::from(!self.is_root(page)));
        } else if self.counts_alone() && self.is_indexed(page) {
            return self.retain_up(page);
        }
        self.change(page, 1, i32::from(holder == Holder::Transfer));
    }

    /// Removes one reference. A page left without any becomes CACHED if it is indexed, else FREE.
    #[inline]
    pub(crate) fn unhold(&mut self, page: u32, holder: Holder) {
        if holder == Holder::Transfer {
            self.by_transfers = self.by_transfers.saturating_sub(u32::from(!self.is_root(page)));
        } else if self.counts_alone() && self.is_indexed(page) {
            return self.release_up(page);
        }
        self.change(page, -1, if holder == Holder::Transfer { -1 } else { 0 });
    }

    fn change(&mut self, page: u32, refs: i32, pending: i32) {
        let (mut page, mut refs, mut pending) = (page, refs, pending);
        while page != NULL && !self.is_root(page) && (refs, pending) != (0, 0) {
            let before = self.state(page);
            let count = before.count.saturating_add_signed(refs);
            let by_transfer = before.by_transfer.saturating_add_signed(pending);
            if pending != 0 {
                self.traits.pending.set(page, Id::new(by_transfer));
            }
            let used = count > 0;
            match (before.count > 0, used) {
                (false, true) => {
                    self.enlist_none(page);
                    self.records.with(page, |record| record.set_count(count));
                }
                (true, false) => {
                    self.records.with(page, |record| record.set_count(0));
                    if before.indexed {
                        self.enlist(page);
                    } else {
                        self.free(page);
                    }
                }
                _ => self.records.with(page, |record| record.set_count(count)),
            }
            let is_pending = used && by_transfer == count;
            if is_pending != before.pending() {
                let index = self.pool_of(page);
                self.pools.with(index, |pool| {
                    pool.pending =
                        if is_pending { pool.pending.saturating_add(1) } else { pool.pending.saturating_sub(1) };
                });
            }
            if !before.indexed || self.is_hung(page) {
                break;
            }
            refs = i32::from(used).wrapping_sub(i32::from(before.count > 0));
            pending = i32::from(is_pending).wrapping_sub(i32::from(before.pending()));
            page = before.parent;
        }
    }

    fn state(&self, page: u32) -> State {
        let record = self.records.get(page);
        State {
            count: record.count(),
            by_transfer: self.traits.pending.get(page).get(),
            indexed: record.parent() != NULL,
            parent: record.parent(),
        }
    }

    /// Whether only transfers keep it.
    pub(crate) fn is_pending(&self, page: u32) -> bool {
        self.state(page).pending()
    }

    /// A used page is about to leave the index: its references keep its parent no longer.
    pub(crate) fn unhold_parent_of(&mut self, page: u32) {
        let state = self.state(page);
        if state.count > 0 {
            self.change(state.parent, -1, if state.pending() { -1 } else { 0 });
        }
    }
}

struct State {
    count: u32,
    by_transfer: u32,
    indexed: bool,
    parent: u32,
}

impl State {
    fn pending(&self) -> bool {
        self.count > 0 && self.by_transfer == self.count
    }
}
