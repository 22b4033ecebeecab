//! Random programs that mostly do what the state allows.
//!
//! Noise through the byte form mostly collects refusals. A guide looks at the model and picks labels
//! that are live, plans that are open and tokens that other sequences have used: at absolute position
//! p, document d has token 100 d + p mod 7, so sequences collide, part and meet again. The ops that it
//! made are plain data and replay without it.

mod configs;
mod extras;

pub use configs::{spec, with_seals, without_full};

use crate::bytes;
use crate::machine::Oracle;
use crate::op::{Accept, Lease, Op, Owner, Pos, Seq, Span, Ticket, Time, Transfer};
use crate::rng::Rng;
use crate::spec::Spec;

/// Labels of sequences in use.
const SEQS: u8 = 12;
/// Labels of tickets in use.
const TICKETS: u8 = 6;
/// Labels of transfers in use.
const TRANSFERS: u8 = 4;

/// The next op for a state.
pub fn op(rng: &mut Rng, spec: &Spec, state: &dyn Oracle) -> Op {
    let guide = Guide { spec, state };
    if rng.below(24) == 0 {
        let noise = rng.bytes(48);
        if let Some(op) = bytes::decode_ops(&noise, spec).into_iter().find(is_mild) {
            return op;
        }
    }
    match state.plan_is_finished() {
        Some(false) if spec.has_seals() && rng.below(3) == 0 => guide.seal(rng),
        Some(false) => match rng.below(100) {
            0..40 => guide.add(rng),
            40..56 => Op::PlanFinish,
            56..62 => Op::PlanCancel,
            _ => guide.any(rng),
        },
        Some(true) => match rng.below(100) {
            0..55 => guide.commit(rng),
            55..68 => Op::PlanAbort,
            _ => guide.any(rng),
        },
        None if spec.has_seals() && rng.below(4) == 0 => Op::PlanBegin { tick: Time::After(0) },
        None => match rng.below(100) {
            0..14 => guide.reserve(rng),
            14..24 => Op::PlanBegin { tick: Time::After(rng.below(2)) },
            24..48 => guide.append(rng),
            _ => guide.any(rng),
        },
    }
}

fn is_mild(op: &Op) -> bool {
    match op {
        Op::Match { until: Some(_), .. } => false,
        Op::Append { tokens, .. } | Op::Match { tokens, .. } | Op::Lookup { tokens, .. } => tokens.len() <= 64,
        Op::PlanAdd { count, .. } | Op::Reserve { count, .. } => *count <= 64,
        // How a list beyond the plan's capacity is refused is a case of its own (R13).
        Op::PlanCommit { accepts } => accepts.len() <= 16,
        Op::Clear { .. } => false,
        Op::PlanBegin { tick: Time::At(_) } | Op::Advance { tick: Time::At(_) } => false,
        _ => true,
    }
}

struct Guide<'s> {
    spec: &'s Spec,
    state: &'s dyn Oracle,
}

impl Guide<'_> {
    fn any(&self, rng: &mut Rng) -> Op {
        match rng.below(100) {
            0..14 => self.open(rng),
            14..34 => self.find(rng),
            34..48 => self.open_ticket(rng),
            48..52 => Op::Drop { ticket: self.ticket(rng, true) },
            52..62 => Op::Close { seq: self.live(rng), discard: rng.below(4) == 0 },
            62..69 => self.fork(rng),
            69..77 => Op::Truncate { seq: self.live(rng), len: Self::pos(rng, self.step()) },
            77..81 => Op::Evict { pool: self.pool(rng), count: rng.below(4) as u32 },
            81 if self.spec.groups.len() == 1 => self.remove(rng),
            81..83 => self.retain(rng),
            83..85 => Op::Verify { seq: self.live(rng), upto: Pos::Back(rng.below(3) as u32) },
            85..88 => Op::Publish { budget: rng.below(5) as u32 },
            88..91 => self.io(rng),
            91..93 => Op::IoEnd { transfer: Transfer(rng.below(u64::from(TRANSFERS)) as u8), ok: rng.below(4) != 0 },
            93 => self.export(rng),
            94 => Op::Drain,
            95 if rng.below(2) == 0 => self.ring(rng),
            95 => self.export(rng),
            96 => self.lookup(rng),
            97 => Op::Advance { tick: Time::After(rng.below(2)) },
            98 if rng.below(3) == 0 => Op::Clear { ns: (rng.below(2) == 0).then(|| self.ns(rng)) },
            _ if self.spec.namespaces.len() > 1 => self.space(rng),
            _ => Op::Check,
        }
    }

    fn retain(&self, rng: &mut Rng) -> Op {
        let (ns, tokens, _) = self.query(rng);
        match rng.below(12) {
            0..2 if self.spec.classes > 1 => Op::SetClass { ns, tokens, class: self.class(rng) },
            2..4 => Op::Move { ns, tokens, hot: rng.below(2) == 0 },
            4..7 if self.spec.leases > 0 => {
                let until = Time::After(rng.below(6));
                Op::Lease { lease: self.lease(rng), seq: self.live(rng), upto: 1 + tokens.len() as u32, until }
            }
            7 if self.spec.leases > 0 => Op::EndLease { lease: self.lease(rng) },
            8 if self.spec.quotas > 0 => {
                let ns = rng.below(self.spec.namespaces.len() as u64) as u16;
                let pool = self.pool(rng);
                let most = u64::from(self.spec.pools[usize::from(pool)].pages);
                Op::SetQuota { ns, pool, pages: rng.below(most + 1) as u32 }
            }
            9 | 10 if self.spec.spans > 0 => {
                let seq = self.live(rng);
                let start = self.state.len(seq).unwrap_or(0) + rng.below(4) as u32;
                let span = Span { start, length: 1 + rng.below(3) as u32, digest: rng.below(2) as u32 };
                Op::AddSpans { seq, spans: vec![span] }
            }
            _ => Op::Advance { tick: Time::After(rng.below(3)) },
        }
    }

    fn class(&self, rng: &mut Rng) -> u8 {
        if self.spec.classes > 1 { rng.below(u64::from(self.spec.classes)) as u8 } else { 0 }
    }

    fn lease(&self, rng: &mut Rng) -> Lease {
        Lease(rng.below(u64::from(self.spec.leases) + 1) as u8)
    }

    /// The first media spans of one of two albums that share their places.
    fn spans(&self, rng: &mut Rng) -> Vec<Span> {
        if self.spec.spans == 0 || rng.below(2) == 0 {
            return Vec::new();
        }
        let album = if rng.below(3) == 0 { 1 } else { 0 };
        (0..rng.below(4) as u32).map(|i| Span { start: 9 * i + 2, length: 2, digest: i * album }).collect()
    }

    fn step(&self) -> u64 {
        self.spec.groups.iter().map(|g| u64::from(g.page_tokens)).min().unwrap_or(1)
    }

    fn ns(&self, rng: &mut Rng) -> u16 {
        if rng.below(5) == 0 { rng.below(self.spec.namespaces.len() as u64) as u16 } else { 0 }
    }

    fn pool(&self, rng: &mut Rng) -> u16 {
        rng.below(self.spec.pools.len() as u64) as u16
    }

    fn live(&self, rng: &mut Rng) -> Seq {
        let live = self.state.live();
        match live.get(rng.below(live.len() as u64) as usize) {
            Some(&seq) if rng.below(40) != 0 => seq,
            _ => Seq(rng.below(u64::from(SEQS)) as u8),
        }
    }

    fn unused(&self, rng: &mut Rng) -> Seq {
        let first = rng.below(u64::from(SEQS)) as u8;
        let labels = (0..SEQS).map(|i| Seq((first + i) % SEQS));
        labels.clone().find(|seq| !self.state.is_live(Owner::Seq(*seq))).unwrap_or(Seq(first))
    }

    fn ticket(&self, rng: &mut Rng, live: bool) -> Ticket {
        let first = rng.below(u64::from(TICKETS)) as u8;
        let mut labels = (0..TICKETS).map(|i| Ticket((first + i) % TICKETS));
        labels.find(|t| self.state.is_live(Owner::Ticket(*t)) == live).unwrap_or(Ticket(first))
    }

    fn pos(rng: &mut Rng, step: u64) -> Pos {
        match rng.below(4) {
            0 => Pos::At((rng.below(4) * step) as u32),
            1 => Pos::Back(rng.below(3) as u32),
            _ => Pos::Back(rng.below(3 * step + 2) as u32),
        }
    }

    /// Tokens of a document at absolute positions, sometimes parting in between.
    fn text(rng: &mut Rng, begin: u32, count: u32) -> Vec<u32> {
        let pick = |rng: &mut Rng| if rng.below(3) == 0 { rng.below(3) as u32 } else { 0 };
        let mut document = pick(rng);
        let parts = if rng.below(3) == 0 { 12 } else { 400 };
        (begin..begin + count)
            .map(|position| {
                if rng.below(parts) == 0 {
                    document = pick(rng);
                }
                100 * document + position % 7
            })
            .collect()
    }

    /// A number of tokens, mostly one that fixed rings take.
    fn count(&self, rng: &mut Rng) -> u32 {
        let count = self.any_count(rng);
        match self.spec.groups.iter().map(|group| group.ring).filter(|ring| *ring > 0).min() {
            Some(ring) if count > ring && rng.below(8) != 0 => 1 + rng.below(u64::from(ring)) as u32,
            _ => count,
        }
    }

    fn any_count(&self, rng: &mut Rng) -> u32 {
        match rng.below(8) {
            0 | 1 => 1 + rng.below(2) as u32,
            2 => {
                let pages = self.spec.pools.iter().map(|pool| pool.pages).min().unwrap_or(1);
                1 + rng.below(u64::from(pages) * self.step() / 8 + 1).min(600) as u32
            }
            3 => (self.step() * (1 + rng.below(2))) as u32,
            _ => 1 + rng.below(3 * u64::from(self.spec.hit_step()) + 2) as u32,
        }
    }

    fn room(&self, rng: &mut Rng) -> (Seq, u32, Option<Vec<u32>>) {
        let seq = self.live(rng);
        let count = self.count(rng);
        let begin = self.state.len(seq).unwrap_or(0);
        let tokens = Self::text(rng, begin, count);
        (seq, count, if rng.below(10) == 0 { None } else { Some(tokens) })
    }

    fn add(&self, rng: &mut Rng) -> Op {
        let (seq, count, tokens) = self.room(rng);
        Op::PlanAdd { seq, count, tokens }
    }

    fn reserve(&self, rng: &mut Rng) -> Op {
        let (seq, count, tokens) = self.room(rng);
        Op::Reserve { seq, count, tokens }
    }

    fn append(&self, rng: &mut Rng) -> Op {
        let (seq, _, tokens) = self.room(rng);
        Op::Append { seq, tokens: tokens.unwrap_or_default() }
    }

    fn commit(&self, rng: &mut Rng) -> Op {
        let accepts = self.state.plan().into_iter().map(|(seq, count, _)| {
            let accepted = match rng.below(4) {
                0 => rng.below(u64::from(count) + 1) as u32,
                _ => count,
            };
            let verified = (rng.below(4) == 0).then(|| rng.below(u64::from(accepted) + 1) as u32);
            let begin = self.state.len(seq).unwrap_or(0);
            let tokens = (rng.below(6) == 0).then(|| Self::text(rng, begin, accepted));
            Accept { accepted: Some(accepted), verified, tokens }
        });
        Op::PlanCommit { accepts: accepts.collect() }
    }

    fn open(&self, rng: &mut Rng) -> Op {
        Op::Open { seq: self.unused(rng), ns: self.ns(rng), class: self.class(rng), spans: self.spans(rng) }
    }

    fn query(&self, rng: &mut Rng) -> (u16, Vec<u32>, u32) {
        let count = rng.below(8 * u64::from(self.spec.hit_step()) + 2) as u32;
        let tokens = Self::text(rng, 0, count);
        let limit = if rng.below(3) == 0 { count } else { count.saturating_sub(1) };
        (self.ns(rng), tokens, limit)
    }

    fn find(&self, rng: &mut Rng) -> Op {
        let (ns, tokens, limit) = self.query(rng);
        let until = (rng.below(8) == 0).then(|| Time::After(rng.below(3)));
        Op::Match { ticket: self.ticket(rng, false), ns, tokens, limit, spans: self.spans(rng), until }
    }

    fn lookup(&self, rng: &mut Rng) -> Op {
        let (ns, tokens, limit) = self.query(rng);
        Op::Lookup { ns, tokens, limit, spans: self.spans(rng) }
    }

    fn open_ticket(&self, rng: &mut Rng) -> Op {
        Op::OpenTicket { seq: self.unused(rng), ticket: self.ticket(rng, true), class: self.class(rng) }
    }

    fn fork(&self, rng: &mut Rng) -> Op {
        let source = self.live(rng);
        let first = self.unused(rng);
        let mut children = vec![first];
        let second = Seq((first.0 + 1) % SEQS);
        if rng.below(3) == 0 && !self.state.is_live(Owner::Seq(second)) {
            children.push(second);
        }
        let at = if rng.below(2) == 0 { Pos::Back(0) } else { Self::pos(rng, self.step()) };
        Op::Fork { source, children, at }
    }

    fn io(&self, rng: &mut Rng) -> Op {
        let transfer = Transfer(rng.below(u64::from(TRANSFERS)) as u8);
        let seq = self.live(rng);
        let len = self.state.len(seq).unwrap_or(0);
        let ticket = self.ticket(rng, true);
        let (owner, len) = match self.state.ticket(ticket) {
            Some((_, tokens, _)) if rng.below(3) == 0 => (Owner::Ticket(ticket), tokens.len() as u32),
            _ => (Owner::Seq(seq), len),
        };
        let begin = rng.below(u64::from(len)) as u32;
        let end = begin + 1 + rng.below(u64::from(len - begin.min(len))) as u32;
        Op::IoBegin { transfer, owner, begin, end, load: rng.below(2) == 0 }
    }
}
