//! Building a plan: what each sequence would need, and whether it can be promised.

use super::{Growth, HAS_IDS, IN_PAGE, NO_NODE, NO_TOKENS, Plan, PlanEntry, State};
use crate::cache::Cache;
use crate::error::{Error, Outcome, Resource, Shortage};
use crate::group::Group;
use crate::ids::{SequenceId, Tick};
use crate::pages::NULL;

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
    #[inline]
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
        let (holder, sequence) = self.holders.sequence_mut(id).ok_or(Error::Stale)?;
        if sequence.plan != 0 {
            return Err(Error::Duplicate);
        }
        let Some(end) = sequence.len.checked_add(count).filter(|_| count > 0) else {
            return Err(Error::Argument);
        };
        // Ids are kept as long as all before them are known.
        let kept = tokens.is_some() && sequence.known == sequence.len && self.index.is_enabled();
        let ids = if has_ids { HAS_IDS } else { 0 };
        self.plan.may_enter(if kept { count } else { 0 })?;
        if end > sequence.writable {
            let growth = Growth { holder, len: sequence.len, count, flags: ids };
            return self.add_pages(growth, tokens.filter(|_| kept));
        }
        sequence.plan = self.plan.enter(PlanEntry { holder, count, staged: NO_TOKENS, flags: ids | IN_PAGE });
        if let Some(tokens) = tokens.filter(|_| kept) {
            // Behind the length a private page is nobody's state: its tokens need not wait for finish.
            let offset = sequence.len & self.index.page_tokens.wrapping_sub(1);
            self.index.store(sequence.last_page, offset, tokens);
            self.plan.stage_room = self.plan.stage_room.wrapping_sub(count);
        }
        Ok(())
    }

    /// Adds a sequence that needs more than the rest of its page.
    #[inline(never)] // the step that needs nothing stays small
    fn add_pages(&mut self, mut growth: Growth, tokens: Option<&[u32]>) -> Result<(), Error> {
        self.promise(&mut growth)?;
        let staged = self.plan.stage(tokens.unwrap_or(&[]));
        let Growth { holder, count, flags, .. } = growth;
        let nth = self.plan.enter(PlanEntry { holder, count, staged, flags });
        self.holders.with(holder, |sequence| sequence.plan = nth);
        Ok(())
    }

    /// Promises what a sequence needs beyond the page that it writes to; sets the flags of its entry.
    fn promise(&mut self, growth: &mut Growth) -> Result<(), Error> {
        let extras = self.may_add(growth)?;
        for index in 0..self.limits.pools {
            self.pages.pools.with(index, |pool| pool.promised = pool.promised.saturating_add(pool.asked));
        }
        self.promise_quota(growth.holder);
        if extras.copies > 0 {
            self.mark_replaced(growth);
            self.plan.note_leaver(growth);
        }
        self.plan.chunks = self.plan.chunks.saturating_add(extras.chunks);
        self.plan.copies_promised = self.plan.copies_promised.saturating_add(extras.copies);
        Ok(())
    }

    /// Checks every capacity; what the pools are asked for is in `Pool::asked` afterwards.
    fn may_add(&mut self, growth: &mut Growth) -> Result<Extras, Error> {
        if self.limits.rings {
            self.may_turn(growth)?;
        }
        let mut extras = self.ask(growth);
        if self.first_short_pool().is_some() {
            if self.limits.is_hidden() && self.is_short(self.limits.anchor_pool) {
                growth.flags |= NO_NODE; // opaque from here on rather than refused: nodes hold no bytes
                extras = self.ask(growth);
            }
            if self.first_short_pool().is_some() {
                extras.copies = extras.copies.saturating_sub(self.mark_in_place(growth));
            }
            if self.first_short_pool().is_some() {
                let shortage = self.page_shortage(growth);
                self.unmark_in_place(growth);
                return Err(shortage.into());
            }
        }
        match self.may_charge_growth(growth).and_then(|()| self.may_take(growth, &extras)) {
            Ok(()) => Ok(extras),
            Err(error) => {
                self.unmark_in_place(growth);
                Err(error)
            }
        }
    }

    /// Whether chunks and copies suffice.
    fn may_take(&self, growth: &Growth, extras: &Extras) -> Result<(), Error> {
        if let Err(Error::Shortage(short)) = self.may_take_chunks(extras.chunks) {
            let fits = |cache: &Self, n: u32| cache.chunks_alone(growth.len, n) <= cache.tables.chunks();
            let never = !fits(self, growth.count);
            let outcome = if never { Outcome::Never } else { short.outcome };
            let most = if never { self.most(growth.len, fits) } else { 0 };
            return Err(Shortage { outcome, most, ..short }.into());
        }
        let room = self.plan.copies.len().saturating_sub(self.plan.copies_promised);
        if extras.copies > room {
            return Err(Shortage::of(Resource::PlanCopies, extras.copies, room).into());
        }
        Ok(())
    }

    /// Sums what a growth needs: pages per pool into `Pool::asked`, chunks and copies as the result.
    fn ask(&mut self, growth: &Growth) -> Extras {
        for index in 0..self.limits.pools {
            self.pages.pools.with(index, |pool| pool.asked = 0);
        }
        let mut extras = Extras { chunks: 0, copies: 0 };
        for index in 0..self.limits.groups {
            let group = self.groups.get(index);
            let (from, to) = self.new_entries(index, &group, growth);
            let copies = self.copies_needed(index, &group, growth);
            let pages = to.wrapping_sub(from).saturating_add(copies);
            extras.chunks = extras.chunks.saturating_add(self.tables.chunks_needed(growth.holder, index, from, to));
            extras.copies = extras.copies.saturating_add(copies);
            self.pages.pools.with(group.pool, |pool| pool.asked = pool.asked.saturating_add(pages));
        }
        extras
    }

    /// Entries that a group's row gains.
    #[inline]
    pub(super) fn new_entries(&self, index: u32, group: &Group, growth: &Growth) -> (u32, u32) {
        if self.limits.is_hidden() && index == self.limits.anchor {
            let sequence = self.holders.get(growth.holder);
            let end = self.row_end(index, sequence, growth.len);
            return (end, if self.takes_nodes(growth) { group.pages(growth.end()) } else { end });
        }
        (group.entries(growth.len), group.entries(growth.end()))
    }

    /// Whether a growth goes on in the hidden anchor's row, which ends where the sequence becomes opaque.
    fn takes_nodes(&self, growth: &Growth) -> bool {
        growth.flags & NO_NODE == 0 && self.holders.get(growth.holder).known == growth.len
    }

    /// Whether the page that the next token falls into must be copied first.
    #[inline]
    pub(super) fn needs_copy(&self, index: u32, group: &Group, growth: &Growth) -> bool {
        let page = self.cut_page(index, group, growth);
        if page == NULL {
            return false;
        }
        if !self.pages.is_indexed(page) {
            let left = self.pages.replaced(page);
            let others = self.pages.count(page).saturating_sub(left) > 1;
            return others || (left > 0 && self.leaves_more(index, page, growth.len));
        }
        !self.pages.is_in_place(page)
    }

    /// The page of a group that holds some tokens of a sequence and has room for more; NULL where the last page is full.
    /// A ring always has room; its pages are shared together, so any one tells.
    #[inline]
    pub(super) fn cut_page(&self, index: u32, group: &Group, growth: &Growth) -> u32 {
        if group.is_ring() {
            return self.tables.get(growth.holder, index, 0);
        }
        if growth.len & group.page_tokens().wrapping_sub(1) == 0 {
            return NULL;
        }
        if self.limits.is_hidden() && index == self.limits.anchor && !self.takes_nodes(growth) {
            return NULL; // nothing is written to a node
        }
        self.tables.get(growth.holder, index, growth.len >> group.shift)
    }

    /// Notes in shared private pages that one of their entries will be replaced, so that of n writers the last need
    /// not copy.
    pub(super) fn mark_replaced(&mut self, growth: &Growth) {
        for index in 0..self.limits.groups {
            let Some(group) = self.groups.at(index) else { continue };
            if !self.needs_copy(index, group, growth) {
                continue;
            }
            let page = self.cut_page(index, group, growth);
            if !self.pages.is_indexed(page) {
                self.pages.set_replaced(page, self.pages.replaced(page).saturating_add(1));
            }
        }
    }

    fn first_short_pool(&self) -> Option<u32> {
        (0..self.limits.pools).find(|&index| self.is_short(index))
    }

    fn is_short(&self, pool: u32) -> bool {
        let pool = self.pages.pools.get(pool);
        pool.asked > pool.available()
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
                self.unmark_in_place(&self.planned_growth(nth));
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
        if core::mem::take(&mut self.plan.copies_promised) > 0 {
            self.unmark_replaced();
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

    /// Whether there is room for one more sequence and the ids of its tokens.
    #[inline]
    fn may_enter(&self, tokens: u32) -> Result<(), Error> {
        if self.entries.at(self.entry_count).is_none() {
            return Err(Shortage::of(Resource::PlanSequences, 1, 0).into());
        }
        if tokens > self.stage_room {
            return Err(Shortage::of(Resource::PlanTokens, tokens, self.stage_room).into());
        }
        Ok(())
    }

    /// Adds a sequence; gives its number + 1.
    #[inline]
    fn enter(&mut self, entry: PlanEntry) -> u32 {
        self.entries.set(self.entry_count, entry);
        self.entry_count = self.entry_count.wrapping_add(1);
        self.token_count = self.token_count.wrapping_add(entry.count);
        self.entry_count
    }

    /// Keeps the ids of a sequence until finish; gives where.
    fn stage(&mut self, tokens: &[u32]) -> u32 {
        if tokens.is_empty() {
            return NO_TOKENS;
        }
        let start = self.staged.len().saturating_sub(self.stage_room);
        self.staged.put(u64::from(start), tokens);
        self.stage_room = self.stage_room.saturating_sub(u32::try_from(tokens.len()).unwrap_or(0));
        start
    }

    pub(crate) fn staged_tokens(&self, entry: &PlanEntry) -> &[u32] {
        if entry.staged == NO_TOKENS { &[] } else { self.staged.slice(u64::from(entry.staged), entry.count) }
    }
}
