//! Freeing cached pages, the head of the order first.

use super::Model;
use super::index::Place;

impl Model {
    /// Frees `min(count, C)` pages of a pool, never more.
    pub(super) fn evict(&mut self, pool: usize, count: u32) -> u32 {
        let wanted = count.min(self.state.pools[pool].cached_count());
        let target = self.state.pools[pool].free_count() + wanted;
        while self.state.pools[pool].free_count() < target {
            let head = self.state.pools[pool].order[0];
            let victim = self.hung_in_pool(pool, head).unwrap_or(head);
            self.unindex((pool, victim));
        }
        wanted
    }

    /// A cached page of another group at the same node and in the same pool: it goes before the anchor's.
    fn hung_in_pool(&self, pool: usize, head: u32) -> Option<u32> {
        let (key, place) = self.state.index.home(pool, head)?;
        if Some(place.0) != self.spec.anchor() {
            return None;
        }
        let node = &self.state.index.nodes[key];
        let hung = |(other, _): &(&Place, _)| other.0 != place.0 && self.pool_of(other.0) == pool;
        let mut pages = node.iter().filter(hung).map(|(_, stored)| stored.id);
        pages.find(|id| self.state.pools[pool].order.contains(id))
    }
}
