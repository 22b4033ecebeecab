//! A window's table as a ring: the shape of engines with a fixed number of columns.

use crate::cache::Cache;
use crate::error::Error;
use crate::ids::{GroupId, SequenceId};

/// How a window's pages lie in the ring that [`Cache::export_ring`] wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingReport {
    /// Columns with sink pages, at the start of the row.
    pub sinks: u32,
    /// First page of the sequence that the ring shows; page `i` is in column `sinks + i % ring`.
    pub first: u32,
    /// One past the last page.
    pub end: u32,
}

impl Cache<'_> {
    /// Pages of a ring that shows a window while up to `tokens` tokens are added: `ceil((W + tokens - 1) / P) + 1`.
    ///
    /// # Errors
    /// `Argument` when the group has no window.
    pub fn ring_pages(&self, group: GroupId, tokens: u32) -> Result<u32, Error> {
        let (_, group) = self.group(group)?;
        if group.is_full() {
            return Err(Error::Argument);
        }
        Ok(group.ring(tokens))
    }

    /// Writes one sequence's window as sink columns followed by a ring of `ring` columns; columns without a page are 0. Where
    /// the group is a fixed ring, `ring` is its number of columns and the row is what the sequence owns: it stays the same
    /// until the sequence is forked, emptied or closed, whatever the report says is valid in it.
    ///
    /// # Errors
    /// `Argument` for a group without a window or whose rows span two pools, a ring shorter than the resident pages or another
    /// than the fixed one; `ShortBuffer`; `Stale`.
    pub fn export_ring(&self, id: SequenceId, group: GroupId, ring: u32, out: &mut [i32]) -> Result<RingReport, Error> {
        let (index, group) = self.group(group)?;
        let holder = self.sequence(id)?;
        let sequence = self.holders.get(holder);
        let end = group.pages(self.written(sequence));
        if group.sealed_pool != 0 {
            return Err(Error::Argument);
        }
        let all_sinks = group.sink_pages(u32::MAX);
        let first = self.tables.first(holder, index).max(all_sinks).min(end.max(all_sinks));
        let is_fixed = group.is_ring();
        let is_other = is_fixed && ring != group.ring(group.ring_tokens);
        if group.is_full() || ring == 0 || is_other || end.saturating_sub(first) > ring {
            return Err(Error::Argument);
        }
        let need = all_sinks.saturating_add(ring);
        let Some(row) = out.get_mut(..need as usize) else { return Err(Error::ShortBuffer(need)) };
        let base = self.pages.pools.get(group.pool).base;
        let report = RingReport { sinks: all_sinks, first, end };
        if is_fixed {
            for (entry, slot) in (0..).zip(row.iter_mut()) {
                *slot = self.kernel_id(base, self.tables.get(holder, index, entry));
            }
            return Ok(report);
        }
        let (sinks, columns) = row.split_at_mut_checked(all_sinks as usize).ok_or(Error::Corrupt)?;
        columns.fill(0);
        for (entry, slot) in (0..).zip(sinks.iter_mut()) {
            *slot = self.kernel_id(base, self.tables.get(holder, index, entry));
        }
        for entry in first..end {
            let column = entry.checked_rem(ring).unwrap_or(0);
            if let Some(slot) = columns.get_mut(column as usize) {
                *slot = self.kernel_id(base, self.tables.get(holder, index, entry));
            }
        }
        Ok(report)
    }
}
