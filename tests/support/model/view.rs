//! What the runner sees of the model.

use core::hash::{Hash, Hasher};
use core::ops::Range;
use std::collections::hash_map::DefaultHasher;

use super::Model;
use super::pages::Pool;
use super::per_page::Counts;
use crate::machine::{Machine, Oracle, Outcome, PageView, PoolView, SeqView};
use crate::op::{Lease, Op, Owner, Seq, Span, Ticket, Transfer};

/// The model's pages, references counted once.
pub struct Pages<'m> {
    model: &'m Model,
    refs: Counts,
}

impl Pages<'_> {
    /// State of a page.
    pub fn page(&self, pool: u16, page: u32) -> PageView {
        let key = (usize::from(pool), page);
        PageView {
            refs: self.refs.of(key),
            used: self.model.state.pools[key.0].is_used(page),
            indexed: self.model.state.index.homes.contains(key),
        }
    }
}

impl Model {
    /// The state of its pages now.
    pub fn pages(&self) -> Pages<'_> {
        Pages { model: self, refs: self.references() }
    }

    /// Counters of all pools.
    pub fn counters(&self) -> Vec<PoolView> {
        let count = |(own, pending): (&Pool, u32)| {
            let (free, cached) = (own.free_count(), own.cached_count());
            PoolView { used: own.pages - free - cached, cached, free, pending }
        };
        self.state.pools.iter().zip(self.pending()).map(count).take(self.visible_pools()).collect()
    }
}

impl Machine for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn apply(&mut self, op: &Op) -> Outcome {
        self.step(op).unwrap_or_else(|refusal| refusal)
    }

    fn pool(&self, pool: u16) -> PoolView {
        self.counters()[usize::from(pool)]
    }

    fn page(&self, pool: u16, page: u32) -> PageView {
        self.pages().page(pool, page)
    }

    fn sequence(&self, seq: Seq) -> Option<SeqView> {
        let sequence = self.live(seq).ok()?;
        let plan = self.state.plan.as_ref().filter(|plan| plan.finished);
        let entry = plan.and_then(|plan| plan.entries.iter().find(|entry| entry.seq == seq));
        let mut tables = match entry {
            Some(entry) => self.planned_tables(sequence, entry),
            None => sequence.tables.clone(),
        };
        let mut rings = self.ring_views(sequence, entry);
        tables.truncate(self.visible_groups());
        rings.truncate(self.visible_groups());
        let mut sealed = entry.map_or(sequence.sealed.clone(), |entry| self.planned_sealed(sequence, entry));
        sealed.truncate(self.visible_groups());
        Some(SeqView {
            len: sequence.len(),
            verified: sequence.verified,
            published: self.published_pages(sequence),
            sealed,
            tables,
            rings,
        })
    }

    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.state.hash(&mut hasher);
        hasher.finish()
    }

    fn digest_kind(&self) -> u8 {
        0
    }

    fn check(&mut self) -> Result<(), String> {
        self.self_check()
    }
}

impl Oracle for Model {
    fn len(&self, seq: Seq) -> Option<u32> {
        self.live(seq).ok().map(|sequence| sequence.len())
    }

    fn is_live(&self, owner: Owner) -> bool {
        match owner {
            Owner::Seq(seq) => self.state.sequences.contains_key(&seq),
            Owner::Ticket(ticket) => self.state.tickets.contains_key(&ticket),
        }
    }

    fn is_leased(&self, lease: Lease) -> bool {
        self.state.leases.iter().any(|state| state.key.is_some() && state.label == lease)
    }

    fn is_running(&self, transfer: Transfer) -> bool {
        self.state.transfers.contains_key(&transfer)
    }

    fn tick(&self) -> u64 {
        self.state.tick
    }

    fn plan(&self) -> Vec<(Seq, u32, Option<Vec<u32>>)> {
        let entries = self.state.plan.iter().flat_map(|plan| &plan.entries);
        entries.map(|entry| (entry.seq, entry.count, entry.tokens.clone())).collect()
    }

    fn plan_is_finished(&self) -> Option<bool> {
        self.state.plan.as_ref().map(|plan| plan.finished)
    }

    fn live(&self) -> Vec<Seq> {
        let open = self.state.sequences.iter().filter(|(_, sequence)| sequence.closing.is_none());
        open.map(|(seq, _)| *seq).collect()
    }

    fn ticket(&self, ticket: Ticket) -> Option<(u16, Vec<u32>, Vec<Span>)> {
        self.state.tickets.get(&ticket).map(|pins| (pins.ns, pins.tokens.clone(), pins.spans.clone()))
    }

    fn opening(&self, ns: u16) -> Option<u64> {
        self.state.spaces.opening(ns)
    }

    fn user(&self, ns: u16) -> Option<Owner> {
        self.user_of(ns).flatten()
    }

    fn sealed(&self, seq: Seq, group: u16) -> Range<u32> {
        self.sequence(seq).and_then(|view| view.sealed.get(usize::from(group)).cloned()).unwrap_or_default()
    }

    fn spans(&self, seq: Seq) -> Vec<Span> {
        self.state.sequences.get(&seq).map(|sequence| sequence.spans.clone()).unwrap_or_default()
    }
}
