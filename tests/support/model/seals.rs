//! Rows that span two pools: exact pages of the sinks, then pages of the group's pool of sealed pages, then open ones.
//!
//! A seal is part of a plan. It moves full pages of committed tokens, the lowest behind the sinks that are not sealed yet, to new
//! pages of the other pool. The boundary moves with commit; until then nothing of what is sealed may be published.

use core::ops::Range;

use super::index::{Key, Place};
use super::pages::Page;
use super::{Entry, Model, Sequence};
use crate::machine::{Copy, Outcome, Resource, Shortage, Status, Value};
use crate::op::Seq;
use crate::spec::NULL;

/// Entries of one row that a plan seals.
#[derive(Clone, Hash)]
pub(super) struct Seal {
    /// The first of them.
    pub(super) from: u32,
    /// One past the last.
    pub(super) upto: u32,
    /// After finish: the sealed pages.
    pub(super) pages: Vec<u32>,
}

impl Model {
    /// The pool of a group's sealed pages, or of all where nothing is sealed.
    pub(super) fn sealed_pool(&self, group: usize) -> usize {
        usize::from(self.spec.groups[group].sealed.unwrap_or(self.spec.groups[group].pool))
    }

    /// The pool that an indexed page of a group is in: where pages are sealed, only those and sinks are published.
    pub(super) fn indexed_pool(&self, group: usize, index: u32) -> usize {
        let is_exact = index < self.spec.groups[group].sealed_columns(0).start;
        if is_exact { self.pool_of(group) } else { self.sealed_pool(group) }
    }

    /// The pool of the page at a place of a node.
    pub(super) fn home_pool(&self, key: &Key, (group, sub): Place) -> usize {
        let anchor = self.spec.anchor().expect("only an index has places");
        let (own, node, end) = (self.page_tokens(group), self.page_tokens(anchor), key.tokens.len() as u32);
        let index = if own >= node { end / own - 1 } else { (end - node) / own + sub };
        self.indexed_pool(group, index)
    }

    /// The pools that nodes are of, those of the highest page numbers first.
    pub(super) fn node_pools(&self) -> Vec<usize> {
        let Some(anchor) = self.spec.anchor() else { return Vec::new() };
        let exact = self.indexed_pool(anchor, 0);
        let sealed = self.sealed_pool(anchor);
        if exact == sealed { vec![sealed] } else { vec![exact, sealed] }
    }

    /// The pool that an entry of a row belongs to.
    pub(super) fn pool_at(&self, sequence: &Sequence, group: usize, index: u32) -> usize {
        if sequence.sealed[group].contains(&index) { self.sealed_pool(group) } else { self.pool_of(group) }
    }

    /// The pages of a row, NULL ones included.
    pub(super) fn row_pages(&self, sequence: &Sequence, group: usize) -> impl Iterator<Item = Page> {
        (0..).zip(&sequence.tables[group]).map(move |(index, &id)| (self.pool_at(sequence, group, index), id))
    }

    /// Whether a full page may be published: one of sinks, or a sealed one.
    pub(super) fn is_final(&self, sequence: &Sequence, group: usize, index: u32) -> bool {
        self.spec.groups[group].sealed.is_none() || index < sequence.sealed[group].end
    }

    /// The boundaries of a hit of `len` tokens: what comes from the index is sealed, sinks apart.
    pub(super) fn all_sealed(&self, len: u32) -> Vec<Range<u32>> {
        self.spec.groups.iter().map(|group| group.sealed_columns(len / group.page_tokens)).collect()
    }

    /// Whether a sequence can go on from `at`: in each window, and not inside a sealed page.
    pub(super) fn may_cut(&self, sequence: &Sequence, at: u32) -> Result<(), Outcome> {
        if !self.can_cut(sequence, at) {
            return Err(Outcome::of(Status::WindowLost));
        }
        let inside = |(group, sealed): (usize, &Range<u32>)| {
            let step = self.page_tokens(group);
            !at.is_multiple_of(step) && sealed.contains(&(at / step))
        };
        let is_inside = sequence.sealed.iter().enumerate().any(inside);
        if is_inside { Err(Outcome::of(Status::Sealed)) } else { Ok(()) }
    }

    /// Room for records of copies: as many as one likes where the scenario names no limit.
    pub(super) fn may_copy(&self, need: u32) -> Result<(), Outcome> {
        let taken: u32 = self.state.plan.iter().flat_map(|plan| &plan.entries).map(|entry| entry.room).sum();
        let room = if self.spec.copies == 0 { u32::MAX } else { self.spec.copies.saturating_sub(taken) };
        if need <= room { Ok(()) } else { Err(Outcome::capacity(Resource::Plan, need, room)) }
    }

    pub(super) fn seal(&mut self, seq: Seq, group: u16, upto: u32) -> Result<Outcome, Outcome> {
        self.building()?;
        let sequence = self.live(seq)?;
        let group = usize::from(group);
        let is_full = |group: usize| upto <= sequence.len() / self.page_tokens(group);
        let has_seals = group < self.visible_groups() && self.spec.groups[group].sealed.is_some();
        if !has_seals || upto <= sequence.sealed[group].end || !is_full(group) {
            return Err(Outcome::of(Status::Argument));
        }
        let plan = self.building()?;
        let Some(at) = plan.entries.iter().position(|entry| entry.seq == seq) else {
            return Err(Outcome::of(Status::State));
        };
        if plan.entries[at].seals[group].is_some() {
            return Err(Outcome::of(Status::Busy));
        }
        let (from, pool, count) = (sequence.sealed[group].end, self.sealed_pool(group), plan.entries[at].count);
        let need = upto - from;
        let alone = self.alone(sequence, count)[pool];
        self.may_seal(group, pool, (from, need), alone)?;
        self.may_charge_seal(sequence, pool, (from, need), alone)?;
        // One record keeps the seal until finish.
        self.may_copy(need + 1)?;
        let plan = self.state.plan.as_mut().expect("building");
        let entry = &mut plan.entries[at];
        entry.promised[pool] += need;
        entry.room += need + 1;
        entry.seals[group] = Some(Seal { from, upto, pages: Vec::new() });
        plan.seals.push((at, group));
        Ok(Outcome::OK)
    }

    fn may_seal(&self, group: usize, pool: usize, (from, need): (u32, u32), alone: u32) -> Result<(), Outcome> {
        let (own, promised, pending) = (&self.state.pools[pool], self.promised()[pool], self.pending()[pool]);
        let left = (own.free_count() + own.cached_count()).saturating_sub(promised);
        if need <= left {
            return Ok(());
        }
        let never = alone + need > own.pages;
        let status = match never {
            true => Status::Never,
            false if need <= left + pending => Status::Pending,
            false => Status::Retry,
        };
        let have = own.free_count().saturating_sub(promised);
        let short = Shortage {
            resource: Resource::Pages,
            group: group as u16,
            need,
            have,
            reclaimable: left - have,
            pending,
            fits: if never { from + own.pages.saturating_sub(alone) } else { 0 },
        };
        Err(Outcome { status, value: Value::Short(short) })
    }

    fn may_charge_seal(
        &self,
        sequence: &Sequence,
        pool: usize,
        (from, need): (u32, u32),
        alone: u32,
    ) -> Result<(), Outcome> {
        let Some((short, limit)) = self.over_quota(sequence.ns, pool, need) else {
            return Ok(());
        };
        let never = alone + need > limit;
        let fits = if never { from + limit.saturating_sub(alone) } else { 0 };
        let status = if never { Status::Never } else { Status::Retry };
        Err(Outcome { status, value: Value::Short(Shortage { fits, ..short }) })
    }

    /// Gives a seal its pages.
    pub(super) fn assign_seal(&mut self, entry: &mut Entry, group: usize, scrubs: &mut Vec<(u16, u32)>) {
        let (pool, ns) = (self.sealed_pool(group), self.state.sequences[&entry.seq].ns);
        let seal = entry.seals[group].as_mut().expect("promised");
        seal.pages = (seal.from..seal.upto).map(|_| self.take(pool, ns, scrubs)).collect();
    }

    /// The sealed pages that a finished plan has taken for a row.
    pub(super) fn sealed_pages(&self, entry: &Entry, group: usize) -> Vec<Page> {
        let pages = entry.seals[group].iter().flat_map(|seal| &seal.pages);
        pages.map(|&id| (self.sealed_pool(group), id)).collect()
    }

    /// The pages that a finished plan seals.
    pub(super) fn sealed_sources(&self, sequence: &Sequence, entry: &Entry) -> Vec<Page> {
        let of_group = |(group, seal): (usize, &Option<Seal>)| {
            let entries = seal.as_ref().map_or(0..0, |seal| seal.from..seal.upto);
            entries.map(|index| (self.pool_of(group), sequence.tables[group][index as usize])).collect::<Vec<_>>()
        };
        entry.seals.iter().enumerate().flat_map(of_group).filter(|page| page.1 != NULL).collect()
    }

    /// Boundaries as the finished plan has them.
    pub(super) fn planned_sealed(&self, sequence: &Sequence, entry: &Entry) -> Vec<Range<u32>> {
        let seals = sequence.sealed.iter().zip(&entry.seals);
        seals.map(|(sealed, seal)| sealed.start..seal.as_ref().map_or(sealed.end, |seal| seal.upto)).collect()
    }

    /// Copies that seal, in the order in which they were asked for; they come behind all others.
    pub(super) fn seal_copies(&self) -> Vec<Copy> {
        let Some(plan) = &self.state.plan else { return Vec::new() };
        let of_seal = |&(at, group): &(usize, usize)| {
            let entry = &plan.entries[at];
            let seal = entry.seals[group].as_ref().expect("promised");
            let row = &self.state.sequences[&entry.seq].tables[group][seal.from as usize..];
            let tokens = self.page_tokens(group);
            let one = |(&src, &dst)| Copy { group: group as u16, src, dst, tokens, seals: true };
            row.iter().zip(&seal.pages).map(one).collect::<Vec<_>>()
        };
        plan.seals.iter().flat_map(of_seal).collect()
    }
}
