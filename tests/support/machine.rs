//! What every implementation of the control plane shows to the runner.
//!
//! Page ids, lengths, hits, copies, slots, events and statuses are compared exactly; handles and key
//! hashes are the machine's own and only have to be consistent.

use crate::op::{Accept, Op, Owner, Seq, Span, Ticket, Time};
use core::ops::Range;

/// Class of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Done.
    Ok,
    /// Does not fit now.
    Retry,
    /// Does not fit now, and running transfers will bring enough.
    Pending,
    /// Could not fit in an empty cache.
    Never,
    /// Part of an open plan.
    Busy,
    /// The handle's generation has passed.
    Stale,
    /// An argument is out of range.
    Argument,
    /// Not legal in this state.
    State,
    /// A position that a window group has dropped is needed.
    WindowLost,
    /// The position is inside a sealed page.
    Sealed,
    /// A fixed capacity other than pages and quotas is used up.
    Capacity,
    /// This machine lacks the feature.
    Unsupported,
}

/// What is short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resource {
    /// Pages of a group's pool.
    #[default]
    Pages,
    /// The quota of a namespace.
    Quota,
    /// Chunks of table entries.
    Chunks,
    /// Sequences.
    Sequences,
    /// Tickets.
    Tickets,
    /// Transfers.
    Transfers,
    /// Media spans.
    Spans,
    /// Leases.
    Leases,
    /// Namespaces with a quota.
    Quotas,
    /// Open namespaces.
    Namespaces,
    /// Sequences, tokens or copies of one plan.
    Plan,
}

/// Why something does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// What is short.
    pub resource: Resource,
    /// The lowest short group; 0 unless pages are short.
    pub group: u16,
    /// How many are needed.
    pub need: u32,
    /// Free ones that are not promised yet.
    pub have: u32,
    /// Pages that eviction could free.
    pub reclaimable: u32,
    /// Pages that running transfers will free.
    pub pending: u32,
    /// With NEVER: the largest count of tokens that could ever fit.
    pub fits: u32,
}

/// One copy of a finished plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Group.
    pub group: u16,
    /// Source page.
    pub src: u32,
    /// Destination page.
    pub dst: u32,
    /// Leading tokens to copy.
    pub tokens: u32,
    /// The destination is a page of the group's sealed pool.
    pub seals: bool,
}

/// What the device must do before and during a finished plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanView {
    /// Pages that another namespace wrote, in order of their assignment: (pool, page). They are scrubbed first.
    pub scrubs: Vec<(u16, u32)>,
    /// Copies, in order; all of them run before any write.
    pub copies: Vec<Copy>,
    /// Per group: the slot of each new token, sequences in plan order.
    pub slots: Vec<Vec<i64>>,
    /// Position of each new token, sequences in plan order.
    pub positions: Vec<i32>,
}

/// A window as a ring: sink columns, then page `i` in column `i % columns` behind them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingView {
    /// First page behind the sinks that it shows.
    pub first: u32,
    /// One past the last page.
    pub end: u32,
    /// The whole row, NULL where no page is.
    pub row: Vec<u32>,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// A key entered the index of a group.
    Stored,
    /// A key left the index of a group.
    Removed,
    /// A namespace, or with `None` everything, left the index.
    Cleared,
}

/// One event. `key` and `parent` are the machine's own names of keys, 0 = none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// Group.
    pub group: u16,
    /// Page, 0 for `Cleared`.
    pub page: u32,
    /// Namespace by its index in the configuration; `None` = all.
    pub ns: Option<u16>,
    /// Key.
    pub key: u64,
    /// Key of the parent page.
    pub parent: u64,
}

/// What a call returned besides its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing.
    None,
    /// Hit length in tokens.
    Hit(u32),
    /// A number of pages: freed or published.
    Pages(u32),
    /// Why it does not fit.
    Short(Shortage),
    /// A finished plan.
    Plan(PlanView),
    /// Events and how many were lost before them.
    Events(Vec<Event>, u64),
    /// By group and row: the entries that the caller's table shows.
    Rows(Vec<Vec<Vec<u32>>>),
    /// A window as a ring.
    Ring(RingView),
}

/// Status and value of one op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Status.
    pub status: Status,
    /// Value.
    pub value: Value,
}

impl Outcome {
    /// Success without a value.
    pub const OK: Self = Self { status: Status::Ok, value: Value::None };

    /// Success with a value.
    pub const fn ok(value: Value) -> Self {
        Self { status: Status::Ok, value }
    }

    /// A fixed capacity is short.
    pub const fn capacity(resource: Resource, need: u32, have: u32) -> Self {
        let short = Shortage { resource, group: 0, need, have, reclaimable: 0, pending: 0, fits: 0 };
        Self { status: Status::Capacity, value: Value::Short(short) }
    }

    /// A status without a value.
    pub const fn of(status: Status) -> Self {
        Self { status, value: Value::None }
    }
}

/// Counters of one pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolView {
    /// Pages with references.
    pub used: u32,
    /// Pages without references, indexed.
    pub cached: u32,
    /// Pages without references, not indexed.
    pub free: u32,
    /// Used pages that only transfers refer to.
    pub pending: u32,
}

/// State of one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageView {
    /// References of every kind.
    pub refs: u32,
    /// Whether it is USED: it has references, or an indexed page behind it has.
    pub used: bool,
    /// Whether the index names it.
    pub indexed: bool,
}

/// State of one live sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeqView {
    /// Tokens that are part of it.
    pub len: u32,
    /// Tokens known to be final.
    pub verified: u32,
    /// Tokens in the index.
    pub published: u32,
    /// Page tables by group, NULL where not resident; a finished plan's pages included.
    pub tables: Vec<Vec<u32>>,
    /// Ring views by group, sinks first; empty for groups without a fixed ring.
    pub rings: Vec<Vec<u32>>,
    /// By group: columns that are pages of its sealed pool.
    pub sealed: Vec<Range<u32>>,
}

/// An implementation of the control plane.
pub trait Machine {
    /// Short name for reports.
    fn name(&self) -> &'static str;
    /// Applies one op whose positions and ticks are resolved.
    fn apply(&mut self, op: &Op) -> Outcome;
    /// Counters of a pool.
    fn pool(&self, pool: u16) -> PoolView;
    /// State of a page.
    fn page(&self, pool: u16, page: u32) -> PageView;
    /// A live sequence, `None` when the label names none.
    fn sequence(&self, seq: Seq) -> Option<SeqView>;
    /// Digest of the logical state, comparable between machines of the same [`Machine::digest_kind`].
    fn digest(&self) -> u64;
    /// Which digests may be compared: 0 the model's, 1 the core's.
    fn digest_kind(&self) -> u8;
    /// The first violated invariant, if any.
    fn check(&mut self) -> Result<(), String>;
}

/// What the runner asks to resolve an op; the model answers it.
pub trait Oracle {
    /// Length of a live sequence.
    fn len(&self, seq: Seq) -> Option<u32>;
    /// Whether the label names a live sequence.
    fn is_live(&self, owner: Owner) -> bool;
    /// Whether the label names a lease that has not ended.
    fn is_leased(&self, lease: crate::op::Lease) -> bool;
    /// Whether the label names a running transfer.
    fn is_running(&self, transfer: crate::op::Transfer) -> bool;
    /// The present tick.
    fn tick(&self) -> u64;
    /// Sequence, count and tokens of the open plan in order.
    fn plan(&self) -> Vec<(Seq, u32, Option<Vec<u32>>)>;
    /// Whether the open plan is finished; `None` when there is none.
    fn plan_is_finished(&self) -> Option<bool>;
    /// Labels of all live sequences.
    fn live(&self) -> Vec<Seq>;
    /// Namespace and tokens that a ticket pins, and the media spans of its prompt.
    fn ticket(&self, ticket: Ticket) -> Option<(u16, Vec<u32>, Vec<Span>)>;
    /// Media spans of a live sequence.
    fn spans(&self, seq: Seq) -> Vec<Span>;
    /// Which opening of a namespace is the present one; `None` while it is closed.
    fn opening(&self, ns: u16) -> Option<u64>;
    /// Something that keeps a namespace open.
    fn user(&self, ns: u16) -> Option<Owner>;
    /// Which columns of a live sequence's row are sealed.
    fn sealed(&self, seq: Seq, group: u16) -> Range<u32>;
}

/// Pads the accept list to the plan: the last entry repeats, an empty list accepts everything.
pub fn pad_accepts(accepts: &[Accept], counts: &[u32]) -> Vec<Accept> {
    let last = accepts.last().cloned().unwrap_or_default();
    let mut padded = accepts.to_vec();
    while padded.len() < counts.len() {
        padded.push(last.clone());
    }
    for (accept, &count) in padded.iter_mut().zip(counts) {
        let accepted = accept.accepted.unwrap_or(count);
        accept.verified = Some(accept.verified.unwrap_or(accepted));
        accept.accepted = Some(accepted);
    }
    for accept in padded.iter_mut().skip(counts.len()) {
        let accepted = accept.accepted.unwrap_or(0);
        accept.verified = Some(accept.verified.unwrap_or(accepted));
        accept.accepted = Some(accepted);
    }
    padded
}

/// The absolute tick of a time.
pub const fn resolve_time(time: Time, now: u64) -> u64 {
    match time {
        Time::At(tick) => tick,
        Time::After(ticks) => now.saturating_add(ticks),
    }
}
