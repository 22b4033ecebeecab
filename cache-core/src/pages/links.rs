//! The tree in the records: a page's parent, children and the node that it hangs on.

use super::Pages;

impl Pages<'_> {
    #[inline]
    pub(crate) fn children(&self, page: u32) -> u32 {
        self.records.get(page).children()
    }

    #[inline]
    pub(crate) fn inline_child(&self, page: u32) -> u32 {
        self.records.get(page).inline_child()
    }

    #[inline]
    pub(crate) fn is_probed(&self, page: u32) -> bool {
        self.records.get(page).is_probed()
    }

    /// Whether the plan being built will withdraw the page from the index and write it in place.
    #[inline]
    pub(crate) fn is_in_place(&self, page: u32) -> bool {
        self.records.get(page).is_in_place()
    }

    pub(crate) fn set_in_place(&mut self, page: u32, is_in_place: bool) {
        self.records.with(page, |record| record.set_in_place(is_in_place));
    }

    pub(crate) fn set_probed(&mut self, page: u32) {
        self.records.with(page, |record| record.set_probed());
    }

    /// Makes `page` a child of `parent`; gives how many it has besides, and whether this is the one compared without
    /// a probe.
    #[inline]
    pub(crate) fn add_child(&mut self, parent: u32, page: u32) -> (u32, bool) {
        self.records.with(page, |record| record.set_parent(parent));
        self.records.with(parent, |record| record.add_child(page))
    }

    /// As [`Self::add_child`], of a parent without children.
    #[inline]
    pub(crate) fn add_only_child(&mut self, parent: u32, page: u32) {
        self.records.with(page, |record| record.set_parent(parent));
        self.records.with(parent, |record| record.add_only_child(page));
    }

    /// Undoes [`Self::add_child`]; gives how many children are left, and the one compared without a probe. The page must
    /// have no children itself.
    #[inline]
    pub(crate) fn remove_child(&mut self, parent: u32, page: u32) -> (u32, u32) {
        self.records.with(page, |record| record.leave());
        self.records.with(parent, |record| record.remove_child(page))
    }

    /// Hangs a page of another group on `node`.
    pub(crate) fn hang(&mut self, node: u32, page: u32, place: u16) {
        self.records.with(page, |record| record.set_parent(node));
        self.traits.place.set(page, place);
    }

    /// Undoes [`Self::hang`].
    pub(crate) fn unhang(&mut self, page: u32) {
        self.records.with(page, |record| record.set_parent(super::NULL));
        self.traits.place.set(page, 0);
    }
}
