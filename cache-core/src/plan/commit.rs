//! Ending a plan: commit keeps what was accepted, abort takes everything back but the evictions.

use super::{HAS_IDS, IN_PAGE, NO_NODE, PlanCopy, PlanEntry};
use super::{OF_SEAL, OF_TIP};
use crate::cache::Cache;
use crate::error::Error;
use crate::mem::bump;
use crate::namespace::UNKNOWN_OWNER;
use crate::pages::{Holder, NULL, Pages};
use crate::sequence::Sequence;
use crate::width::Id;

/// What became of one sequence's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accept<'a> {
    /// Tokens that now belong to the sequence, `0..=count` of its `plan_add`.
    pub accepted: u32,
    /// How many of these are known to be final. The others count, are never published, and are settled by `verify`
    /// or `truncate`. Without effect while earlier tokens are not settled.
    pub verified: u32,
    /// Ids of the accepted tokens where `plan_add` had none.
    pub tokens: Option<&'a [u32]>,
}

impl<'a> Accept<'a> {
    /// `count` tokens, all final.
    #[must_use]
    pub const fn all(count: u32) -> Accept<'a> {
        Accept { accepted: count, verified: count, tokens: None }
    }
}

impl Cache<'_> {
    /// Ends a finished plan: `accepts` has one element per sequence in the order of `plan_add`. Surplus pages go back; full
    /// verified pages are published (immediate mode); pages that left a window are dropped; closes that waited are
    /// carried out. O(sequences * groups + pages released and published).
    ///
    /// # Errors
    /// `PlanState`; `Argument` for a wrong number of elements, more accepted than planned, more verified than accepted
    /// or a wrong number of ids. The plan stays open and unchanged then.
    pub fn plan_commit(&mut self, accepts: &[Accept<'_>]) -> Result<(), Error> {
        self.plan_commit_each(accepts.iter().copied())
    }

    /// As [`Self::plan_commit`], over an iterator, which is run twice.
    ///
    /// # Errors
    /// As [`Self::plan_commit`].
    pub fn plan_commit_each<'a>(
        &mut self,
        accepts: impl ExactSizeIterator<Item = Accept<'a>> + Clone,
    ) -> Result<(), Error> {
        if !self.plan.is_finished() {
            return Err(Error::PlanState);
        }
        if accepts.len() != self.plan.entry_count as usize {
            return Err(Error::Argument);
        }
        let mut accepted = 0_u64;
        for (entry, accept) in self.plan.each().zip(accepts.clone()) {
            accepted = accepted.wrapping_add(u64::from(accept.accepted));
            let ids = accept.tokens.map_or(accept.accepted as usize, <[u32]>::len);
            if accept.accepted > entry.count || accept.verified > accept.accepted || ids != accept.accepted as usize {
                return Err(Error::Argument);
            }
        }
        bump(&mut self.counters.committed_tokens, accepted);
        if self.plan.copy_count > 0 {
            self.settle_copies();
        }
        let count = self.plan.entry_count;
        for (nth, Accept { accepted, verified, tokens }) in (0..count).zip(accepts) {
            let Some(&PlanEntry { holder, flags, .. }) = self.plan.entries.at(nth) else { break };
            if flags & IN_PAGE == 0 || tokens.is_some() {
                self.settle_pages(nth, accepted, tokens);
            }
            let has_ids = flags & NO_NODE == 0 && (flags & HAS_IDS != 0 || tokens.is_some());
            if self.accept(holder, accepted, verified, has_ids) {
                self.publish_or_queue(holder);
            }
        }
        if self.limits.windows {
            for nth in 0..count {
                self.drop_behind_window(self.plan.entries.get(nth).holder);
            }
        }
        self.end_plan(count);
        Ok(())
    }

    /// Sequences of the finished plan, which commit expects in the order of `plan_add`.
    ///
    /// # Errors
    /// `PlanState` unless a plan is finished.
    pub fn planned(&self) -> Result<u32, Error> {
        if self.plan.is_finished() { Ok(self.plan.entry_count) } else { Err(Error::PlanState) }
    }

    /// Lets the sources of copies go: of each sequence, like all releases, the anchor's last.
    fn settle_copies(&mut self) {
        let mut of_anchor: Option<PlanCopy> = None;
        for nth in 0..self.plan.copy_count {
            let copy = self.plan.copy(nth);
            if let Some(last) = of_anchor.take_if(|last| last.entry != copy.entry) {
                self.let_source_go(&last);
            }
            if copy.group == self.limits.anchor && self.pages.is_indexed(copy.source) {
                of_anchor = Some(copy);
            } else {
                self.let_source_go(&copy);
            }
        }
        if let Some(last) = of_anchor {
            self.let_source_go(&last);
        }
    }

    fn let_source_go(&mut self, copy: &PlanCopy) {
        self.pages.set_replaced_if_private(copy.source);
        self.pages.unhold(copy.source, Holder::Live);
        if copy.group == self.limits.anchor {
            // From here on the page is the sequence's own.
            let holder = self.plan.entries.get(copy.entry).holder;
            self.holders.with(holder, |sequence| sequence.inherited = sequence.inherited.min(copy.at));
        }
    }

    /// Moves the cursors of one sequence; gives whether it has something to publish.
    #[inline]
    fn accept(&mut self, holder: u32, accepted: u32, verified: u32, has_ids: bool) -> bool {
        let Some(sequence) = self.holders.at_mut(holder) else { return false };
        let from = sequence.len;
        sequence.len = from.wrapping_add(accepted);
        sequence.plan = 0;
        if has_ids && sequence.known == from {
            sequence.known = sequence.len;
        }
        if sequence.verified == from {
            sequence.verified = from.wrapping_add(verified);
        }
        sequence.depth < sequence.verified.min(sequence.known) >> (self.index.shift & 31)
    }

    /// Stores ids that came late and gives back pages that were not needed.
    fn settle_pages(&mut self, nth: u32, accepted: u32, tokens: Option<&[u32]>) {
        let PlanEntry { holder, count, flags, .. } = self.plan.entries.get(nth);
        let (from, is_known) = self.holders.with(holder, |now| (now.len, now.known == now.len));
        if let Some(tokens) = tokens
            && is_known
            && flags & NO_NODE == 0
        {
            self.index.store_from(&self.tables, self.limits.anchor, holder, from, tokens);
        }
        if flags & NO_NODE != 0 && accepted > 0 {
            self.leave_cut_node(holder);
        }
        if self.limits.is_hidden() && flags & HAS_IDS == 0 && tokens.is_none() {
            // Without ids the sequence is opaque from here on, and what was taken for them goes back.
            let end = self.anchor().pages(self.holders.get(holder).known);
            self.release_row(holder, self.limits.anchor, end, Holder::Live);
        }
        if accepted < count && flags & IN_PAGE == 0 {
            self.give_back(holder, from.wrapping_add(accepted), from.wrapping_add(count));
        }
    }

    /// A sequence that gets no node for its next token, and whose last one is a published node that was cut, leaves that one:
    /// what it computes from here on is not what the node says.
    fn leave_cut_node(&mut self, holder: u32) {
        let &Sequence { len, depth, .. } = self.holders.get(holder);
        if depth << self.index.shift > len {
            let keep = depth.wrapping_sub(1);
            self.holders.with(holder, |sequence| {
                sequence.known = sequence.known.min(keep << self.index.shift);
                sequence.inherited = sequence.inherited.min(keep);
            });
            self.release_path(holder, keep, keep, Holder::Live);
        }
    }

    /// Releases pages that the plan took beyond `len`; they hold tokens up to `planned` at most.
    fn give_back(&mut self, holder: u32, len: u32, planned: u32) {
        let mut changed = false;
        for index in 0..self.limits.groups {
            let group = self.groups.get(index);
            if group.pages(len) < group.pages(planned) {
                changed = true;
                self.release_row(holder, index, group.entries(len), Holder::Live);
            }
        }
        if changed {
            self.touch_tables(holder, len);
            self.holders.with(holder, |sequence| sequence.writable = 0);
        }
    }

    /// Drops the pages of window groups that no later query reads.
    fn drop_behind_window(&mut self, holder: u32) {
        let len = self.holders.get(holder).len;
        let mut changed = u32::MAX;
        for index in 0..self.limits.groups {
            let group = self.groups.get(index);
            if group.is_full() {
                continue;
            }
            let from = self.tables.first(holder, index);
            let to = group.first(len);
            if from >= to {
                continue;
            }
            let from = from.max(group.sink_pages(u32::MAX));
            if group.is_ring() {
                changed = if from < to { changed.min(from << group.shift) } else { changed };
                self.tables.set_first(holder, index, to); // the pages stay in the ring
                continue;
            }
            for entry in from..to {
                let page = self.tables.get(holder, index, entry);
                if page == NULL {
                    continue;
                }
                self.tables.drop_entry(holder, index, entry);
                if group.keeps_exactly() && self.pages.is_indexed(page) && self.pages.count(page) == 1 {
                    self.index.withdraw_hung(&mut self.pages, &mut self.events, page);
                }
                self.pages.unhold(page, Holder::Live);
                changed = changed.min(entry << group.shift);
            }
            self.tables.set_first(holder, index, to);
        }
        if changed != u32::MAX {
            self.touch_tables(holder, changed);
        }
    }

    /// Gives a finished plan up. The state is that before `plan_finish`, except that evicted pages stay evicted. Call it only
    /// when the device no longer executes the plan. O(sequences * groups + pages).
    ///
    /// # Errors
    /// `PlanState`.
    pub fn plan_abort(&mut self) -> Result<(), Error> {
        if !self.plan.is_finished() {
            return Err(Error::PlanState);
        }
        for nth in 0..self.plan.entry_count {
            let entry = self.plan.entries.get(nth);
            for index in 0..self.limits.groups {
                let sequence = self.holders.get(entry.holder);
                let end = self.stored_end(index, sequence, sequence.len);
                let pages = &mut self.pages;
                let mut give = |_, popped: &[Id]| {
                    for page in popped.iter().rev().filter(|page| !page.is_null()).map(|page| page.get()) {
                        pages.disown(page);
                        pages.unhold(page, Holder::Live);
                    }
                };
                while self.tables.pop_chunk(entry.holder, index, end, &mut give) {}
            }
            self.touch_tables(entry.holder, 0);
            self.holders.with(entry.holder, |sequence| (sequence.writable, sequence.plan) = (0, 0));
        }
        for nth in (0..self.plan.copy_count).rev() {
            self.undo_copy(nth);
        }
        let count = self.plan.entry_count;
        self.plan.copy_count = 0;
        self.plan.scrub_count = 0;
        self.end_plan(count);
        Ok(())
    }

    fn undo_copy(&mut self, nth: u32) {
        let copy = self.plan.copy(nth);
        let holder = self.plan.entries.get(copy.entry).holder;
        if copy.target == NULL {
            self.pages.set_replaced_if_private(copy.source);
            return self.pages.unhold(copy.source, Holder::Live); // the sequence has no such entry any more
        }
        self.tables.set(holder, copy.group, copy.at, copy.source);
        if copy.kind == OF_SEAL {
            self.cut_sealed(holder, copy.group, copy.at);
        }
        self.pages.set_replaced_if_private(copy.source);
        if copy.kind == OF_TIP {
            let parent = self.holders.get(holder).tip;
            self.holders
                .with(holder, |sequence| (sequence.tip, sequence.depth) = (copy.source, copy.at.saturating_add(1)));
            self.pages.unhold(parent, Holder::Live);
        }
        self.pages.disown(copy.target);
        self.pages.unhold(copy.target, Holder::Live);
    }
}

impl Pages<'_> {
    /// The plan may have written the page: whoever gets it next must scrub it.
    fn disown(&mut self, page: u32) {
        if !self.traits.owner.is_empty() {
            self.discharge(page);
            self.traits.owner.set(page, UNKNOWN_OWNER);
        }
    }
}

impl Cache<'_> {
    /// Appends tokens that are already computed, or will be before anything else is: a plan of one sequence in one call, all
    /// accepted and final. Its copies are read with [`Cache::copies`] until the next plan begins.
    ///
    /// # Errors
    /// As [`Cache::plan_begin`] and [`Cache::plan_add`]; nothing changes then.
    pub fn append(&mut self, id: crate::SequenceId, tokens: &[u32]) -> Result<crate::PlanReport, Error> {
        let count = u32::try_from(tokens.len()).map_err(|_| Error::Argument)?;
        self.plan_begin(self.now)?;
        // The ids come with commit: they need not be kept in between.
        if let Err(error) = self.add(id, count, None, true) {
            self.plan_cancel()?;
            return Err(error);
        }
        let report = self.plan_finish()?;
        self.plan_commit(&[Accept { tokens: Some(tokens), ..Accept::all(count) }])?;
        Ok(report)
    }
}
