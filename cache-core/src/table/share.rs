//! Rows that pass from one holder to another.

use super::{CHUNK_ENTRIES, Row, SHIFT, Tables};

impl Tables<'_> {
    /// Copies entries below `end` of one holder's row to another's, which is empty.
    pub(crate) fn copy_row(&mut self, from: u32, to: u32, group: u32, end: u32) -> bool {
        let mut chunk = self.rows.get(self.row(from, group)).head;
        while chunk != 0 {
            let link = self.links.get(chunk);
            let base = link.number << SHIFT;
            if base >= end {
                break;
            }
            if !self.has_pages(chunk, end.wrapping_sub(base)) {
                break; // a window's pages all lie behind the end
            }
            let copy = self.tail_for(to, group, link.number);
            if copy == 0 {
                return false;
            }
            let count = end.wrapping_sub(base).min(CHUNK_ENTRIES);
            self.entries.copy(u64::from(chunk << SHIFT), u64::from(copy << SHIFT), count);
            chunk = link.next.get();
        }
        self.set_first(to, group, self.first(from, group));
        self.set_sealed(to, group, self.sealed(from, group));
        true
    }

    /// Chunks that hold pages in entries below `end` of a row.
    pub(crate) fn chunks_below(&self, holder: u32, group: u32, end: u32) -> u32 {
        let below = self
            .chunks_of(holder, group)
            .take_while(|&(base, entries)| entries.iter().zip(base..end).any(|(page, _)| !page.is_null()));
        u32::try_from(below.count()).unwrap_or(u32::MAX)
    }

    /// Whether one of the first `count` entries of a chunk is a page.
    fn has_pages(&self, chunk: u32, count: u32) -> bool {
        let entries = self.entries.slice(u64::from(chunk << SHIFT), count.min(CHUNK_ENTRIES));
        entries.iter().any(|page| !page.is_null())
    }

    /// Moves the rows of one holder, all groups, to another whose rows are empty.
    pub(crate) fn hand_over(&mut self, from: u32, to: u32) {
        for group in 0..self.groups {
            let row = self.rows.get(self.row(from, group));
            self.rows.set(self.row(from, group), Row::default());
            self.rows.set(self.row(to, group), row);
        }
    }
}
