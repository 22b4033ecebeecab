//! The page record of builds with an index.

use super::NULL;

/// In `refs`: the page is used and the other bits count its references. Clear: `refs` is the previous list entry.
const USED: u32 = 1 << 31;
/// In `children`: this page itself is found through the probe table.
const PROBED: u32 = 1 << 31;
/// In `children`: the open plan will write the page in place.
const IN_PLACE: u32 = 1 << 30;

/// What is known of one page, 20 bytes.
///
/// On a page of the anchor group `refs` counts the sequences, tickets and transfers whose deepest indexed page this
/// is, plus its used children, plus table entries of sequences that have not published it themselves. So a page is
/// used iff something at or below it is, and pinning a path stops at its first used page.
/// On a page of another group `refs` counts table entries and pins one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PageRecord {
    refs: u32,
    /// CACHED: the next page of its list. USED and private: its entries already replaced in the open plan.
    next: u32,
    /// The indexed page before it, or a root; for other groups the node it hangs on. 0 iff not indexed.
    parent: u32,
    /// A child that is compared without a probe; 0 = none.
    child: u32,
    /// Number of children, `PROBED` and `IN_PLACE`.
    children: u32,
}

crate::records::zero!(PageRecord { refs, next, parent, child, children });

impl PageRecord {
    /// A page with one reference, not indexed.
    pub(super) fn taken() -> Self {
        Self { refs: USED | 1, ..Self::default() }
    }

    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.refs & USED != 0
    }

    /// References; none unless it is used.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        if self.is_used() { self.count_of_used() } else { 0 }
    }

    /// References of a page that is used.
    #[inline]
    pub(super) fn count_of_used(&self) -> u32 {
        self.refs & !USED
    }

    /// Sets the references; with none it is in no list yet.
    #[inline]
    pub(super) fn set_count(&mut self, count: u32) {
        self.refs = if count == 0 { 0 } else { USED | count };
    }

    /// The page before it in its list. It is not used.
    #[inline]
    pub(super) fn prev(&self) -> u32 {
        self.refs & !USED
    }

    #[inline]
    pub(super) fn set_prev(&mut self, page: u32) {
        self.refs = page;
    }

    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    #[inline]
    pub(super) fn set_next(&mut self, page: u32) {
        self.next = page;
    }

    #[inline]
    pub(super) fn replaced(&self) -> u32 {
        self.next
    }

    #[inline]
    pub(super) fn set_replaced(&mut self, count: u32) {
        self.next = count;
    }

    #[inline]
    pub(super) fn parent(&self) -> u32 {
        self.parent
    }

    #[inline]
    pub(super) fn set_parent(&mut self, node: u32) {
        self.parent = node;
    }

    #[inline]
    pub(super) fn inline_child(&self) -> u32 {
        self.child
    }

    #[inline]
    pub(super) fn children(&self) -> u32 {
        self.children & !(PROBED | IN_PLACE)
    }

    #[inline]
    pub(super) fn is_probed(&self) -> bool {
        self.children & PROBED != 0
    }

    pub(super) fn set_probed(&mut self) {
        self.children |= PROBED;
    }

    #[inline]
    pub(super) fn is_in_place(&self) -> bool {
        self.children & IN_PLACE != 0
    }

    pub(super) fn set_in_place(&mut self, is_in_place: bool) {
        self.children = if is_in_place { self.children | IN_PLACE } else { self.children & !IN_PLACE };
    }

    /// Counts a child; gives how many there were, and whether this one is compared without a probe.
    #[inline]
    pub(super) fn add_child(&mut self, page: u32) -> (u32, bool) {
        let siblings = self.children();
        self.children = self.children.wrapping_add(1);
        let is_inline = self.child == NULL;
        if is_inline {
            self.child = page;
        }
        (siblings, is_inline)
    }

    /// As [`Self::add_child`], of a page without children.
    #[inline]
    pub(super) fn add_only_child(&mut self, page: u32) {
        self.child = page;
        self.children = self.children.wrapping_add(1);
    }

    /// Undoes [`Self::add_child`]; gives how many are left, and the one compared without a probe.
    #[inline]
    pub(super) fn remove_child(&mut self, page: u32) -> (u32, u32) {
        self.children = self.children.saturating_sub(1);
        if self.child == page {
            self.child = NULL;
        }
        (self.children(), self.child)
    }

    /// It leaves the tree, without children.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.parent = NULL;
        self.children = 0;
    }
}
