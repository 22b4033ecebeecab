//! Which op a byte stands for.

use crate::op::{Lease, Op, Owner, Pos, Seq, Ticket, Time, Transfer};

/// Each kind once, in the order in which the versions gained them. An op is written with the place here.
const KINDS: &[Kind] = {
    use Kind::*;
    &[
        Open, OpenTicket, Fork, Truncate, Close, Begin, Add, Finish, Cancel, Commit, Abort, Reserve, Append, Verify,
        Publish, Lookup, Match, Drop, Evict, Clear, IoBegin, IoEnd, Advance, Lease, SetClass, SetQuota, Drain, Check,
        AddSpans, EndLease, Move, // Version 3.
        CloseSpace, OpenSpace, Export, Ring, Seal, // Version 4.
        Remove,
    ]
};

/// Kinds that versions 1 and 2 have.
const OLD: usize = Kind::Move as usize + 1;

/// Kinds that version 3 has.
const THIRD: usize = Kind::Seal as usize + 1;

/// More places for frequent kinds, behind those.
const MORE: &[Kind] = {
    use Kind::*;
    &[
        Open, Open, OpenTicket, OpenTicket, Fork, Truncate, Close, Close, Close, Begin, Add, Add, Add, Finish, Finish,
        Commit, Commit, Reserve, Append, Append, Append, Append, Append, Append, Append, Verify, Match, Match, Match,
        Match, Match, Drop, Evict, Publish,
    ]
};

/// What an op is, without its fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Open,
    OpenTicket,
    Fork,
    Truncate,
    Close,
    Begin,
    Add,
    Finish,
    Cancel,
    Commit,
    Abort,
    Reserve,
    Append,
    Verify,
    Publish,
    Lookup,
    Match,
    Drop,
    Evict,
    Clear,
    IoBegin,
    IoEnd,
    Advance,
    Lease,
    SetClass,
    SetQuota,
    Drain,
    Check,
    AddSpans,
    EndLease,
    Move,
    CloseSpace,
    OpenSpace,
    Export,
    Ring,
    Seal,
    Remove,
}

/// The kind that a byte stands for.
pub(super) fn kind_of(byte: u8, version: u8) -> Kind {
    let once = match version {
        0..=2 => OLD,
        3 => THIRD,
        _ => KINDS.len(),
    };
    let code = usize::from(byte) % (once + MORE.len());
    let place = if code < once { KINDS.get(code) } else { MORE.get(code - once) };
    place.copied().unwrap_or(Kind::Check)
}

/// The byte that an op is written with.
pub(super) fn code_of(op: &Op) -> u8 {
    let kind = kind(op);
    KINDS.iter().position(|k| *k == kind).unwrap_or(0) as u8
}

const fn kind(op: &Op) -> Kind {
    match op {
        Op::Open { .. } => Kind::Open,
        Op::OpenTicket { .. } => Kind::OpenTicket,
        Op::Fork { .. } => Kind::Fork,
        Op::Truncate { .. } => Kind::Truncate,
        Op::Close { .. } => Kind::Close,
        Op::PlanBegin { .. } => Kind::Begin,
        Op::PlanAdd { .. } => Kind::Add,
        Op::PlanFinish => Kind::Finish,
        Op::PlanCancel => Kind::Cancel,
        Op::PlanCommit { .. } => Kind::Commit,
        Op::PlanAbort => Kind::Abort,
        Op::Reserve { .. } => Kind::Reserve,
        Op::Append { .. } => Kind::Append,
        Op::Verify { .. } => Kind::Verify,
        Op::Publish { .. } => Kind::Publish,
        Op::Lookup { .. } => Kind::Lookup,
        Op::Match { .. } => Kind::Match,
        Op::Drop { .. } => Kind::Drop,
        Op::Evict { .. } => Kind::Evict,
        Op::Clear { .. } => Kind::Clear,
        Op::IoBegin { .. } => Kind::IoBegin,
        Op::IoEnd { .. } => Kind::IoEnd,
        Op::Advance { .. } => Kind::Advance,
        Op::Lease { .. } => Kind::Lease,
        Op::SetClass { .. } => Kind::SetClass,
        Op::SetQuota { .. } => Kind::SetQuota,
        Op::Drain => Kind::Drain,
        Op::Check => Kind::Check,
        Op::AddSpans { .. } => Kind::AddSpans,
        Op::EndLease { .. } => Kind::EndLease,
        Op::Move { .. } => Kind::Move,
        Op::CloseSpace { .. } => Kind::CloseSpace,
        Op::OpenSpace { .. } => Kind::OpenSpace,
        Op::Export { .. } => Kind::Export,
        Op::Ring { .. } => Kind::Ring,
        Op::Seal { .. } => Kind::Seal,
        Op::Remove { .. } => Kind::Remove,
    }
}

/// An op of a kind, its fields unset.
pub(super) fn blank(kind: Kind) -> Op {
    let seq = Seq(0);
    let ticket = Ticket(0);
    let transfer = Transfer(0);
    let owner = Owner::Seq(seq);
    let tick = Time::After(0);
    match kind {
        Kind::Open => Op::Open { seq, ns: 0, class: 0, spans: Vec::new() },
        Kind::OpenTicket => Op::OpenTicket { seq, ticket, class: 0 },
        Kind::AddSpans => Op::AddSpans { seq, spans: Vec::new() },
        Kind::Fork => Op::Fork { source: seq, children: Vec::new(), at: Pos::Back(0) },
        Kind::Truncate => Op::Truncate { seq, len: Pos::Back(0) },
        Kind::Close => Op::Close { seq, discard: false },
        Kind::Begin => Op::PlanBegin { tick },
        Kind::Add => Op::PlanAdd { seq, count: 0, tokens: None },
        Kind::Finish => Op::PlanFinish,
        Kind::Cancel => Op::PlanCancel,
        Kind::Commit => Op::PlanCommit { accepts: Vec::new() },
        Kind::Abort => Op::PlanAbort,
        Kind::Reserve => Op::Reserve { seq, count: 0, tokens: None },
        Kind::Append => Op::Append { seq, tokens: Vec::new() },
        Kind::Verify => Op::Verify { seq, upto: Pos::Back(0) },
        Kind::Publish => Op::Publish { budget: 0 },
        Kind::Lookup => Op::Lookup { ns: 0, tokens: Vec::new(), limit: 0, spans: Vec::new() },
        Kind::Match => Op::Match { ticket, ns: 0, tokens: Vec::new(), limit: 0, spans: Vec::new(), until: None },
        Kind::Drop => Op::Drop { ticket },
        Kind::Evict => Op::Evict { pool: 0, count: 0 },
        Kind::Clear => Op::Clear { ns: None },
        Kind::IoBegin => Op::IoBegin { transfer, owner, begin: 0, end: 0, load: false },
        Kind::IoEnd => Op::IoEnd { transfer, ok: true },
        Kind::Advance => Op::Advance { tick },
        Kind::Lease => Op::Lease { lease: Lease(0), seq, upto: 0, until: tick },
        Kind::EndLease => Op::EndLease { lease: Lease(0) },
        Kind::SetClass => Op::SetClass { ns: 0, tokens: Vec::new(), class: 0 },
        Kind::Move => Op::Move { ns: 0, tokens: Vec::new(), hot: false },
        Kind::SetQuota => Op::SetQuota { ns: 0, pool: 0, pages: 0 },
        Kind::CloseSpace => Op::CloseSpace { ns: 0 },
        Kind::OpenSpace => Op::OpenSpace { ns: 0 },
        Kind::Export => Op::Export { seqs: Vec::new() },
        Kind::Ring => Op::Ring { seq, group: 0, columns: 0 },
        Kind::Seal => Op::Seal { seq, group: 0, upto: 0 },
        Kind::Remove => Op::Remove { seq, first: 0, mask: 0 },
        Kind::Drain => Op::Drain,
        Kind::Check => Op::Check,
    }
}
