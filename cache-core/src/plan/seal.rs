//! Sealing: full pages move from a group's pool to its pool of sealed pages, inside a plan.
//!
//! Where a group has a sealed pool (pages of another precision), its rows span two pools: exact pages of the sinks, then
//! sealed pages, then open ones. Pages are published once they are final: those of sinks when full, others when sealed.

use super::{OF_SEAL, Plan, PlanCopy};
use crate::cache::Cache;
use crate::error::{Error, Outcome, Resource, Shortage};
use crate::ids::{GroupId, SequenceId};
use crate::pages::NULL;
use crate::table::SealedColumns;

impl Cache<'_> {
    /// Promises that pages below entry `upto` of a sequence, those of sinks apart, become sealed pages in this plan. The
    /// sequence has been added to the plan, and the pages are full of committed tokens. Their copies are among [`Cache::copies`], marked `seals`; after
    /// commit the unsealed pages are given back. At most once per sequence and group in a plan. O(1).
    ///
    /// # Errors
    /// `Argument` for a group without a sealed pool, or an entry that is sealed already, a sink's or not full; `PlanState`;
    /// a shortage of pages, of the namespace's quota, or of copies, of which a seal takes one more than it has pages; with
    /// `Never` the most entries that an empty cache could seal; `Stale`.
    pub fn plan_seal(&mut self, id: SequenceId, group: GroupId, upto: u32) -> Result<(), Error> {
        if !self.plan.is_building() {
            return Err(Error::PlanState);
        }
        let holder = self.sequence(id)?;
        let (index, group) = self.group(group)?;
        let sequence = self.holders.get(holder);
        let from = self.sealed(holder, index).end;
        if group.sealed_pool == 0 || upto <= from || upto > sequence.len >> group.shift {
            return Err(Error::Argument);
        }
        if sequence.plan == 0 {
            return Err(Error::PlanState);
        }
        let is_there = |seal: PlanCopy| seal.entry == sequence.plan.wrapping_sub(1) && seal.group == index;
        if self.plan.seals().any(is_there) {
            return Err(Error::Duplicate);
        }
        let need = upto.wrapping_sub(from);
        let pool = group.sealed_pool.wrapping_sub(1);
        let entry = sequence.plan.wrapping_sub(1);
        for other in 0..self.limits.pools {
            self.pages.pools.with(other, |state| state.asked = if other == pool { need } else { 0 });
        }
        let alone = self.alone_in(pool, &self.planned_growth(entry));
        // The highest entry that could be sealed with so many pages, where that is below `upto`.
        let most = |pages: u32| {
            let room = u64::from(pages).saturating_sub(alone);
            (u64::from(need) > room).then(|| from.saturating_add(u32::try_from(room).unwrap_or(u32::MAX)))
        };
        if let Some(short) = self.seal_shortage(pool, index, most) {
            return Err(short.into());
        }
        self.may_charge(holder, |_, _, limit| most(limit))?;
        // One record keeps the seal until finish; its copies come after it.
        let room = self.plan.copies.len().saturating_sub(self.plan.copies_promised);
        if need.wrapping_add(1) > room {
            return Err(Shortage::of(Resource::PlanCopies, need.wrapping_add(1), room).into());
        }
        self.pages.pools.with(pool, |state| state.promised = state.promised.saturating_add(need));
        self.promise_quota(holder);
        let seal = PlanCopy { entry, group: index, tokens: need, at: from, kind: OF_SEAL, ..PlanCopy::default() };
        self.plan.copies.set(self.plan.seal_count, seal);
        self.plan.seal_count = self.plan.seal_count.wrapping_add(1);
        self.plan.copies_promised = self.plan.copies_promised.saturating_add(need).saturating_add(1);
        Ok(())
    }

    /// Why a pool has not the pages that a seal of a group asks for.
    fn seal_shortage(&self, pool: u32, index: u32, most: impl Fn(u32) -> Option<u32>) -> Option<Shortage> {
        let state = self.pages.pools.get(pool);
        if state.asked <= state.available() {
            return None;
        }
        let never = most(state.pages);
        let outcome = match never {
            Some(_) => Outcome::Never,
            None if state.asked <= state.available().saturating_add(state.pending) => Outcome::Pending,
            None => Outcome::Retry,
        };
        Some(Shortage {
            outcome,
            group: GroupId::new(u16::try_from(index).unwrap_or(0)),
            reclaimable: state.cached.min(state.available()),
            pending: state.pending,
            most: never.unwrap_or(0),
            ..Shortage::of(Resource::Pages, state.asked, state.free.saturating_sub(state.promised))
        })
    }

    /// Assigns sealed pages. The records of the seals are at the start of the copies, which begin behind them.
    #[inline(never)] // its stack is not that of plans without seals
    pub(super) fn seal_pages(&mut self) {
        for nth in 0..self.plan.seal_count {
            let seal = self.plan.copies.get(nth);
            let holder = self.plan.entries.get(seal.entry).holder;
            let group = self.groups.get(seal.group);
            let namespace = self.holders.get(holder).namespace;
            for at in seal.at..seal.at.saturating_add(seal.tokens) {
                let source = self.tables.get(holder, seal.group, at);
                let (target, count) = self.pages.take(group.sealed_pool.wrapping_sub(1), 1);
                if source == NULL || count == 0 {
                    break; // promised pages are always there
                }
                self.own(target, namespace);
                self.tables.set(holder, seal.group, at, target);
                self.tables.set_sealed(holder, seal.group, self.tables.sealed(holder, seal.group).saturating_add(1));
                if seal.group == self.limits.anchor {
                    self.index.copy_tokens(source, target, group.page_tokens());
                }
                let tokens = group.page_tokens();
                self.plan.note_copy(PlanCopy { source, target, tokens, at, ..seal });
            }
            self.touch_tables(holder, seal.at << group.shift);
        }
    }

    /// The sealed columns of a row.
    pub(crate) fn sealed(&self, holder: u32, index: u32) -> SealedColumns {
        self.groups.get(index).sealed_columns(self.tables.sealed(holder, index))
    }

    /// Of a row that ends at `end`, no column behind is sealed.
    pub(crate) fn cut_sealed(&mut self, holder: u32, index: u32, end: u32) {
        let SealedColumns { begin, end: before } = self.sealed(holder, index);
        self.tables.set_sealed(holder, index, before.min(end).saturating_sub(begin));
    }

    /// Entries of a row below which pages are final as they are: where there is a sealed pool, those of sinks and what is
    /// sealed. What the finished plan seals is not yet.
    pub(crate) fn final_end(&self, holder: u32, index: u32) -> u32 {
        let group = self.groups.get(index);
        if group.sealed_pool == 0 {
            return u32::MAX;
        }
        let end = group.sealed_columns(self.tables.sealed(holder, index)).end;
        let plan = self.holders.get(holder).plan;
        if plan == 0 || !self.plan.is_finished() {
            return end;
        }
        let own = self.plan.seals().find(|seal| seal.entry == plan.wrapping_sub(1) && seal.group == index);
        own.map_or(end, |seal| seal.at)
    }

    /// The columns of a row that are pages of the group's sealed pool; what its other columns are is said there.
    ///
    /// # Errors
    /// `Stale`, `Argument`.
    pub fn sealed_columns(&self, id: SequenceId, group: GroupId) -> Result<SealedColumns, Error> {
        let (index, _) = self.group(group)?;
        Ok(self.sealed(self.sequence(id)?, index))
    }
}

impl Plan<'_> {
    pub(super) fn note_copy(&mut self, copy: PlanCopy) {
        self.copies.set(self.seal_count.wrapping_add(self.copy_count), copy);
        self.copy_count = self.copy_count.saturating_add(1);
    }

    /// Records of the plan's seals.
    pub(crate) fn seals(&self) -> impl Iterator<Item = PlanCopy> + '_ {
        (0..self.seal_count).map(|nth| self.copies.get(nth))
    }

    pub(super) fn with_copy(&mut self, nth: u32, change: impl FnOnce(&mut PlanCopy)) {
        self.copies.with(self.seal_count.wrapping_add(nth), change);
    }

    /// A copy of the finished plan.
    pub(crate) fn copy(&self, nth: u32) -> PlanCopy {
        self.copies.get(self.seal_count.wrapping_add(nth))
    }
}
