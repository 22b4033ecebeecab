//! Retention: the caller's say in the eviction order. Leases until a tick, classes, hot and cold ends.
//!
//! All of it is soft: a leased page still counts as reclaimable and goes when nothing else is left. Only tickets pin.
//! A lease covers the path to a page. `leased` of a page counts the leases that end there and its leased children, so a
//! page is leased iff a lease ends at or below it.

use crate::cache::Cache;
use crate::error::{Error, Resource, Shortage};
use crate::ids::{LeaseId, SequenceId, Tick};
use crate::index::{INDEX, Spans};
use crate::matching::Prompt;
use crate::mem::IndexSlots;
use crate::pages::{End, NULL};

/// One lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Lease {
    /// Last page that it covers; 0 = the slot is free.
    pub(crate) node: u32,
    pub(crate) generation: u32,
    pub(crate) until: Tick,
}

crate::records::zero!(Lease { node, generation, until });

/// All leases.
pub(crate) struct Leases<'m> {
    pub(crate) slots: IndexSlots<'m, Lease>,
    /// No lease ends earlier.
    next_end: Tick,
}

impl<'m> Leases<'m> {
    pub(crate) fn new(slots: &'m mut [Lease]) -> Self {
        Self { slots: IndexSlots::new(slots), next_end: Tick::MAX }
    }
}

/// Where to move pages in the eviction order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Move {
    /// To be evicted first. Pages that have children elsewhere stay.
    Cold = 0,
    /// To be evicted last within their class.
    Hot = 1,
}

impl Cache<'_> {
    fn add_lease(&mut self, page: u32) {
        let mut page = page;
        while page != NULL && !self.pages.is_root(page) && self.count_lease(page, 1) == 1 {
            page = self.pages.parent(page);
        }
    }

    fn remove_lease(&mut self, page: u32) {
        let mut page = page;
        while page != NULL && !self.pages.is_root(page) && self.count_lease(page, -1) == 0 {
            page = self.pages.parent(page);
        }
    }

    /// Changes how many leases a page has at or below it, and its list if that makes it leased or not; gives the count.
    fn count_lease(&mut self, page: u32, by: i32) -> u32 {
        let before = self.pages.traits.leased.get(page);
        let after = before.saturating_add_signed(by);
        if (before == 0) == (after == 0) {
            self.pages.traits.leased.set(page, after);
        } else {
            self.pages.relist(page, |pages| pages.traits.leased.set(page, after));
            self.follow_node(page);
        }
        after
    }

    /// Moves the pages of other groups on a node to the lists of its class.
    fn follow_node(&mut self, node: u32) {
        for place in 0..self.index.places {
            let hung = self.index.hung(node, place);
            if hung != NULL {
                self.pages.follow_node(hung);
            }
        }
    }
}

impl Cache<'_> {
    /// Keeps the published pages of a sequence's first `upto` tokens above all others until time passes `until`.
    /// O(pages newly covered + leases).
    ///
    /// # Errors
    /// `Argument` when none of these tokens is published or `until` has passed, a shortage of leases, `Stale`.
    pub fn lease(&mut self, id: SequenceId, upto: u32, until: Tick) -> Result<LeaseId, Error> {
        let holder = self.sequence(id)?;
        let sequence = self.holders.get(holder);
        let depth = self.published_pages(sequence).min(upto >> self.index.shift);
        if !INDEX || depth == 0 || until < self.now {
            return Err(Error::Argument);
        }
        let free = (0..self.leases.slots.len()).find(|&slot| self.leases.slots.get(slot).node == NULL);
        let slot = free.ok_or(Shortage::of(Resource::Leases, 1, 0))?;
        let node = self.index.ancestor(&self.pages, sequence.tip, sequence.depth.saturating_sub(depth));
        let generation = self.leases.slots.get(slot).generation.wrapping_add(1).max(1);
        self.leases.slots.set(slot, Lease { node, generation, until });
        self.leases.next_end = self.leases.next_end.min(until);
        self.add_lease(node);
        Ok(LeaseId::new(generation, slot))
    }

    /// Ends a lease early.
    ///
    /// # Errors
    /// `Stale`.
    pub fn end_lease(&mut self, id: LeaseId) -> Result<(), Error> {
        let (generation, slot) = id.parts();
        let lease = self.leases.slots.get(slot);
        if !INDEX || lease.node == NULL || lease.generation != generation {
            return Err(Error::Stale);
        }
        self.end(slot);
        Ok(())
    }

    fn end(&mut self, slot: u32) {
        let node = self.leases.slots.with(slot, |lease| core::mem::take(&mut lease.node));
        self.remove_lease(node);
    }

    /// Ends the leases that time has passed. O(1) while there is none, else O(leases).
    pub(crate) fn expire_leases(&mut self) {
        if !INDEX || self.leases.next_end >= self.now {
            return;
        }
        let mut next = Tick::MAX;
        for slot in 0..self.leases.slots.len() {
            let lease = self.leases.slots.get(slot);
            if lease.node != NULL && lease.until < self.now {
                self.end(slot);
            } else if lease.node != NULL {
                next = next.min(lease.until);
            }
        }
        self.leases.next_end = next;
    }

    /// A leased page is about to leave the index: its leases cover the page before it from now on.
    pub(crate) fn lift_leases(&mut self, page: u32) {
        let parent = self.pages.parent(page);
        for slot in 0..self.leases.slots.len() {
            let lease = self.leases.slots.get(slot);
            if lease.node != page {
                continue;
            }
            self.remove_lease(page);
            let is_root = self.pages.is_root(parent);
            self.leases.slots.set(slot, Lease { node: if is_root { NULL } else { parent }, ..lease });
            if !is_root {
                self.add_lease(parent);
            }
        }
    }

    /// Puts the cached prefix of a prompt into a class. Lower classes are evicted first. A page's class in force is never
    /// below that of a page behind it. Gives the tokens concerned. O(pages).
    ///
    /// # Errors
    /// `Argument` for a class beyond the configured ones, or where the index is in a pool under LFU, `Stale`.
    pub fn set_class(&mut self, prompt: &Prompt<'_>, class: u8) -> Result<u32, Error> {
        // Without an index no pool carries one.
        let lfu = self.index.is_enabled() && self.pages.has_lfu_nodes();
        if u32::from(class) >= self.limits.classes || lfu {
            return Err(Error::Argument);
        }
        let (tip, depth) = self.path_of(prompt)?;
        let mut node = tip;
        while INDEX && !self.pages.is_root(node) && node != NULL && self.limits.counted {
            self.pages.set_class(node, class);
            self.follow_node(node);
            node = self.pages.parent(node);
        }
        Ok(depth << self.index.shift)
    }

    /// Moves the cached prefix of a prompt to an end of its lists. Used pages and pages that have other children behind
    /// them stay where they are. Gives the tokens of the prefix. O(pages).
    ///
    /// # Errors
    /// `Stale`, `Argument`.
    pub fn reorder(&mut self, prompt: &Prompt<'_>, to: Move) -> Result<u32, Error> {
        let (tip, depth) = self.path_of(prompt)?;
        match to {
            _ if !INDEX => {}
            Move::Hot => {
                let mut node = tip;
                while !self.pages.is_root(node) && node != NULL {
                    self.pages.move_to(node, End::Hot);
                    node = self.pages.parent(node);
                }
            }
            Move::Cold => {
                let (mut alone, mut node) = (0_u32, tip);
                while !self.pages.is_root(node) && self.pages.children(node) <= u32::from(alone > 0) {
                    alone = alone.saturating_add(1);
                    node = self.pages.parent(node);
                }
                for up in (0..alone).rev() {
                    let node = self.index.ancestor(&self.pages, tip, up);
                    self.pages.move_to(node, End::Cold);
                }
            }
        }
        Ok(depth << self.index.shift)
    }

    fn path_of(&self, prompt: &Prompt<'_>) -> Result<(u32, u32), Error> {
        let slot = self.namespace(prompt.namespace)?;
        let count = u32::try_from(prompt.tokens.len()).map_err(|_| Error::Argument)?;
        let root = self.pages.root(slot);
        if !INDEX {
            return Ok((root, 0));
        }
        let spans = Spans::Given(prompt.spans);
        Ok(self.index.walk(&self.pages, root, prompt.tokens, spans, count >> self.index.shift))
    }
}
