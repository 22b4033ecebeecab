//! The operations of the control plane as data.
//!
//! An op names sequences, tickets and transfers by small labels; a machine maps a label to the last
//! handle that it stood for, so stale handles are reached by using a label after its end.
//! Relative positions and ticks are resolved by the runner before a machine sees them.

/// Label of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u8);

/// Label of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u8);

/// Label of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transfer(pub u8);

/// Label of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease(pub u8);

/// A run of placeholder tokens and what stands behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First token, from the start of the sequence.
    pub start: u32,
    /// Number of tokens.
    pub length: u32,
    /// Stands for the digest of the content.
    pub digest: u32,
}

/// What holds pages by a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A sequence.
    Seq(Seq),
    /// A ticket.
    Ticket(Ticket),
}

/// A position in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pos {
    /// Counted from the start.
    At(u32),
    /// Counted back from the sequence's length.
    Back(u32),
}

/// A logical time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Absolute tick.
    At(u64),
    /// Ticks after the present one.
    After(u64),
}

/// What one sequence of a plan accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    /// Accepted tokens; `None` = all that were reserved.
    pub accepted: Option<u32>,
    /// How many of them are known to be final; `None` = all accepted.
    pub verified: Option<u32>,
    /// Ids of the accepted tokens, where the plan has none.
    pub tokens: Option<Vec<u32>>,
}

/// The columns of a [`Op::Remove`], ascending.
pub fn masked_columns(first: u32, mask: u8) -> Vec<u32> {
    (0..8).filter(|bit| mask >> bit & 1 == 1).map(|bit| first.saturating_add(bit)).collect()
}

/// One call of the control plane.
#[allow(missing_docs, reason = "the fields are the arguments that the sentence above each variant names")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Opens an empty sequence whose pages get a class, with the media spans of its whole prompt.
    Open { seq: Seq, ns: u16, class: u8, spans: Vec<Span> },
    /// Turns a ticket into a sequence with the media spans that the ticket was asked for.
    OpenTicket { seq: Seq, ticket: Ticket, class: u8 },
    /// Adds media spans to a sequence.
    AddSpans { seq: Seq, spans: Vec<Span> },
    /// Shares the pages of `source` up to `at` with each child.
    Fork { source: Seq, children: Vec<Seq>, at: Pos },
    /// Cuts a sequence.
    Truncate { seq: Seq, len: Pos },
    /// Takes full pages out of a row: those of the columns that are set in a mask, from a first one on.
    Remove { seq: Seq, first: u32, mask: u8 },
    /// Ends a sequence.
    Close { seq: Seq, discard: bool },
    /// Begins a plan.
    PlanBegin { tick: Time },
    /// Promises room for `count` tokens.
    PlanAdd { seq: Seq, count: u32, tokens: Option<Vec<u32>> },
    /// Evicts and assigns what was promised.
    PlanFinish,
    /// Forgets a plan that is being built.
    PlanCancel,
    /// Accepts tokens, one entry per sequence in the order added; the last entry repeats.
    PlanCommit { accepts: Vec<Accept> },
    /// Gives back a finished plan.
    PlanAbort,
    /// A plan of one sequence up to finish; cancels when it does not fit.
    Reserve { seq: Seq, count: u32, tokens: Option<Vec<u32>> },
    /// The single-shot call.
    Append { seq: Seq, tokens: Vec<u32> },
    /// Settles provisional tokens.
    Verify { seq: Seq, upto: Pos },
    /// Publishes up to `budget` pages.
    Publish { budget: u32 },
    /// Asks for the hit length only.
    Lookup { ns: u16, tokens: Vec<u32>, limit: u32, spans: Vec<Span> },
    /// Pins the longest hit.
    Match { ticket: Ticket, ns: u16, tokens: Vec<u32>, limit: u32, spans: Vec<Span>, until: Option<Time> },
    /// Drops a ticket.
    Drop { ticket: Ticket },
    /// Frees cached pages.
    Evict { pool: u16, count: u32 },
    /// Empties the index, or one namespace of it.
    Clear { ns: Option<u16> },
    /// Begins a transfer.
    IoBegin { transfer: Transfer, owner: Owner, begin: u32, end: u32, load: bool },
    /// Ends a transfer.
    IoEnd { transfer: Transfer, ok: bool },
    /// Moves the clock.
    Advance { tick: Time },
    /// Retains the published pages of a sequence's first `upto` tokens until a tick.
    Lease { lease: Lease, seq: Seq, upto: u32, until: Time },
    /// Ends a lease early.
    EndLease { lease: Lease },
    /// Sets the eviction class of a prompt's cached prefix.
    SetClass { ns: u16, tokens: Vec<u32>, class: u8 },
    /// Moves a prompt's cached prefix to the hot or the cold end.
    Move { ns: u16, tokens: Vec<u32>, hot: bool },
    /// Sets a namespace's quota in a pool; 0 = none.
    SetQuota { ns: u16, pool: u16, pages: u32 },
    /// Ends a namespace that nobody uses.
    CloseSpace { ns: u16 },
    /// Opens a namespace again, or finds it open.
    OpenSpace { ns: u16 },
    /// Makes the rows of the caller's table show these sequences, by what changed since the last time.
    Export { seqs: Vec<Seq> },
    /// Writes a window as a ring with this many columns.
    Ring { seq: Seq, group: u16, columns: u32 },
    /// Promises that the pages of a planned sequence below entry `upto` become sealed pages.
    Seal { seq: Seq, group: u16, upto: u32 },
    /// Takes the events since the last drain.
    Drain,
    /// Runs the invariant check.
    Check,
}
