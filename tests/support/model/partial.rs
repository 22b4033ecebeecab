//! Hits, the partial ones of `OPTION tail` included.

use super::Model;
use super::index::Key;

/// Children of a node that are searched at most; with more of them none is.
const MOST_CHILDREN: u32 = 32;

impl Model {
    /// Length of the longest hit, and the key on whose path its pages lie.
    pub(super) fn hit(&self, prompt: &Key, limit: u32) -> (u32, Key) {
        let whole = self.hit_len(prompt, limit);
        let partial = if self.spec.tail && !self.spec.has_seals() { self.partial_hit(prompt, limit) } else { None };
        partial.filter(|(len, _)| *len > whole).unwrap_or_else(|| (whole, prompt.clone()))
    }

    /// The longest length at which each group has its pages, the last one perhaps in part.
    fn partial_hit(&self, prompt: &Key, limit: u32) -> Option<(u32, Key)> {
        let anchor = self.spec.anchor()?;
        let step = self.page_tokens(anchor);
        let limit = limit.min(prompt.tokens.len() as u32);
        let depth = (0..limit / step).take_while(|&i| self.indexed_page(prompt, anchor, i).is_some()).count() as u32;
        let (run, path) = self.longest_child(prompt, depth * step, limit);
        let inside = |len: u32| prompt.spans.iter().any(|span| span.start < len && len < span.start + span.length);
        let supplied = |len: &u32| {
            (0..self.spec.groups.len()).all(|group| {
                let mut pages = self.resume_pages(group, *len).into_iter();
                pages.all(|index| self.indexed_page(&path, group, index).is_some())
            })
        };
        let len = (1..=depth * step + run).rev().find(|len| !inside(*len) && supplied(len))?;
        Some((len, path))
    }

    /// Of the children of a prompt's first `begin` tokens, the one that goes on longest with the prompt, and for how many
    /// tokens; the lowest page of equals. No child with media spans, and nothing behind the prompt's next span.
    fn longest_child(&self, prompt: &Key, begin: u32, limit: u32) -> (u32, Key) {
        let (parent, anchor) = (prompt.upto(begin), self.spec.anchor().expect("there is an index"));
        let end = prompt.spans.iter().map(|span| span.start).filter(|start| *start >= begin).chain([limit]).min();
        let rest = prompt.tokens.get(begin as usize..end.unwrap_or(limit) as usize).unwrap_or_default();
        let of_parent =
            |key: &&Key| key.tokens.len() as u32 == begin + self.page_tokens(anchor) && key.is_below(&parent);
        let children: Vec<&Key> = self.state.index.nodes.keys().filter(of_parent).collect();
        if children.len() as u32 > MOST_CHILDREN {
            return (0, parent);
        }
        let plain = children.into_iter().filter(|key| key.spans.len() == parent.spans.len());
        let runs = plain.filter_map(|key| {
            let run = key.tokens[begin as usize..].iter().zip(rest).take_while(|(a, b)| a == b).count() as u32;
            let id = self.state.index.at(key, (anchor, 0))?.id;
            (run > 0).then_some((core::cmp::Reverse(run), id, key))
        });
        runs.min().map_or((0, parent), |(core::cmp::Reverse(run), _, key)| (run, key.clone()))
    }
}
