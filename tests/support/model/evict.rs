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

    /// Frees the victim, or a page of its node that goes before it.
    pub(super) fn evict_victim(&mut self, pool: usize, head: u32) {
        let victim = self.hung_in_pool(pool, head).unwrap_or(head);
        self.evict_page((pool, victim));
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
    fn hung_in_pool(&self, pool: usize, head: u32) -> Option<u32> {
        let (key, place) = self.state.index.home(pool, head)?;
        if Some(place.0) != self.spec.anchor() {
            return None;
        }
        let node = &self.state.index.nodes[key];
        let hung = |(other, _): &(&Place, _)| other.0 != place.0 && self.node_pool(other.0) == pool;
        let mut pages = node.iter().filter(hung).map(|(_, stored)| stored.id);
        pages.find(|id| self.state.pools[pool].cached.contains(id))
    }
}
