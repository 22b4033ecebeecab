//! Chunks of table entries: a table needs one for each block of entries in which it has a page.

use super::{Entry, Model, Sequence};
use crate::machine::{Outcome, Resource, Shortage, Status, Value};
use crate::spec::NULL;

/// Entries of a chunk.
const BLOCK: u32 = 32;

/// Chunks that the pages of some tables need.
pub(super) fn chunks_of(tables: &[Vec<u32>]) -> u32 {
    let blocks = tables.iter().flat_map(|table| table.chunks(BLOCK as usize));
    blocks.filter(|block| block.iter().any(|&id| id != NULL)).count() as u32
}

impl Model {
    /// Chunks that nothing uses and the open plan was not promised; as many as one likes where none can be short.
    fn free_chunks(&self) -> u32 {
        if self.spec.table_chunks == 0 {
            return u32::MAX;
        }
        let plan = self.state.plan.iter();
        let entries: Vec<&Entry> = plan.flat_map(|plan| &plan.entries).collect();
        let is_finished = self.state.plan.iter().all(|plan| plan.finished);
        let sequences =
            self.state.sequences.iter().map(|(seq, sequence)| match entries.iter().find(|entry| entry.seq == *seq) {
                Some(entry) if is_finished => {
                    let tables = self.planned_tables(sequence, entry);
                    chunks_of(&self.with_rings(tables, sequence.len() + entry.count))
                }
                _ => chunks_of(&self.with_rings(sequence.tables.clone(), sequence.len())),
            });
        let tickets = self.state.tickets.values().map(|pins| chunks_of(&pins.tables));
        let row = |running: &super::Running| chunks_of(core::slice::from_ref(&running.nodes));
        let transfers = self.state.transfers.values().map(|running| running.chunks + row(running));
        let building = self.state.plan.iter().filter(|plan| !plan.finished);
        let promised = building.flat_map(|plan| &plan.entries).map(|entry| entry.chunks);
        let used: u32 = sequences.chain(tickets).chain(transfers).chain(promised).sum();
        self.spec.table_chunks.saturating_sub(used)
    }

    /// The row of a fixed ring at a length, all of whose pages are the same here.
    fn ring_row(&self, group: usize, len: u32) -> Vec<u32> {
        vec![1; if len == 0 { 0 } else { self.ring_pages(group) as usize }]
    }

    /// Tables of which those of fixed rings are replaced by their rows.
    fn with_rings(&self, tables: Vec<Vec<u32>>, len: u32) -> Vec<Vec<u32>> {
        let rows = tables.into_iter().enumerate();
        rows.map(|(group, table)| if self.is_ring(group) { self.ring_row(group, len) } else { table }).collect()
    }

    /// Room for `count` chunks.
    pub(super) fn room_for_chunks(&self, count: u32) -> Result<(), Outcome> {
        let free = self.free_chunks();
        if count <= free { Ok(()) } else { Err(Outcome::capacity(Resource::Chunks, count, free)) }
    }

    /// Chunks that the tables of a sequence need for their first `len` tokens.
    pub(super) fn chunks_below(&self, sequence: &Sequence, len: u32) -> u32 {
        let cut = |(group, table): (usize, &Vec<u32>)| {
            table[..(len.div_ceil(self.page_tokens(group)) as usize).min(table.len())].to_vec()
        };
        chunks_of(&self.with_rings(sequence.tables.iter().enumerate().map(cut).collect(), len))
    }

    /// Chunks that `count` more tokens need.
    pub(super) fn chunks_for(&self, sequence: &Sequence, count: u32, no_node: bool) -> u32 {
        let longer = |(group, table): (usize, &Vec<u32>)| {
            let mut table = table.clone();
            if !self.grows(sequence, group, no_node) {
                return table;
            }
            table.resize((sequence.len() + count).div_ceil(self.page_tokens(group)) as usize, u32::MAX);
            table
        };
        let tables: Vec<Vec<u32>> = sequence.tables.iter().enumerate().map(longer).collect();
        let before = self.with_rings(sequence.tables.clone(), sequence.len());
        chunks_of(&self.with_rings(tables, sequence.len() + count)) - chunks_of(&before)
    }

    /// Whether the chunks for `count` more tokens can be promised.
    pub(super) fn may_take_chunks(&self, sequence: &Sequence, count: u32, no_node: bool) -> Result<u32, Outcome> {
        let need = self.chunks_for(sequence, count, no_node);
        let Err(refusal) = self.room_for_chunks(need) else {
            return Ok(need);
        };
        let fits = |n: u32| self.chunks_alone(sequence.len(), n) <= self.spec.table_chunks;
        match refusal.value {
            Value::Short(short) if !fits(count) => {
                let fits = (1..count).rev().find(|&n| fits(n)).unwrap_or(0);
                Err(Outcome { status: Status::Never, value: Value::Short(Shortage { fits, ..short }) })
            }
            _ => Err(refusal),
        }
    }

    /// Chunks that a sequence of `len` tokens needs in an empty cache while it gets `count` more.
    fn chunks_alone(&self, len: u32, count: u32) -> u32 {
        let table = |group: usize| {
            let spec = self.spec.groups[group];
            let resident = |index: u32| {
                let begin = index * spec.page_tokens;
                (index + 1) * spec.page_tokens > spec.window_start(len) || begin < spec.sinks().min(len + count)
            };
            (0..(len + count).div_ceil(spec.page_tokens)).map(|index| u32::from(resident(index))).collect()
        };
        chunks_of(&self.with_rings((0..self.spec.groups.len()).map(table).collect(), len + count))
    }
}
