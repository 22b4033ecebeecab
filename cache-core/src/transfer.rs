//! Transfers: pages that something outside reads or writes for a while.
//!
//! A transfer shares the pages of a sequence or ticket up to the end of its range, like a child of a fork. So they can be
//! neither evicted nor written while it runs, even if their owner is closed; until it ends they are PENDING then.

use crate::cache::Cache;
use crate::error::Error;
use crate::ids::{SequenceId, TicketId, TransferId};
use crate::index::{INDEX, Resume};
use crate::pages::Holder;
use crate::sequence::{Kind, Sequence};

/// Whose pages are transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A sequence's.
    Sequence(SequenceId),
    /// A ticket's.
    Ticket(TicketId),
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// Out of the pages.
    Store = 0,
    /// Into the pages.
    Load = 1,
}

impl Cache<'_> {
    /// Begins a transfer of tokens `start..end` of a sequence or ticket and keeps their pages until it ends. While a load runs
    /// nothing of its sequence is published. O(pages).
    ///
    /// # Errors
    /// `Argument` for an empty range or one beyond the length, `Busy` for a sequence in an open plan, `WindowLost`,
    /// `Unsupported` for an end inside a sealed page, `Stale`, or a shortage of transfers, table chunks or media spans.
    pub fn io_begin(
        &mut self,
        source: Source,
        start: u32,
        end: u32,
        direction: Direction,
    ) -> Result<TransferId, Error> {
        let (from, owner) = match source {
            Source::Sequence(id) => (self.sequence(id)?, id.to_bits()),
            Source::Ticket(id) => (self.holders.resolve(Kind::Ticket, id.parts())?, 0),
        };
        let state = self.holders.get(from);
        if start >= end || end > state.len {
            return Err(Error::Argument);
        }
        if state.plan != 0 {
            return Err(Error::Busy);
        }
        self.can_resume_at(from, end)?;
        self.may_share(from, end, 1)?;
        let transfer = self.share(Kind::Transfer, from, end)?;
        self.holders.with(transfer, |state| {
            state.class = direction as u32;
            state.deadline = u64::from(start);
            state.user = owner;
        });
        if direction == Direction::Load && owner != 0 {
            self.holders.with(from, |sequence| {
                sequence.load_from = if sequence.loads == 0 { start } else { sequence.load_from.min(start) };
                sequence.loads = sequence.loads.saturating_add(1);
            });
        }
        let (generation, index) = self.holders.handle(Kind::Transfer, transfer);
        Ok(TransferId::new(generation, index))
    }

    /// Ends a transfer. A load that failed leaves pages of unknown content: they leave the index with all that is behind
    /// them, tickets for them become stale, and no sequence that uses them publishes beyond. O(pages), after a failed load O(sequences + pages).
    ///
    /// # Errors
    /// `Stale`.
    pub fn io_end(&mut self, id: TransferId, ok: bool) -> Result<(), Error> {
        let transfer = self.holders.resolve(Kind::Transfer, id.parts())?;
        let &Sequence { class, user, deadline, .. } = self.holders.get(transfer);
        let is_load = class == Direction::Load as u32;
        let owner = self.holders.owner_of_load(user).filter(|_| is_load);
        let start = u32::try_from(deadline).unwrap_or(0);
        if let Some(holder) = owner {
            self.holders.with(holder, |sequence| sequence.loads = sequence.loads.saturating_sub(1));
            self.find_load_start(holder, transfer, user);
        }
        if is_load && !ok {
            let is_building = self.plan.is_building();
            if is_building {
                self.unmark_replaced();
            }
            self.suspect(transfer, start);
            if let Some(holder) = owner {
                self.forget_ids(holder, start, Holder::Live);
            }
            if is_building {
                self.mark_all_replaced();
            }
        }
        self.drop_holder(Kind::Transfer, transfer);
        if let Some(holder) = owner {
            self.publish_or_queue(holder);
        }
        Ok(())
    }

    /// One of a sequence's loads has ended: notes where the first of the others begins.
    fn find_load_start(&mut self, holder: u32, ended: u32, owner: u64) {
        if self.holders.get(holder).loads == 0 {
            return;
        }
        let others =
            self.holders.each(Kind::Transfer).filter(|&other| other != ended).map(|other| self.holders.get(other));
        let loads = others.filter(|other| other.user == owner && other.class == Direction::Load as u32);
        let first = loads.map(|load| u32::try_from(load.deadline).unwrap_or(0)).min().unwrap_or(0);
        self.holders.with(holder, |sequence| sequence.load_from = first);
    }

    /// Takes the published pages of a holder from token `start` on out of the index, with all that is behind them.
    fn suspect(&mut self, holder: u32, start: u32) {
        let state = self.holders.get(holder);
        let keep = start >> self.index.shift;
        if !INDEX || state.depth <= keep {
            return;
        }
        let tip = Resume { node: state.tip, depth: state.depth };
        let first = self.index.climb(&self.pages, tip, keep.saturating_add(1));
        self.unindex(state.namespace, first);
    }
}
