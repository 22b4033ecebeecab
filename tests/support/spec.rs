//! The configuration half of a scenario, free of any implementation's types.
//!
//! A capacity of 0 means "the driver's default, large enough for the scenario".

use core::ops::Range;

/// Page 0: never allocatable, never written.
pub const NULL: u32 = 0;

/// How the prefix index is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// No prefix index: nothing is ever published.
    None,
    /// Branch points are searched in order.
    Flat,
    /// Branch points are found by a keyed hash.
    Tree,
}

/// Order in which a pool's cached pages are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Least recently touched first.
    Lru,
    /// First cached first.
    Fifo,
    /// Fewest touches first, in powers of two.
    Lfu,
}

/// One pool of pages, ids `1..=pages`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// Number of pages.
    pub pages: u32,
    /// Eviction order.
    pub policy: Policy,
}

/// Which positions a group still reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// Every position.
    Full,
    /// The last `window` positions (the query's own included) and the first `sinks`.
    Window {
        /// Window length in tokens.
        window: u32,
        /// Leading tokens that never leave.
        sinks: u32,
    },
}

/// Layers that share one page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    /// Which positions are read.
    pub kind: GroupKind,
    /// Tokens per page, a power of two up to 256.
    pub page_tokens: u32,
    /// Index of the pool that its pages come from.
    pub pool: u16,
    /// `window_keep = EXACT`: a page that leaves the window also leaves the index.
    pub exact: bool,
    /// New pages of one plan have consecutive ids where such a run is free.
    pub contiguous: bool,
    /// Most tokens of one plan for a fixed ring; 0 = no ring.
    pub ring: u32,
    /// The pool of its sealed pages, where its rows span two pools. For full groups only.
    pub sealed: Option<u16>,
    /// Leading tokens whose pages are never sealed; 0 where nothing is.
    pub exact_sinks: u32,
}

impl GroupSpec {
    /// A full group of one token a page in pool 0.
    pub const FULL: Self = Self {
        kind: GroupKind::Full,
        page_tokens: 1,
        pool: 0,
        exact: false,
        contiguous: false,
        ring: 0,
        sealed: None,
        exact_sinks: 0,
    };
}

/// What must be equal before tokens are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceSpec {
    /// Tenant salt.
    pub salt: u32,
    /// Adapter id.
    pub adapter: u32,
    /// Generation of that adapter.
    pub generation: u32,
    /// Precision and scale epoch of the stored pages.
    pub format: u32,
}

/// A whole configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Pools, by index.
    pub pools: Vec<PoolSpec>,
    /// Groups, by index.
    pub groups: Vec<GroupSpec>,
    /// Namespaces, opened in this order before the first op, as far as there is room. Never empty.
    pub namespaces: Vec<NamespaceSpec>,
    /// Kind of prefix index.
    pub index: IndexKind,
    /// Publish in slices on request instead of inside commit.
    pub deferred: bool,
    /// Allow partial hits.
    pub tail: bool,
    /// Report pages that change owner for scrubbing.
    pub scrub: bool,
    /// Live sequences.
    pub sequences: u32,
    /// Tickets.
    pub tickets: u32,
    /// Running transfers.
    pub transfers: u32,
    /// Records of the event ring.
    pub events: u32,
    /// Chunks of table entries.
    pub table_chunks: u32,
    /// Eviction classes, 1..=64.
    pub classes: u32,
    /// Retention leases.
    pub leases: u32,
    /// Namespace quotas.
    pub quotas: u32,
    /// Media spans stored.
    pub spans: u32,
    /// Nodes of the index where no group is full.
    pub nodes: u32,
    /// Namespaces open at once, the one with all zeros included.
    pub spaces: u32,
    /// Records of copies of one plan: one for each copy, and one more for each seal.
    pub copies: u32,
    /// Seed of the candidate hash.
    pub seed: u32,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            pools: Vec::new(),
            groups: Vec::new(),
            namespaces: vec![NamespaceSpec::default()],
            index: IndexKind::Tree,
            deferred: false,
            tail: false,
            scrub: false,
            sequences: 0,
            tickets: 0,
            transfers: 0,
            events: 0,
            table_chunks: 0,
            classes: 0,
            leases: 0,
            quotas: 0,
            spans: 0,
            nodes: 0,
            spaces: 0,
            copies: 0,
            seed: 0,
        }
    }
}

/// Default capacities, used where a [`Spec`] says 0.
pub mod capacity {
    /// Live sequences.
    pub const SEQUENCES: u32 = 16;
    /// Tickets.
    pub const TICKETS: u32 = 16;
    /// Transfers.
    pub const TRANSFERS: u32 = 8;
    /// Event records.
    pub const EVENTS: u32 = 1 << 15;
}

fn or(value: u32, default: u32) -> u32 {
    if value == 0 { default } else { value }
}

impl Spec {
    /// One pool and one full group.
    pub fn simple(page_tokens: u32, pages: u32) -> Self {
        Self {
            pools: vec![PoolSpec { pages, policy: Policy::Lru }],
            groups: vec![GroupSpec { page_tokens, ..GroupSpec::FULL }],
            ..Self::default()
        }
    }

    /// The group that the index hangs on: the first full one. `None` also when there is no index.
    pub fn anchor(&self) -> Option<usize> {
        if self.index == IndexKind::None {
            return None;
        }
        self.groups.iter().position(|g| g.kind == GroupKind::Full)
    }

    /// Whether the index has nodes of its own, for want of a full group.
    pub fn is_hidden(&self) -> bool {
        self.index != IndexKind::None && self.anchor().is_none()
    }

    /// Nodes of such an index, default applied.
    pub fn max_nodes(&self) -> u32 {
        or(self.nodes, 64 + 2 * self.pools.iter().map(|pool| pool.pages).sum::<u32>())
    }

    /// Whether some rows span two pools.
    pub fn has_seals(&self) -> bool {
        self.groups.iter().any(|group| group.sealed.is_some())
    }

    /// Records of copies of one plan, default applied; 0 = what the implementation takes where nothing is sealed.
    pub fn max_copies(&self) -> u32 {
        if self.copies > 0 || !self.has_seals() {
            return self.copies;
        }
        let pages = self.pools.iter().map(|pool| pool.pages).sum::<u32>();
        2 * pages + 3 * (self.groups.len() * self.max_sequences()) as u32
    }

    /// The group under which events name nodes.
    pub fn node_group(&self) -> u16 {
        self.anchor().unwrap_or(if self.is_hidden() { self.groups.len() } else { 0 }) as u16
    }

    /// The largest page size: hits are multiples of it.
    pub fn hit_step(&self) -> u32 {
        self.groups.iter().map(|g| g.page_tokens).max().unwrap_or(1)
    }

    /// Live sequences, default applied.
    pub fn max_sequences(&self) -> usize {
        or(self.sequences, capacity::SEQUENCES) as usize
    }

    /// Tickets, default applied.
    pub fn max_tickets(&self) -> usize {
        or(self.tickets, capacity::TICKETS) as usize
    }

    /// Transfers, default applied.
    pub fn max_transfers(&self) -> usize {
        or(self.transfers, capacity::TRANSFERS) as usize
    }

    /// Namespaces open at once, default applied: all, and that with all zeros.
    pub fn max_spaces(&self) -> usize {
        or(self.spaces, self.namespaces.len() as u32 + 1) as usize
    }

    /// Event records, default applied.
    pub fn max_events(&self) -> usize {
        or(self.events, capacity::EVENTS) as usize
    }

    /// Whether every implementation must accept it, apart from features that one may lack.
    pub fn is_valid(&self) -> bool {
        !self.pools.is_empty()
            && self.pools.iter().all(|p| p.pages >= 1)
            && !self.groups.is_empty()
            && self.groups.len() <= 1024
            && !self.namespaces.is_empty()
            && self.groups.iter().all(|g| self.group_is_valid(g))
            && self.classes <= 63
            && self.quotas as usize <= self.namespaces.len().min(self.max_spaces()).min(64)
    }

    fn group_is_valid(&self, group: &GroupSpec) -> bool {
        let window = match group.kind {
            GroupKind::Full => group.ring == 0,
            GroupKind::Window { window, .. } => window >= 1,
        };
        let is_pool = |pool: u16| pool != group.pool && usize::from(pool) < self.pools.len();
        window
            && group.sealed.is_none_or(|pool| group.kind == GroupKind::Full && is_pool(pool))
            && (group.sealed.is_some() || group.exact_sinks == 0)
            && group.page_tokens.is_power_of_two()
            && group.page_tokens <= 256
            && usize::from(group.pool) < self.pools.len()
    }
}

impl GroupSpec {
    /// First position that a query at `len` reads, sinks aside.
    pub fn window_start(&self, len: u32) -> u32 {
        match self.kind {
            GroupKind::Full => 0,
            GroupKind::Window { window, .. } => (len + 1).saturating_sub(window),
        }
    }

    /// Number of leading positions that are always read.
    pub fn sinks(&self) -> u32 {
        match self.kind {
            GroupKind::Full => 0,
            GroupKind::Window { sinks, .. } => sinks,
        }
    }

    /// Pages of its sinks.
    pub fn sink_pages(&self) -> u32 {
        self.sinks().div_ceil(self.page_tokens)
    }

    /// The columns of a row that ends at page `end` which are or would be sealed: all but those of its sinks.
    pub fn sealed_columns(&self, end: u32) -> Range<u32> {
        let begin = self.exact_sinks.div_ceil(self.page_tokens);
        begin..if self.sealed.is_some() { end.max(begin) } else { begin }
    }

    /// Columns of its fixed ring, `R = ceil((W + n_max - 1) / P) + 1`; 0 when it has none.
    pub fn ring_columns(&self) -> u32 {
        if self.ring > 0 { self.columns(self.ring) } else { 0 }
    }

    /// Columns of a ring that shows the window while up to `tokens` tokens are added.
    pub fn columns(&self, tokens: u32) -> u32 {
        match self.kind {
            GroupKind::Window { window, .. } => (window + tokens).saturating_sub(1).div_ceil(self.page_tokens) + 1,
            GroupKind::Full => 0,
        }
    }

    /// Where page `index` lies in a fixed ring's row: the sinks, then the columns.
    pub fn ring_place(&self, index: u32) -> usize {
        let sinks = self.sink_pages();
        (if index < sinks { index } else { sinks + index % self.ring_columns() }) as usize
    }

    /// Whether a query at `len` reads a position of page `index` below `len`.
    pub fn needs_page(&self, index: u32, len: u32) -> bool {
        let (begin, end) = (index * self.page_tokens, (index + 1) * self.page_tokens);
        begin < len && (end > self.window_start(len) || begin < self.sinks())
    }

    /// Whether a query at `len` reads `position`.
    pub fn needs_position(&self, position: u32, len: u32) -> bool {
        position < len && (position >= self.window_start(len) || position < self.sinks())
    }
}
