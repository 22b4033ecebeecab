//! Groups: which pages a sequence of some length keeps in each of them.
//!
//! With the next query at position `len`, a window group reads tokens `[len - W + 1, len)` and its sinks `[0, s)`.
//! A full group is a window that never ends.

use crate::config::{GroupConfig, GroupKind, WindowKeep};
use crate::table::SealedColumns;

/// A group as the core uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Group {
    /// Logarithm of its page size.
    pub(crate) shift: u32,
    pub(crate) pool: u32,
    /// Index + 1 of the pool of sealed pages.
    pub(crate) sealed_pool: u32,
    /// 0 = full.
    pub(crate) window: u32,
    /// Tokens at the start that a window keeps, or that stay exact where rows span two pools.
    pub(crate) sinks: u32,
    /// First of its places on a node.
    pub(crate) place: u32,
    /// Its pages per node, where they are smaller than a node; else 1.
    pub(crate) per_node: u32,
    /// Most tokens that one plan adds to a fixed ring; 0 = no ring.
    pub(crate) ring_tokens: u32,
    /// Bit 0: withdraw pages that leave the window. Bit 1: wants runs.
    flags: u32,
}

crate::records::zero!(Group { shift, pool, sealed_pool, window, sinks, place, per_node, ring_tokens, flags });

impl Group {
    pub(crate) fn new(config: &GroupConfig) -> Self {
        let (window, sinks) = match config.kind {
            GroupKind::Full => (0, config.sinks),
            GroupKind::Window { window, sinks } => (window, sinks),
        };
        let exact = u32::from(config.window_keep == WindowKeep::Exact);
        Self {
            shift: u32::from(config.page_tokens).trailing_zeros(),
            pool: u32::from(config.pool),
            sealed_pool: u32::from(config.sealed_pool),
            window,
            sinks,
            place: 0,
            per_node: 1,
            ring_tokens: config.ring_tokens,
            flags: exact | u32::from(config.contiguous) << 1,
        }
    }

    /// The group that carries the index where none of the caller's is full: pages without bytes.
    pub(crate) fn hidden(shift: u32, pool: u32) -> Self {
        Self { shift, pool, per_node: 1, ..Self::default() }
    }

    #[inline]
    pub(crate) fn page_tokens(&self) -> u32 {
        1 << (self.shift & 31)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.window == 0
    }

    pub(crate) fn keeps_exactly(&self) -> bool {
        self.flags & 1 != 0
    }

    pub(crate) fn wants_runs(&self) -> bool {
        self.flags & 2 != 0
    }

    /// Pages that hold `len` tokens.
    #[inline]
    pub(crate) fn pages(&self, len: u32) -> u32 {
        len.saturating_add(self.page_tokens().wrapping_sub(1)) >> self.shift
    }

    /// Pages that hold the sinks of a sequence of `len` tokens.
    #[inline]
    pub(crate) fn sink_pages(&self, len: u32) -> u32 {
        self.pages(self.sinks.min(len))
    }

    /// The columns of a row of which `count` are sealed. Those of its sinks never are.
    pub(crate) fn sealed_columns(&self, count: u32) -> SealedColumns {
        let begin = if self.sealed_pool == 0 { 0 } else { self.pages(self.sinks) };
        SealedColumns { begin, end: begin.saturating_add(count) }
    }

    /// First entry that a query at position `len` reads, sinks apart.
    #[inline]
    pub(crate) fn first(&self, len: u32) -> u32 {
        if self.window == 0 { 0 } else { len.saturating_add(1).saturating_sub(self.window) >> self.shift }
    }

    /// Pages resident while a plan adds `count` tokens to a sequence of `len`.
    pub(crate) fn resident(&self, len: u32, count: u32) -> u32 {
        if self.is_ring() {
            return self.entries(len.saturating_add(count));
        }
        let end = self.pages(len.saturating_add(count));
        let first = self.first(len);
        let sinks = self.sink_pages(len.saturating_add(count)).min(first);
        end.saturating_sub(first).saturating_add(sinks)
    }

    /// Whether its pages are a fixed ring.
    #[inline]
    pub(crate) fn is_ring(&self) -> bool {
        self.ring_tokens != 0
    }

    /// Columns of a ring that holds the window while `tokens` tokens are added, sinks apart.
    pub(crate) fn ring(&self, tokens: u32) -> u32 {
        self.pages(self.window.saturating_add(tokens).saturating_sub(1)).saturating_add(1)
    }

    /// Entries of its rows at `len` tokens: one per page, or a whole ring as soon as there is a token.
    #[inline]
    pub(crate) fn entries(&self, len: u32) -> u32 {
        match (self.is_ring(), len) {
            (false, _) => self.pages(len),
            (true, 0) => 0,
            (true, _) => self.sink_pages(u32::MAX).saturating_add(self.ring(self.ring_tokens)),
        }
    }

    /// The entry of its rows that holds a page.
    #[inline]
    pub(crate) fn entry_of(&self, page: u32) -> u32 {
        if !self.is_ring() {
            return page;
        }
        let sinks = self.sink_pages(u32::MAX);
        let column = page.checked_rem(self.ring(self.ring_tokens)).unwrap_or(0);
        if page < sinks { page } else { sinks.saturating_add(column) }
    }

    /// The last of the pages below `end` that an entry of a ring holds.
    pub(crate) fn page_in(&self, entry: u32, end: u32) -> Option<u32> {
        let sinks = self.sink_pages(u32::MAX);
        let Some(column) = entry.checked_sub(sinks) else { return (entry < end).then_some(entry) };
        let (ring, last) = (self.ring(self.ring_tokens), end.checked_sub(1)?);
        let behind = last.checked_rem(ring)?.saturating_add(ring).saturating_sub(column).checked_rem(ring)?;
        last.checked_sub(behind).filter(|&page| page >= sinks)
    }

    /// Tokens below this are written without a new page once `from..len` are; a ring takes no more than its most at a time.
    pub(crate) fn writable(&self, from: u32, len: u32) -> u32 {
        let end = self.pages(len) << self.shift;
        if self.is_ring() { end.min(from.saturating_add(self.ring_tokens)) } else { end }
    }
}
