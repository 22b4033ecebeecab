//! Building a plan: what each sequence would need, and whether it can be promised.

use super::{HAS_IDS, IN_PAGE, NO_NODE, NO_TOKENS, Plan, PlanEntry, State};
use crate::cache::Cache;
use crate::error::{Error, Outcome, Resource, Shortage};
use crate::group::Group;
use crate::ids::{GroupId, SequenceId, Tick};
use crate::pages::NULL;
use crate::sequence::Sequence;

/// What one sequence of the plan needs beyond pages.
struct Extras {
    chunks: u32,
    copies: u32,
}

impl Cache<'_> {
    /// Begins a plan and moves time on to `tick`.
    ///
    /// # Errors
    /// `PlanState` when one is open, `TimeWentBack`.
    pub fn plan_begin(&mut self, tick: Tick) -> Result<(), Error> {
        if self.plan.is_open() {
            return Err(Error::PlanState);
        }
        self.advance(tick)?;
        self.plan.clear();
        self.plan.state = State::Building;
        Ok(())
    }

    /// Promises room for `count` more tokens of a sequence, drafts included, and takes their ids where they are known.
    /// Without ids, and if commit gives none either, the sequence is opaque from here on: nothing behind is published.
    /// O(groups).
    ///
    /// # Errors
    /// A [`Shortage`]: `Retry`, `Pending`, or `Never` with the largest count that could fit. `Duplicate` for a second
    /// call with one sequence; `Argument` for no tokens or a wrong number of ids; `PlanState`; `Stale`.
    pub fn plan_add(&mut self, id: SequenceId, count: u32, tokens: Option<&[u32]>) -> Result<(), Error> {
        if tokens.is_some_and(|tokens| tokens.len() != count as usize) {
            return Err(Error::Argument);
        }
        self.add(id, count, tokens, tokens.is_some())
    }

    /// As [`Self::plan_add`]; ids that are not given now may be promised for commit.
    pub(super) fn add(
        &mut self,
        id: SequenceId,
        count: u32,
        tokens: Option<&[u32]>,
        has_ids: bool,
    ) -> Result<(), Error> {
        if !self.plan.is_building() {
            return Err(Error::PlanState);
        }
        let holder = self.sequence(id)?;
        let Some(sequence) = self.holders.at_mut(holder) else { return Err(Error::Stale) };
        if sequence.plan != 0 {
            return Err(Error::Duplicate);
        }
        let Some(end) = sequence.len.checked_add(count).filter(|_| count > 0) else {
            return Err(Error::Argument);
        };
        let writable = sequence.writable;
        let nth = self.plan.entry_count;
        if nth >= self.plan.entries.len() {
            return Err(Shortage::of(Resource::PlanSequences, 1, 0).into());
        }
        let given = if self.index.is_enabled() { tokens.unwrap_or(&[]) } else { &[] };
        let room = self.plan.staged.len().saturating_sub(self.plan.staged_count);
        if given.len() > room as usize {
            return Err(Shortage::of(Resource::PlanTokens, count, room).into());
        }
        let flags = if end <= writable { IN_PAGE } else { self.promise(holder, count, has_ids)? };
        let flags = flags | if has_ids { HAS_IDS } else { 0 };
        let staged = self.plan.stage(given);
        self.plan.entries.set(nth, PlanEntry { holder, count, staged, flags });
        self.plan.entry_count = nth.wrapping_add(1);
        self.holders.with(holder, |sequence| sequence.plan = nth.wrapping_add(1));
        Ok(())
    }

    /// Promises what a sequence needs beyond the page that it writes to; gives the flags of its entry.
    #[inline(never)] // the step that needs nothing stays small
    fn promise(&mut self, holder: u32, count: u32, has_ids: bool) -> Result<u32, Error> {
        let sequence = &self.holders.get(holder);
        // Where the index has nodes of its own, a token without an id gets none.
        let flags = if self.limits.hidden && !has_ids { NO_NODE } else { 0 };
        let (extras, flags) = self.may_add(holder, sequence, count, flags)?;
        for index in 0..self.limits.pools {
            self.pages.pools.with(index, |pool| pool.promised = pool.promised.saturating_add(pool.asked));
        }
        self.promise_quota(sequence);
        if extras.copies > 0 {
            self.mark_replaced(holder, sequence);
        }
        self.plan.chunks = self.plan.chunks.saturating_add(extras.chunks);
        self.plan.copies_promised = self.plan.copies_promised.saturating_add(extras.copies);
        Ok(flags)
    }

    /// Checks every capacity; what the pools are asked for is in `Pool::asked` afterwards.
    fn may_add(&mut self, holder: u32, sequence: &Sequence, count: u32, flags: u32) -> Result<(Extras, u32), Error> {
        let mut flags = flags;
        let mut extras = self.ask(holder, sequence, count, flags);
        if self.limits.hidden && self.first_short_pool() == Some(self.limits.anchor_pool) {
            flags |= NO_NODE;
            extras = self.ask(holder, sequence, count, flags);
        }
        if self.first_short_pool().is_some() {
            extras.copies = extras.copies.saturating_sub(self.mark_in_place(holder, sequence));
        }
        let checked = if self.first_short_pool().is_some() {
            Err(self.page_shortage(holder, sequence, count).into())
        } else {
            self.may_charge(holder, sequence, count).and_then(|()| self.may_take(sequence, count, &extras))
        };
        match checked {
            Ok(()) => Ok((extras, flags)),
            Err(error) => {
                self.unmark_in_place(holder, sequence);
                Err(error)
            }
        }
    }

    /// Whether chunks and copies suffice.
    fn may_take(&self, sequence: &Sequence, count: u32, extras: &Extras) -> Result<(), Error> {
        let all = self.tables.chunks();
        if let Err(Error::Shortage(short)) = self.may_take_chunks(extras.chunks) {
            let never = self.chunks_alone(sequence, count) > all;
            let outcome = if never { Outcome::Never } else { short.outcome };
            let most = if never { self.most(sequence, |cache, n| cache.chunks_alone(sequence, n) <= all) } else { 0 };
            return Err(Shortage { outcome, most, ..short }.into());
        }
        let room = self.plan.copies.len().saturating_sub(self.plan.copies_promised);
        if extras.copies > room {
            return Err(Shortage::of(Resource::PlanCopies, extras.copies, room).into());
        }
        Ok(())
    }

    /// Sums what `count` more tokens need: pages per pool into `Pool::asked`, chunks and copies as the result.
    fn ask(&mut self, holder: u32, sequence: &Sequence, count: u32, flags: u32) -> Extras {
        for index in 0..self.limits.pools {
            self.pages.pools.with(index, |pool| pool.asked = 0);
        }
        let mut extras = Extras { chunks: 0, copies: 0 };
        for index in 0..self.limits.groups {
            let group = self.groups.get(index);
            let (from, to) = self.growth(index, &group, sequence, count, flags);
            let copies = self.needs_copy(holder, index, &group, sequence);
            let pages = to.wrapping_sub(from).saturating_add(u32::from(copies));
            extras.chunks = extras.chunks.saturating_add(self.tables.chunks_needed(holder, index, from, to));
            extras.copies = extras.copies.saturating_add(u32::from(copies));
            self.pages.pools.with(group.pool, |pool| pool.asked = pool.asked.saturating_add(pages));
        }
        extras
    }

    /// Entries that a group's row gains by `count` tokens.
    #[inline]
    pub(super) fn growth(&self, index: u32, group: &Group, sequence: &Sequence, count: u32, flags: u32) -> (u32, u32) {
        if self.limits.hidden && index == self.limits.anchor {
            let end = self.row_end(index, sequence, sequence.len);
            let grows = flags & NO_NODE == 0 && sequence.known == sequence.len;
            return (end, if grows { group.pages(sequence.len.wrapping_add(count)) } else { end });
        }
        (group.pages(sequence.len), group.pages(sequence.len.wrapping_add(count)))
    }

    /// Whether the page that the next token falls into must be copied first.
    #[inline]
    pub(super) fn needs_copy(&self, holder: u32, index: u32, group: &Group, sequence: &Sequence) -> bool {
        let page = self.cut_page(holder, index, group, sequence);
        if page == NULL {
            return false;
        }
        if !self.pages.is_indexed(page) {
            let replaced = self.pages.replaced(page);
            return self.pages.count(page).saturating_sub(replaced) > 1
                || (replaced > 0 && self.may_return_longer(index, group, page, sequence.len));
        }
        !self.pages.is_in_place(page)
    }

    /// The page of a group that holds some tokens of a sequence and has room for more; NULL where the last page is full.
    #[inline]
    pub(super) fn cut_page(&self, holder: u32, index: u32, group: &Group, sequence: &Sequence) -> u32 {
        if sequence.len & group.page_tokens().wrapping_sub(1) == 0 {
            return NULL;
        }
        // Of the hidden anchor there may be none: its row ends where the sequence became opaque.
        self.tables.get(holder, index, group.pages(sequence.len).wrapping_sub(1))
    }

    /// Notes in shared private pages that one of their entries will be replaced, so that of n writers the last need
    /// not copy.
    fn mark_replaced(&mut self, holder: u32, sequence: &Sequence) {
        for index in 0..self.limits.groups {
            let group = self.groups.get(index);
            if self.needs_copy(holder, index, &group, sequence) {
                let page = self.tables.get(holder, index, group.pages(sequence.len).wrapping_sub(1));
                if !self.pages.is_indexed(page) {
                    self.pages.set_replaced(page, self.pages.replaced(page).saturating_add(1));
                }
            }
        }
    }

    fn first_short_pool(&self) -> Option<u32> {
        (0..self.limits.pools).find(|&index| {
            let pool = self.pages.pools.get(index);
            pool.asked > pool.available()
        })
    }

    /// The answer for want of pages: the lowest group whose pool is short, and whether waiting helps.
    fn page_shortage(&self, holder: u32, sequence: &Sequence, count: u32) -> Shortage {
        let is_short = |index: u32| {
            let pool = self.pages.pools.get(self.groups.get(index).pool);
            pool.asked > pool.available()
        };
        let group = (0..self.limits.groups).find(|&index| is_short(index)).unwrap_or(0);
        let pool = self.pages.pools.get(self.groups.get(group).pool);
        let waiting_helps = (0..self.limits.groups).filter(|&index| is_short(index)).all(|index| {
            let pool = self.pages.pools.get(self.groups.get(index).pool);
            pool.available().saturating_add(pool.pending) >= pool.asked
        });
        let fits = |cache: &Self, n: u32| cache.fits_alone(holder, sequence.len, n);
        let (outcome, most) = if !fits(self, count) {
            (Outcome::Never, self.most(sequence, fits))
        } else if waiting_helps {
            (Outcome::Pending, 0)
        } else {
            (Outcome::Retry, 0)
        };
        Shortage {
            outcome,
            resource: Resource::Pages,
            group: GroupId::new(u16::try_from(group).unwrap_or(0)),
            need: pool.asked,
            have: pool.free.saturating_sub(pool.promised),
            reclaimable: pool.cached.min(pool.available()),
            pending: pool.pending,
            most,
        }
    }

    /// Whether an empty cache could hold a sequence of `len` tokens while it gains `count`; sealed pages stay sealed.
    fn fits_alone(&self, holder: u32, len: u32, count: u32) -> bool {
        (0..self.limits.pools).all(|pool| {
            let need = (0..self.visible_groups()).fold(0_u64, |sum, index| {
                sum.saturating_add(u64::from(self.resident_in(pool, holder, index, len, count)))
            });
            need <= u64::from(self.pages.pools.get(pool).pages)
        })
    }

    /// Pages of a pool that one group of a sequence needs while the sequence gains `count` tokens.
    pub(crate) fn resident_in(&self, pool: u32, holder: u32, index: u32, len: u32, count: u32) -> u32 {
        let group = self.groups.get(index);
        let sealed = self.tables.sealed(holder, index).saturating_sub(self.tables.first(holder, index));
        let open = if group.pool == pool { group.resident(len, count).saturating_sub(sealed) } else { 0 };
        open.saturating_add(if group.sealed_pool == pool.saturating_add(1) { sealed } else { 0 })
    }

    fn chunks_alone(&self, sequence: &Sequence, count: u32) -> u32 {
        (0..self.limits.groups).fold(0, |sum: u32, index| {
            let group = self.groups.get(index);
            let first = group.first(sequence.len);
            let len = sequence.len.saturating_add(count);
            let sinks = group.sink_pages(len).min(first);
            sum.saturating_add(crate::table::Tables::chunks_for(sinks, first, group.pages(len)))
        })
    }

    /// The largest count that passes a monotone test. O(groups * 32).
    pub(crate) fn most(&self, sequence: &Sequence, fits: impl Fn(&Self, u32) -> bool) -> u32 {
        let (mut low, mut high) = (0_u32, u32::MAX.saturating_sub(sequence.len));
        while low < high {
            let span = high.wrapping_sub(low);
            let middle = low.wrapping_add(span.div_ceil(2));
            if fits(self, middle) {
                low = middle;
            } else {
                high = middle.wrapping_sub(1);
            }
        }
        low
    }

    /// Gives a plan up while it is built. The digest is what it was at `plan_begin`.
    ///
    /// # Errors
    /// `PlanState`.
    pub fn plan_cancel(&mut self) -> Result<(), Error> {
        if !self.plan.is_building() {
            return Err(Error::PlanState);
        }
        self.forget_promises();
        let count = self.plan.entry_count;
        for nth in 0..count {
            if self.plan.in_place > 0 {
                let holder = self.plan.entries.get(nth).holder;
                let sequence = self.holders.get(holder);
                self.unmark_in_place(holder, &sequence);
            }
            self.holders.with(self.plan.entries.get(nth).holder, |sequence| sequence.plan = 0);
        }
        self.end_plan(count);
        Ok(())
    }

    /// Takes back what `plan_add` promised: the counts in pools, quotas and pages.
    pub(super) fn forget_promises(&mut self) {
        for index in 0..self.limits.pools {
            self.pages.pools.with(index, |pool| pool.promised = 0);
        }
        self.pages.forget_quota_promises();
        self.plan.chunks = 0;
        if core::mem::take(&mut self.plan.copies_promised) == 0 {
            return;
        }
        for nth in 0..self.plan.entry_count {
            let holder = self.plan.entries.get(nth).holder;
            let sequence = self.holders.get(holder);
            for index in 0..self.limits.groups {
                let group = self.groups.get(index);
                let page = self.cut_page(holder, index, &group, &sequence);
                if page != NULL && !self.pages.is_indexed(page) && self.pages.replaced(page) != 0 {
                    self.pages.set_replaced(page, 0);
                }
            }
        }
    }

    /// No plan is open any more: closes that waited for this are carried out.
    pub(super) fn end_plan(&mut self, count: u32) {
        self.plan.state = State::Idle;
        self.plan.entry_count = 0;
        if core::mem::take(&mut self.plan.closes) == 0 {
            return;
        }
        for nth in 0..count {
            let holder = self.plan.entries.get(nth).holder;
            match self.holders.with(holder, |sequence| core::mem::take(&mut sequence.closing)) {
                0 => {}
                1 => self.close_holder(holder, crate::CloseMode::Keep),
                _ => self.close_holder(holder, crate::CloseMode::Discard),
            }
        }
    }
}

impl Plan<'_> {
    /// Whether the plan, while it is built, counts on withdrawing pages; then a new pin might take one.
    pub(crate) fn withdraws(&self) -> bool {
        self.in_place > 0
    }

    /// Keeps the ids of a sequence until finish; gives where.
    fn stage(&mut self, tokens: &[u32]) -> u32 {
        if tokens.is_empty() {
            return NO_TOKENS;
        }
        let start = self.staged_count;
        let count = u32::try_from(tokens.len()).unwrap_or(0);
        for (slot, token) in self.staged.slice_mut(u64::from(start), count).iter_mut().zip(tokens) {
            *slot = *token;
        }
        self.staged_count = start.wrapping_add(count);
        start
    }

    pub(crate) fn staged_tokens(&self, entry: &PlanEntry) -> &[u32] {
        if entry.staged == NO_TOKENS { &[] } else { self.staged.slice(u64::from(entry.staged), entry.count) }
    }
}
