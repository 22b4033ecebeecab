//! Rows that shrink: entries taken off the end, and those that left a window.

use super::{CHUNK_ENTRIES, ChunkLink, MASK, SHIFT, Tables};
use crate::width::Id;

impl Tables<'_> {
    /// Takes the last chunk with entries at or behind `keep` off a row, or those entries of it. `give` gets the number of the
    /// first and what they hold, NULL where that is no page. False when there is no such chunk.
    pub(crate) fn pop_chunk(&mut self, holder: u32, group: u32, keep: u32, mut give: impl FnMut(u32, &[Id])) -> bool {
        let index = self.row(holder, group);
        let tail = self.rows.get(index).tail;
        let base = self.links.get(tail).number << SHIFT;
        if tail == 0 || base.wrapping_add(CHUNK_ENTRIES) <= keep {
            return false;
        }
        let area = self.entries.slice_mut(u64::from(tail << SHIFT), CHUNK_ENTRIES);
        let popped = area.get_mut(keep.saturating_sub(base) as usize..).unwrap_or(&mut []);
        let any = popped.iter().any(|page| !page.is_null());
        if any {
            give(keep.max(base), popped);
            popped.fill(Id::NULL);
        }
        if area.iter().all(|page| page.is_null()) {
            self.unlink(index, tail);
            return true;
        }
        any
    }

    /// Empties an entry that left its window, and gives its chunk back when nothing is left in it.
    pub(crate) fn drop_entry(&mut self, holder: u32, group: u32, entry: u32) {
        let chunk = self.chunk_of(holder, group, entry);
        if chunk == 0 {
            return;
        }
        self.entries.set((chunk << SHIFT) | (entry & MASK), Id::NULL);
        let start = u64::from(chunk << SHIFT);
        if self.entries.slice(start, CHUNK_ENTRIES).iter().all(|page| page.is_null()) {
            let index = self.row(holder, group);
            self.unlink(index, chunk);
        }
    }

    fn unlink(&mut self, row: u32, chunk: u32) {
        let ChunkLink { prev, next, .. } = self.links.get(chunk);
        if prev.is_null() {
            self.rows.with(row, |row| row.head = next.get());
        } else {
            self.links.with(prev.get(), |link| link.next = next);
        }
        if next.is_null() {
            self.rows.with(row, |row| row.tail = prev.get());
        } else {
            self.links.with(next.get(), |link| link.prev = prev);
        }
        self.give_chunk(chunk);
    }

    fn give_chunk(&mut self, chunk: u32) {
        self.links.set(chunk, ChunkLink { next: Id::new(self.spare), ..ChunkLink::default() });
        self.spare = chunk;
        self.free = self.free.wrapping_add(1);
    }
}
