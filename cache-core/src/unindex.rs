//! Withdrawing whole subtrees from the index: clear, and pages whose content became suspect.

use crate::cache::Cache;
use crate::error::Error;
use crate::events::{Event, EventKind};
use crate::ids::NamespaceId;
use crate::index::Resume;
use crate::pages::{Holder, NULL};
use crate::sequence::{Kind, Sequence};

impl Cache<'_> {
    /// Withdraws everything of one namespace, or of all, from the index. Pages in use become private, cached ones free, and
    /// tickets stale. Sequences go on, but publish nothing any more: their content is what was withdrawn. O(pages).
    ///
    /// # Errors
    /// `Busy` while a plan is open; `Stale`.
    pub fn clear(&mut self, namespace: Option<NamespaceId>) -> Result<(), Error> {
        if self.plan.is_open() {
            return Err(Error::Busy);
        }
        let only = namespace.map(|id| self.namespace(id)).transpose()?;
        for slot in 0..self.spaces.count() {
            if self.spaces.is_open(slot) && only.is_none_or(|only| only == slot) {
                self.unindex_namespace(slot);
            }
        }
        Ok(())
    }

    pub(crate) fn unindex_namespace(&mut self, slot: u32) {
        let root = Resume { node: self.pages.root(slot), depth: 0 };
        self.events.mute(true);
        self.unindex(slot, root);
        self.events.mute(false);
        self.events.push(|| Event { namespace: slot, kind: EventKind::Cleared, ..Event::default() });
    }

    /// Withdraws a node and all that is behind it.
    pub(crate) fn unindex(&mut self, slot: u32, from: Resume) {
        if !self.index.is_enabled() {
            return;
        }
        for holder in self.holders.range(Kind::Ticket) {
            if self.passes(self.holders.get(holder), slot, from) {
                self.drop_holder(Kind::Ticket, holder);
            }
        }
        for (kind, who) in [(Kind::Sequence, Holder::Live), (Kind::Transfer, Holder::Transfer)] {
            for holder in self.holders.range(kind) {
                if self.passes(self.holders.get(holder), slot, from) {
                    self.privatise(holder, from, who);
                }
            }
        }
        self.leave_copied_tips(slot, from);
        self.withdraw_leaves(from.node);
    }

    /// Whether a holder's path leads through a node.
    fn passes(&self, state: &Sequence, slot: u32, through: Resume) -> bool {
        state.is_live == 1
            && state.namespace == slot
            && state.depth >= through.depth
            && self.index.ancestor(&self.pages, state.tip, state.depth.saturating_sub(through.depth)) == through.node
    }

    /// Turns a holder's path from a node on into private entries.
    fn privatise(&mut self, holder: u32, from: Resume, who: Holder) {
        let state = self.holders.get(holder);
        let keep = from.depth.saturating_sub(1);
        let (mut node, mut duplicates) = (state.tip, state.duplicates);
        for entry in (keep..state.depth).rev() {
            if self.tables.get(holder, self.limits.anchor, entry) == node {
                self.pages.hold(node, who);
            } else {
                duplicates = duplicates.saturating_sub(1);
            }
            node = self.pages.parent(node);
        }
        self.pages.hold(node, who);
        self.pages.unhold(state.tip, who);
        self.holders.with(holder, |state| {
            (state.tip, state.depth, state.duplicates) = (node, keep.min(state.depth), duplicates);
            state.inherited = state.inherited.min(keep);
        });
        // What was withdrawn must not come back: the sequence is opaque from here on.
        self.forget_ids(holder, keep << self.index.shift, who);
    }

    /// Makes a holder opaque from token `from` on. Where the anchor is hidden, its row and its path end there as if the holder
    /// had been cut: nodes behind are given back, and what holds their keys is let go.
    pub(crate) fn forget_ids(&mut self, holder: u32, from: u32, who: Holder) {
        self.holders.with(holder, |state| state.known = state.known.min(from));
        if self.limits.is_hidden() {
            let end = self.cut_path(holder, self.holders.get(holder).len, who);
            self.leave_copied_nodes(holder, end);
            self.holders.with(holder, |state| state.writable = 0);
        }
        self.unqueue_if_done(holder);
    }

    /// Takes the subtree at a node, a root excepted, out of the index leaf by leaf: cached pages become free, used ones
    /// private.
    fn withdraw_leaves(&mut self, top: u32) {
        let is_left = |cache: &Self| match cache.pages.is_root(top) {
            true => cache.pages.children(top) > 0,
            false => cache.pages.is_indexed(top),
        };
        let mut progress = true;
        while progress && is_left(self) {
            progress = false;
            for start in (1..=self.index.last_node()).rev() {
                let mut page = start;
                while self.is_leaf_below(page, top) {
                    let parent = self.pages.parent(page);
                    self.withdraw_leaf(page);
                    progress = true;
                    if page == top {
                        break;
                    }
                    page = parent; // it may be a leaf now
                }
            }
        }
    }

    fn is_leaf_below(&self, page: u32, top: u32) -> bool {
        if page == NULL
            || self.pages.is_root(page)
            || !self.pages.is_indexed(page)
            || self.pages.is_hung(page)
            || self.pages.children(page) != 0
        {
            return false;
        }
        let mut node = page;
        while node != top && node != NULL && !self.pages.is_root(node) {
            node = self.pages.parent(node);
        }
        node == top
    }

    fn withdraw_leaf(&mut self, page: u32) {
        if self.pages.traits.leased.get(page) > 0 {
            self.lift_leases(page);
        }
        if self.pages.is_cached(page) {
            self.evict_page(page);
        } else {
            self.withdraw_hung_at(page);
            self.pages.unhold_parent_of(page);
            self.index.withdraw(&mut self.pages, &mut self.events, page);
        }
    }
}
