//! The tree in the records: a page's parent, children and the node that it hangs on.

use super::{IN_PLACE, NULL, PROBED, Pages};

impl Pages<'_> {
    #[inline]
    pub(crate) fn children(&self, page: u32) -> u32 {
        self.records.get(page).children & !(PROBED | IN_PLACE)
    }

    #[inline]
    pub(crate) fn inline_child(&self, page: u32) -> u32 {
        self.records.get(page).child
    }

    #[inline]
    pub(crate) fn is_probed(&self, page: u32) -> bool {
        self.records.get(page).children & PROBED != 0
    }

    /// Whether the plan being built will withdraw the page from the index and write it in place.
    #[inline]
    pub(crate) fn is_in_place(&self, page: u32) -> bool {
        self.records.get(page).children & IN_PLACE != 0
    }

    pub(crate) fn set_in_place(&mut self, page: u32, is_in_place: bool) {
        self.records.with(page, |record| {
            record.children = if is_in_place { record.children | IN_PLACE } else { record.children & !IN_PLACE };
        });
    }

    pub(crate) fn set_probed(&mut self, page: u32) {
        self.records.with(page, |record| record.children |= PROBED);
    }

    /// Makes `page` a child of `parent`; gives how many it has besides, and whether this is the one compared without
    /// a probe.
    #[inline]
    pub(crate) fn add_child(&mut self, parent: u32, page: u32) -> (u32, bool) {
        self.records.with(page, |record| record.parent = parent);
        self.records.with(parent, |record| {
            let siblings = record.children & !(PROBED | IN_PLACE);
            record.children = record.children.wrapping_add(1);
            let is_inline = record.child == NULL;
            if is_inline {
                record.child = page;
            }
            (siblings, is_inline)
        })
    }

    /// As [`Self::add_child`], of a parent without children.
    #[inline]
    pub(crate) fn add_only_child(&mut self, parent: u32, page: u32) {
        self.records.with(page, |record| record.parent = parent);
        self.records.with(parent, |record| {
            record.child = page;
            record.children = record.children.wrapping_add(1);
        });
    }

    /// Undoes [`Self::add_child`]; gives how many children are left, and the one compared without a probe. The page must
    /// have no children itself.
    #[inline]
    pub(crate) fn remove_child(&mut self, parent: u32, page: u32) -> (u32, u32) {
        self.records.with(page, |record| {
            record.parent = NULL;
            record.children = 0;
        });
        self.records.with(parent, |record| {
            record.children = record.children.saturating_sub(1);
            if record.child == page {
                record.child = NULL;
            }
            (record.children & !(PROBED | IN_PLACE), record.child)
        })
    }

    /// Hangs a page of another group on `node`.
    pub(crate) fn hang(&mut self, node: u32, page: u32, place: u16) {
        self.records.with(page, |record| record.parent = node);
        self.traits.place.set(page, place);
    }

    /// Undoes [`Self::hang`].
    pub(crate) fn unhang(&mut self, page: u32) {
        self.records.with(page, |record| record.parent = NULL);
        self.traits.place.set(page, 0);
    }
}
