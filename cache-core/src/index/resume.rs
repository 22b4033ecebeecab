//! How far a hit reaches when every group must be able to go on from its end.
//!
//! Each group can only shorten the answer of the others, so the loop ends: a missing page `k` moves the candidate down
//! to the start of page `k` or below.

use super::Index;
use crate::group::Group;
use crate::mem::Slots;
use crate::pages::{NULL, Pages};

/// A node of the tree and how many pages lead to it.
#[derive(Clone, Copy)]
pub(crate) struct Resume {
    pub(crate) node: u32,
    pub(crate) depth: u32,
}

impl Index<'_> {
    /// The deepest node at or above `from` at which all groups can go on.
    pub(crate) fn resume(&self, pages: &Pages<'_>, groups: &Slots<'_, Group>, anchor: u32, from: Resume) -> Resume {
        let largest = groups.iter().map(|group| group.shift).max().unwrap_or(0).max(self.shift);
        let step = largest.wrapping_sub(self.shift);
        let mut at = self.climb(pages, from, from.depth >> step << step);
        if groups.len() <= 1 {
            return at;
        }
        loop {
            let before = at.depth;
            for (index, group) in (0..).zip(groups.iter()) {
                if index != anchor {
                    at = self.resume_group(pages, &group, at, step);
                }
            }
            if at.depth == before {
                return at;
            }
        }
    }

    fn resume_group(&self, pages: &Pages<'_>, group: &Group, from: Resume, step: u32) -> Resume {
        let mut at = from;
        loop {
            let len = at.depth << self.shift;
            let sinks = group.sink_pages(len);
            let first = group.first(len);
            let mut cursor = at;
            let missing = (first..len >> group.shift)
                .rev()
                .chain((0..sinks.min(first)).rev())
                .find(|&entry| self.page_at(pages, group, &mut cursor, entry) == NULL);
            let Some(entry) = missing else { return at };
            let depth = entry << group.shift >> self.shift >> step << step;
            at = self.climb(pages, at, depth);
        }
    }

    /// The most tokens, at most `tokens`, of which a group has all pages on the path to `deep`, the last one perhaps in part.
    pub(crate) fn supplied(&self, pages: &Pages<'_>, group: &Group, deep: Resume, tokens: u32) -> u32 {
        let mut tokens = tokens;
        loop {
            let first = group.first(tokens);
            let sinks = group.sink_pages(tokens).min(first);
            let mut cursor = deep;
            let mut entries = (first..group.pages(tokens)).rev().chain((0..sinks).rev());
            let missing = entries.find(|&entry| self.page_at(pages, group, &mut cursor, entry) == NULL);
            let Some(entry) = missing else { return tokens };
            tokens = entry << group.shift;
        }
    }

    /// The page of a group at an entry of the path to `cursor`, which moves up to the node that carries it.
    pub(crate) fn page_at(&self, pages: &Pages<'_>, group: &Group, cursor: &mut Resume, entry: u32) -> u32 {
        let (depth, sub) = self.carrier(group, entry);
        if depth > cursor.depth {
            return NULL;
        }
        *cursor = self.climb(pages, *cursor, depth);
        self.hung(cursor.node, group.place.wrapping_add(sub))
    }

    /// The depth of the node that carries a page of a group, and which of its places.
    pub(crate) fn carrier(&self, group: &Group, entry: u32) -> (u32, u32) {
        if group.shift >= self.shift {
            return (entry.wrapping_add(1) << group.shift >> self.shift, 0);
        }
        let by = self.shift.wrapping_sub(group.shift);
        ((entry >> by).wrapping_add(1), entry & group.per_node.wrapping_sub(1))
    }

    pub(crate) fn climb(&self, pages: &Pages<'_>, from: Resume, depth: u32) -> Resume {
        let node = self.ancestor(pages, from.node, from.depth.saturating_sub(depth));
        Resume { node, depth: depth.min(from.depth) }
    }
}
