//! Fixed rings: the pages that a sequence of such a group owns while it has tokens.
//!
//! A ring is the sink pages and then `R` columns. The table still names a page by its index in the sequence; which pages of
//! the table are dropped follows the window, as without a ring.

use super::pages::Page;
use super::{Entry, Model, Sequence};
use crate::machine::{Copy, Outcome, Resource, Shortage, Status, Value};
use crate::op::Seq;
use crate::spec::NULL;

impl Model {
    pub(super) fn is_ring(&self, group: usize) -> bool {
        self.spec.groups[group].ring > 0
    }

    /// Pages of a whole ring, sinks included.
    pub(super) fn ring_pages(&self, group: usize) -> u32 {
        self.spec.groups[group].sink_pages() + self.spec.groups[group].ring_columns()
    }

    /// Refuses more tokens than some ring takes in one plan.
    pub(super) fn may_turn(&self, sequence: &Sequence, count: u32) -> Result<(), Outcome> {
        let mut groups = (0..).zip(&self.spec.groups);
        let Some((group, spec)) = groups.find(|(_, spec)| spec.ring > 0 && count > spec.ring) else {
            return Ok(());
        };
        let fits = self.largest_alone(sequence, count).unwrap_or(0);
        let mut larger = *spec;
        larger.ring = count;
        let (need, have) = (larger.ring_columns(), spec.ring_columns());
        let short = Shortage { resource: Resource::Pages, group, need, have, fits, ..Shortage::default() };
        Err(Outcome { status: Status::Never, value: Value::Short(short) })
    }

    /// Whether `seq`, added after `before`, needs a ring: it has none, or somebody else sees its own.
    pub(super) fn needs_ring(&self, seq: Seq, group: usize, before: &[Entry]) -> bool {
        let first = |seq: &Seq| self.state.sequences[seq].rings[group].first().copied();
        let Some(page) = first(&seq) else {
            return true;
        };
        let pinned = self.pins().contains((self.pool_of(group), page));
        let owners = self.state.sequences.keys().filter(|other| first(other) == Some(page)).count();
        let left: Vec<&Entry> = (0..before.len())
            .filter(|&at| first(&before[at].seq) == Some(page) && self.needs_ring(before[at].seq, group, &before[..at]))
            .map(|at| &before[at])
            .collect();
        pinned || owners - left.len() > 1 || self.any_longer(&left, self.state.sequences[&seq].len())
    }

    /// The table of a ring group as the finished plan has it.
    pub(super) fn ring_table(&self, sequence: &Sequence, entry: &Entry, group: usize) -> Vec<u32> {
        let spec = self.spec.groups[group];
        let ring = entry.rings[group].as_ref().unwrap_or(&sequence.rings[group]);
        let old = &sequence.tables[group];
        let end = (sequence.len() + entry.count).div_ceil(spec.page_tokens);
        let is_dropped = |index: u32| old.get(index as usize) == Some(&NULL);
        (0..end).map(|index| if is_dropped(index) { NULL } else { ring[spec.ring_place(index)] }).collect()
    }

    /// Copies from the ring that a sequence shared to its new one: what it still reads, by column.
    pub(super) fn ring_copies(&self, sequence: &Sequence, entry: &Entry, group: usize) -> Vec<Copy> {
        let spec = self.spec.groups[group];
        let Some(ring) = &entry.rings[group] else {
            return Vec::new();
        };
        let resident = (0..).zip(&sequence.tables[group]).filter(|(_, id)| **id != NULL);
        let mut copies: Vec<(usize, Copy)> = resident
            .map(|(index, &src)| {
                let (place, tokens) = (spec.ring_place(index), sequence.len() - index * spec.page_tokens);
                let tokens = tokens.min(spec.page_tokens);
                (place, Copy { group: group as u16, src, dst: ring[place], tokens, seals: false })
            })
            .collect();
        copies.sort_by_key(|(place, _)| *place);
        copies.into_iter().map(|(_, copy)| copy).collect()
    }

    /// Sequences of the finished plan that get another ring than the one with this page, copied or not.
    pub fn replaced(&self, group: u16, id: u32) -> usize {
        let group = usize::from(group);
        let entries =
            self.state.plan.iter().flat_map(|plan| &plan.entries).filter(|entry| entry.rings[group].is_some());
        entries.filter(|entry| self.state.sequences[&entry.seq].rings[group].contains(&id)).count()
    }

    /// Ends the rings of a sequence without tokens.
    pub(super) fn end_rings(&self, sequence: &mut Sequence) -> Vec<Page> {
        let mut loose = Vec::new();
        if sequence.len() == 0 {
            for (group, ring) in sequence.rings.iter_mut().enumerate() {
                loose.extend(ring.drain(..).map(|id| (self.pool_of(group), id)));
            }
        }
        loose
    }

    /// The rows of fixed rings as kernels see them; empty for other groups.
    pub(super) fn ring_views(&self, sequence: &Sequence, entry: Option<&Entry>) -> Vec<Vec<u32>> {
        let row = |group: usize| match entry.and_then(|entry| entry.rings[group].as_ref()) {
            _ if !self.is_ring(group) => Vec::new(),
            Some(ring) => ring.clone(),
            None if sequence.rings[group].is_empty() => vec![NULL; self.ring_pages(group) as usize],
            None => sequence.rings[group].clone(),
        };
        (0..self.spec.groups.len()).map(row).collect()
    }

    /// A ring is there whole iff the sequence has tokens, and its table names nothing else.
    pub(super) fn check_rings(&self) -> Result<(), String> {
        for (seq, sequence) in &self.state.sequences {
            for (group, ring) in sequence.rings.iter().enumerate().filter(|(group, _)| self.is_ring(*group)) {
                let spec = self.spec.groups[group];
                let whole = if sequence.len() == 0 { 0 } else { self.ring_pages(group) as usize };
                let resident = (0..).zip(&sequence.tables[group]).filter(|(_, id)| **id != NULL);
                if ring.len() != whole || !resident.into_iter().all(|(index, &id)| ring[spec.ring_place(index)] == id) {
                    return Err(format!("6.3: ring of {seq:?} in group {group}"));
                }
            }
        }
        Ok(())
    }
}
