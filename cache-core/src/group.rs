//! Groups: which pages a sequence of some length keeps in each of them.
//!
//! With the next query at position `len`, a window group reads tokens `[len - W + 1, len)` and its sinks `[0, s)`.
//! A full group is a window that never ends.

use crate::config::{GroupConfig, GroupKind, WindowKeep};

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
    pub(crate) sinks: u32,
    /// First of its places on a node.
    pub(crate) place: u32,
    /// Its pages per node, where they are smaller than a node; else 1.
    pub(crate) per_node: u32,
    /// Bit 0: withdraw pages that leave the window. Bit 1: wants runs.
    flags: u32,
}

crate::records::zero!(Group { shift, pool, sealed_pool, window, sinks, place, per_node, flags });

impl Group {
    pub(crate) fn new(config: &GroupConfig) -> Self {
        let (window, sinks) = match config.kind {
            GroupKind::Full => (0, 0),
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

    /// First entry that a query at position `len` reads, sinks apart.
    #[inline]
    pub(crate) fn first(&self, len: u32) -> u32 {
        if self.window == 0 { 0 } else { len.saturating_add(1).saturating_sub(self.window) >> self.shift }
    }

    /// Pages resident while a plan adds `count` tokens to a sequence of `len`.
    pub(crate) fn resident(&self, len: u32, count: u32) -> u32 {
        let end = self.pages(len.saturating_add(count));
        let first = self.first(len);
        let sinks = self.sink_pages(len.saturating_add(count)).min(first);
        end.saturating_sub(first).saturating_add(sinks)
    }
}
