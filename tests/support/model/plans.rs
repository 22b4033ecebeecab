//! Plans: promise, assign, accept or give back.

use super::pages::Page;
use super::per_page::Counts;
use super::{Entry, Model, Plan, Sequence};
use crate::machine::{Copy, Outcome, PlanView, Resource, Shortage, Status, Value};
use crate::op::Seq;
use crate::spec::GroupKind;

/// What happens to the partly filled last page of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    InPlace,
    Copy,
    Withdraw,
}

impl Model {
    pub(super) fn plan_begin(&mut self, tick: u64) -> Result<Outcome, Outcome> {
        if self.state.plan.is_some() {
            return Err(Outcome::of(Status::State));
        }
        self.advance(tick)?;
        self.state.plan = Some(Plan { finished: false, entries: Vec::new(), scrubs: Vec::new(), seals: Vec::new() });
        Ok(Outcome::OK)
    }

    pub(super) fn advance(&mut self, tick: u64) -> Result<Outcome, Outcome> {
        if tick < self.state.tick {
            return Err(Outcome::of(Status::Argument));
        }
        if tick > self.state.tick {
            self.state.tick = tick;
            self.expire_leases();
            self.expire();
        }
        Ok(Outcome::OK)
    }

    /// Pages of each pool that the plan being built was promised.
    pub(super) fn promised(&self) -> Vec<u32> {
        let mut promised = vec![0; self.spec.pools.len()];
        let building = self.state.plan.iter().filter(|plan| !plan.finished);
        for entry in building.flat_map(|plan| &plan.entries) {
            for (total, &own) in promised.iter_mut().zip(&entry.promised) {
                *total += own;
            }
        }
        promised
    }

    pub(super) fn building(&self) -> Result<&Plan, Outcome> {
        self.state.plan.as_ref().filter(|plan| !plan.finished).ok_or(Outcome::of(Status::State))
    }

    pub(super) fn finished(&self) -> Result<&Plan, Outcome> {
        self.state.plan.as_ref().filter(|plan| plan.finished).ok_or(Outcome::of(Status::State))
    }

    pub(super) fn plan_add(&mut self, seq: Seq, count: u32, tokens: Option<&[u32]>) -> Result<Outcome, Outcome> {
        if tokens.is_some_and(|tokens| tokens.len() as u32 != count) {
            return Err(Outcome::of(Status::Argument));
        }
        self.building()?;
        self.live(seq)?;
        if self.in_plan(seq) {
            return Err(Outcome::of(Status::Busy));
        }
        if count == 0 {
            return Err(Outcome::of(Status::Argument));
        }
        let entry = self.promise(seq, count, tokens)?;
        self.state.plan.as_mut().expect("building").entries.push(entry);
        Ok(Outcome::OK)
    }

    /// `None` when `count` more tokens fit in an empty cache, else the largest count that does.
    pub(super) fn largest_alone(&self, sequence: &Sequence, count: u32) -> Option<u32> {
        let rings = |n: u32| self.spec.groups.iter().all(|group| group.ring == 0 || n <= group.ring);
        let pages = |n: u32| self.alone(sequence, n).iter().zip(&self.spec.pools).all(|(own, p)| *own <= p.pages);
        let fits = |n: u32| rings(n) && pages(n);
        if fits(count) { None } else { Some((1..count).rev().find(|&n| fits(n)).unwrap_or(0)) }
    }

    /// Pages of each pool that a sequence occupies while it gets `count` tokens more; sealed pages stay sealed.
    pub(super) fn alone(&self, sequence: &Sequence, count: u32) -> Vec<u32> {
        let len = sequence.len();
        let mut pages = vec![0; self.spec.pools.len()];
        for (group, spec) in self.spec.groups.iter().enumerate().take(self.visible_groups()) {
            if self.is_ring(group) {
                pages[self.pool_of(group)] += self.ring_pages(group);
                continue;
            }
            let end = (len + count).div_ceil(spec.page_tokens);
            let begin = match spec.kind {
                GroupKind::Full => 0,
                GroupKind::Window { .. } => spec.window_start(len) / spec.page_tokens,
            };
            let sinks = spec.sinks().min(len + count).div_ceil(spec.page_tokens).min(begin);
            let sealed = sequence.sealed[group].len() as u32;
            pages[self.pool_of(group)] += sinks + (end - begin) - sealed;
            pages[self.sealed_pool(group)] += sealed;
        }
        pages
    }

    /// What each group does with its last page when `seq` is added after `before`.
    fn last_pages(&self, seq: Seq, before: &[Entry], no_node: bool) -> Vec<Last> {
        let pins = self.pins();
        (0..self.spec.groups.len()).map(|group| self.last_page(seq, group, before, &pins, no_node)).collect()
    }

    fn last_page(&self, seq: Seq, group: usize, before: &[Entry], pins: &Counts, no_node: bool) -> Last {
        if !self.grows(&self.state.sequences[&seq], group, no_node) {
            return Last::InPlace;
        }
        match self.partial_page(&self.state.sequences[&seq], group) {
            Some(id) if self.must_copy(seq, (group, id), before, pins) => Last::Copy,
            _ => Last::InPlace,
        }
    }

    fn partial_page(&self, sequence: &Sequence, group: usize) -> Option<u32> {
        let page_tokens = self.page_tokens(group);
        let index = sequence.len() / page_tokens;
        let is_partial = !sequence.len().is_multiple_of(page_tokens) && !self.is_ring(group);
        // A row of nodes may end before.
        if is_partial { sequence.tables[group].get(index as usize).copied() } else { None }
    }

    /// The copy rule: indexed, pinned, still in more than one table, or left in this plan by a sequence that has tokens in it
    /// where this one would write: an abort gives it back.
    fn must_copy(&self, seq: Seq, (group, id): (usize, u32), before: &[Entry], pins: &Counts) -> bool {
        let page: Page = (self.pool_of(group), id);
        let indexed = self.state.index.homes.contains(page);
        let pinned = pins.contains(page);
        let owns = |s: &&Sequence| self.row_pages(s, group).any(|other| other == page);
        let entries = self.state.sequences.values().filter(owns).count();
        let left: Vec<&Entry> =
            before.iter().filter(|entry| self.copies_page(entry, group, id, before, pins)).collect();
        indexed || pinned || entries - left.len() > 1 || self.any_longer(&left, self.state.sequences[&seq].len())
    }

    pub(super) fn any_longer(&self, entries: &[&Entry], len: u32) -> bool {
        entries.iter().any(|entry| self.state.sequences[&entry.seq].len() > len)
    }

    fn copies_page(&self, entry: &Entry, group: usize, id: u32, before: &[Entry], pins: &Counts) -> bool {
        let sequence = &self.state.sequences[&entry.seq];
        let grows = self.grows(sequence, group, entry.no_node);
        if !grows || self.partial_page(sequence, group) != Some(id) || entry.withdraw[group] {
            return false;
        }
        let at = before.iter().position(|other| other.seq == entry.seq).unwrap_or(0);
        self.must_copy(entry.seq, (group, id), &before[..at], pins)
    }

    /// Whether the page may leave the index instead of being copied: nobody else can see it.
    fn may_withdraw(&self, seq: Seq, group: usize) -> bool {
        let sequence = &self.state.sequences[&seq];
        let Some(id) = self.partial_page(sequence, group) else {
            return false;
        };
        let page = (self.pool_of(group), id);
        let Some((_, place)) = self.state.index.home(page.0, page.1) else {
            return false;
        };
        let inner = Some(place.0) == self.spec.anchor() && self.state.index.has_children(page);
        !inner && self.references().of(page) == 1
    }

    fn promise(&self, seq: Seq, count: u32, tokens: Option<&[u32]>) -> Result<Entry, Outcome> {
        self.may_turn(&self.state.sequences[&seq], count)?;
        let before = &self.building()?.entries;
        let len = self.state.sequences[&seq].len();
        let groups = self.spec.groups.len();
        let fresh = |group: usize, no_node: bool| {
            if !self.grows(&self.state.sequences[&seq], group, no_node) {
                return 0;
            }
            if self.is_ring(group) {
                return if self.needs_ring(seq, group, before) { self.ring_pages(group) } else { 0 };
            }
            let page_tokens = self.page_tokens(group);
            (len + count).div_ceil(page_tokens) - len.div_ceil(page_tokens)
        };
        let promised = self.promised();
        let need = |last: &[Last], no_node: bool| {
            let mut need = vec![0; self.spec.pools.len()];
            for group in 0..groups {
                need[self.pool_of(group)] += fresh(group, no_node) + u32::from(last[group] == Last::Copy);
            }
            need
        };
        let short = |need: &[u32], pool: usize| {
            let own = &self.state.pools[pool];
            promised[pool] + need[pool] > own.free_count() + own.cached_count()
        };
        let (mut last, mut no_node) = (self.last_pages(seq, before, false), false);
        if self.hidden.is_some_and(|group| short(&need(&last, false), self.pool_of(group))) {
            no_node = true;
            last = self.last_pages(seq, before, true);
        }
        for group in 0..groups {
            let in_short_pool = short(&need(&last, no_node), self.pool_of(group));
            if in_short_pool && last[group] == Last::Copy && self.may_withdraw(seq, group) {
                last[group] = Last::Withdraw;
            }
        }
        let need = need(&last, no_node);
        let short_groups: Vec<usize> = (0..groups).filter(|&g| short(&need, self.pool_of(g))).collect();
        if let Some(&group) = short_groups.first() {
            let pending = self.pending();
            let enough = |&g: &usize| {
                let pool = self.pool_of(g);
                let own = &self.state.pools[pool];
                own.free_count() + own.cached_count() + pending[pool] >= promised[pool] + need[pool]
            };
            let fits = self.largest_alone(&self.state.sequences[&seq], count);
            let status = match fits {
                Some(_) => Status::Never,
                None if short_groups.iter().all(enough) => Status::Pending,
                None => Status::Retry,
            };
            let pool = self.pool_of(group);
            let own = &self.state.pools[pool];
            let have = own.free_count().saturating_sub(promised[pool]);
            let left = (own.free_count() + own.cached_count()).saturating_sub(promised[pool]);
            let shortage = Shortage {
                resource: Resource::Pages,
                group: group as u16,
                need: need[pool],
                have,
                reclaimable: left - have,
                pending: pending[pool],
                fits: fits.unwrap_or(0),
            };
            return Err(Outcome { status, value: Value::Short(shortage) });
        }
        self.may_charge(seq, count, &need)?;
        let chunks = self.may_take_chunks(&self.state.sequences[&seq], count, no_node)?;
        let copies = |group: usize| match self.is_ring(group) {
            true if self.state.sequences[&seq].rings[group].is_empty() => 0,
            true => fresh(group, no_node),
            false => u32::from(last[group] == Last::Copy),
        };
        let room = (0..groups).map(copies).sum();
        self.may_copy(room)?;
        Ok(Entry {
            seq,
            count,
            tokens: tokens.map(<[u32]>::to_vec),
            promised: need,
            chunks,
            no_node,
            kept: Vec::new(),
            withdraw: last.iter().map(|last| *last == Last::Withdraw).collect(),
            copies: vec![None; groups],
            fresh: vec![Vec::new(); groups],
            rings: vec![None; groups],
            seals: vec![None; groups],
            room,
        })
    }

    pub(super) fn plan_finish(&mut self) -> Result<Outcome, Outcome> {
        let Plan { entries, seals, .. } = self.building()?.clone();
        // Eviction may take a node whose page of another group a sequence still uses: then that page is private.
        self.evict_for_quotas();
        let promised = self.promised();
        for (pool, need) in promised.into_iter().enumerate() {
            let free = self.state.pools[pool].free_count();
            self.evict(pool, need.saturating_sub(free));
        }
        let (mut assigned, mut scrubs, pins) = (entries.clone(), Vec::new(), self.pins());
        for (at, entry) in assigned.iter_mut().enumerate() {
            let sequence = &self.state.sequences[&entry.seq];
            let (len, ns) = (sequence.len(), sequence.ns);
            for group in 0..self.spec.groups.len() {
                if self.is_ring(group) {
                    let is_first = self.state.sequences[&entry.seq].rings[group].is_empty();
                    let pages = self.needs_ring(entry.seq, group, &entries[..at]).then(|| self.ring_pages(group));
                    let pool = self.pool_of(group);
                    entry.rings[group] = pages.map(|pages| match is_first {
                        true => self.take_many(group, pages, ns, &mut scrubs),
                        false => (0..pages).map(|_| self.take(pool, ns, &mut scrubs)).collect(),
                    });
                    continue;
                }
                // Asked anew for each group: with the anchor's page the pages of other groups leave its node.
                let last = match self.last_page(entry.seq, group, &entries[..at], &pins, entry.no_node) {
                    Last::Copy if entry.withdraw[group] => Last::Withdraw,
                    last => last,
                };
                let (pool, page_tokens) = (self.pool_of(group), self.page_tokens(group));
                if last == Last::Withdraw {
                    self.withdraw(entry.seq, group);
                }
                if last == Last::Copy {
                    let src = self.partial_page(&self.state.sequences[&entry.seq], group).expect("partial");
                    entry.copies[group] = Some((src, self.take(pool, ns, &mut scrubs)));
                }
                if !self.grows(&self.state.sequences[&entry.seq], group, entry.no_node) {
                    continue;
                }
                let count = (len + entry.count).div_ceil(page_tokens) - len.div_ceil(page_tokens);
                entry.fresh[group] = self.take_many(group, count, ns, &mut scrubs);
            }
        }
        for &(at, group) in &seals {
            self.assign_seal(&mut assigned[at], group, &mut scrubs);
        }
        self.state.plan = Some(Plan { finished: true, entries: assigned, scrubs, seals });
        Ok(Outcome::ok(Value::Plan(self.plan_view())))
    }

    /// Hands out new pages: where the group wants one, and there is one, a run; else the lowest.
    fn take_many(&mut self, group: usize, count: u32, ns: u16, scrubs: &mut Vec<(u16, u32)>) -> Vec<u32> {
        let (pool, wants_run) = (self.pool_of(group), self.spec.groups[group].contiguous);
        let run = if wants_run && (1..=64).contains(&count) { self.state.pools[pool].take_run(count) } else { None };
        match run {
            Some(ids) => ids.into_iter().map(|id| self.own((pool, id), ns, scrubs)).collect(),
            None => (0..count).map(|_| self.take(pool, ns, scrubs)).collect(),
        }
    }

    /// Hands out the lowest free page.
    pub(super) fn take(&mut self, pool: usize, ns: u16, scrubs: &mut Vec<(u16, u32)>) -> u32 {
        let id = self.state.pools[pool].take();
        self.own((pool, id), ns, scrubs)
    }

    /// Notes the owner of a page that was handed out. What another one left in it is to be scrubbed.
    fn own(&mut self, (pool, id): Page, ns: u16, scrubs: &mut Vec<(u16, u32)>) -> u32 {
        let owner = Some((ns, self.state.spaces.opening(ns).expect("a user keeps it open")));
        let before = self.state.owners.slot((pool, id)).replace(owner);
        if self.spec.scrub && before.is_some_and(|before| before != owner) {
            scrubs.push((pool as u16, id));
        }
        id
    }

    fn withdraw(&mut self, seq: Seq, group: usize) {
        let page_tokens = self.page_tokens(group);
        let sequence = &self.state.sequences[&seq];
        let id = self.partial_page(sequence, group).expect("partial");
        let begin = sequence.len() / page_tokens * page_tokens;
        self.unindex((self.pool_of(group), id));
        if Some(group) == self.spec.anchor() {
            let sequence = self.state.sequences.get_mut(&seq).expect("live");
            sequence.published = sequence.published.min(begin);
        }
    }

    /// Tables of a sequence as the finished plan has them.
    pub(super) fn planned_tables(&self, sequence: &Sequence, entry: &Entry) -> Vec<Vec<u32>> {
        let mut tables = sequence.tables.clone();
        for (group, table) in tables.iter_mut().enumerate() {
            if self.is_ring(group) {
                *table = self.ring_table(sequence, entry, group);
            }
            if let (Some((_, dst)), Some(last)) = (entry.copies[group], table.last_mut()) {
                *last = dst;
            }
            table.extend(&entry.fresh[group]);
            if let Some(seal) = &entry.seals[group] {
                table[seal.from as usize..][..seal.pages.len()].copy_from_slice(&seal.pages);
            }
        }
        tables
    }

    fn plan_view(&self) -> PlanView {
        let mut view = PlanView { slots: vec![Vec::new(); self.visible_groups()], ..PlanView::default() };
        view.scrubs = self.state.plan.iter().flat_map(|plan| plan.scrubs.clone()).collect();
        view.scrubs.retain(|(pool, _)| usize::from(*pool) < self.visible_pools());
        for entry in self.state.plan.iter().flat_map(|plan| &plan.entries) {
            let sequence = &self.state.sequences[&entry.seq];
            let len = sequence.len();
            let tables = self.planned_tables(sequence, entry);
            view.positions.extend((len..len + entry.count).map(|position| position as i32));
            for (group, table) in tables.iter().enumerate().take(self.visible_groups()) {
                let page_tokens = self.page_tokens(group);
                view.copies.extend(self.ring_copies(sequence, entry, group));
                if let Some((src, dst)) = entry.copies[group] {
                    view.copies.push(Copy { group: group as u16, src, dst, tokens: len % page_tokens, seals: false });
                }
                view.slots[group].extend((len..len + entry.count).map(|position| {
                    let id = table[(position / page_tokens) as usize];
                    i64::from(id) * i64::from(page_tokens) + i64::from(position % page_tokens)
                }));
            }
        }
        view.copies.extend(self.seal_copies());
        view
    }
}
