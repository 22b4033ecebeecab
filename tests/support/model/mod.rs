//! The reference model: slow, obvious, written from SEMANTICS.md alone.
//!
//! Nothing is counted that can be looked up: references are recounted by scanning tables, holds,
//! tickets, transfers and the open plan; a node of the index is its whole token prefix; the eviction
//! order gives each page a stamp. Two things are kept although they could be found: the parent and the number of
//! children of an indexed page; the model's own check finds them again. It predicts statuses, page ids, cursors,
//! counters, hits, copies, slots and events exactly.

mod check;
mod chunks;
mod clear;
mod endings;
mod evict;
mod exports;
mod index;
mod nodes;
mod order;
mod pages;
mod partial;
mod per_page;
mod plans;
mod publish;
mod retain;
mod rings;
mod seals;
mod sequences;
mod spaces;
mod step;
mod tickets;
mod transfers;
mod view;

use core::ops::Range;
use std::collections::BTreeMap;

use crate::machine::Event;
use crate::op::{Lease, Seq, Span, Ticket, Transfer};
use crate::spec::Spec;
pub use index::IndexKey;
use index::{Index, Key};
use order::Rank;
use pages::{Page, Pool};
use per_page::PerPage;
use seals::Seal;
use spaces::Spaces;
pub use view::Pages;

/// The model's whole state.
pub struct Model {
    spec: Spec,
    state: State,
    events: Vec<Event>,
    lost: u64,
    /// The group whose pages are the nodes where none of the caller's is full: the last of `spec`, as its pool is.
    hidden: Option<usize>,
}

/// What the digest covers.
#[derive(Hash)]
struct State {
    pools: Vec<Pool>,
    index: Index,
    sequences: BTreeMap<Seq, Sequence>,
    tickets: BTreeMap<Ticket, Pins>,
    transfers: BTreeMap<Transfer, Running>,
    plan: Option<Plan>,
    /// Sequences with a page to publish, first come first.
    queue: Vec<Seq>,
    tick: u64,
    /// Births so far: names the publisher of a page. Only compared for equality.
    births: u64,
    /// Class and uses of indexed anchor pages.
    ranks: BTreeMap<Page, Rank>,
    /// Who allocated a page last, a namespace and its opening; `None` when its content is unknown.
    owners: PerPage<Option<(u16, u64)>>,
    /// Which namespaces are open.
    spaces: Spaces,
    /// Lease slots.
    leases: Vec<LeaseState>,
    /// Quota set of each namespace that has one.
    quota_of: BTreeMap<u16, usize>,
    /// Limit by quota set and pool; 0 = none.
    limits: BTreeMap<(usize, usize), u32>,
}

/// One lease slot.
#[derive(Clone, Hash)]
struct LeaseState {
    /// What the caller called the last lease here.
    label: Lease,
    /// The last node that it covers; `None` when the slot is free.
    key: Option<Key>,
    until: u64,
}

/// One live sequence.
#[derive(Clone, Hash)]
struct Sequence {
    birth: u64,
    ns: u16,
    verified: u32,
    published: u32,
    /// One element per token; `None` where the sequence is opaque.
    tokens: Vec<Option<u32>>,
    /// Per group, NULL where not resident.
    tables: Vec<Vec<u32>>,
    /// Per group with a fixed ring, its pages: sinks, then columns. None while there is no token.
    rings: Vec<Vec<u32>>,
    /// Per group, which entries are pages of its sealed pool: none or all from behind the sinks on to some entry.
    sealed: Vec<Range<u32>>,
    /// Held pages of the index by page index.
    holds: BTreeMap<u32, u32>,
    /// Set by a close while its plan is open: whether to discard.
    closing: Option<bool>,
    /// Eviction class of the pages that it publishes.
    class: u8,
    /// Media spans of the whole prompt.
    spans: Vec<Span>,
}

impl Sequence {
    fn len(&self) -> u32 {
        self.tokens.len() as u32
    }

    /// The tokens below `end`, if all of them are known.
    fn known(&self, end: u32) -> Option<Vec<u32>> {
        self.tokens.get(..end as usize)?.iter().copied().collect()
    }

    /// How many tokens are known before the first that is not.
    fn known_len(&self) -> u32 {
        self.tokens.iter().take_while(|token| token.is_some()).count() as u32
    }

    /// Makes the sequence opaque from a token on.
    fn forget(&mut self, from: u32) {
        self.tokens.iter_mut().skip(from as usize).for_each(|token| *token = None);
    }

    /// The key of its first `end` tokens, if all of them are known.
    fn key(&self, end: u32) -> Option<Key> {
        self.known(end).map(|tokens| Key::of(self.ns, &tokens, &self.spans, end))
    }
}

/// A pinned hit.
#[derive(Clone, Hash)]
struct Pins {
    /// Index of its handle: the lowest free one.
    slot: usize,
    ns: u16,
    tokens: Vec<u32>,
    /// Media spans of the prompt.
    spans: Vec<Span>,
    tables: Vec<Vec<u32>>,
    until: Option<u64>,
}

/// A running transfer: pinned pages in the order of their release, holds among them.
#[derive(Clone, Hash)]
struct Running {
    ns: u16,
    pinned: Vec<Page>,
    holds: Vec<(u32, Page)>,
    /// Chunks of its tables, nodes apart.
    chunks: u32,
    /// Nodes of the index that its row of the hidden group has: ids by entry.
    nodes: Vec<u32>,
    /// The node at which its published pages end.
    tip: Option<Key>,
    /// Media spans that it keeps stored.
    spans: Vec<Span>,
    load: bool,
    /// First token of its range.
    begin: u32,
    /// Birth of the sequence that is loaded into.
    loading: Option<u64>,
}

/// The open plan.
#[derive(Clone, Hash)]
struct Plan {
    finished: bool,
    entries: Vec<Entry>,
    /// Pages that another owner left: (pool, page).
    scrubs: Vec<(u16, u32)>,
    /// Entry and group of each seal, in the order in which they were asked for.
    seals: Vec<(usize, usize)>,
}

/// One sequence of the plan.
#[derive(Clone, Hash)]
struct Entry {
    seq: Seq,
    count: u32,
    tokens: Option<Vec<u32>>,
    /// Pages promised, by pool.
    promised: Vec<u32>,
    /// Chunks of table entries promised.
    chunks: u32,
    /// The index has no node left for it.
    no_node: bool,
    /// Pages that only the plan keeps, until it ends.
    kept: Vec<Page>,
    /// Groups whose last page leaves the index instead of being copied.
    withdraw: Vec<bool>,
    /// After finish, by group: source and destination of the copy.
    copies: Vec<Option<(u32, u32)>>,
    /// After finish, by group: new pages.
    fresh: Vec<Vec<u32>>,
    /// After finish, by group: the ring that the sequence gets.
    rings: Vec<Option<Vec<u32>>>,
    /// By group: the entries that become sealed pages.
    seals: Vec<Option<Seal>>,
    /// Records of copies promised.
    room: u32,
}

impl Model {
    /// The model of one configuration.
    ///
    /// # Errors
    /// Names the first feature that the model does not describe.
    pub fn new(spec: &Spec) -> Result<Self, String> {
        if !spec.is_valid() {
            return Err("invalid configuration".into());
        }
        let (spec, hidden) = nodes::with_nodes(spec);
        let state = State {
            pools: spec.pools.iter().map(|pool| Pool::new(pool.pages)).collect(),
            index: Index::default(),
            sequences: BTreeMap::new(),
            tickets: BTreeMap::new(),
            transfers: BTreeMap::new(),
            plan: None,
            queue: Vec::new(),
            tick: 0,
            births: 0,
            ranks: BTreeMap::new(),
            owners: PerPage::default(),
            spaces: Spaces::new(&spec),
            leases: vec![LeaseState { label: Lease(0), key: None, until: 0 }; spec.leases as usize],
            quota_of: BTreeMap::new(),
            limits: BTreeMap::new(),
        };
        Ok(Self { spec, state, events: Vec::new(), lost: 0, hidden })
    }

    /// Groups in the order in which references are given up: the anchor last.
    fn release_groups(&self) -> Vec<usize> {
        let anchor = self.spec.anchor();
        let others = (0..self.spec.groups.len()).filter(|g| Some(*g) != anchor);
        others.chain(anchor).collect()
    }

    fn pool_of(&self, group: usize) -> usize {
        usize::from(self.spec.groups[group].pool)
    }

    fn page_tokens(&self, group: usize) -> u32 {
        self.spec.groups[group].page_tokens
    }

    fn emit(&mut self, event: Event) {
        if self.events.len() == self.spec.max_events() {
            self.events.remove(0);
            self.lost += 1;
        }
        self.events.push(event);
    }
}
