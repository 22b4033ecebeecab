//! Pools, states of pages, references.
//!
//! A page is FREE iff it is in `free`, CACHED iff it is in `cached`, USED otherwise.

use core::hash::{Hash, Hasher};
use std::collections::{BTreeMap, BTreeSet};

use bitvec::vec::BitVec;

use super::Model;
use super::per_page::{Counts, PerPage};
use crate::spec::NULL;

/// A pool and an id in it.
pub(super) type Page = (usize, u32);

/// One pool.
pub(super) struct Pool {
    /// Number of pages.
    pub(super) pages: u32,
    /// Bit i: page i is FREE. Bit 0 is never set.
    pub(super) free: BitVec,
    /// CACHED pages.
    pub(super) cached: BTreeSet<u32>,
    /// Stamps of the pages that take part in the eviction order.
    pub(super) stamps: BTreeMap<u32, u64>,
    /// Stamps given so far.
    pub(super) clock: u64,
}

impl Hash for Pool {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.free.iter_ones().for_each(|id| id.hash(state));
        self.cached.hash(state);
        self.stamps.hash(state);
    }
}

impl Pool {
    pub(super) fn new(pages: u32) -> Self {
        let mut free = BitVec::repeat(true, pages as usize + 1);
        free.set(0, false);
        Self { pages, free, cached: BTreeSet::new(), stamps: BTreeMap::new(), clock: 0 }
    }

    pub(super) fn free_count(&self) -> u32 {
        self.free.count_ones() as u32
    }

    pub(super) fn cached_count(&self) -> u32 {
        self.cached.len() as u32
    }

    /// Takes the lowest free page.
    pub(super) fn take(&mut self) -> u32 {
        let id = self.free.first_one().expect("a promised page is missing");
        self.free.set(id, false);
        id as u32
    }

    /// Takes `count` free pages with consecutive ids in one aligned block of 64, the lowest such run; looked for in 64 blocks
    /// from the lowest free page on.
    pub(super) fn take_run(&mut self, count: u32) -> Option<Vec<u32>> {
        let first = self.free.first_one()? as u32 / 64 * 64;
        let last = (first + 64 * 64).min(self.pages + 1).saturating_sub(count);
        let is_run =
            |id: &u32| *id / 64 == (*id + count - 1) / 64 && (*id..*id + count).all(|id| self.free[id as usize]);
        let run = (first..=last).find(is_run)?;
        let ids: Vec<u32> = (run..run + count).collect();
        ids.iter().for_each(|&id| self.free.set(id as usize, false));
        Some(ids)
    }

    /// Whether the page is neither FREE nor CACHED.
    pub(super) fn is_used(&self, id: u32) -> bool {
        !self.free[id as usize] && !self.cached.contains(&id)
    }
}

impl Model {
    /// All references, recounted.
    pub(super) fn references(&self) -> Counts {
        let mut refs = self.pins();
        let mut add = |page: Page| {
            if page.1 != NULL {
                refs.add(page);
            }
        };
        for sequence in self.state.sequences.values() {
            for (group, ring) in sequence.rings.iter().enumerate() {
                match self.is_ring(group) {
                    true => ring.iter().for_each(|&id| add((self.pool_of(group), id))),
                    false => self.row_pages(sequence, group).for_each(&mut add),
                }
            }
            if let Some(anchor) = self.spec.anchor() {
                sequence.holds.iter().for_each(|(&index, &id)| add((self.indexed_pool(anchor, index), id)));
            }
        }
        for entry in self.state.plan.iter().flat_map(|plan| &plan.entries) {
            entry.kept.iter().for_each(|&page| add(page));
            for (group, copy) in entry.copies.iter().enumerate() {
                copy.iter().for_each(|&(_, dst)| add((self.pool_of(group), dst)));
            }
            for (group, ring) in entry.rings.iter().enumerate() {
                ring.iter().flatten().for_each(|&id| add((self.pool_of(group), id)));
            }
            for (group, fresh) in entry.fresh.iter().enumerate() {
                self.sealed_pages(entry, group).into_iter().for_each(&mut add);
                fresh.iter().for_each(|&id| add((self.pool_of(group), id)));
            }
        }
        refs
    }

    /// References by tickets and transfers.
    pub(super) fn pins(&self) -> Counts {
        let mut refs = self.transfer_pins();
        for ticket in self.state.tickets.values() {
            for (group, table) in ticket.tables.iter().enumerate() {
                for (index, &id) in (0..).zip(table).filter(|(_, id)| **id != NULL) {
                    refs.add((self.indexed_pool(group, index), id));
                }
            }
        }
        refs
    }

    /// References by transfers.
    pub(super) fn transfer_pins(&self) -> Counts {
        let mut refs = Counts::default();
        for &page in self.state.transfers.values().flat_map(|t| &t.pinned) {
            refs.add(page);
        }
        refs
    }

    /// The USED pages: those with references, and every indexed ancestor of one.
    pub(super) fn kept(&self, refs: &Counts) -> PerPage<()> {
        let mut kept = PerPage::default();
        for (page, _) in refs.iter() {
            let mut next = Some(page);
            while let Some(page) = next
                && kept.slot(page).replace(()).is_none()
            {
                next = self.parent_page(page);
            }
        }
        kept
    }

    /// Lets each page that nothing keeps any more fall to CACHED (hot end) or FREE, in order; a parent
    /// that only such a page kept follows it.
    pub(super) fn settle(&mut self, pages: &[Page]) {
        if pages.is_empty() {
            return;
        }
        let kept = self.kept(&self.references());
        for &page in pages {
            let mut next = Some(page);
            while let Some((pool, id)) = next {
                if id == NULL || kept.contains((pool, id)) || !self.state.pools[pool].is_used(id) {
                    break;
                }
                if self.state.index.home(pool, id).is_some() {
                    self.enlist((pool, id));
                } else {
                    self.state.pools[pool].free.set(id as usize, true);
                }
                next = self.parent_page((pool, id));
            }
        }
    }
}
