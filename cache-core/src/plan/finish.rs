//! Finishing a plan: evict what is missing, then assign, lowest free pages first.

use super::{Growth, NO_NODE, PlanCopy, PlanEntry, State};
use super::{OF_SEAL, OF_SHARED, OF_TIP};
use crate::cache::Cache;
use crate::error::Error;
use crate::export::count;
use crate::group::Group;
use crate::ids::{GroupId, PageId};
use crate::mem::bump;
use crate::pages::{Holder, NULL};
use crate::sequence::Sequence;

/// What the engine must do before the step's writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanReport {
    /// Sequences in the plan.
    pub sequences: u32,
    /// Tokens in the plan.
    pub tokens: u32,
    /// Copies to run, read with [`Cache::copies`], before any write.
    pub copies: u32,
    /// Pages to scrub, read with [`Cache::scrubs`], before any copy.
    pub scrubs: u32,
    /// Pages evicted to make room.
    pub evicted: u32,
}

/// One page to be copied before it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCopy {
    /// The group whose pools the pages belong to.
    pub group: GroupId,
    /// Read this page,
    pub source: PageId,
    /// write this one,
    pub target: PageId,
    /// for its first so many tokens.
    pub tokens: u32,
    /// The target is a page of the group's sealed pool: the copy changes the page's form.
    pub seals: bool,
}

impl Cache<'_> {
    /// Evicts, assigns pages and copies, and writes them into the tables. Exports show the new tokens from now on.
    /// O(sequences * groups + pages).
    ///
    /// # Errors
    /// `PlanState`.
    pub fn plan_finish(&mut self) -> Result<PlanReport, Error> {
        if !self.plan.is_building() {
            return Err(Error::PlanState);
        }
        let mut report = PlanReport { evicted: self.evict_for_plan(), ..PlanReport::default() };
        self.forget_promises();
        self.plan.state = State::Finished;
        let mut next = self.plan.next_paged(0);
        while let Some(nth) = next {
            self.assign(nth);
            next = self.plan.next_paged(nth.wrapping_add(1));
        }
        if self.plan.seal_count > 0 {
            self.seal_pages();
        }
        report.tokens = self.plan.token_count;
        report.sequences = self.plan.entry_count;
        report.copies = self.listed_copies();
        report.scrubs = self.plan.scrub_count;
        bump(&mut self.counters.copied_pages, u64::from(report.copies));
        bump(&mut self.counters.plans, 1);
        Ok(report)
    }

    fn evict_for_plan(&mut self) -> u32 {
        let mut evicted = self.evict_for_quotas();
        for index in 0..self.limits.pools {
            // Evicting a node may free pages of this pool that hang on it, so what is missing is looked up again.
            loop {
                let missing = self.pages.pools.with(index, |pool| pool.promised.saturating_sub(pool.free));
                let freed = self.evict_some(index, missing);
                if freed == 0 {
                    break;
                }
                evicted = evicted.saturating_add(freed);
            }
        }
        evicted
    }

    /// What the open plan adds by its entry `nth`.
    pub(super) fn planned_growth(&self, nth: u32) -> Growth {
        let PlanEntry { holder, count, flags, .. } = self.plan.entries.get(nth);
        Growth { holder, len: self.holders.at(holder).map_or(0, |sequence| sequence.len), count, flags }
    }

    /// Gives one sequence its pages, groups ascending: first the copy of its last page, then new pages.
    fn assign(&mut self, nth: u32) {
        let growth = self.planned_growth(nth);
        let Growth { holder, len, .. } = growth;
        let mut changed = false;
        for index in 0..self.limits.groups {
            let group = self.groups.get(index);
            if group.is_ring() {
                changed |= self.turn_ring(nth, index, &group, &growth);
            } else if len & group.page_tokens().wrapping_sub(1) != 0 {
                changed |= self.open_last_page(nth, index, &group, &growth);
            }
            let (from, to) = self.new_entries(index, &group, &growth);
            if from < to {
                changed = true;
                self.extend(holder, index, &group, from, to);
            }
        }
        let known = self.holders.with(holder, |sequence| {
            if growth.flags & NO_NODE != 0 {
                sequence.known = sequence.known.min(len);
            }
            sequence.known
        });
        let tokens = self.plan.entries.at(nth).map_or(&[][..], |entry| self.plan.staged_tokens(entry));
        if known == len && growth.flags & NO_NODE == 0 {
            self.index.store_from(&self.tables, self.limits.anchor, holder, len, tokens);
        }
        if changed {
            self.touch_tables(holder, len);
        }
        self.note_writable(holder, len, growth.end());
    }

    /// All last pages of a sequence that grows from `from` to `len` tokens are its own now: notes how far they reach.
    fn note_writable(&mut self, holder: u32, from: u32, len: u32) {
        let entry = self.anchor().entry_of(len.wrapping_sub(1) >> self.index.shift);
        let page = self.tables.get(holder, self.limits.anchor, entry);
        let ends = self.groups.iter().map(|group| group.writable(from, len));
        let end = if page == NULL { 0 } else { ends.min().unwrap_or(0) };
        self.holders.with(holder, |sequence| (sequence.writable, sequence.last_page) = (end, page));
    }

    /// Makes the page that the next token falls into writable; gives whether the table changed.
    fn open_last_page(&mut self, nth: u32, index: u32, group: &Group, growth: &Growth) -> bool {
        let (holder, last) = (growth.holder, growth.len >> group.shift);
        if self.needs_copy(index, group, growth) {
            self.copy_page(nth, index, group, growth);
            return true;
        }
        let page = self.tables.get(holder, index, last);
        if page != NULL && self.pages.is_in_place(page) {
            self.pages.set_in_place(page, false);
            if self.pages.is_indexed(page) {
                self.withdraw_last(holder, index, page); // unless it left with the anchor's page
            }
        }
        false
    }

    fn copy_page(&mut self, nth: u32, index: u32, group: &Group, growth: &Growth) {
        let (holder, last) = (growth.holder, growth.len >> group.shift);
        let &Sequence { namespace, depth, .. } = self.holders.get(holder); // its path may have moved up since the plan began
        let source = self.tables.get(holder, index, last);
        let (target, _) = self.pages.take(group.pool, 1);
        self.own(target, namespace);
        self.tables.set(holder, index, last, target);
        let tokens = growth.len & group.page_tokens().wrapping_sub(1);
        let is_anchor = index == self.limits.anchor;
        let kind = if is_anchor && depth == last.saturating_add(1) { OF_TIP } else { OF_SHARED };
        if kind == OF_TIP {
            // The plan keeps the source from now on; the sequence's path ends one page earlier.
            let parent = self.pages.parent(source);
            self.pages.hold(parent, Holder::Live);
            self.holders.with(holder, |sequence| (sequence.tip, sequence.depth) = (parent, last));
        } else if !self.pages.is_indexed(source) {
            self.pages.set_replaced(source, self.pages.replaced(source).saturating_add(1));
        }
        if is_anchor {
            self.index.copy_tokens(source, target, tokens);
        }
        self.plan.note_copy(PlanCopy { entry: nth, group: index, source, target, tokens, at: last, kind });
    }

    /// A page that would be copied, had one been free, leaves the index and is written in place.
    fn withdraw_last(&mut self, holder: u32, index: u32, page: u32) {
        if index != self.limits.anchor {
            self.index.withdraw_hung(&mut self.pages, &mut self.events, page);
            return;
        }
        let last = self.holders.get(holder).len >> self.index.shift;
        self.holders.with(holder, |sequence| sequence.inherited = sequence.inherited.min(last));
        if self.holders.get(holder).tip == page {
            self.withdraw_tip(holder);
        } else {
            self.withdraw_hung_at(page);
            self.pages.unhold_parent_of(page);
            self.index.withdraw(&mut self.pages, &mut self.events, page);
        }
    }

    /// Appends entries `from..to` to a row.
    fn extend(&mut self, holder: u32, index: u32, group: &Group, from: u32, to: u32) {
        let namespace = self.holders.get(holder).namespace;
        let mut next = from;
        if group.wants_runs() && to.wrapping_sub(from) <= 64 {
            let (first, count) = self.pages.take_run(group.pool, to.wrapping_sub(from));
            self.place(holder, index, next, first, count, namespace);
            next = next.wrapping_add(count);
        }
        while next < to {
            let (first, count) = self.pages.take(group.pool, to.wrapping_sub(next));
            if count == 0 {
                break; // promised pages are always there
            }
            self.place(holder, index, next, first, count, namespace);
            next = next.wrapping_add(count);
        }
    }

    fn place(&mut self, holder: u32, index: u32, entry: u32, first: u32, count: u32, namespace: u32) {
        self.tables.push_run(holder, index, entry, first, count);
        if !self.pages.traits.owner.is_empty() {
            for page in first..first.wrapping_add(count) {
                self.own(page, namespace);
            }
        }
    }

    /// Notes who owns a page from now on, and whether its old content must be scrubbed.
    pub(super) fn own(&mut self, page: u32, namespace: u32) {
        if self.pages.traits.owner.is_empty() {
            return;
        }
        let owner = self.spaces.get(namespace).owner;
        let before = self.pages.traits.owner.get(page);
        self.pages.traits.owner.set(page, owner);
        self.pages.charge(page);
        let has_bytes = !self.limits.is_hidden() || page > self.limits.indexed;
        if before != 0 && before != owner && has_bytes && !self.plan.scrubs.is_empty() {
            self.plan.scrubs.set(self.plan.scrub_count, page);
            self.plan.scrub_count = self.plan.scrub_count.saturating_add(1);
        }
    }

    /// How many copies are listed. Those of rings without tokens, and of the index's own nodes, are not.
    #[inline(never)] // its stack is not finish's
    fn listed_copies(&self) -> u32 {
        if self.limits.rings || self.limits.is_hidden() { count(self.copies().count()) } else { self.plan.copy_count }
    }

    /// The copies of the last finished plan, in the order in which they must be listed; all run before any write.
    pub fn copies(&self) -> impl Iterator<Item = PageCopy> + '_ {
        (0..self.plan.copy_count)
            .map(|nth| {
                let copy = self.plan.copy(nth);
                PageCopy {
                    group: GroupId::new(u16::try_from(copy.group).unwrap_or(0)),
                    source: self.page_id(copy.source),
                    target: self.page_id(copy.target),
                    tokens: copy.tokens,
                    seals: copy.kind == OF_SEAL,
                }
            })
            .filter(|copy| u32::from(copy.group.get()) < self.visible_groups() && copy.tokens > 0)
    }

    /// Pages of the last finished plan whose content another namespace left, as (pool, page).
    pub fn scrubs(&self) -> impl Iterator<Item = (crate::PoolId, PageId)> + '_ {
        (0..self.plan.scrub_count).map(|nth| {
            let page = self.plan.scrubs.get(nth);
            let pool = u16::try_from(self.pages.pool_of(page)).unwrap_or(0);
            (crate::PoolId::new(pool), self.page_id(page))
        })
    }
}
