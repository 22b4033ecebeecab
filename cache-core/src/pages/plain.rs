//! The page record of builds without an index.
//!
//! No page is ever CACHED, has a parent or a child, or is in a list: what asks for these is told so by constants, and the
//! compiler leaves out all that only an index needs.

use super::NULL;
use crate::width::Id;

/// What is known of one page: 4 bytes with narrow ids, else 8. It is free iff nothing refers to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PageRecord {
    /// Table entries and sources of the open plan's copies.
    refs: Id,
    /// Entries already replaced in the open plan.
    replaced: Id,
}

crate::records::zero!(PageRecord { refs, replaced });

impl PageRecord {
    /// A page with one reference.
    pub(super) fn taken() -> Self {
        Self { refs: Id::new(1), ..Self::default() }
    }

    #[inline]
    pub(super) fn is_used(&self) -> bool {
        !self.refs.is_null()
    }

    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.refs.get()
    }

    #[inline]
    pub(super) fn count_of_used(&self) -> u32 {
        self.refs.get()
    }

    #[inline]
    pub(super) fn set_count(&mut self, count: u32) {
        self.refs = Id::new(count);
    }

    #[inline]
    pub(super) fn replaced(&self) -> u32 {
        self.replaced.get()
    }

    #[inline]
    pub(super) fn set_replaced(&mut self, count: u32) {
        self.replaced = Id::new(count);
    }
}

/// What only an index gives a page.
#[allow(clippy::unused_self)] // as in the other record
impl PageRecord {
    pub(super) fn prev(&self) -> u32 {
        NULL
    }

    pub(super) fn set_prev(&mut self, _page: u32) {}

    pub(super) fn next(&self) -> u32 {
        NULL
    }

    pub(super) fn set_next(&mut self, _page: u32) {}

    pub(super) fn parent(&self) -> u32 {
        NULL
    }

    pub(super) fn set_parent(&mut self, _node: u32) {}

    pub(super) fn inline_child(&self) -> u32 {
        NULL
    }

    pub(super) fn children(&self) -> u32 {
        0
    }

    pub(super) fn is_probed(&self) -> bool {
        false
    }

    pub(super) fn set_probed(&mut self) {}

    pub(super) fn is_in_place(&self) -> bool {
        false
    }

    pub(super) fn set_in_place(&mut self, _is_in_place: bool) {}

    pub(super) fn add_child(&mut self, _page: u32) -> (u32, bool) {
        (0, false)
    }

    pub(super) fn add_only_child(&mut self, _page: u32) {}

    pub(super) fn remove_child(&mut self, _page: u32) -> (u32, u32) {
        (0, NULL)
    }

    pub(super) fn leave(&mut self) {}
}
