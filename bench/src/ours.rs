//! kvfolio, driven call by call as the peers are. Whole workloads go through `kvfolio_examples::manager` instead.

use kvfolio::{
    Accept, Cache, CloseMode, Config, GroupConfig, IndexKind, OpenParams, PoolConfig, Prompt, SequenceId, TicketId,
};

use crate::peer::Peer;

/// Most requests in one plan.
pub const BATCH: usize = 256;

/// The manager.
pub struct Kvfolio<'m>(pub Cache<'m>);

/// A configuration with basic options: one pool, one full group, pages of 16 tokens.
pub const fn config<'a>(pools: &'a [PoolConfig], index: IndexKind) -> Config<'a> {
    Config { pools, groups: &[GroupConfig::FULL], sequences: BATCH as u32, tickets: 8, index, ..Config::new() }
}

impl Peer for Kvfolio<'_> {
    type Request = SequenceId;
    type Pin = TicketId;

    fn reserve(&mut self, tokens: u32) -> Option<SequenceId> {
        let sequence = self.0.open(&OpenParams::default()).ok()?;
        self.0.plan_begin(0).ok()?;
        self.0.plan_add(sequence, tokens, None).ok()?;
        self.0.plan_finish().ok()?;
        self.0.plan_commit(&[Accept::all(tokens)]).ok()?;
        Some(sequence)
    }

    fn admit(&mut self, prompt: &[u32]) -> Option<SequenceId> {
        let asked = Prompt { tokens: prompt, ..Prompt::default() };
        let (ticket, hit) = self.0.match_prefix(&asked, prompt.len() as u32 - 1, None).ok()?;
        let sequence = self.0.open_ticket(ticket, &OpenParams::default()).ok()?;
        self.0.append(sequence, &prompt[hit.tokens as usize..]).ok()?;
        Some(sequence)
    }

    fn grow(&mut self, request: &mut SequenceId, tokens: &[u32]) -> Option<()> {
        self.0.append(*request, tokens).ok().map(drop)
    }

    fn step(&mut self, requests: &mut [SequenceId], tokens: &[u32]) -> Option<()> {
        self.0.plan_begin(0).ok()?;
        for (&sequence, token) in requests.iter().zip(tokens.chunks(1)) {
            self.0.plan_add(sequence, 1, Some(token)).ok()?;
        }
        self.0.plan_finish().ok()?;
        self.0.plan_commit(&[Accept::all(1); BATCH][..requests.len()]).ok()
    }

    fn release(&mut self, request: SequenceId) {
        let _ = self.0.close(request, CloseMode::Keep); // it is alive: nothing else closes it
    }

    fn find(&mut self, prompt: &[u32]) -> Option<TicketId> {
        let asked = Prompt { tokens: prompt, ..Prompt::default() };
        self.0.match_prefix(&asked, prompt.len() as u32 - 1, None).ok().map(|(ticket, _)| ticket)
    }

    fn unpin(&mut self, pin: TicketId) {
        let _ = self.0.drop_ticket(pin); // it has no deadline
    }

    fn hit_tokens(&self) -> u64 {
        self.0.stats().counters.hit_tokens
    }
}
