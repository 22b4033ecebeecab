//! Leases, classes, moves and quotas: the caller's say in the eviction order.

use super::index::Key;
use super::pages::Page;
use super::{LeaseState, Model};
use crate::machine::{Outcome, Resource, Shortage, Status, Value};
use crate::op::{Lease, Seq};

impl Model {
    /// Whether a lease ends at or behind the node of an anchor page.
    pub(super) fn is_leased(&self, page: Page) -> bool {
        if self.spec.leases == 0 {
            return false;
        }
        let Some((key, place)) = self.state.index.home(page.0, page.1) else {
            return false;
        };
        let covers = |lease: &LeaseState| lease.key.as_ref().is_some_and(|end| end.is_below(key));
        Some(place.0) == self.spec.anchor() && self.state.leases.iter().any(covers)
    }

    /// Makes a change of leases at `end`: pages up from there that it covers or uncovers enter their new list last.
    fn change_leases(&mut self, end: &Key, change: impl FnOnce(&mut Vec<LeaseState>)) {
        let path = self.path_up(end);
        let before: Vec<bool> = path.iter().map(|&page| self.is_leased(page)).collect();
        change(&mut self.state.leases);
        for (page, was) in path.into_iter().zip(before) {
            if self.is_leased(page) != was {
                self.relist(page);
                self.follow_node(page);
            }
        }
    }

    /// Anchor pages from a node up to the first.
    fn path_up(&self, end: &Key) -> Vec<Page> {
        let Some(anchor) = self.spec.anchor() else {
            return Vec::new();
        };
        let first = self.state.index.at(end, (anchor, 0));
        let first = first.map(|stored| (self.home_pool(end, (anchor, 0)), stored.id));
        core::iter::successors(first, |&page| self.parent_page(page)).collect()
    }

    pub(super) fn lease(&mut self, lease: Lease, seq: Seq, upto: u32, until: u64) -> Result<Outcome, Outcome> {
        let sequence = self.live(seq)?;
        let step = self.spec.anchor().map_or(1, |anchor| self.page_tokens(anchor));
        let end = self.published_pages(sequence).min(upto) / step * step;
        if end == 0 || until < self.state.tick {
            return Err(Outcome::of(Status::Argument));
        }
        let key = self.node_of(sequence, end / step).expect("a published page is indexed");
        let Some(slot) = self.state.leases.iter().position(|lease| lease.key.is_none()) else {
            return Err(Outcome::capacity(Resource::Leases, 1, 0));
        };
        self.change_leases(&key.clone(), |leases| leases[slot] = LeaseState { label: lease, key: Some(key), until });
        Ok(Outcome::OK)
    }

    pub(super) fn end_lease(&mut self, lease: Lease) -> Result<Outcome, Outcome> {
        let live = |state: &LeaseState| state.key.is_some() && state.label == lease;
        let slot = self.state.leases.iter().position(live).ok_or(Outcome::of(Status::Stale))?;
        self.finish_lease(slot);
        Ok(Outcome::OK)
    }

    fn finish_lease(&mut self, slot: usize) {
        let end = self.state.leases[slot].key.clone().expect("a live lease");
        self.change_leases(&end, |leases| leases[slot].key = None);
    }

    /// Ends the leases whose tick has passed.
    pub(super) fn expire_leases(&mut self) {
        for slot in 0..self.state.leases.len() {
            let lease = &self.state.leases[slot];
            if lease.key.is_some() && lease.until < self.state.tick {
                self.finish_lease(slot);
            }
        }
    }

    /// A node is about to leave the index: leases that end at it end at its parent from now on.
    pub(super) fn lift_leases(&mut self, key: &Key) {
        let Some(anchor) = self.spec.anchor() else { return };
        let parent = key.upto(key.tokens.len() as u32 - self.page_tokens(anchor));
        for slot in 0..self.state.leases.len() {
            if self.state.leases[slot].key.as_ref() != Some(key) {
                continue;
            }
            self.finish_lease(slot);
            if !parent.tokens.is_empty() {
                self.change_leases(&parent, |leases| leases[slot].key = Some(parent.clone()));
            }
        }
    }

    /// The deepest node of a prompt, its anchor pages last first, and the tokens up to there.
    fn prefix(&self, ns: u16, tokens: &[u32]) -> Result<(Vec<Page>, u32), Outcome> {
        self.space(ns)?;
        let Some(anchor) = self.spec.anchor() else {
            return Ok((Vec::new(), 0));
        };
        let step = self.page_tokens(anchor);
        let key = |pages: u32| Key::of(ns, tokens, &[], pages * step);
        let pages = 1..=tokens.len() as u32 / step;
        let depth = pages.take_while(|&pages| self.state.index.at(&key(pages), (anchor, 0)).is_some()).count() as u32;
        Ok((self.path_up(&key(depth)), depth * step))
    }

    pub(super) fn set_class(&mut self, ns: u16, tokens: &[u32], class: u8) -> Result<Outcome, Outcome> {
        let is_lfu = |pool: usize| self.policy((pool, 0)) == crate::spec::Policy::Lfu;
        if class >= self.classes() || self.node_pools().into_iter().any(is_lfu) {
            return Err(Outcome::of(Status::Argument));
        }
        let (path, len) = self.prefix(ns, tokens)?;
        if self.has_classes() {
            for page in path {
                self.put_base(page, class);
                self.follow_node(page);
            }
        }
        Ok(Outcome::ok(Value::Hit(len)))
    }

    pub(super) fn reorder(&mut self, ns: u16, tokens: &[u32], hot: bool) -> Result<Outcome, Outcome> {
        let (path, len) = self.prefix(ns, tokens)?;
        if hot {
            for page in path {
                self.move_to(page, true);
            }
        } else {
            // Up to the first page that has another child; the highest first, so that the leaf ends up in front.
            let alone = |nth: &(usize, Page)| self.children(nth.1) <= u32::from(nth.0 > 0);
            let movable: Vec<Page> = path.into_iter().enumerate().take_while(alone).map(|(_, page)| page).collect();
            for page in movable.into_iter().rev() {
                self.move_to(page, false);
            }
        }
        Ok(Outcome::ok(Value::Hit(len)))
    }

    fn children(&self, page: Page) -> u32 {
        self.state.index.children.of(page)
    }

    /// The quota set of the namespace that owns a page; 0 = none.
    pub(super) fn set_of(&self, page: Page) -> usize {
        let owner = self.state.owners.get(page).copied().flatten();
        let owner = owner.filter(|(ns, opening)| self.state.spaces.opening(*ns) == Some(*opening));
        owner.and_then(|(ns, _)| self.state.quota_of.get(&ns).copied()).unwrap_or(0)
    }

    pub(super) fn set_quota(&mut self, ns: u16, pool: u16, pages: u32) -> Result<Outcome, Outcome> {
        self.space(ns)?;
        if usize::from(pool) >= self.visible_pools() {
            return Err(Outcome::of(Status::Argument));
        }
        if !self.state.quota_of.contains_key(&ns) {
            if self.spec.quotas == 0 {
                return Err(Outcome::capacity(Resource::Quotas, 1, 0));
            }
            let users = self.state.sequences.values().map(|sequence| sequence.ns);
            let users = users.chain(self.state.tickets.values().map(|pins| pins.ns));
            let mut users = users.chain(self.state.transfers.values().map(|running| running.ns));
            if users.any(|user| user == ns) || self.state.index.nodes.keys().any(|key| key.ns == ns) {
                return Err(Outcome::of(Status::Busy));
            }
            let taken = |set: &usize| self.state.quota_of.values().any(|other| other == set);
            let Some(set) = (1..=self.spec.quotas as usize).find(|set| !taken(set)) else {
                return Err(Outcome::capacity(Resource::Quotas, 1, 0));
            };
            self.state.quota_of.insert(ns, set);
        }
        let set = self.state.quota_of[&ns];
        self.state.limits.insert((set, usize::from(pool)), pages);
        Ok(Outcome::OK)
    }

    /// Pages of a pool that are charged to a quota set: not free, first allocated by its namespace.
    fn charged(&self, set: usize, pool: usize) -> u32 {
        let mine = |id: &u32| !self.state.pools[pool].free[*id as usize] && self.set_of((pool, *id)) == set;
        (1..=self.spec.pools[pool].pages).filter(mine).count() as u32
    }

    /// Pages of a pool that the plan being built was promised out of a quota.
    fn promised_of(&self, set: usize, pool: usize) -> u32 {
        let building = self.state.plan.iter().filter(|plan| !plan.finished);
        let entries = building.flat_map(|plan| &plan.entries);
        let mine = entries.filter(|entry| {
            let ns = self.state.sequences[&entry.seq].ns;
            self.state.quota_of.get(&ns) == Some(&set)
        });
        mine.map(|entry| entry.promised[pool]).sum()
    }

    /// Whether a sequence's namespace may be charged `need` pages per pool, its own cached ones evicted first.
    pub(super) fn may_charge(&self, seq: Seq, count: u32, need: &[u32]) -> Result<(), Outcome> {
        let sequence = &self.state.sequences[&seq];
        for (pool, &asked) in need.iter().enumerate() {
            let Some((short, limit)) = self.over_quota(sequence.ns, pool, asked) else { continue };
            let alone = |n: u32| self.alone(sequence, n)[pool] <= limit;
            let never = !alone(count);
            let fits = if never { (1..count).rev().find(|&n| alone(n)).unwrap_or(0) } else { 0 };
            let status = if never { Status::Never } else { Status::Retry };
            return Err(Outcome { status, value: Value::Short(Shortage { fits, ..short }) });
        }
        Ok(())
    }

    /// What is short, and the limit, where `asked` more pages would exceed a namespace's quota although it evicts its own.
    pub(super) fn over_quota(&self, ns: u16, pool: usize, asked: u32) -> Option<(Shortage, u32)> {
        let &set = self.state.quota_of.get(&ns)?;
        let limit = self.state.limits.get(&(set, pool)).copied().unwrap_or(0);
        let cached = self.state.pools[pool].cached.iter().filter(|&&id| self.set_of((pool, id)) == set).count() as u32;
        let taken = self.charged(set, pool) + self.promised_of(set, pool);
        if limit == 0 || asked == 0 || taken + asked <= limit + cached {
            return None;
        }
        let have = limit.saturating_sub(taken);
        let short =
            Shortage { resource: Resource::Quota, need: asked, have, reclaimable: cached, ..Shortage::default() };
        Some((short, limit))
    }

    /// Namespaces that would exceed their quota by what is promised evict their own pages.
    pub(super) fn evict_for_quotas(&mut self) {
        for set in 1..=self.spec.quotas as usize {
            for pool in 0..self.spec.pools.len() {
                let limit = self.state.limits.get(&(set, pool)).copied().unwrap_or(0);
                while limit > 0 && self.charged(set, pool) + self.promised_of(set, pool) > limit {
                    let Some(victim) = self.victim_in(pool, set) else { break };
                    self.evict_victim(pool, victim);
                }
            }
        }
    }
}
