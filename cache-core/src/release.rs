//! Giving references back: truncate, close, drop, clear.
//!
//! A holder refers to anchor pages in two ways. Those of its path, entries `[0, depth)`, it keeps by one reference on its
//! tip; a private duplicate among them has a reference of its own. Entries from `depth` on have one reference each.
//! Pages of other groups have one reference per entry.

use crate::cache::Cache;
use crate::error::Error;
use crate::ids::SequenceId;
use crate::index::INDEX;
use crate::pages::{Holder, NULL};
use crate::sequence::{Kind, Sequence};
use crate::width::Id;

/// What becomes of a closed sequence's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CloseMode {
    /// Publish all verified full pages first; they stay cached.
    Keep = 0,
    /// Publish nothing; pages that only this sequence published and nobody uses leave the index.
    Discard = 1,
}

impl Cache<'_> {
    /// Ends a sequence. While it is part of an open plan the call succeeds and is carried out when the plan ends; the
    /// handle is stale at once. O(pages).
    ///
    /// # Errors
    /// `Stale`.
    pub fn close(&mut self, id: SequenceId, mode: CloseMode) -> Result<(), Error> {
        let holder = self.sequence(id)?;
        if self.holders.get(holder).plan != 0 {
            self.holders.close_later(holder, 1_u32.saturating_add(mode as u32));
            self.plan.closes = self.plan.closes.saturating_add(1);
            return Ok(());
        }
        self.close_holder(holder, mode);
        Ok(())
    }

    pub(crate) fn close_holder(&mut self, holder: u32, mode: CloseMode) {
        match mode {
            CloseMode::Keep => self.publish_all(holder),
            CloseMode::Discard if INDEX => self.retract(holder),
            CloseMode::Discard => {}
        }
        self.drop_holder(Kind::Sequence, holder);
    }

    /// Releases all that a holder keeps and frees its slot.
    pub(crate) fn drop_holder(&mut self, kind: Kind, holder: u32) {
        let &Sequence { namespace, parts, .. } = self.holders.get(holder);
        let who = if kind == Kind::Transfer { Holder::Transfer } else { Holder::Live };
        for group in self.other_groups() {
            self.release_row(holder, group, 0, who);
        }
        self.release_path(holder, 0, 0, who);
        for group in 0..self.limits.groups {
            self.tables.reset(holder, group);
        }
        self.index.parts.free(parts);
        if INDEX {
            self.holders.dequeue(holder);
        }
        self.spaces.remove_user(namespace);
        self.holders.close(kind, holder);
    }

    /// Releases the entries of a row, other than the anchor's, from `end` on, last first.
    pub(crate) fn release_row(&mut self, holder: u32, group: u32, end: u32, who: Holder) {
        let pages = &mut self.pages;
        while self.tables.pop_chunk(holder, group, end, |_, popped| pages.unhold_all(popped, who)) {}
    }

    /// Releases the anchor's entries from `end` on, last first, and moves the tip up to `depth`.
    pub(crate) fn release_path(&mut self, holder: u32, end: u32, depth: u32, who: Holder) {
        let anchor = self.limits.anchor;
        if !INDEX {
            return self.release_row(holder, anchor, end, who); // no path leads anywhere
        }
        let state = self.holders.get(holder);
        let (mut node, mut node_depth, mut duplicates) = (state.tip, state.depth, state.duplicates);
        let (pages, index) = (&mut self.pages, &self.index);
        let mut give = |base: u32, popped: &[Id]| {
            // Entries behind the path have a reference each.
            let (on_path, behind) =
                popped.split_at_checked(state.depth.saturating_sub(base) as usize).unwrap_or((popped, &[]));
            pages.unhold_all(behind, who);
            if duplicates == 0 {
                return; // the path alone keeps the others
            }
            let end = base.saturating_add(u32::try_from(on_path.len()).unwrap_or(0));
            for (entry, page) in (base..end).zip(on_path.iter().map(|page| page.get())).rev() {
                if page != NULL && duplicates > 0 {
                    let at = entry.saturating_add(1);
                    node = index.ancestor(pages, node, node_depth.saturating_sub(at));
                    node_depth = at;
                    if page != node {
                        pages.unhold(page, who);
                        duplicates = duplicates.saturating_sub(1);
                    }
                }
            }
        };
        while self.tables.pop_chunk(holder, anchor, end, &mut give) {}
        let depth = depth.min(state.depth);
        if depth < state.depth {
            let tip = self.index.ancestor(&self.pages, state.tip, state.depth.saturating_sub(depth));
            self.pages.hold(tip, who);
            self.pages.unhold(state.tip, who);
            self.holders.with(holder, |state| (state.tip, state.depth) = (tip, depth));
        }
        self.holders.with(holder, |state| state.duplicates = duplicates);
    }

    /// Cuts a sequence to `len` tokens. A published page that is cut keeps its old tokens in the index; the next append
    /// copies it. O(pages dropped).
    ///
    /// # Errors
    /// `Argument` beyond the length, `Busy` in an open plan, `WindowLost` when a window group no longer holds what this
    /// length needs, `Unsupported` inside a sealed page, `Stale`. Nothing changes then.
    pub fn truncate(&mut self, id: SequenceId, len: u32) -> Result<(), Error> {
        let holder = self.sequence(id)?;
        let sequence = self.holders.get(holder);
        if sequence.plan != 0 {
            return Err(Error::Busy);
        }
        self.can_resume_at(holder, len)?;
        if len < sequence.len {
            self.cut(holder, len);
            self.touch_tables(holder, len);
        }
        Ok(())
    }

    /// Whether all groups of a sequence can go on from `len`: the same answer for truncate and fork.
    pub(crate) fn can_resume_at(&self, holder: u32, len: u32) -> Result<(), Error> {
        let sequence = self.holders.get(holder);
        if len > sequence.len {
            return Err(Error::Argument);
        }
        for (index, group) in (0..).zip(self.groups.iter()) {
            let needed = group.first(len).max(group.sink_pages(len));
            if needed < self.tables.first(holder, index).min(group.pages(len)) {
                return Err(Error::WindowLost);
            }
        }
        for (index, group) in (0..).zip(self.groups.iter()).filter(|(_, group)| group.sealed_pool != 0) {
            // The next token would be written into a sealed page.
            let is_cut = len & group.page_tokens().wrapping_sub(1) != 0;
            if is_cut && group.sealed_columns(self.tables.sealed(holder, index)).contains(len >> group.shift) {
                return Err(Error::Unsupported);
            }
        }
        Ok(())
    }

    fn cut(&mut self, holder: u32, len: u32) {
        for index in self.other_groups() {
            let group = self.groups.get(index);
            self.release_row(holder, index, group.entries(len), Holder::Live);
        }
        self.cut_path(holder, len, Holder::Live);
        for index in 0..self.limits.groups {
            let group = self.groups.get(index);
            if group.sealed_pool != 0 {
                self.cut_sealed(holder, index, &group, group.pages(len));
            }
            let first = self.tables.first(holder, index).min(group.first(len));
            self.tables.set_first(holder, index, first);
        }
        let parts = self.holders.get(holder).parts;
        let parts = if parts == 0 { 0 } else { self.index.parts.truncate(parts, len) };
        self.holders.with(holder, |sequence| {
            sequence.len = len;
            sequence.writable = 0;
            sequence.verified = sequence.verified.min(len);
            sequence.known = sequence.known.min(len);
            sequence.parts = parts;
        });
        self.unqueue_if_done(holder);
    }

    /// Ends a holder's row of the anchor and its path at `len` tokens. Gives how many entries are left.
    pub(crate) fn cut_path(&mut self, holder: u32, len: u32, who: Holder) -> u32 {
        let (end, depth) = self.path_below(holder, len);
        // A duplicate that is cut in two is an ordinary private page from now on.
        let halved = depth < end.min(self.holders.get(holder).depth);
        self.release_path(holder, end, depth, who);
        self.holders.with(holder, |state| {
            state.inherited = state.inherited.min(depth);
            state.duplicates = state.duplicates.saturating_sub(u32::from(halved));
        });
        end
    }

    /// Anchor entries that a length of `len` keeps, and how deep its path then is: a page that is cut in two counts as
    /// path only if the entry is the published page itself.
    pub(crate) fn path_below(&self, holder: u32, len: u32) -> (u32, u32) {
        let state = self.holders.get(holder);
        let anchor = self.anchor();
        let end = self.anchor_end(state, len);
        // The hidden anchor's row may end before `len`.
        let len = if self.limits.is_hidden() { len.min(state.known) } else { len };
        if !INDEX || state.depth < end || len & anchor.page_tokens().wrapping_sub(1) == 0 {
            return (end, state.depth.min(end));
        }
        let last = end.saturating_sub(1);
        let node = self.index.ancestor(&self.pages, state.tip, state.depth.saturating_sub(end));
        let is_node = self.tables.get(holder, self.limits.anchor, last) == node;
        (end, if is_node { end } else { last })
    }

    /// Close with discard: pages that only this sequence published and nobody else needs leave the index, leaf first.
    fn retract(&mut self, holder: u32) {
        loop {
            let state = self.holders.get(holder);
            let page = state.tip;
            let last = state.depth.saturating_sub(1);
            if state.depth <= state.inherited
                || self.pages.count(page) != 1
                || self.pages.children(page) != 0
                || self.tables.get(holder, self.limits.anchor, last) != page
            {
                return;
            }
            self.withdraw_tip(holder);
        }
    }

    /// Withdraws the page at a sequence's tip, which nobody else refers to, from the index; it stays in the table.
    pub(crate) fn withdraw_tip(&mut self, holder: u32) {
        let page = self.holders.get(holder).tip;
        let parent = self.pages.parent(page);
        self.withdraw_hung_at(page);
        if self.pages.traits.leased.get(page) > 0 {
            self.lift_leases(page);
        }
        self.index.withdraw(&mut self.pages, &mut self.events, page);
        // The parent loses a used child and gains a tip: its count stays.
        self.holders.with(holder, |state| {
            state.tip = parent;
            state.depth = state.depth.saturating_sub(1);
        });
    }

    /// Takes the pages of other groups off a node: used ones become private, cached ones free.
    pub(crate) fn withdraw_hung_at(&mut self, node: u32) {
        for place in 0..self.index.places {
            let hung = self.index.hung(node, place);
            if hung != NULL {
                self.index.evict_hung(&mut self.pages, &mut self.events, hung);
            }
        }
    }
}
