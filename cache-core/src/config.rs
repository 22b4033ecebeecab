//! What the caller chooses once: pools, groups, capacities, options.
//!
//! Zero is the default for every number; the field says what zero means. The configuration is copied at init
//! and never read again.

use core::fmt;

/// Pages of one size in bytes. Ids are `1..=pages`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolConfig {
    /// Number of pages, `1..=2^24`.
    pub pages: u32,
    /// Which cached page goes first.
    pub policy: Policy,
}

/// Order in which cached pages of equal class are evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Policy {
    /// The least recently used page first.
    #[default]
    Lru = 0,
    /// The page published first goes first, however often it was used since.
    Fifo = 1,
    /// The least often used first, in powers of two; within one power the least recently used.
    Lfu = 2,
}

/// Which tokens a group's layers still read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupKind {
    /// Every query reads all tokens before it.
    #[default]
    Full,
    /// The query at position q reads token j iff `q - j < window` or `j < sinks`.
    Window {
        /// Tokens that a query reads, its own included; at least 1.
        window: u32,
        /// Tokens at the start that are never dropped.
        sinks: u32,
    },
}

/// What becomes of a published page that leaves its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum WindowKeep {
    /// It stays cached until it is evicted, so that longer hits stay possible.
    #[default]
    Cached = 0,
    /// It is withdrawn from the index when nothing else refers to it.
    Exact = 1,
}

/// Layers that share one page table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupConfig {
    /// Which tokens its layers read.
    pub kind: GroupKind,
    /// Tokens per page: a power of two, `1..=256`.
    pub page_tokens: u16,
    /// Index of the pool that its pages come from.
    pub pool: u16,
    /// Index + 1 of the pool that sealed pages come from, another one than `pool`; 0 = its rows never span two pools. For full
    /// groups only.
    pub sealed_pool: u16,
    /// Tokens at the start of a sequence whose pages are never sealed, where there is a sealed pool: a row is then exact pages,
    /// sealed ones, and those not sealed yet. 0 = rows are sealed from their start. The sinks of a window are in `kind`.
    pub sinks: u32,
    /// What becomes of pages that leave the window.
    pub window_keep: WindowKeep,
    /// Most tokens of one `plan_add`, for a window group that keeps its pages as a fixed ring: a sequence takes
    /// `ceil((window + ring_tokens - 1) / page_tokens) + 1` pages and those of its sinks with its first token and writes them
    /// over and over until it is closed or empty. Such pages are never published, so nothing matches in a cache with such a
    /// group. 0 = no ring: pages come and go.
    pub ring_tokens: u32,
    /// Whether new pages of one call should have consecutive ids where a run is free. Never evicts for it.
    pub contiguous: bool,
}

impl GroupConfig {
    /// A full group with pages of 16 tokens from pool 0.
    pub const FULL: Self = Self {
        kind: GroupKind::Full,
        page_tokens: 16,
        pool: 0,
        sealed_pool: 0,
        sinks: 0,
        window_keep: WindowKeep::Cached,
        ring_tokens: 0,
        contiguous: false,
    };
}

/// How published pages are found again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum IndexKind {
    /// Radix tree: any pool size.
    #[default]
    Tree = 0,
    /// A scan of all pages per step: no memory, for pools up to about a thousand pages.
    Flat = 1,
    /// Nothing is published.
    None = 2,
}

/// When committed pages enter the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PublishMode {
    /// In commit.
    #[default]
    Immediate = 0,
    /// In calls to `publish`, a slice at a time.
    Deferred = 1,
}

/// Everything that is fixed at init.
#[derive(Clone, Copy, Debug)]
pub struct Config<'a> {
    /// At least one pool, at most 64.
    pub pools: &'a [PoolConfig],
    /// At least one group, at most 1,024. The first full group carries the index.
    pub groups: &'a [GroupConfig],
    /// Live sequences at most, `1..=2^20`.
    pub sequences: u32,
    /// Live tickets at most; 0 = none, so that `match_prefix` always answers RETRY.
    pub tickets: u32,
    /// Transfers under way at most; 0 = none.
    pub transfers: u32,
    /// Namespaces at most, the default one included; 0 = 1.
    pub namespaces: u32,
    /// Chunks of 32 table entries, over all sequences and groups; 0 = enough for every page to be in two tables,
    /// or in one where nothing is published, and two more for each table.
    pub table_chunks: u32,
    /// Sequences in one plan at most; 0 = `sequences`.
    pub plan_sequences: u32,
    /// Tokens that one plan may carry at most; 0 = 64 per sequence of a plan, at least 4,096.
    pub plan_tokens: u32,
    /// Copies in one plan at most, a seal's pages and one more among them; 0 = one per sequence and group of a plan, and all
    /// pages of its fixed rings.
    pub plan_copies: u32,
    /// Media spans stored, over all sequences and indexed pages; 0 = none.
    pub key_parts: u32,
    /// Events kept until read; 0 = none are made.
    pub events: u32,
    /// Retention leases at most; 0 = none.
    pub leases: u32,
    /// Namespaces with a quota at most, `0..=64`.
    pub quotas: u32,
    /// Eviction classes, `1..=63`; 0 = 1.
    pub classes: u32,
    /// How published pages are found.
    pub index: IndexKind,
    /// Nodes of the index where no group is full; unused otherwise.
    pub index_nodes: u32,
    /// Whether a match may end inside a page.
    pub partial_tail: bool,
    /// When committed pages enter the index.
    pub publish: PublishMode,
    /// Whether pages that change their namespace are listed for scrubbing.
    pub scrub: bool,
    /// Seed of the hash that selects candidates and makes exported keys. Keep it secret in a shared service.
    pub seed: u64,
}

impl Config<'_> {
    /// A configuration in which every number is its default. Pools and groups must be filled in.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            pools: &[],
            groups: &[],
            sequences: 0,
            tickets: 0,
            transfers: 0,
            namespaces: 0,
            table_chunks: 0,
            plan_sequences: 0,
            plan_tokens: 0,
            plan_copies: 0,
            key_parts: 0,
            events: 0,
            leases: 0,
            quotas: 0,
            classes: 0,
            index: IndexKind::Tree,
            index_nodes: 0,
            partial_tail: false,
            publish: PublishMode::Immediate,
            scrub: false,
            seed: 0,
        }
    }
}

impl Default for Config<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// The field that makes a configuration unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum ConfigError {
    /// No pool, more than 64, or one with no pages or more than `2^24`.
    Pools = 1,
    /// No group or more than 1,024.
    Groups = 2,
    /// Page size of a group: not a power of two in `1..=256`.
    PageTokens = 3,
    /// A group names a pool that does not exist, or a sealed pool that it cannot have, or exact sinks without one.
    GroupPool = 4,
    /// A window of no tokens, or a fixed ring where there is no window.
    Window = 5,
    /// No sequence or more than `2^20`.
    Sequences = 6,
    /// Tickets, transfers, namespaces or leases beyond `2^20`.
    Handles = 7,
    /// More than 64 quotas, or more than there are namespaces.
    Quotas = 8,
    /// More than 63 classes.
    Classes = 9,
    /// No group is full and `index_nodes` is zero or above `2^24`.
    IndexNodes = 10,
    /// The arrays together would not be addressable with 32-bit ids.
    TooLarge = 11,
    /// An index, or room for media spans, which are part of its keys, is asked for, but the library was built without
    /// feature `index`.
    Index = 13,
    /// The storage handed in is smaller than the configuration needs.
    Storage = 12,
    /// More than 65,535 pages in all pools, table chunks, or sequences, tickets and transfers together, in a build with
    /// feature `narrow`.
    Narrow = 14,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pools => "pools: 1 to 64 of them, each with 1 to 2^24 pages",
            Self::Groups => "groups: 1 to 1024 of them",
            Self::PageTokens => "page_tokens: a power of two from 1 to 256",
            Self::GroupPool => {
                "pool, sealed_pool: two that exist, the second for full groups; sinks: with a sealed pool"
            }
            Self::Window => "window: at least 1 token; ring_tokens: for window groups only",
            Self::Sequences => "sequences: 1 to 2^20",
            Self::Handles => "tickets, transfers, namespaces, leases: at most 2^20 each",
            Self::Quotas => "quotas: at most 64, and not more than namespaces",
            Self::Classes => "classes: at most 63",
            Self::IndexNodes => "index_nodes: 1 to 2^24 where no group is full",
            Self::TooLarge => "capacities: more than 2^32 - 1 elements in one array",
            Self::Index => "index: the library was built without it; choose none, and no key_parts",
            Self::Storage => "storage: smaller than the configuration needs",
            Self::Narrow => {
                "pages, table chunks, or sequences with tickets and transfers: more than 16-bit ids can number"
            }
        })
    }
}

impl core::error::Error for ConfigError {}

/// Largest pool.
pub const MAX_PAGES: u32 = 1 << 24;
/// Most sequences, tickets, transfers, namespaces.
pub const MAX_HANDLES: u32 = 1 << 20;
/// Most groups in one admission.
pub const MAX_GROUPS: usize = 1024;
/// Most pools.
pub const MAX_POOLS: usize = 64;
/// Most classes that a caller can use; one more is kept for leases.
pub const MAX_CLASSES: u32 = 63;
/// Table entries in one chunk.
pub const CHUNK_ENTRIES: u32 = 32;
