//! Page tables: one row of page ids per (sequence, group), in chunks of 32 entries.
//!
//! Entry `i` of a row is the page of tokens `[i * P, (i + 1) * P)`. A row is a list of chunks in ascending order;
//! a chunk carries its number, so that a window's row may leave chunks out: what no chunk holds is NULL.
//!
//! ```text
//! row -> head [chunk 0: sinks] <-> [chunk 40] <-> [chunk 41] <- tail
//! ```

mod sealed;
mod share;
mod shrink;

pub use sealed::SealedColumns;

use crate::config::CHUNK_ENTRIES;
use crate::mem::Slots;
use crate::pages::NULL;
use crate::width::Id;

/// The chunks of one table row. Chunk ids begin at 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Row {
    head: u32,
    tail: u32,
    /// First entry behind the sinks that is still resident.
    first: u32,
    /// How many entries, behind those of the sinks, are pages of the group's sealed pool.
    sealed: u32,
}

crate::records::zero!(Row { head, tail, first, sealed });

/// Place of a chunk in its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ChunkLink {
    prev: Id,
    next: Id,
    /// It holds entries `[32 * number, 32 * number + 32)`.
    number: u32,
}

crate::records::zero!(ChunkLink { prev, next, number });

/// A place in a row, good until the row changes.
pub(crate) struct Cursor {
    chunk: u32,
}

/// All rows, and the pool of chunks.
pub(crate) struct Tables<'m> {
    rows: Slots<'m, Row>,
    links: Slots<'m, ChunkLink>,
    entries: Slots<'m, Id>,
    groups: u32,
    /// Chunks never used so far begin here.
    fresh: u32,
    /// Chunks given back, linked by `next`.
    spare: u32,
    free: u32,
}

const SHIFT: u32 = CHUNK_ENTRIES.trailing_zeros();
const MASK: u32 = CHUNK_ENTRIES - 1;

impl<'m> Tables<'m> {
    pub(crate) fn new(rows: &'m mut [Row], links: &'m mut [ChunkLink], entries: &'m mut [Id], groups: u32) -> Self {
        let links = Slots::new(links);
        let free = links.len().saturating_sub(1);
        Self { rows: Slots::new(rows), links, entries: Slots::new(entries), groups, fresh: 1, spare: 0, free }
    }

    /// Chunks that no row uses.
    pub(crate) fn free_chunks(&self) -> u32 {
        self.free
    }

    /// Chunks in all.
    pub(crate) fn chunks(&self) -> u32 {
        self.links.len().saturating_sub(1)
    }

    #[inline]
    fn row(&self, holder: u32, group: u32) -> u32 {
        holder.wrapping_mul(self.groups).wrapping_add(group)
    }

    /// The page in an entry, or NULL.
    #[inline]
    pub(crate) fn get(&self, holder: u32, group: u32, entry: u32) -> u32 {
        match self.chunk_of(holder, group, entry) {
            0 => NULL,
            chunk => self.entries.get((chunk << SHIFT) | (entry & MASK)).get(),
        }
    }

    /// A place in a row from which to read on.
    #[inline]
    pub(crate) fn cursor(&self, holder: u32, group: u32, entry: u32) -> Cursor {
        Cursor { chunk: self.chunk_of(holder, group, entry) }
    }

    /// The entries of a chunk from one on that is at or behind the last one read; empty where there is no chunk.
    /// O(chunks skipped).
    #[inline]
    pub(crate) fn rest(&self, cursor: &mut Cursor, entry: u32) -> &[Id] {
        let mut link = self.links.get(cursor.chunk);
        while link.number < entry >> SHIFT && cursor.chunk != 0 {
            cursor.chunk = link.next.get();
            link = self.links.get(cursor.chunk);
        }
        if cursor.chunk == 0 || link.number != entry >> SHIFT {
            return &[];
        }
        let at = entry & MASK;
        self.entries.slice(u64::from((cursor.chunk << SHIFT) | at), CHUNK_ENTRIES.wrapping_sub(at))
    }

    /// Replaces an entry whose chunk exists.
    pub(crate) fn set(&mut self, holder: u32, group: u32, entry: u32, page: u32) {
        let chunk = self.chunk_of(holder, group, entry);
        if chunk != 0 {
            self.entries.set((chunk << SHIFT) | (entry & MASK), Id::new(page));
        }
    }

    /// The chunk with an entry, searched from the end of the row. O(chunks behind it).
    #[inline]
    fn chunk_of(&self, holder: u32, group: u32, entry: u32) -> u32 {
        let mut chunk = self.rows.get(self.row(holder, group)).tail;
        let number = entry >> SHIFT;
        while chunk != 0 {
            let link = self.links.get(chunk);
            if link.number <= number {
                return if link.number == number { chunk } else { 0 };
            }
            chunk = link.prev.get();
        }
        0
    }

    /// Chunks that entries `[from, to)` need beyond those of the row, which ends at or before `from`.
    #[inline]
    pub(crate) fn chunks_needed(&self, holder: u32, group: u32, from: u32, to: u32) -> u32 {
        if from >= to {
            return 0;
        }
        let (first, last) = (from >> SHIFT, to.wrapping_sub(1) >> SHIFT);
        let count = last.wrapping_sub(first).wrapping_add(1);
        let tail = self.rows.get(self.row(holder, group)).tail;
        let shared = tail != 0 && self.links.get(tail).number == first;
        count.wrapping_sub(u32::from(shared))
    }

    /// Chunks that a row for entries `[0, sinks)` and `[first, end)` needs.
    pub(crate) fn chunks_for(sinks: u32, first: u32, end: u32) -> u32 {
        let whole = |from: u32, to: u32| {
            if from >= to { 0 } else { (to.wrapping_sub(1) >> SHIFT).wrapping_sub(from >> SHIFT).wrapping_add(1) }
        };
        let shared = sinks > 0 && first < end && sinks.wrapping_sub(1) >> SHIFT == first >> SHIFT;
        whole(0, sinks).wrapping_add(whole(first, end)).wrapping_sub(u32::from(shared))
    }

    /// Appends `count` pages with consecutive ids as entries `entry..`. Gives false when chunks run out.
    pub(crate) fn push_run(&mut self, holder: u32, group: u32, entry: u32, first: u32, count: u32) -> bool {
        let (mut entry, mut page, mut left) = (entry, first, count);
        while left > 0 {
            let chunk = self.tail_for(holder, group, entry >> SHIFT);
            if chunk == 0 {
                return false;
            }
            let room = CHUNK_ENTRIES.wrapping_sub(entry & MASK).min(left);
            let start = u64::from(chunk << SHIFT | entry & MASK);
            for (slot, page) in self.entries.slice_mut(start, room).iter_mut().zip(page..) {
                *slot = Id::new(page);
            }
            entry = entry.wrapping_add(room);
            page = page.wrapping_add(room);
            left = left.wrapping_sub(room);
        }
        true
    }

    /// The last chunk of a row if it has this number, else a new one behind it.
    fn tail_for(&mut self, holder: u32, group: u32, number: u32) -> u32 {
        let index = self.row(holder, group);
        let row = self.rows.get(index);
        if row.tail != 0 && self.links.get(row.tail).number == number {
            return row.tail;
        }
        let chunk = self.take_chunk();
        if chunk == 0 {
            return 0;
        }
        self.links.set(chunk, ChunkLink { prev: Id::new(row.tail), next: Id::NULL, number });
        if row.tail == 0 {
            self.rows.with(index, |row| row.head = chunk);
        } else {
            self.links.with(row.tail, |link| link.next = Id::new(chunk));
        }
        self.rows.with(index, |row| row.tail = chunk);
        chunk
    }

    fn take_chunk(&mut self) -> u32 {
        if self.free == 0 {
            return 0;
        }
        self.free = self.free.wrapping_sub(1);
        let chunk = if self.spare != 0 {
            let chunk = self.spare;
            self.spare = self.links.get(chunk).next.get();
            chunk
        } else {
            self.fresh = self.fresh.wrapping_add(1);
            self.fresh.wrapping_sub(1)
        };
        self.entries.slice_mut(u64::from(chunk << SHIFT), CHUNK_ENTRIES).fill(Id::NULL);
        chunk
    }

    /// Puts `count` pages with consecutive ids before a row, as entries `entry..`; the row begins behind them.
    /// Gives false when chunks run out.
    pub(crate) fn prepend_run(&mut self, holder: u32, group: u32, entry: u32, first: u32, count: u32) -> bool {
        let (mut end, mut page_end) = (entry.wrapping_add(count), first.wrapping_add(count));
        while end > entry {
            let number = end.wrapping_sub(1) >> SHIFT;
            let chunk = self.head_for(holder, group, number);
            if chunk == 0 {
                return false;
            }
            let from = (number << SHIFT).max(entry);
            let room = end.wrapping_sub(from);
            page_end = page_end.wrapping_sub(room);
            let start = u64::from(chunk << SHIFT | from & MASK);
            for (slot, page) in self.entries.slice_mut(start, room).iter_mut().zip(page_end..) {
                *slot = Id::new(page);
            }
            end = from;
        }
        true
    }

    /// The first chunk of a row if it has this number, else a new one before it.
    fn head_for(&mut self, holder: u32, group: u32, number: u32) -> u32 {
        let index = self.row(holder, group);
        let row = self.rows.get(index);
        if row.head != 0 && self.links.get(row.head).number == number {
            return row.head;
        }
        let chunk = self.take_chunk();
        if chunk == 0 {
            return 0;
        }
        self.links.set(chunk, ChunkLink { prev: Id::NULL, next: Id::new(row.head), number });
        if row.head == 0 {
            self.rows.with(index, |row| row.tail = chunk);
        } else {
            self.links.with(row.head, |link| link.prev = Id::new(chunk));
        }
        self.rows.with(index, |row| row.head = chunk);
        chunk
    }

    /// Forgets an emptied row.
    pub(crate) fn reset(&mut self, holder: u32, group: u32) {
        self.rows.set(self.row(holder, group), Row::default());
    }

    /// First resident entry behind the sinks.
    pub(crate) fn first(&self, holder: u32, group: u32) -> u32 {
        self.rows.get(self.row(holder, group)).first
    }

    /// How many entries are pages of the sealed pool; `Group::sealed_columns` says which.
    pub(crate) fn sealed(&self, holder: u32, group: u32) -> u32 {
        self.rows.get(self.row(holder, group)).sealed
    }

    pub(crate) fn set_sealed(&mut self, holder: u32, group: u32, sealed: u32) {
        self.rows.with(self.row(holder, group), |row| row.sealed = sealed);
    }

    pub(crate) fn set_first(&mut self, holder: u32, group: u32, first: u32) {
        self.rows.with(self.row(holder, group), |row| row.first = first);
    }

    /// The chunks of a row in ascending order: number of the first entry, and the entries.
    pub(crate) fn chunks_of(&self, holder: u32, group: u32) -> impl Iterator<Item = (u32, &[Id])> {
        self.chunks_after(self.rows.get(self.row(holder, group)).head)
    }

    /// The same without the chunks that lie wholly before an entry. O(chunks given).
    pub(crate) fn chunks_from(&self, holder: u32, group: u32, entry: u32) -> impl Iterator<Item = (u32, &[Id])> {
        let row = self.rows.get(self.row(holder, group));
        let (mut start, mut chunk) = if entry == 0 { (row.head, 0) } else { (0, row.tail) };
        while chunk != 0 {
            let link = self.links.get(chunk);
            if link.number < entry >> SHIFT {
                break;
            }
            (start, chunk) = (chunk, link.prev.get());
        }
        self.chunks_after(start)
    }

    fn chunks_after(&self, start: u32) -> impl Iterator<Item = (u32, &[Id])> {
        core::iter::successors((start != 0).then_some(start), |&chunk| {
            let next = self.links.get(chunk).next.get();
            (next != 0).then_some(next)
        })
        .take(self.links.len() as usize)
        .map(|chunk| {
            (self.links.get(chunk).number << SHIFT, self.entries.slice(u64::from(chunk << SHIFT), CHUNK_ENTRIES))
        })
    }
}
