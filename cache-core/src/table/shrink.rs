//! Rows that shrink: entries taken off the end, and those that left a window.

use super::{CHUNK_ENTRIES, ChunkLink, MASK, SHIFT, Tables};
use crate::width::Id;

impl Tables<'_> {
    /// Takes the last chunk with entries at or behind `keep` off a row, or those entries of it; `give` gets each with its
    /// page, last first, but for those below `silent`. False when there is no such chunk.
    pub(crate) fn pop_chunk(
        &mut self,
        holder: u32,
        group: u32,
        (keep, silent): (u32, u32),
        mut give: impl FnMut(u32, u32),
    ) -> bool {
        let index = self.row(holder, group);
        let tail = self.rows.get(index).tail;
        let base = self.links.get(tail).number << SHIFT;
        let end = base.wrapping_add(CHUNK_ENTRIES);
        if tail == 0 || end <= keep {
            return false;
        }
        let area = self.entries.slice_mut(u64::from(tail << SHIFT), CHUNK_ENTRIES);
        let first = keep.max(base);
        let told = silent.max(first).min(end);
        let mut any = false;
        for (entry, page) in (base..end).zip(area.iter_mut()).rev().take(end.wrapping_sub(told) as usize) {
            let page = core::mem::take(page);
            if !page.is_null() {
                any = true;
                give(entry, page.get());
            }
        }
        let quiet = first.wrapping_sub(base) as usize..told.wrapping_sub(base) as usize;
        let quiet = area.get_mut(quiet).unwrap_or(&mut []);
        any |= quiet.iter().any(|page| !page.is_null());
        quiet.fill(Id::NULL);
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
