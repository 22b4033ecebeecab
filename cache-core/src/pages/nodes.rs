//! Which pool a node is of, where the first nodes of a path are exact pages of sinks and the others sealed.

use super::Pages;
use crate::config::Policy;

/// The pools that nodes are of.
#[derive(Clone, Copy)]
pub(super) struct NodePools {
    /// Nodes at the start of each path that are of the open pool.
    pub(super) exact: u32,
    pub(super) open: u32,
    /// The pool of all others.
    pub(super) sealed: u32,
}

impl Pages<'_> {
    /// How many nodes lead to a node, itself included, counted up to one more than can be exact.
    fn depth_among_exact(&self, node: u32) -> u32 {
        let (mut node, mut depth) = (node, 0_u32);
        while depth <= self.nodes.exact && !self.is_root(node) && node != super::NULL {
            depth = depth.wrapping_add(1);
            node = self.parent(node);
        }
        depth
    }

    /// The pool that a node must be of. O(exact nodes).
    pub(crate) fn node_pool(&self, node: u32) -> u32 {
        if self.depth_among_exact(node) <= self.nodes.exact { self.nodes.open } else { self.nodes.sealed }
    }

    /// Whether a node is the last exact one of its path: what is behind it is of another pool. O(exact nodes).
    #[inline]
    pub(super) fn is_last_exact(&self, node: u32) -> bool {
        self.nodes.exact > 0 && self.depth_among_exact(node) == self.nodes.exact
    }

    /// Whether nodes are of a pool that counts their uses.
    pub(crate) fn has_lfu_nodes(&self) -> bool {
        let NodePools { exact, open, sealed } = self.nodes;
        self.pools.get(sealed).is(Policy::Lfu) || (exact > 0 && self.pools.get(open).is(Policy::Lfu))
    }
}
