//! Eviction order: which cached page goes first.
//!
//! One intrusive list per (pool, list set, class); the victim is the cold end of the lowest class that is not empty.
//! List set 0 serves all namespaces, the others one namespace with a quota each; between sets the older stamp loses.
//!
//! Under LRU and LFU a list holds exactly the CACHED pages. Pages are released leaf first and the ancestors of a used
//! page are used, so children enter before their parents and the cold end is always a leaf. A parent's class is never
//! below its child's.
//!
//! Where the first nodes of a path are exact pages of sinks and the others sealed, each pool orders its own: what is behind the
//! last sink page does not keep it from being a leaf of its pool.
//!
//! Under FIFO a page enters the hot end when it is published and keeps its place while it is used. A page that comes
//! to the cold end while it is used or has children leaves the list and comes back at the cold end, as the oldest,
//! once it is a cached leaf. Each page leaves at most once per use, so a victim still costs O(1) on average.
//!
//! ```text
//! cold end = head -> next -> ... -> tail = hot end
//! ```

use super::{NULL, Pages};
use crate::config::Policy;

/// The two ends of an eviction list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct List {
    pub(super) head: u32,
    pub(super) tail: u32,
}

crate::records::zero!(List { head, tail });

/// An end of an eviction list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Evicted first.
    Cold,
    /// Evicted last.
    Hot,
}

/// In `before`: the page is in a FIFO list.
const LINKED: u32 = 1 << 31;

impl Pages<'_> {
    /// A page has become CACHED.
    pub(super) fn enlist(&mut self, page: u32) {
        let index = self.pool_of(page);
        let fifo = self.pools.with(index, |pool| {
            pool.cached = pool.cached.saturating_add(1);
            pool.is(Policy::Fifo)
        });
        self.count_cached(index, page, 1);
        if !self.traits.class.is_empty() {
            self.settle_class(page);
        }
        if !fifo {
            self.link(page, End::Hot);
        } else if !self.is_linked(page) {
            self.link(page, End::Cold);
        }
    }

    /// A page is CACHED no longer: it is used again, or about to be free.
    pub(super) fn enlist_none(&mut self, page: u32) {
        if !self.is_indexed(page) {
            return; // a private page comes to life
        }
        let index = self.pool_of(page);
        let policy = self.pools.with(index, |pool| {
            pool.cached = pool.cached.saturating_sub(1);
            pool.peak = pool.peak.max(pool.used());
            pool.policy
        });
        self.count_cached(index, page, -1);
        if policy != Policy::Fifo as u32 {
            self.unlink(page);
        }
        if policy == Policy::Lfu as u32 {
            self.traits.base.with(page, |uses| *uses = uses.saturating_add(1));
        }
    }

    /// A page was published: under FIFO its place in the order is settled now.
    pub(crate) fn enter_order(&mut self, page: u32) {
        if self.has_fifo() && self.pools.get(self.pool_of(page)).is(Policy::Fifo) {
            self.link(page, End::Hot);
        }
    }

    /// Whether some pool is FIFO; then all lists have their backward links apart.
    #[inline]
    fn has_fifo(&self) -> bool {
        !self.traits.before.is_empty()
    }

    /// A cached page is taken out of the order and its counters, before it is freed.
    pub(crate) fn leave_order(&mut self, page: u32) {
        if self.is_linked(page) {
            self.unlink(page);
        }
        if self.is_cached(page) {
            let index = self.pool_of(page);
            self.pools.with(index, |pool| pool.cached = pool.cached.saturating_sub(1));
            self.count_cached(index, page, -1);
        }
        if !self.traits.class.is_empty() {
            self.traits.class.set(page, 0);
            self.traits.base.set(page, 0);
        }
    }

    /// Counts cached pages per list set, where there is more than one.
    fn count_cached(&mut self, pool: u32, page: u32, by: i32) {
        if self.sets > 1 {
            let cell = self.set_index(pool, self.set_of(page));
            self.cached_in.with(cell, |count| *count = count.saturating_add_signed(by));
        }
    }

    /// A page has lost its last child: under FIFO it may come back as a leaf.
    pub(crate) fn became_leaf(&mut self, page: u32) {
        if self.has_fifo()
            && !self.is_root(page)
            && self.children(page) == 0
            && self.is_cached(page)
            && self.pools.get(self.pool_of(page)).is(Policy::Fifo)
            && !self.is_linked(page)
        {
            self.link(page, End::Cold);
        }
    }

    /// The page of a pool that goes next, or NULL when none is cached.
    #[inline]
    pub(crate) fn victim(&mut self, pool: u32) -> u32 {
        if self.sets == 1 {
            return self.victim_in(pool, 0);
        }
        let mut best = (u32::MAX, u64::MAX, NULL);
        for set in 0..self.sets {
            let page = self.victim_in(pool, set);
            let key = (self.class_of(page), self.traits.stamp.get(page), page);
            if page != NULL && key < best {
                best = key;
            }
        }
        best.2
    }

    /// The page of one list set that goes next.
    pub(crate) fn victim_in(&mut self, pool: u32, set: u32) -> u32 {
        loop {
            let filled = self.filled.get(self.set_index(pool, set));
            if filled == 0 {
                return NULL;
            }
            let head = self.lists.get(self.list_index(pool, set, filled.trailing_zeros())).head;
            let is_leaf = self.is_hung(head) || self.children(head) == 0 || self.is_last_exact(head);
            if self.is_cached(head) && is_leaf {
                return head;
            }
            self.unlink(head); // FIFO only: it returns as a cached leaf
        }
    }

    /// Moves a cached page to an end of its list.
    pub(crate) fn move_to(&mut self, page: u32, end: End) {
        if self.is_cached(page) && self.is_linked(page) {
            self.unlink(page);
            self.link(page, end);
        }
    }

    /// A page was published by a sequence of this class.
    pub(crate) fn published(&mut self, page: u32, class: u32) {
        let is_lfu = self.pools.get(self.pool_of(page)).is(Policy::Lfu);
        self.set_class(page, if is_lfu { 1 } else { u8::try_from(class).unwrap_or(0) });
    }

    /// Sets the class of a page itself. Parents are raised to it; it is never below its children's.
    pub(crate) fn set_class(&mut self, page: u32, class: u8) {
        self.traits.base.set(page, class);
        let floor = if self.children(page) == 0 { 0 } else { self.traits.class.get(page) };
        self.put_class(page, class.max(floor));
    }

    /// Changes the class in force, of this page and of parents below it.
    fn put_class(&mut self, page: u32, class: u8) {
        let mut page = page;
        let mut first = true;
        while page != NULL && !self.is_root(page) {
            let now = self.traits.class.get(page);
            if now == class || (!first && now > class) {
                break;
            }
            self.relist(page, |pages| pages.traits.class.set(page, class));
            first = false;
            page = self.parent(page);
        }
    }

    /// The class of a page that has just become CACHED: its own if it is a leaf, else what its children need.
    fn settle_class(&mut self, page: u32) {
        if self.is_hung(page) {
            let class = u8::try_from(self.class_of(self.parent(page))).unwrap_or(0);
            self.enter_class(page, class);
            return;
        }
        let own = if self.pools.get(self.pool_of(page)).is(Policy::Lfu) {
            let uses = self.traits.base.get(page).max(1);
            u8::try_from(uses.ilog2()).unwrap_or(0).min(u8::try_from(self.classes.saturating_sub(2)).unwrap_or(0))
        } else {
            self.traits.base.get(page)
        };
        let floor = if self.children(page) == 0 { 0 } else { self.traits.class.get(page) };
        let class = own.max(floor);
        self.enter_class(page, class);
        let parent = self.parent(page);
        if !self.is_root(parent) && self.traits.class.get(parent) < class {
            self.put_class(parent, class);
        }
    }

    /// Sets the class of a page that is about to be listed. Under FIFO it may be in its list already.
    fn enter_class(&mut self, page: u32, class: u8) {
        let linked = self.has_fifo() && self.traits.before.get(page) & LINKED != 0;
        if linked && self.traits.class.get(page) != class {
            self.unlink(page);
            self.traits.class.set(page, class);
            self.link(page, End::Hot);
        } else {
            self.traits.class.set(page, class);
        }
    }

    /// Gives a page of another group the class in force of its node, leases included.
    pub(crate) fn follow_node(&mut self, page: u32) {
        let class = u8::try_from(self.class_of(self.parent(page))).unwrap_or(0);
        if !self.traits.class.is_empty() && self.traits.class.get(page) != class {
            self.relist(page, |pages| pages.traits.class.set(page, class));
        }
    }

    /// Makes a change that may move a page to another list; it enters the new one at the hot end.
    pub(crate) fn relist(&mut self, page: u32, change: impl FnOnce(&mut Self)) {
        let linked = self.is_linked(page);
        if linked {
            self.unlink(page);
        }
        change(self);
        if linked {
            self.link(page, End::Hot);
        }
    }

    /// The class whose list holds the page; leased pages have the highest.
    pub(crate) fn class_of(&self, page: u32) -> u32 {
        if self.traits.leased.get(page) > 0 {
            return self.classes.saturating_sub(1);
        }
        u32::from(self.traits.class.get(page))
    }

    fn is_linked(&self, page: u32) -> bool {
        if self.traits.before.is_empty() {
            return self.is_cached(page);
        }
        match self.pools.get(self.pool_of(page)).is(Policy::Fifo) {
            true => self.traits.before.get(page) & LINKED != 0,
            false => self.is_cached(page),
        }
    }

    /// The list set of the namespace that owns a page.
    pub(crate) fn set_of(&self, page: u32) -> u32 {
        if self.sets == 1 {
            return 0;
        }
        u32::from(self.traits.quota_of.get(crate::namespace::slot_of_owner(self.traits.owner.get(page))))
    }

    #[inline]
    pub(crate) fn set_index(&self, pool: u32, set: u32) -> u32 {
        pool.saturating_mul(self.sets).saturating_add(set)
    }

    #[inline]
    pub(super) fn list_index(&self, pool: u32, set: u32, class: u32) -> u32 {
        self.set_index(pool, set).saturating_mul(self.classes).saturating_add(class)
    }

    fn prev(&self, page: u32) -> u32 {
        if self.traits.before.is_empty() {
            self.records.get(page).prev()
        } else {
            self.traits.before.get(page) & !LINKED
        }
    }

    fn set_prev(&mut self, page: u32, prev: u32) {
        if self.traits.before.is_empty() {
            self.records.with(page, |record| record.set_prev(prev));
        } else {
            self.traits.before.set(page, prev | LINKED);
        }
    }

    fn link(&mut self, page: u32, end: End) {
        let (pool, set, class) = (self.pool_of(page), self.set_of(page), self.class_of(page));
        let index = self.list_index(pool, set, class);
        let list = self.lists.get(index);
        match end {
            End::Hot => {
                self.set_prev(page, list.tail);
                self.records.with(page, |record| record.set_next(NULL));
                if list.tail == NULL {
                    self.lists.set(index, List { head: page, tail: page });
                } else {
                    self.records.with(list.tail, |record| record.set_next(page));
                    self.lists.set(index, List { tail: page, ..list });
                }
            }
            End::Cold => {
                self.set_prev(page, NULL);
                self.records.with(page, |record| record.set_next(list.head));
                if list.head == NULL {
                    self.lists.set(index, List { head: page, tail: page });
                } else {
                    self.set_prev(list.head, page);
                    self.lists.set(index, List { head: page, ..list });
                }
            }
        }
        if !self.traits.stamp.is_empty() {
            let stamp = match end {
                End::Cold if list.head != NULL => self.traits.stamp.get(list.head).saturating_sub(1),
                _ => self.next_stamp,
            };
            self.traits.stamp.set(page, stamp);
            self.next_stamp = self.next_stamp.saturating_add(1);
        }
        if list.head == NULL {
            self.filled.with(self.set_index(pool, set), |bits| *bits |= 1 << (class & 63));
        }
    }

    fn unlink(&mut self, page: u32) {
        let (pool, set, class) = (self.pool_of(page), self.set_of(page), self.class_of(page));
        let index = self.list_index(pool, set, class);
        let (prev, next) = (self.prev(page), self.records.get(page).next());
        let mut list = self.lists.get(index);
        if prev == NULL {
            list.head = next;
        } else {
            self.records.with(prev, |record| record.set_next(next));
        }
        if next == NULL {
            list.tail = prev;
        } else {
            self.set_prev(next, prev);
        }
        self.lists.set(index, list);
        if list.head == NULL {
            self.filled.with(self.set_index(pool, set), |bits| *bits &= !(1 << (class & 63)));
        }
        self.records.with(page, |record| record.set_next(NULL));
        if self.traits.before.is_empty() {
            self.records.with(page, |record| record.set_count(record.count()));
        } else {
            self.traits.before.set(page, 0);
        }
    }

    /// The pages of one list from the cold end on.
    pub(crate) fn list(&self, pool: u32, set: u32, class: u32) -> impl Iterator<Item = u32> + '_ {
        let head = self.lists.get(self.list_index(pool, set, class)).head;
        core::iter::successors((head != NULL).then_some(head), |&page| {
            let next = self.records.get(page).next();
            (next != NULL).then_some(next)
        })
        .take(self.last as usize)
    }

    pub(crate) fn sets(&self) -> u32 {
        self.sets
    }

    pub(crate) fn classes(&self) -> u32 {
        self.classes
    }
}
