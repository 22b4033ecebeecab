//! What can go wrong. Every failed call leaves the cache as it was.

use core::fmt;

use crate::config::ConfigError;
use crate::ids::GroupId;

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)] // a tag of its own, so that a match reads no byte that is not set
pub enum Error {
    /// An argument is outside its documented range.
    Argument,
    /// The same sequence twice in one plan.
    Duplicate,
    /// A buffer of the caller is too short; this many elements are needed.
    ShortBuffer(u32),
    /// The configuration left out what the call needs.
    Unsupported,
    /// The configuration itself is unusable.
    Config(ConfigError),
    /// The handle's object is gone.
    Stale,
    /// The object takes part in the open plan or in a transfer.
    Busy,
    /// The call needs another state of the plan.
    PlanState,
    /// A window group no longer holds what this length needs; match again.
    WindowLost,
    /// Time went back.
    TimeWentBack,
    /// Something is short.
    Shortage(Shortage),
    /// A violated invariant was found.
    Corrupt,
}

/// What is short, and whether waiting helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Whether and how it can be overcome.
    pub outcome: Outcome,
    /// What is short.
    pub resource: Resource,
    /// The lowest group whose pages are short; 0 for other resources.
    pub group: GroupId,
    /// How many are needed.
    pub need: u32,
    /// How many are free.
    pub have: u32,
    /// How many more eviction would give.
    pub reclaimable: u32,
    /// How many more transfers under way will give.
    pub pending: u32,
    /// `Never`: the most tokens that could be added, or the most entries that could be sealed; else 0.
    pub most: u32,
}

/// How a shortage can be overcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// Others must give something up first.
    Retry = 0,
    /// Transfers under way will give enough: wait for them, preempt nobody.
    Pending = 1,
    /// Not even an empty cache could hold it.
    Never = 2,
}

/// A capacity of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Resource {
    /// Pages of a group's pool.
    Pages = 0,
    /// Chunks of table entries.
    TableChunks = 1,
    /// Sequences.
    Sequences = 2,
    /// Tickets.
    Tickets = 3,
    /// Transfers.
    Transfers = 4,
    /// Namespaces.
    Namespaces = 5,
    /// Sequences in one plan.
    PlanSequences = 6,
    /// Tokens carried by one plan.
    PlanTokens = 7,
    /// Copies in one plan.
    PlanCopies = 8,
    /// Media spans.
    KeyParts = 9,
    /// Leases.
    Leases = 10,
    /// Quotas.
    Quotas = 11,
    /// The quota of the namespace.
    Quota = 12,
}

impl Shortage {
    pub(crate) const fn of(resource: Resource, need: u32, have: u32) -> Self {
        Self {
            outcome: Outcome::Retry,
            resource,
            group: GroupId::new(0),
            need,
            have,
            reclaimable: 0,
            pending: 0,
            most: 0,
        }
    }
}

impl From<Shortage> for Error {
    fn from(shortage: Shortage) -> Self {
        Self::Shortage(shortage)
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument => f.write_str("argument outside its range"),
            Self::Duplicate => f.write_str("sequence already in the plan"),
            Self::ShortBuffer(need) => write!(f, "buffer too short: {need} elements needed"),
            Self::Unsupported => f.write_str("not configured"),
            Self::Config(error) => error.fmt(f),
            Self::Stale => f.write_str("handle is stale"),
            Self::Busy => f.write_str("object is in use by the open plan or a transfer"),
            Self::PlanState => f.write_str("plan is not in the state that this call needs"),
            Self::WindowLost => f.write_str("a window no longer holds the tokens that this length needs"),
            Self::TimeWentBack => f.write_str("tick is lower than the last one"),
            Self::Shortage(s) => write!(
                f,
                "{:?} of {:?}: {} needed, {} free, {} reclaimable, {} pending",
                s.outcome, s.resource, s.need, s.have, s.reclaimable, s.pending
            ),
            Self::Corrupt => f.write_str("violated invariant"),
        }
    }
}

impl core::error::Error for Error {}
