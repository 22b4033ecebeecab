//! Leaving the index: eviction and withdrawal.

use super::Index;
use crate::events::{EventKind, Events};
use crate::pages::{NULL, Pages, Victims};

impl Index<'_> {
    /// Evicts up to `count` pages of a pool whose cached pages are all nodes in one list. Gives how many.
    #[inline(never)] // its victims lie on the stack
    pub(crate) fn evict_nodes(&mut self, pages: &mut Pages<'_>, events: &mut Events<'_>, pool: u32, count: u32) -> u32 {
        let mut evicted = 0_u32;
        while evicted < count {
            let mut victims: Victims = core::array::from_fn(|_| NULL);
            let taken = pages.take_victims(pool, count.wrapping_sub(evicted), &mut victims);
            let victims = victims.get(..taken as usize).unwrap_or(&[]);
            for &page in victims {
                events.push(|| self.event(pages, EventKind::Removed, self.anchor, page, page));
                self.unlink(pages, page);
            }
            pages.free_victims(pool, victims);
            if taken == 0 {
                break;
            }
            evicted = evicted.wrapping_add(taken);
        }
        evicted
    }

    /// Evicts one cached page of the anchor group, and what hangs on its node. It has no children.
    pub(crate) fn evict_node(&mut self, pages: &mut Pages<'_>, events: &mut Events<'_>, page: u32) {
        for place in 0..self.places {
            let hung = self.hung(page, place);
            if hung != NULL {
                self.evict_hung(pages, events, hung);
            }
        }
        let parent = pages.parent(page);
        self.withdraw(pages, events, page);
        pages.free(page);
        pages.became_leaf(parent);
    }

    /// A leaf at or behind a node: of several children, the lowest is followed. O(depth), and a look at all nodes where there
    /// are several.
    pub(crate) fn leaf_behind(&self, pages: &Pages<'_>, node: u32) -> u32 {
        let mut leaf = node;
        loop {
            let (children, first) = (pages.children(leaf), pages.inline_child(leaf));
            leaf = match (children, first) {
                (0, _) => return leaf,
                (1, first) if first != NULL => first,
                _ => self.scan(pages, leaf, |_| true),
            };
        }
    }

    /// Takes a page without children or hung pages out of the index; the caller frees it or keeps it private.
    pub(crate) fn withdraw(&mut self, pages: &mut Pages<'_>, events: &mut Events<'_>, page: u32) {
        events.push(|| self.event(pages, EventKind::Removed, self.anchor, page, page));
        pages.leave_order(page);
        self.unlink(pages, page);
    }

    /// Evicts one cached page of another group.
    pub(crate) fn evict_hung(&mut self, pages: &mut Pages<'_>, events: &mut Events<'_>, page: u32) {
        self.withdraw_hung(pages, events, page);
        if !pages.is_used(page) {
            pages.free(page);
        }
    }

    /// Takes a page of another group off its node.
    pub(crate) fn withdraw_hung(&mut self, pages: &mut Pages<'_>, events: &mut Events<'_>, page: u32) {
        let (node, place) = (pages.parent(page), u32::from(pages.traits.place.get(page)).saturating_sub(1));
        let group = self.place_group.get(place);
        events.push(|| self.event(pages, EventKind::Removed, group, node, page));
        pages.leave_order(page);
        self.set_hung(node, place, NULL);
        pages.unhang(page);
    }

    /// Evicts a cached page, NULL excepted.
    pub(crate) fn evict_page(&mut self, pages: &mut Pages<'_>, events: &mut Events<'_>, page: u32) -> bool {
        if page == NULL {
            return false;
        }
        if pages.is_hung(page) {
            self.evict_hung(pages, events, page);
        } else {
            self.evict_node(pages, events, page);
        }
        true
    }
}
