//! Eviction order: which cached page goes next.
//!
//! A page that takes part in the order has a stamp; the next victim of a list is the page with the least stamp. There is
//! one list per (quota set, class). Under LRU and LFU exactly the CACHED pages take part; under FIFO a page takes part
//! from its publication on, leaves when it comes to the front while it is used or has children, and returns in front of
//! all others once it is a cached leaf.

use super::Model;
use super::pages::Page;
use crate::spec::Policy;

/// What classes know of an indexed anchor page.
#[derive(Clone, Copy, Default, Hash)]
pub(super) struct Rank {
    /// Its own class; under LFU its uses.
    pub(super) base: u8,
    /// The class in force: never below that of a child.
    pub(super) class: u8,
}

impl Model {
    /// Classes that a caller can name.
    pub(super) fn classes(&self) -> u8 {
        match (self.spec.classes, self.counts_uses()) {
            (0, true) => 9,
            (0, false) => 1,
            (classes, _) => classes as u8,
        }
    }

    /// Whether some pool is LFU.
    fn counts_uses(&self) -> bool {
        self.spec.pools.iter().any(|pool| pool.policy == Policy::Lfu)
    }

    /// Whether a caller can set classes.
    pub(super) fn has_classes(&self) -> bool {
        self.spec.classes > 1 || self.counts_uses()
    }

    /// Whether pages differ in class at all.
    fn has_ranks(&self) -> bool {
        self.has_classes() || self.spec.leases > 0
    }

    pub(super) fn policy(&self, page: Page) -> Policy {
        self.spec.pools[page.0].policy
    }

    pub(super) fn rank(&self, page: Page) -> Rank {
        self.state.ranks.get(&page).copied().unwrap_or_default()
    }

    /// The class whose list holds the page; leased pages are above all.
    fn class_of(&self, page: Page) -> u8 {
        if self.is_leased(page) { self.classes() } else { self.rank(page).class }
    }

    /// The list that a page belongs to: the quota set of its owner, and its class.
    fn list_of(&self, page: Page) -> (usize, u8) {
        (self.set_of(page), self.class_of(page))
    }

    /// A page became CACHED.
    pub(super) fn enlist(&mut self, page: Page) {
        self.state.pools[page.0].cached.insert(page.1);
        if self.has_ranks() {
            self.settle_class(page);
        }
        if self.policy(page) != Policy::Fifo {
            self.link(page, true);
        } else if !self.state.pools[page.0].stamps.contains_key(&page.1) {
            self.link(page, false);
        }
    }

    /// A page that gets a reference is CACHED no longer.
    pub(super) fn wake(&mut self, page: Page) {
        let policy = self.policy(page);
        let pool = &mut self.state.pools[page.0];
        if !pool.cached.contains(&page.1) {
            return;
        }
        pool.cached.remove(&page.1);
        if policy != Policy::Fifo {
            pool.stamps.remove(&page.1);
        }
        if policy == Policy::Lfu {
            let rank = self.state.ranks.entry(page).or_default();
            rank.base = rank.base.saturating_add(1);
        }
    }

    /// A page enters the index.
    pub(super) fn enter_order(&mut self, page: Page, class: u8) {
        if self.policy(page) == Policy::Fifo {
            self.link(page, true);
        }
        if self.has_ranks() && self.is_anchor(page) {
            let class = if self.policy(page) == Policy::Lfu { 1 } else { class };
            self.put_base(page, class);
        }
    }

    /// A page leaves the index.
    pub(super) fn leave_order(&mut self, page: Page) {
        let pool = &mut self.state.pools[page.0];
        pool.cached.remove(&page.1);
        pool.stamps.remove(&page.1);
        self.state.ranks.remove(&page);
    }

    /// A page lost its last child by eviction: under FIFO it may return.
    pub(super) fn became_leaf(&mut self, page: Page) {
        let pool = &self.state.pools[page.0];
        let out = pool.cached.contains(&page.1) && !pool.stamps.contains_key(&page.1);
        if out && self.is_leaf(page) {
            self.link(page, false);
        }
    }

    /// Gives a page the last stamp, or the one before the first of its list.
    fn link(&mut self, page: Page, hot: bool) {
        let first = if hot { None } else { self.first_stamp(page) };
        let pool = &mut self.state.pools[page.0];
        pool.clock += 1;
        let stamp = first.map_or((1 << 32) + pool.clock, |first| first - 1);
        pool.stamps.insert(page.1, stamp);
    }

    /// The least stamp in the list of a page, itself apart.
    fn first_stamp(&self, page: Page) -> Option<u64> {
        let list = self.list_of(page);
        let stamps = self.state.pools[page.0].stamps.iter();
        let others = stamps.filter(|(id, _)| **id != page.1 && self.list_of((page.0, **id)) == list);
        others.map(|(_, &stamp)| stamp).min()
    }

    /// A page changed its list: it enters the new one last.
    pub(super) fn relist(&mut self, page: Page) {
        if self.state.pools[page.0].stamps.contains_key(&page.1) {
            self.link(page, true);
        }
    }

    /// Moves a cached page to an end of its list.
    pub(super) fn move_to(&mut self, page: Page, hot: bool) {
        let pool = &self.state.pools[page.0];
        if pool.cached.contains(&page.1) && pool.stamps.contains_key(&page.1) {
            self.link(page, hot);
        }
    }

    /// The page of one quota set that goes next.
    pub(super) fn victim_in(&mut self, pool: usize, set: usize) -> Option<u32> {
        loop {
            let stamps = self.state.pools[pool].stamps.iter();
            let own = stamps.filter(|(id, _)| self.set_of((pool, **id)) == set);
            let (_, _, head) = own.map(|(&id, &stamp)| (self.class_of((pool, id)), stamp, id)).min()?;
            if self.state.pools[pool].cached.contains(&head) && self.is_leaf_of_pool((pool, head)) {
                return Some(head);
            }
            self.state.pools[pool].stamps.remove(&head);
        }
    }

    /// The page of a pool that goes next.
    pub(super) fn victim(&mut self, pool: usize) -> Option<u32> {
        let heads: Vec<u32> = (0..=self.spec.quotas as usize).filter_map(|set| self.victim_in(pool, set)).collect();
        heads.into_iter().min_by_key(|&id| (self.class_of((pool, id)), self.state.pools[pool].stamps[&id], id))
    }

    /// Sets a page's own class; its class in force is never below its children's.
    pub(super) fn put_base(&mut self, page: Page, base: u8) {
        self.state.ranks.entry(page).or_default().base = base;
        let floor = if self.is_leaf(page) { 0 } else { self.rank(page).class };
        self.put_class(page, base.max(floor));
    }

    /// Changes the class in force of a page, and raises its ancestors to it.
    fn put_class(&mut self, page: Page, class: u8) {
        let mut next = Some(page);
        while let Some(at) = next {
            let now = self.rank(at).class;
            if now == class || (at != page && now > class) {
                break;
            }
            self.state.ranks.entry(at).or_default().class = class;
            self.relist(at);
            next = self.parent_page(at);
        }
    }

    /// The class of a page that has just become CACHED: its own if it is a leaf, else what its children need.
    /// A page of another group has the class of its node.
    fn settle_class(&mut self, page: Page) {
        if let Some(node) = self.node_page(page) {
            return self.enter_class(page, self.class_of(node));
        }
        let rank = self.rank(page);
        let own = match self.policy(page) {
            Policy::Lfu => (rank.base.max(1).ilog2() as u8).min(self.classes() - 1),
            _ => rank.base,
        };
        let class = if self.is_leaf(page) { own } else { own.max(rank.class) };
        self.enter_class(page, class);
        if let Some(parent) = self.parent_page(page)
            && self.rank(parent).class < class
        {
            self.put_class(parent, class);
        }
    }

    /// Sets the class in force of a page that became CACHED. Under FIFO it may be in a list already: it enters the new one last.
    fn enter_class(&mut self, page: Page, class: u8) {
        if self.rank(page).class != class {
            self.state.ranks.entry(page).or_default().class = class;
            self.relist(page);
        }
    }

    /// The anchor's page of the node that a page of another group hangs on.
    fn node_page(&self, page: Page) -> Option<Page> {
        let (anchor, (key, place)) = (self.spec.anchor()?, self.state.index.home(page.0, page.1)?);
        if place.0 == anchor {
            return None;
        }
        self.state.index.at(key, (anchor, 0)).map(|stored| (self.home_pool(key, (anchor, 0)), stored.id))
    }

    /// Moves the pages of other groups on a node to the lists of its class.
    pub(super) fn follow_node(&mut self, node: Page) {
        let (Some((key, _)), Some(anchor)) = (self.state.index.home(node.0, node.1), self.spec.anchor()) else {
            return;
        };
        let hung = self.state.index.nodes[key].iter().filter(|(place, _)| place.0 != anchor);
        let hung: Vec<Page> = hung.map(|(place, stored)| (self.home_pool(key, *place), stored.id)).collect();
        let class = self.class_of(node);
        for page in hung.into_iter().filter(|_| self.has_ranks()).collect::<Vec<_>>() {
            if self.rank(page).class != class {
                self.state.ranks.entry(page).or_default().class = class;
                self.relist(page);
            }
        }
    }

    /// Whether a page is the anchor's page of a node.
    pub(super) fn is_anchor(&self, page: Page) -> bool {
        let home = self.state.index.home(page.0, page.1);
        home.is_some_and(|(_, place)| Some(place.0) == self.spec.anchor())
    }

    /// Whether nothing of its own pool is indexed behind a page: what follows on one node is all of one pool.
    fn is_leaf_of_pool(&self, page: Page) -> bool {
        let mut parents = self.state.index.parents.iter();
        self.is_leaf(page) || !parents.any(|(child, parent)| *parent == page && child.0 == page.0)
    }

    /// Whether nothing is indexed behind a page.
    fn is_leaf(&self, page: Page) -> bool {
        match self.state.index.home(page.0, page.1) {
            Some((_, place)) if Some(place.0) == self.spec.anchor() => !self.state.index.has_children(page),
            _ => true,
        }
    }
}
