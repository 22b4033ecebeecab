//! Whole paths and runs of victims at once, where each pool's order is one list.
//!
//! A path is released leaf to root and so enters the list as a run: pinning it again, or evicting it, touches the
//! list once a run and each record once.

use super::order::List;
use super::{Holder, NULL, PageRecord, Pages};
use crate::width::Id;

/// Victims taken out of the order at once. They lie on the stack, of which small machines have little.
pub(crate) type Victims = [u32; if cfg!(target_pointer_width = "64") { 64 } else { 16 }];

impl Pages<'_> {
    /// Whether each pool has one list, of cached pages only: no classes, leases, quotas or FIFO.
    #[inline]
    pub(crate) fn has_one_list(&self) -> bool {
        self.has_one_list
    }

    /// Whether a reference of a sequence may be counted without a look at transfers and classes.
    #[inline]
    pub(super) fn counts_alone(&self) -> bool {
        self.has_one_list && !self.any_transfers()
    }

    /// Whether a transfer may have a reference.
    #[inline]
    pub(crate) fn any_transfers(&self) -> bool {
        self.by_transfers != 0
    }

    /// Removes one reference of an indexed page; what is left without any becomes CACHED, up to the root.
    pub(super) fn release_up(&mut self, page: u32) {
        let pool = self.pool_of(page);
        let at = self.list_index(pool, 0, 0);
        let List { mut head, mut tail } = self.lists.get(at);
        let (mut page, mut cached) = (page, 0_u32);
        while let Some(record) = self.records.at_mut(page) {
            let count = record.count_of_used();
            if count > 1 {
                record.set_count(count.wrapping_sub(1));
                break;
            }
            let parent = record.parent();
            record.set_prev(tail);
            record.set_next(NULL);
            match tail {
                NULL => head = page,
                _ => self.records.with(tail, |tail| tail.set_next(page)),
            }
            tail = page;
            cached = cached.wrapping_add(1);
            if self.is_root(parent) || self.is_hung(page) {
                break;
            }
            page = parent;
        }
        if cached > 0 {
            self.put_list(pool, at, List { head, tail });
            self.pools.with(pool, |pool| pool.cached = pool.cached.saturating_add(cached));
        }
    }

    /// Adds one reference to an indexed page; what was CACHED becomes USED, up to the root.
    pub(super) fn retain_up(&mut self, page: u32) {
        let pool = self.pool_of(page);
        let at = self.list_index(pool, 0, 0);
        let List { mut head, mut tail } = self.lists.get(at);
        let (mut page, mut pinned) = (page, 0_u32);
        while let Some(record) = self.records.at_mut(page) {
            if record.is_used() {
                record.set_count(record.count_of_used().saturating_add(1));
                break;
            }
            let (prev, mut next, mut parent) = (record.prev(), record.next(), record.parent());
            record.set_count(1);
            record.set_next(NULL);
            pinned = pinned.wrapping_add(1);
            let is_hung = self.is_hung(page);
            // Parents follow their children in the list as long as they were released together.
            while next == parent && !is_hung {
                let Some(record) = self.records.at_mut(parent) else { break };
                (next, parent) = (record.next(), record.parent());
                record.set_count(1);
                record.set_next(NULL);
                pinned = pinned.wrapping_add(1);
            }
            match prev {
                NULL => head = next,
                _ => self.records.with(prev, |prev| prev.set_next(next)),
            }
            match next {
                NULL => tail = prev,
                _ => self.records.with(next, |next| next.set_prev(prev)),
            }
            if is_hung || self.is_root(parent) {
                break;
            }
            page = parent;
        }
        if pinned > 0 {
            self.put_list(pool, at, List { head, tail });
            self.pools.with(pool, |pool| {
                pool.cached = pool.cached.saturating_sub(pinned);
                pool.peak = pool.peak.max(pool.used());
            });
        }
    }

    /// Removes one reference of each page, last first; NULL is skipped. Private pages that nobody else has become FREE in
    /// runs.
    pub(crate) fn unhold_all(&mut self, pages: &[Id], holder: Holder) {
        let counts_alone = holder == Holder::Live && self.counts_alone();
        let mut rest = pages;
        while let Some((page, before)) = rest.split_last() {
            let page = page.get();
            rest = before;
            if page == NULL {
                continue;
            }
            if !counts_alone || !self.has_one_owner(page) {
                self.unhold(page, holder);
                continue;
            }
            let pool = self.pool_of(page);
            let base = self.pools.get(pool).base;
            let mut first = page;
            while let Some((next, before)) = rest.split_last()
                && next.get() == first.wrapping_sub(1)
                && next.get() > base
                && self.has_one_owner(next.get())
            {
                first = next.get();
                rest = before;
            }
            self.free_run(pool, first, page.wrapping_sub(first).wrapping_add(1));
        }
    }

    /// Whether a page is private and has one reference.
    #[inline]
    fn has_one_owner(&self, page: u32) -> bool {
        self.records.at(page).is_some_and(|record| record.count() == 1 && record.parent() == NULL)
    }

    /// Gives pages without references, not indexed, back to their free set.
    fn free_run(&mut self, pool: u32, first: u32, count: u32) {
        self.records.slice_mut(u64::from(first), count).fill(PageRecord::default());
        let words = &mut self.words;
        self.pools.with(pool, |pool| {
            pool.free = pool.free.saturating_add(count);
            pool.set.insert_run(words, first.wrapping_sub(pool.base), count);
        });
    }

    fn put_list(&mut self, pool: u32, at: u32, list: List) {
        self.lists.set(at, list);
        let index = self.set_index(pool, 0);
        self.filled.set(index, u64::from(list.head != NULL));
    }

    /// Takes up to `most` pages off the cold end; gives how many. They are in no state until
    /// [`Self::free_victims`] has had them.
    pub(crate) fn take_victims(&mut self, pool: u32, most: u32, victims: &mut Victims) -> u32 {
        let at = self.list_index(pool, 0, 0);
        let List { head, tail } = self.lists.get(at);
        let (mut page, mut count) = (head, 0_u32);
        for slot in victims.iter_mut().take(most as usize) {
            if page == NULL {
                break;
            }
            *slot = page;
            count = count.wrapping_add(1);
            page = self.records.with(page, |record| {
                record.set_count(0);
                let next = record.next();
                record.set_next(NULL);
                next
            });
        }
        if page != NULL {
            self.records.with(page, |record| record.set_prev(NULL));
        }
        self.put_list(pool, at, List { head: page, tail: if page == NULL { NULL } else { tail } });
        self.pools.with(pool, |pool| pool.cached = pool.cached.saturating_sub(count));
        count
    }

    /// Gives victims that have left the index to the free set.
    pub(crate) fn free_victims(&mut self, pool: u32, victims: &[u32]) {
        let (records, words) = (&mut self.records, &mut self.words);
        self.pools.with(pool, |pool| {
            for &page in victims {
                records.set(page, PageRecord::default());
                pool.set.insert(words, page.saturating_sub(pool.base));
                pool.free = pool.free.saturating_add(1);
            }
        });
    }
}
