//! Freeing cached pages, in eviction order.

use super::Model;
use super::index::Place;
use super::pages::Page;

impl Model {
    /// Frees `min(count, C)` pages of a pool, never more.
    pub(super) fn evict(&mut self, pool: usize, count: u32) -> u32 {
        let mut freed = 0;
        while freed < count
            && let Some(head) = self.victim(pool)
        {
            self.evict_victim(pool, head);
            freed += 1;
        }
        freed
    }

    /// Frees the victim, or a page of its node that goes before it. Where the victim is the last page of sinks, what is behind it
    /// is of another pool and goes first, leaf by leaf; but of pages of the victim's pool that hang there only one.
    pub(super) fn evict_victim(&mut self, pool: usize, head: u32) {
        loop {
            let leaf = self.leaf_behind((pool, head));
            let hung = self.hung_in_pool(pool, leaf).map(|id| (pool, id));
            self.evict_page(hung.unwrap_or(leaf));
            if hung.is_some() || leaf == (pool, head) {
                return;
            }
        }
    }

    /// A leaf at or behind a page: of several children the lowest is followed.
    fn leaf_behind(&self, page: Page) -> Page {
        let mut leaf = page;
        loop {
            let children = self.state.index.parents.iter().filter(|(_, parent)| **parent == leaf);
            match children.map(|(child, _)| child).min() {
                Some(child) => leaf = child,
                None => return leaf,
            }
        }
    }

    /// Frees one cached page. A parent that becomes a leaf may return to the order.
    pub(super) fn evict_page(&mut self, page: Page) {
        let parent = self.parent_page(page);
        self.unindex(page);
        if let Some(parent) = parent {
            self.became_leaf(parent);
        }
    }

    /// A cached page of another group at the same node and in the same pool: it goes before the anchor's.
    fn hung_in_pool(&self, pool: usize, node: Page) -> Option<u32> {
        let (key, place) = self.state.index.home(node.0, node.1)?;
        if Some(place.0) != self.spec.anchor() {
            return None;
        }
        let node = &self.state.index.nodes[key];
        let hung = |(other, _): &(&Place, _)| other.0 != place.0 && self.home_pool(key, **other) == pool;
        let mut pages = node.iter().filter(hung).map(|(_, stored)| stored.id);
        pages.find(|id| self.state.pools[pool].cached.contains(id))
    }
}
