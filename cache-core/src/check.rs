//! Self-check: the first violated rule and where.
//!
//! Each rule is one sentence of the contract and one function below.

use crate::cache::Cache;
use crate::error::Error;
use crate::index::INDEX;
use crate::pages::NULL;
use crate::sequence::Kind;

/// A rule of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum Rule {
    /// used + cached + free = pages, in every pool; promises exist only while a plan is built. Index: the pool.
    Counters = 1,
    /// A page is in exactly one state and its record says which. Index: the page.
    PageState = 2,
    /// The eviction lists hold what their policy says, in the class that is in force. Index: the page.
    Order = 3,
    /// References are table entries, path ends, used children and open copies. Index: the page.
    References = 4,
    /// A node is of the pool that its place on the path asks for. Its parent is a node or a root, used if the node is, and
    /// counts it as a child. Index: the page.
    Tree = 5,
    /// Every child can be found; a chain bit means one child, the next page. Index: the page.
    Lookup = 6,
    /// A page of another group and its node point at each other. Index: the page.
    Hung = 7,
    /// Rows hold a page for every token that a query may read, in sealed columns one of the sealed pool; fixed rings are
    /// whole and not indexed. Index: the sequence, ticket or transfer.
    Table = 8,
    /// published <= verified <= len, known <= len, and no path is longer than the anchor's row. Index: the sequence, ticket
    /// or transfer.
    Cursors = 9,
    /// A page is pending iff transfers alone keep it. Index: the page.
    Pending = 10,
    /// A page is leased iff a lease ends at or below it. Index: the page.
    Leases = 11,
    /// Table chunks and media spans in use are those that rows and lists have. Index: free ones counted.
    Metadata = 12,
}

/// The first violation found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// Where: see the rule.
    pub index: u32,
}

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?} at {}", self.rule, self.index)
    }
}

type Checked = Result<(), Violation>;

fn ensure(holds: bool, rule: Rule, index: u32) -> Checked {
    if holds { Ok(()) } else { Err(Violation { rule, index }) }
}

impl Cache<'_> {
    /// Elements of scratch memory that `check` needs at a level.
    #[must_use]
    pub fn check_scratch(&self, level: u32) -> u32 {
        if level < 2 { 0 } else { self.pages.root(self.spaces.count()) }
    }

    /// Looks for a violated rule. Level 0: counters, O(pools). Level 1: pages and lists, O(pages). Level 2: references, tree
    /// and tables, O(pages + table entries + nodes * depth of duplicates). `scratch` is overwritten.
    ///
    /// # Errors
    /// `ShortBuffer` with the scratch elements needed.
    pub fn check(&self, level: u32, scratch: &mut [u32]) -> Result<Checked, Error> {
        let need = self.check_scratch(level);
        if (scratch.len() as u64) < u64::from(need) {
            return Err(Error::ShortBuffer(need));
        }
        Ok(self.check_level(level, scratch))
    }

    fn check_level(&self, level: u32, scratch: &mut [u32]) -> Checked {
        self.check_counters()?;
        if level >= 1 {
            self.check_pages()?;
            if INDEX {
                self.check_order()?;
            }
        }
        if level >= 2 {
            self.check_references(scratch)?;
            if INDEX {
                self.check_tree(scratch)?;
                self.check_hung()?;
                self.check_leases(scratch)?;
            }
            self.check_pending(scratch)?;
            self.check_holders()?;
            self.check_metadata()?;
        }
        Ok(())
    }

    fn check_counters(&self) -> Checked {
        for index in 0..self.limits.pools {
            let pool = self.pages.pools.get(index);
            let sum = u64::from(pool.free).saturating_add(u64::from(pool.cached));
            let promised = pool.promised == 0
                || (self.plan.is_building() && pool.promised <= pool.free.saturating_add(pool.cached));
            ensure(sum <= u64::from(pool.pages) && promised && pool.pending <= pool.used(), Rule::Counters, index)?;
        }
        Ok(())
    }

    fn check_pages(&self) -> Checked {
        for index in 0..self.limits.pools {
            let pool = self.pages.pools.get(index);
            let (mut free, mut cached) = (0_u32, 0_u32);
            for page in pool.base.saturating_add(1)..=pool.base.saturating_add(pool.pages) {
                let (is_free, is_cached, is_used) =
                    (self.pages.is_free(page), self.pages.is_cached(page), self.pages.is_used(page));
                let states = u32::from(is_free).saturating_add(u32::from(is_cached)).saturating_add(u32::from(is_used));
                let count = self.pages.count(page);
                ensure(states == 1 && (is_used == (count > 0)), Rule::PageState, page)?;
                free = free.saturating_add(u32::from(is_free));
                cached = cached.saturating_add(u32::from(is_cached));
            }
            ensure(free == pool.free && cached == pool.cached, Rule::Counters, index)?;
        }
        Ok(())
    }

    fn check_order(&self) -> Checked {
        for pool in 0..self.limits.pools {
            let (mut cached, mut leaves) = (0_u32, 0_u32);
            for set in 0..self.pages.sets() {
                let mut cached_here = 0_u32;
                for class in 0..self.pages.classes() {
                    for page in self.pages.list(pool, set, class) {
                        let state = self.pages.pools.get(pool);
                        let is_cached = self.pages.is_cached(page);
                        let right = self.pages.pool_of(page) == pool
                            && self.pages.set_of(page) == set
                            && self.pages.class_of(page) == class
                            && (is_cached || state.policy == crate::Policy::Fifo as u32);
                        ensure(right, Rule::Order, page)?;
                        cached_here = cached_here.saturating_add(u32::from(is_cached));
                        leaves = leaves.saturating_add(u32::from(is_cached));
                    }
                }
                let state = self.pages.pools.get(pool);
                let counted = if self.pages.sets() == 1 {
                    state.cached
                } else {
                    self.pages.cached_in.get(self.pages.set_index(pool, set))
                };
                cached = cached.saturating_add(counted);
                let is_fifo = self.pages.pools.get(pool).policy == crate::Policy::Fifo as u32;
                ensure(is_fifo || cached_here == counted, Rule::Order, pool)?;
            }
            ensure(cached == self.pages.pools.get(pool).cached && leaves <= cached, Rule::Counters, pool)?;
        }
        Ok(())
    }

    /// Counts into `scratch`, by page, the references that rows, paths, copies and children make.
    fn count_references(&self, scratch: &mut [u32], kinds: &[Kind], with_children: impl Fn(u32) -> bool) {
        scratch.fill(0);
        let mut add = |page: u32| {
            if let Some(count) = scratch.get_mut(page as usize) {
                *count = count.saturating_add(1);
            }
        };
        for &kind in kinds {
            for holder in self.holders.each(kind) {
                let state = self.holders.get(holder);
                if INDEX && state.depth > 0 {
                    add(state.tip);
                }
                for group in 0..self.limits.groups {
                    for (base, entries) in self.tables.chunks_of(holder, group) {
                        for (entry, page) in (base..).zip(entries).filter(|(_, page)| !page.is_null()) {
                            let page = page.get();
                            let on_path = INDEX && group == self.limits.anchor && entry < state.depth;
                            if !on_path || (state.duplicates > 0 && !self.is_node(holder, entry, page)) {
                                add(page);
                            }
                        }
                    }
                }
            }
        }
        if kinds.contains(&Kind::Sequence) && self.plan.is_finished() {
            for nth in 0..self.plan.copy_count {
                add(self.plan.copy(nth).source);
            }
        }
        for page in 1..=self.pages.last() {
            if self.pages.is_indexed(page) && !self.pages.is_hung(page) && with_children(page) {
                add(self.pages.parent(page));
            }
        }
    }

    fn is_node(&self, holder: u32, entry: u32, page: u32) -> bool {
        let state = self.holders.get(holder);
        let up = state.depth.saturating_sub(entry.saturating_add(1));
        self.index.ancestor(&self.pages, state.tip, up) == page
    }

    fn check_references(&self, scratch: &mut [u32]) -> Checked {
        let kinds = [Kind::Sequence, Kind::Ticket, Kind::Transfer];
        self.count_references(scratch, &kinds, |page| self.pages.is_used(page));
        for page in 1..=self.pages.last() {
            let counted = scratch.get(page as usize).copied().unwrap_or(0);
            ensure(counted == self.pages.count(page), Rule::References, page)?;
        }
        Ok(())
    }

    fn check_tree(&self, scratch: &mut [u32]) -> Checked {
        scratch.fill(0);
        let mut nodes = 0_u32;
        for page in 1..=self.pages.last() {
            if !self.pages.is_indexed(page) || self.pages.is_hung(page) {
                continue;
            }
            nodes = nodes.saturating_add(1);
            let parent = self.pages.parent(page);
            let parent_used = self.pages.is_root(parent) || self.pages.is_used(parent) || !self.pages.is_used(page);
            let parent_indexed = self.pages.is_root(parent) || self.pages.is_indexed(parent);
            let is_right = self.pages.pool_of(page) == self.pages.node_pool(page);
            ensure(parent_used && parent_indexed && is_right, Rule::Tree, page)?;
            let found = self.pages.inline_child(parent) == page
                || self.limits.index == crate::IndexKind::Flat
                || (self.pages.is_probed(page) && self.index.is_reachable(&self.pages, page))
                || (!self.pages.is_probed(page) && self.limits.index == crate::IndexKind::None);
            ensure(found, Rule::Lookup, page)?;
            if let Some(count) = scratch.get_mut(parent as usize) {
                *count = count.saturating_add(1);
            }
        }
        ensure(nodes == self.index.nodes, Rule::Tree, 0)?;
        for page in 1..self.pages.root(self.spaces.count()) {
            let counted = scratch.get(page as usize).copied().unwrap_or(0);
            ensure(counted == self.pages.children(page), Rule::Tree, page)?;
            let child = self.pages.inline_child(page);
            ensure(child == NULL || self.pages.parent(child) == page, Rule::Tree, page)?;
            let chained = self.index.is_chained(page);
            let one = child == page.saturating_add(1) && counted == 1 && !self.index.has_parts(child);
            ensure(!chained || one, Rule::Lookup, page)?;
        }
        Ok(())
    }

    fn check_hung(&self) -> Checked {
        for node in 1..=self.index.last_node() {
            for place in 0..self.index.places {
                let page = self.index.hung(node, place);
                let mark = u32::from(self.pages.traits.place.get(page));
                let right = page == NULL || (self.pages.parent(page) == node && mark == place.saturating_add(1));
                ensure(right && (page == NULL || self.pages.is_indexed(node)), Rule::Hung, node)?;
            }
        }
        for page in 1..=self.pages.last() {
            if self.pages.is_hung(page) {
                let place = u32::from(self.pages.traits.place.get(page)).saturating_sub(1);
                ensure(self.index.hung(self.pages.parent(page), place) == page, Rule::Hung, page)?;
            }
        }
        Ok(())
    }

    fn check_pending(&self, scratch: &mut [u32]) -> Checked {
        if self.limits.transfers == 0 {
            return Ok(());
        }
        self.count_references(scratch, &[Kind::Transfer], |page| self.pages.is_pending(page));
        let mut pending = 0_u32;
        for page in 1..=self.pages.last() {
            let counted = scratch.get(page as usize).copied().unwrap_or(0);
            let noted = self.pages.traits.pending.get(page).get();
            ensure(counted == noted && (noted == 0 || self.pages.any_transfers()), Rule::Pending, page)?;
            pending = pending.saturating_add(u32::from(self.pages.is_pending(page)));
        }
        let sum =
            (0..self.limits.pools).fold(0_u32, |sum, pool| sum.saturating_add(self.pages.pools.get(pool).pending));
        ensure(pending == sum, Rule::Pending, 0)
    }

    fn check_leases(&self, scratch: &mut [u32]) -> Checked {
        if self.limits.leases == 0 {
            return Ok(());
        }
        scratch.fill(0);
        let mut add = |page: u32| {
            if let Some(count) = scratch.get_mut(page as usize) {
                *count = count.saturating_add(1);
            }
        };
        self.leases.slots.iter().filter(|lease| lease.node != NULL).for_each(|lease| add(lease.node));
        for page in 1..=self.pages.last() {
            let is_node = self.pages.is_indexed(page) && !self.pages.is_hung(page);
            if is_node && self.pages.traits.leased.get(page) > 0 && !self.pages.is_root(self.pages.parent(page)) {
                add(self.pages.parent(page));
            }
        }
        for page in 1..=self.pages.last() {
            let counted = scratch.get(page as usize).copied().unwrap_or(0);
            ensure(counted == self.pages.traits.leased.get(page), Rule::Leases, page)?;
        }
        Ok(())
    }

    fn check_holders(&self) -> Checked {
        for kind in [Kind::Sequence, Kind::Ticket, Kind::Transfer] {
            for holder in self.holders.each(kind) {
                let state = self.holders.get(holder);
                let published = self.published_pages(state) << self.index.shift;
                let ordered = published <= state.verified && state.verified <= state.len && state.known <= state.len;
                let has_row = state.depth <= self.anchor_end(state, state.len);
                ensure(ordered && has_row, Rule::Cursors, holder)?;
                let written = self.written(state);
                for index in 0..self.limits.groups {
                    let group = self.groups.get(index);
                    let end = self.stored_end(index, state, written);
                    let first = if group.is_ring() { 0 } else { group.first(state.len).min(end) };
                    let sinks = group.sink_pages(written).min(first);
                    let columns = self.sealed(holder, index);
                    let all = (0..sinks).chain(first..end).all(|entry| {
                        let page = self.tables.get(holder, index, entry);
                        let pool = if columns.contains(entry) { group.sealed_pool.wrapping_sub(1) } else { group.pool };
                        let is_right = page != NULL && self.pages.pool_of(page) == pool;
                        is_right && !(group.is_ring() && self.pages.is_indexed(page))
                    });
                    let none_behind = self.tables.get(holder, index, end) == NULL;
                    ensure(all && none_behind, Rule::Table, holder)?;
                }
            }
        }
        Ok(())
    }

    fn check_metadata(&self) -> Checked {
        let mut chunks = 0_usize;
        for kind in [Kind::Sequence, Kind::Ticket, Kind::Transfer] {
            for holder in self.holders.each(kind) {
                for group in 0..self.limits.groups {
                    chunks = chunks.saturating_add(self.tables.chunks_of(holder, group).count());
                }
            }
        }
        let free = self.tables.free_chunks();
        let all = chunks.saturating_add(free as usize);
        ensure(all == self.tables.chunks() as usize, Rule::Metadata, free)?;
        let mut parts = 0_usize;
        for holder in self.holders.each(Kind::Sequence) {
            parts = parts.saturating_add(self.index.parts.list(self.holders.get(holder).parts).count());
        }
        for holder in self.holders.each(Kind::Transfer) {
            parts = parts.saturating_add(self.index.parts.list(self.holders.get(holder).parts).count());
        }
        for page in 1..=self.index.last_node() {
            parts = parts.saturating_add(self.index.parts.list(self.index.parts_of(page)).count());
        }
        let free = self.index.parts.free;
        ensure(parts.saturating_add(free as usize) == self.limits.key_parts as usize, Rule::Metadata, free)
    }
}
