//! The index without a full group: its nodes have a pool of their own.
//!
//! To the model they are the pages of one more full group, which the caller does not see. They hold no bytes, only ids of
//! tokens: a row of this group ends where its sequence becomes opaque, and where no node can be had the sequence is opaque
//! from there on instead of being refused.

use super::pages::Page;
use super::{Entry, Model, Sequence};
use crate::op::Seq;
use crate::spec::{GroupSpec, PoolSpec, Spec};

/// The configuration with the hidden group and pool, and the number of that group.
pub(super) fn with_nodes(spec: &Spec) -> (Spec, Option<usize>) {
    let mut own = spec.clone();
    if !spec.is_hidden() {
        return (own, None);
    }
    let pool = spec.pools.len() as u16;
    own.pools.push(PoolSpec { pages: spec.max_nodes(), policy: spec.pools[0].policy });
    own.groups.push(GroupSpec { page_tokens: spec.hit_step(), pool, ..GroupSpec::FULL });
    (own, Some(spec.groups.len()))
}

impl Model {
    /// Groups as the caller numbers them.
    pub(super) fn visible_groups(&self) -> usize {
        self.hidden.unwrap_or(self.spec.groups.len())
    }

    /// Pools as the caller numbers them.
    pub(super) fn visible_pools(&self) -> usize {
        self.spec.pools.len() - usize::from(self.hidden.is_some())
    }

    /// Entries of a row that the first `len` tokens of a sequence need.
    pub(super) fn row_end(&self, sequence: &Sequence, group: usize, len: u32) -> u32 {
        let len = if self.hidden == Some(group) { len.min(sequence.known_len()) } else { len };
        len.div_ceil(self.page_tokens(group))
    }

    /// Whether a group's row grows with a sequence: one of nodes does as long as all tokens are known.
    pub(super) fn grows(&self, sequence: &Sequence, group: usize, no_node: bool) -> bool {
        self.hidden != Some(group) || (!no_node && sequence.known_len() == sequence.len())
    }

    /// A sequence without a node for what it computes next does not keep one that it was cut in.
    pub(super) fn leave_cut_node(&self, sequence: &mut Sequence) {
        let group = self.hidden.expect("only nodes run out so");
        let step = self.page_tokens(group);
        let begin = sequence.published / step * step;
        let last = sequence.tables[group].get((begin / step) as usize);
        let is_node = last.is_some_and(|&id| self.state.index.home(self.pool_of(group), id).is_some());
        if begin < sequence.published && is_node {
            sequence.published = begin;
            sequence.forget(begin);
        }
    }

    /// Makes a sequence opaque from a token on. Its row of nodes ends there, and with it what it has published and holds.
    /// Gives the nodes that it had behind.
    pub(super) fn forget(&mut self, seq: Seq, from: u32) -> Vec<Page> {
        let sequence = self.state.sequences.get_mut(&seq).expect("live");
        sequence.forget(from);
        self.leave_queue_if_done(seq);
        let Some(group) = self.hidden else { return Vec::new() };
        let (step, pool) = (self.page_tokens(group), self.pool_of(group));
        let sequence = self.state.sequences.get_mut(&seq).expect("live");
        let (known, last) = (sequence.known_len(), sequence.len() / step);
        let keep = known.div_ceil(step);
        let mut loose: Vec<Page> = Vec::new();
        for index in (0..sequence.tables[group].len() as u32).rev() {
            let page = if index >= keep { sequence.tables[group].pop() } else { None };
            let hold = if (index + 1) * step > known { sequence.holds.remove(&index) } else { None };
            loose.extend(page.into_iter().chain(hold).map(|id| (pool, id)));
        }
        sequence.published = sequence.published.min(known);
        let planned = self.state.plan.iter_mut().filter(|plan| plan.finished).flat_map(|plan| &mut plan.entries);
        for entry in planned.filter(|entry| entry.seq == seq) {
            loose.splice(0..0, entry.fresh[group].drain(..).rev().map(|id| (pool, id)));
            if last >= keep {
                entry.give_copy_up(group, pool, &mut loose);
            }
        }
        loose
    }
}

impl Entry {
    /// The copy is not needed any more; its source stays the plan's until it ends.
    fn give_copy_up(&mut self, group: usize, pool: usize, loose: &mut Vec<Page>) {
        if let Some((source, target)) = self.copies[group].take() {
            self.kept.push((pool, source));
            loose.push((pool, target));
        }
    }
}
