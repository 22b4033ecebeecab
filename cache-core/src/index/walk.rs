//! Walks down the tree along a prompt, and back up along a path.

use super::{INDEX, Index, Spans};
use crate::pages::{NULL, Pages};

/// Pages compared as one slice at most: what a mismatch makes compare twice.
const BLOCK: u32 = 64;

impl Index<'_> {
    /// The longest indexed prefix of `tokens` in whole pages, at most `limit` pages: its last node and its length.
    /// O(pages hit), with a record read only where a run of consecutive pages ends.
    pub(crate) fn walk(
        &self,
        pages: &Pages<'_>,
        root: u32,
        tokens: &[u32],
        spans: Spans<'_>,
        limit: u32,
    ) -> (u32, u32) {
        let (mut tip, mut depth) = (root, 0_u32);
        if !self.is_enabled() {
            return (tip, depth);
        }
        let size = self.page_tokens as usize;
        while depth < limit {
            let start = depth << self.shift;
            let rest = tokens.get(start as usize..).unwrap_or(&[]);
            let plain = self.parts.next_start(spans, start).wrapping_sub(start) >> self.shift;
            let run = if tip == root { 0 } else { self.run_from(tip, limit.wrapping_sub(depth).min(plain).min(BLOCK)) };
            if run > 0 {
                let stored = self.tokens.slice(u64::from(tip.wrapping_add(1)) << self.shift, run << self.shift);
                let given = rest.get(..stored.len()).unwrap_or(&[]);
                let same = if stored == given {
                    run
                } else {
                    let equal = stored.iter().zip(given).take_while(|(a, b)| a == b).count();
                    u32::try_from(equal).unwrap_or(0) >> self.shift
                };
                tip = tip.wrapping_add(same);
                depth = depth.wrapping_add(same);
                if same < run {
                    break; // the page where they part has no other child
                }
                continue;
            }
            let Some(page) = rest.get(..size) else { break };
            let child = self.find(pages, tip, page, spans, start);
            if child == NULL {
                break;
            }
            tip = child;
            depth = depth.wrapping_add(1);
        }
        (tip, depth)
    }

    /// How many pages follow `page` as a chain of only children with consecutive ids, at most `most`.
    #[inline]
    fn run_from(&self, page: u32, most: u32) -> u32 {
        let mut run = 0_u32;
        while run < most {
            let at = page.wrapping_add(run);
            let left = 64_u32.wrapping_sub(at & 63);
            let ones = (!(self.chain.get(at >> 6) >> (at & 63))).trailing_zeros().min(left);
            run = run.wrapping_add(ones);
            if ones < left {
                break;
            }
        }
        run.min(most)
    }

    /// How many pages before `page` lead to it as a chain of only children with consecutive ids, at most `most`.
    #[inline]
    fn run_to(&self, page: u32, most: u32) -> u32 {
        let mut run = 0_u32;
        while run < most {
            let at = page.wrapping_sub(run).wrapping_sub(1);
            let ones = (!(self.chain.get(at >> 6) << (63 ^ (at & 63)))).leading_zeros().min((at & 63).wrapping_add(1));
            run = run.wrapping_add(ones);
            if ones <= at & 63 {
                break;
            }
        }
        run.min(most)
    }

    /// The node `up` pages above a node of depth at least `up`.
    pub(crate) fn ancestor(&self, pages: &Pages<'_>, node: u32, up: u32) -> u32 {
        let (mut node, mut up) = (node, if INDEX { up } else { 0 });
        while up > 0 && node != NULL && !pages.is_root(node) {
            let run = self.run_to(node, up);
            if run > 0 {
                node = node.wrapping_sub(run);
                up = up.wrapping_sub(run);
            } else {
                node = pages.parent(node);
                up = up.wrapping_sub(1);
            }
        }
        node
    }

    /// Visits the path to a node of the given depth in runs of consecutive pages, last run first:
    /// `(first page, entry of the first page, count)`.
    pub(crate) fn path_runs(&self, pages: &Pages<'_>, tip: u32, depth: u32, mut visit: impl FnMut(u32, u32, u32)) {
        let (mut node, mut depth) = (tip, depth);
        while depth > 0 && node != NULL && !pages.is_root(node) {
            let run = self.run_to(node, depth.wrapping_sub(1));
            let first = node.wrapping_sub(run);
            depth = depth.wrapping_sub(run).wrapping_sub(1);
            visit(first, depth, run.wrapping_add(1));
            node = pages.parent(first);
        }
    }

    /// The child of `parent` that shares the longest run of tokens with `tokens`: the page and the length of the run.
    /// Ties go to the lowest id. Only nodes with at most 32 children are searched; spans must not begin in the child.
    pub(crate) fn partial_child(&self, pages: &Pages<'_>, parent: u32, tokens: &[u32]) -> (u32, u32) {
        let children = pages.children(parent);
        if children == 0 || children > 32 {
            return (NULL, 0);
        }
        let eldest = self.siblings.get(parent).eldest;
        let all = core::iter::successors((eldest != NULL).then_some(eldest), |&page| {
            let next = self.siblings.get(page).next;
            (next != NULL).then_some(next)
        });
        let mut best = (NULL, 0_u32);
        for page in all.take(children as usize).filter(|&page| !self.has_parts(page)) {
            let run = self.page(page).iter().zip(tokens).take_while(|(a, b)| a == b).count();
            let run = u32::try_from(run).unwrap_or(0);
            if run > best.1 || (run == best.1 && run > 0 && page < best.0) {
                best = (page, run);
            }
        }
        best
    }
}
