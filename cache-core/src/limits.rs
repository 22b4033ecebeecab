//! Limits: a checked configuration with its defaults filled in.

use crate::config::{
    CHUNK_ENTRIES, Config, ConfigError, GroupKind, IndexKind, MAX_CLASSES, MAX_GROUPS, MAX_HANDLES, MAX_PAGES,
    MAX_POOLS, Policy,
};
use crate::index::INDEX;
use crate::width::MAX_ID;

/// A configuration with its defaults filled in, checked. Every array length follows from it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) groups: u32,
    pub(crate) pools: u32,
    /// Pages of all pools and nodes, so that records are `1..=pages`.
    pub(crate) pages: u32,
    /// Pages of the pools whose pages hold tokens: the anchor's. They come first in the numbering.
    pub(crate) indexed: u32,
    pub(crate) anchor: u32,
    /// The pool whose pages are nodes; it comes first in the numbering.
    pub(crate) anchor_pool: u32,
    /// The pool of the anchor's unsealed pages, which comes second; equal to `anchor_pool` where nothing is sealed.
    pub(crate) open_pool: u32,
    /// Nodes at the start of each path that are of `open_pool`: the anchor's sink pages. 0 = all nodes are of `anchor_pool`.
    pub(crate) exact_nodes: u32,
    pub(crate) anchor_tokens: u32,
    hidden: bool,
    /// Places on a node for pages of the other groups.
    pub(crate) places: u32,
    pub(crate) sequences: u32,
    pub(crate) tickets: u32,
    pub(crate) transfers: u32,
    pub(crate) namespaces: u32,
    pub(crate) chunks: u32,
    pub(crate) plan_sequences: u32,
    pub(crate) plan_tokens: u32,
    pub(crate) plan_copies: u32,
    pub(crate) key_parts: u32,
    pub(crate) events: u32,
    pub(crate) leases: u32,
    pub(crate) quotas: u32,
    pub(crate) classes: u32,
    pub(crate) free_words: u32,
    pub(crate) probe_slots: u32,
    pub(crate) index: IndexKind,
    /// Whether some group has a window.
    pub(crate) windows: bool,
    /// Whether some group is a fixed ring.
    pub(crate) rings: bool,
    pub(crate) fifo: bool,
    pub(crate) counted: bool,
    pub(crate) partial_tail: bool,
    pub(crate) scrub: bool,
}

impl Limits {
    /// No group is full: the anchor of the index is a group of its own, behind the caller's.
    #[inline]
    pub(crate) fn is_hidden(&self) -> bool {
        INDEX && self.hidden
    }

    /// Checks a configuration and fills its defaults in.
    ///
    /// # Errors
    /// The first field that is wrong.
    // A const fn can only walk a slice by index, and each index is below its length. Sums are of at most 1,024 numbers
    // below 2^32 in u64; products are below 2^52; every narrowing comes behind the check of `most`.
    #[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::cast_possible_truncation)]
    pub(crate) const fn of(config: &Config<'_>) -> Result<Self, ConfigError> {
        let (pools, groups) = (config.pools, config.groups);
        if pools.is_empty() || pools.len() > MAX_POOLS {
            return Err(ConfigError::Pools);
        }
        if !INDEX && (!matches!(config.index, IndexKind::None) || config.key_parts > 0) {
            return Err(ConfigError::Index);
        }
        if groups.is_empty() || groups.len() > MAX_GROUPS {
            return Err(ConfigError::Groups);
        }
        let (mut pages, mut free_words, mut fifo, mut counted) = (0_u64, 0_u64, false, config.classes > 1);
        let mut i = 0;
        while i < pools.len() {
            if pools[i].pages == 0 || pools[i].pages > MAX_PAGES {
                return Err(ConfigError::Pools);
            }
            pages += pools[i].pages as u64;
            free_words += free_words_of(pools[i].pages) as u64;
            fifo |= matches!(pools[i].policy, Policy::Fifo);
            counted |= matches!(pools[i].policy, Policy::Lfu);
            i += 1;
        }
        let (mut anchor, mut largest, mut windows, mut ring_pages, mut g) = (groups.len(), 1_u16, false, 0_u64, 0);
        let mut exact_nodes = 0;
        while g < groups.len() {
            let group = &groups[g];
            if group.page_tokens == 0 || group.page_tokens > 256 || !group.page_tokens.is_power_of_two() {
                return Err(ConfigError::PageTokens);
            }
            if group.pool as usize >= pools.len()
                || group.sealed_pool as usize > pools.len()
                || group.sealed_pool == group.pool + 1
                || (group.sealed_pool != 0 && !matches!(group.kind, GroupKind::Full))
                || (group.sealed_pool == 0 && group.sinks != 0)
            {
                return Err(ConfigError::GroupPool);
            }
            match group.kind {
                GroupKind::Full if anchor == groups.len() => {
                    anchor = g;
                    exact_nodes = group.sinks.div_ceil(group.page_tokens as u32);
                }
                GroupKind::Window { window: 0, .. } => return Err(ConfigError::Window),
                GroupKind::Window { window, sinks } => {
                    windows = true;
                    if group.ring_tokens != 0 {
                        let tokens = window as u64 + group.ring_tokens as u64 - 1;
                        ring_pages += tokens.div_ceil(group.page_tokens as u64) + 1;
                        ring_pages += (sinks as u64).div_ceil(group.page_tokens as u64);
                    }
                }
                GroupKind::Full => {}
            }
            if group.ring_tokens != 0 && matches!(group.kind, GroupKind::Full) {
                return Err(ConfigError::Window);
            }
            if group.page_tokens > largest {
                largest = group.page_tokens;
            }
            g += 1;
        }
        let hidden = anchor == groups.len() && !matches!(config.index, IndexKind::None);
        if hidden {
            if config.index_nodes == 0 || config.index_nodes > MAX_PAGES {
                return Err(ConfigError::IndexNodes);
            }
            pages += config.index_nodes as u64;
            free_words += free_words_of(config.index_nodes) as u64;
        } else if anchor == groups.len() {
            anchor = 0; // nothing is published, so any group may hold the tokens
        }
        let (anchor_pool, open_pool, anchor_tokens, indexed) = if hidden {
            (pools.len(), pools.len(), largest as u32, config.index_nodes)
        } else if anchor < groups.len() {
            let group = &groups[anchor];
            let open = group.pool as usize;
            let node = if group.sealed_pool == 0 { open } else { group.sealed_pool as usize - 1 };
            if open >= pools.len() || node >= pools.len() {
                return Err(ConfigError::GroupPool);
            }
            let both = pools[node].pages + if open == node { 0 } else { pools[open].pages };
            (node, open, group.page_tokens as u32, both)
        } else {
            return Err(ConfigError::Groups);
        };
        let (mut places, mut g) = (0_u32, 0);
        while g < groups.len() {
            if g != anchor && groups[g].ring_tokens == 0 {
                let own = groups[g].page_tokens as u32;
                places += if own >= anchor_tokens { 1 } else { anchor_tokens >> own.trailing_zeros() };
            }
            g += 1;
        }
        if matches!(config.index, IndexKind::None) {
            places = 0;
        }
        if config.sequences == 0 || config.sequences > MAX_HANDLES {
            return Err(ConfigError::Sequences);
        }
        let namespaces = or(config.namespaces, 1);
        if config.tickets > MAX_HANDLES
            || config.transfers > MAX_HANDLES
            || namespaces > MAX_HANDLES
            || config.leases > MAX_HANDLES
        {
            return Err(ConfigError::Handles);
        }
        if config.quotas > 64 || config.quotas > namespaces {
            return Err(ConfigError::Quotas);
        }
        if config.classes > MAX_CLASSES {
            return Err(ConfigError::Classes);
        }
        let all_groups = groups.len() as u64 + hidden as u64;
        let holders = config.sequences as u64 + config.tickets as u64 + config.transfers as u64;
        let rows = holders * all_groups;
        let chunks = if config.table_chunks == 0 {
            let tables = if matches!(config.index, IndexKind::None) { 1 } else { 2 };
            tables * pages.div_ceil(CHUNK_ENTRIES as u64) + 2 * rows
        } else {
            config.table_chunks as u64
        };
        let plan_sequences = or(config.plan_sequences, config.sequences);
        let tokens_default = if plan_sequences as u64 * 64 < 4096 { 4096 } else { plan_sequences as u64 * 64 };
        let plan_tokens = if config.plan_tokens == 0 { tokens_default } else { config.plan_tokens as u64 };
        // No plan copies more pages than there are.
        let most_rings =
            if plan_sequences as u64 * ring_pages < pages { plan_sequences as u64 * ring_pages } else { pages };
        let copies = if config.plan_copies == 0 {
            plan_sequences as u64 * all_groups + most_rings
        } else {
            config.plan_copies as u64
        };
        let token_area = (indexed as u64 + 1) * anchor_tokens as u64;
        let hung_area = (indexed as u64 + 1) * places as u64;
        let probe_slots = if matches!(config.index, IndexKind::Tree) {
            indexed as u64 + indexed as u64 / 2 + 2 // two thirds full at most
        } else {
            0
        };
        let most = u32::MAX as u64 / 2;
        if pages + namespaces as u64 + 1 > most
            || rows > most
            || chunks * CHUNK_ENTRIES as u64 > most
            || plan_tokens > most
            || copies > most
            || token_area > u32::MAX as u64
            || hung_area > u32::MAX as u64
            || config.key_parts as u64 > most
            || config.events as u64 > most
        {
            return Err(ConfigError::TooLarge);
        }
        // A page is counted once for each holder at most: in a row of its group it stands once, and what a copy replaced is
        // the plan's in place of the holder's.
        if pages > MAX_ID || chunks > MAX_ID || holders > MAX_ID {
            return Err(ConfigError::Narrow);
        }
        Ok(Self {
            groups: all_groups as u32,
            pools: pools.len() as u32 + hidden as u32,
            pages: pages as u32,
            indexed,
            anchor: anchor as u32,
            anchor_pool: anchor_pool as u32,
            open_pool: open_pool as u32,
            exact_nodes: if matches!(config.index, IndexKind::None) { 0 } else { exact_nodes },
            anchor_tokens,
            hidden,
            places,
            sequences: config.sequences,
            tickets: config.tickets,
            transfers: config.transfers,
            namespaces,
            chunks: chunks as u32,
            plan_sequences,
            plan_tokens: plan_tokens as u32,
            plan_copies: copies as u32,
            key_parts: config.key_parts,
            events: config.events,
            leases: config.leases,
            quotas: config.quotas,
            classes: or(config.classes, if counted { 9 } else { 1 }),
            free_words: free_words as u32,
            probe_slots: probe_slots as u32,
            index: config.index,
            windows,
            rings: ring_pages > 0,
            fifo,
            counted,
            partial_tail: config.partial_tail,
            scrub: config.scrub,
        })
    }
}

const fn or(value: u32, default: u32) -> u32 {
    if value == 0 { default } else { value }
}

/// Words of the bitmap of free pages and its summaries, for ids `0..=pages`.
#[allow(clippy::arithmetic_side_effects)] // bits shrinks from at most 2^24 + 1
pub(crate) const fn free_words_of(pages: u32) -> u32 {
    let mut total = 0;
    let mut bits = pages + 1;
    loop {
        bits = bits.div_ceil(64);
        total += bits;
        if bits == 1 {
            return total;
        }
    }
}
