//! Running transfers: pins that outlive their owner.
//!
//! A transfer shares the pages of its owner up to the end of its range, as a fork would.

use std::collections::BTreeMap;

use super::chunks::chunks_of;
use super::index::Key;
use super::pages::Page;
use super::per_page::Counts;
use super::{Model, Running, Sequence};
use crate::machine::{Outcome, Resource, Status};
use crate::op::{Owner, Seq, Transfer};

impl Model {
    pub(super) fn io_begin(
        &mut self,
        transfer: Transfer,
        owner: Owner,
        (begin, end): (u32, u32),
        load: bool,
    ) -> Result<Outcome, Outcome> {
        let mut shared = match owner {
            Owner::Seq(seq) => self.live(seq)?.clone(),
            Owner::Ticket(ticket) => {
                let pins = self.state.tickets.get(&ticket).ok_or(Outcome::of(Status::Stale))?.clone();
                let len = pins.tokens.len() as u32;
                Sequence {
                    birth: 0,
                    ns: pins.ns,
                    verified: len,
                    published: len,
                    tokens: pins.tokens.into_iter().map(Some).collect(),
                    tables: pins.tables,
                    rings: vec![Vec::new(); self.spec.groups.len()],
                    sealed: self.all_sealed(len),
                    holds: BTreeMap::new(),
                    closing: None,
                    class: 0,
                    spans: Vec::new(),
                }
            }
        };
        if begin >= end || end > shared.len() {
            return Err(Outcome::of(Status::Argument));
        }
        if let Owner::Seq(seq) = owner {
            // A pin on a plan's sequence would change what the plan must copy.
            self.idle(seq)?;
        }
        self.may_cut(&shared, end)?;
        self.room_for_chunks(self.chunks_below(&shared, end))?;
        self.room_for_spans(shared.spans.iter().filter(|span| span.start < end).count())?;
        if self.state.transfers.len() >= self.spec.max_transfers() {
            return Err(Outcome::capacity(Resource::Transfers, 1, 0));
        }
        let loading = (load && shared.birth != 0).then_some(shared.birth);
        self.cut(&mut shared, end);
        let anchor = self.spec.anchor().unwrap_or(0);
        let holds = shared.holds.iter().map(|(&index, &id)| (index, (self.indexed_pool(anchor, index), id))).collect();
        let (tip, spans) = (self.tip(&shared), shared.spans.clone());
        let nodes = self.hidden.map(|group| shared.tables[group].clone()).unwrap_or_default();
        let chunks = self.chunks_below(&shared, end) - chunks_of(core::slice::from_ref(&nodes));
        let mut pinned = self.cut(&mut shared, 0);
        pinned.retain(|page| page.1 != crate::spec::NULL);
        self.state.transfers.insert(
            transfer,
            Running { ns: shared.ns, pinned, holds, chunks, nodes, tip, spans, load, begin, loading },
        );
        Ok(Outcome::OK)
    }

    /// Used pages by pool that only transfers keep.
    pub(super) fn pending(&self) -> Vec<u32> {
        let mut pending = vec![0; self.spec.pools.len()];
        if self.state.transfers.is_empty() {
            return pending;
        }
        let (all, pins) = (self.references(), self.transfer_pins());
        let mut others = Counts::default();
        for (page, _) in all.iter().filter(|(page, count)| **count > pins.of(*page)) {
            others.add(page);
        }
        let others = self.kept(&others);
        for (page, ()) in self.kept(&all).iter().filter(|(page, ())| !others.contains(*page)) {
            pending[page.0] += 1;
        }
        pending
    }

    /// The node at which a sequence's published pages end.
    pub(super) fn tip(&self, sequence: &Sequence) -> Option<Key> {
        let anchor = self.spec.anchor()?;
        let step = self.page_tokens(anchor);
        let pages = sequence.published / step;
        if !sequence.published.is_multiple_of(step) {
            // Cut inside a published page: that page is its last one.
            let id = sequence.tables[anchor][pages as usize];
            let home = self.state.index.home(self.pool_at(sequence, anchor, pages), id);
            if let Some((key, _)) = home {
                return Some(key.clone());
            }
        }
        self.node_of(sequence, pages)
    }

    /// The node of the last page of an anchor's table.
    fn home_of_last(&self, table: &[u32]) -> Option<Key> {
        let pool = self.indexed_pool(self.spec.anchor()?, (table.len() as u32).checked_sub(1)?);
        self.state.index.home(pool, *table.last()?).map(|(key, _)| key.clone())
    }

    /// The node that ends the first pages of a sequence's path; their tokens need not be known any more.
    pub(super) fn node_of(&self, sequence: &Sequence, pages: u32) -> Option<Key> {
        let (anchor, last) = (self.spec.anchor()?, pages.checked_sub(1)?);
        let id = sequence.holds.get(&last).unwrap_or(&sequence.tables[anchor][last as usize]);
        self.state.index.home(self.indexed_pool(anchor, last), *id).map(|(key, _)| key.clone())
    }

    pub(super) fn io_end(&mut self, transfer: Transfer, ok: bool) -> Result<Outcome, Outcome> {
        let running = self.state.transfers.get_mut(&transfer).ok_or(Outcome::of(Status::Stale))?;
        let loading = running.loading.take();
        let (tip, begin, failed) = (running.tip.clone(), running.begin, running.load && !ok);
        let mut owners = self.state.sequences.iter().filter(|(_, sequence)| Some(sequence.birth) == loading);
        let owner: Option<Seq> = owners.next().map(|(seq, _)| *seq);
        if failed {
            self.suspect(tip, begin);
            let loose = owner.map(|seq| self.forget(seq, begin)).unwrap_or_default();
            self.settle(&loose);
        }
        let running = self.state.transfers.remove(&transfer).expect("checked");
        self.settle(&running.pinned);
        if let Some(seq) = owner {
            self.publish_or_queue(seq);
        }
        Ok(Outcome::OK)
    }

    /// Takes the pages from token `begin` on that lead to a node out of the index, with all that is behind them.
    fn suspect(&mut self, tip: Option<Key>, begin: u32) {
        let (Some(tip), Some(anchor)) = (tip, self.spec.anchor()) else { return };
        let step = self.page_tokens(anchor);
        let keep = begin / step;
        if tip.tokens.len() as u32 / step > keep {
            self.unindex_below(&tip.upto((keep + 1) * step), keep);
        }
    }

    /// Takes a node and all that is behind it out of the index. It is the page `keep` of its path.
    fn unindex_below(&mut self, top: &Key, keep: u32) {
        let anchor = self.spec.anchor().expect("there is an index");
        let step = self.page_tokens(anchor);
        let passes = |tip: Option<Key>| tip.is_some_and(|tip| tip.is_below(top));
        for ticket in self.tickets_where(|pins| passes(self.home_of_last(&pins.tables[anchor]))) {
            let _ = self.drop_ticket(ticket);
        }
        let through = self.state.sequences.iter().filter(|(_, sequence)| passes(self.tip(sequence)));
        let through: Vec<Seq> = through.map(|(seq, _)| *seq).collect();
        let mut loose: Vec<Page> = Vec::new();
        for seq in through {
            let sequence = self.state.sequences.get_mut(&seq).expect("listed");
            sequence.published = sequence.published.min(keep * step);
            let holds = sequence.holds.split_off(&keep);
            loose.extend(holds.into_iter().map(|(index, id)| (self.indexed_pool(anchor, index), id)));
            loose.extend(self.forget(seq, keep * step));
        }
        let nodes = self.hidden.map(|group| self.pool_of(group));
        for running in self.state.transfers.values_mut() {
            if passes(running.tip.clone()) {
                loose.extend(running.drop_path(keep, nodes));
                running.tip = Some(top.upto(keep * step)).filter(|key| !key.tokens.is_empty());
            }
        }
        self.withdraw_below(top);
        self.settle(&loose);
    }

    /// Leaf by leaf, the highest page first; then its parent as soon as that is a leaf.
    fn withdraw_below(&mut self, top: &Key) {
        let leaf = |model: &Self, page: Page| {
            let home = model.state.index.home(page.0, page.1).filter(|_| model.is_anchor(page));
            home.is_some_and(|(key, _)| key.is_below(top) && !model.state.index.has_children(page))
        };
        let pools = self.node_pools().into_iter();
        let pages = pools.flat_map(|pool| (1..=self.state.pools[pool].pages).rev().map(move |id| (pool, id)));
        let pages: Vec<Page> = pages.collect();
        while self.state.index.nodes.contains_key(top) {
            for &start in &pages {
                let mut next = Some(start);
                while let Some(page) = next.filter(|&page| leaf(self, page)) {
                    next = self.parent_page(page);
                    self.evict_page(page);
                }
            }
        }
    }
}

impl Running {
    /// Gives up the holds on pages, and the nodes of the given pool, from index `keep` on.
    pub(super) fn drop_path(&mut self, keep: u32, nodes: Option<usize>) -> Vec<Page> {
        let (dropped, kept) = self.holds.iter().copied().partition(|(index, _)| *index >= keep);
        self.holds = kept;
        let dropped: Vec<(u32, Page)> = dropped;
        let mut dropped: Vec<Page> = dropped.into_iter().map(|(_, page)| page).collect();
        let row = self.nodes.drain((keep as usize).min(self.nodes.len())..).rev();
        dropped.extend(row.filter_map(|id| nodes.map(|pool| (pool, id))));
        for page in &dropped {
            if let Some(at) = self.pinned.iter().position(|other| other == page) {
                self.pinned.remove(at);
            }
        }
        dropped
    }
}
