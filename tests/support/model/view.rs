//! What the runner sees of the model.

use core::hash::{Hash, Hasher};
use std::collections::hash_map::DefaultHasher;

use super::Model;
use crate::machine::{Machine, Oracle, Outcome, PageView, PoolView, SeqView};
use crate::op::{Lease, Op, Owner, Seq, Span, Ticket, Transfer};

impl Model {
    /// State of the pages `1..=N` of a pool.
    pub fn pages(&self, pool: u16) -> Vec<PageView> {
        let refs = self.references();
        let own = usize::from(pool);
        (1..=self.state.pools[own].pages)
            .map(|id| PageView {
                refs: refs.get(&(own, id)).copied().unwrap_or(0),
                used: self.state.pools[own].is_used(id),
                indexed: self.state.index.homes.contains_key(&(own, id)),
            })
            .collect()
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
        let own = &self.state.pools[usize::from(pool)];
        let (free, cached) = (own.free_count(), own.cached_count());
        PoolView { used: own.pages - free - cached, cached, free, pending: self.pending()[usize::from(pool)] }
    }

    fn page(&self, pool: u16, page: u32) -> PageView {
        let key = (usize::from(pool), page);
        PageView {
            refs: self.references().get(&key).copied().unwrap_or(0),
            used: self.state.pools[key.0].is_used(page),
            indexed: self.state.index.homes.contains_key(&key),
        }
    }

    fn sequence(&self, seq: Seq) -> Option<SeqView> {
        let sequence = self.live(seq).ok()?;
        let plan = self.state.plan.as_ref().filter(|plan| plan.finished);
        let entry = plan.and_then(|plan| plan.entries.iter().find(|entry| entry.seq == seq));
        Some(SeqView {
            len: sequence.len(),
            verified: sequence.verified,
            published: self.published_pages(sequence),
            tables: match entry {
                Some(entry) => self.planned_tables(sequence, entry),
                None => sequence.tables.clone(),
            },
            rings: self.ring_views(sequence, entry),
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

    fn spans(&self, seq: Seq) -> Vec<Span> {
        self.state.sequences.get(&seq).map(|sequence| sequence.spans.clone()).unwrap_or_default()
    }
}
