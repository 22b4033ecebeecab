//! Only what changed since the last export.
//!
//! Stateless: each sequence carries the version of its last table change, and the caller says which version each row of its
//! table shows. A row whose occupant changed is asked for with version 0 and comes whole.

use super::count;
use crate::cache::Cache;
use crate::error::Error;
use crate::ids::{GroupId, SequenceId};

/// One row of the caller's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RowQuery {
    /// Its occupant.
    pub sequence: SequenceId,
    /// Version that the row shows; 0 = nothing of this sequence.
    pub since: u64,
}

/// A row that changed: its entries from `start` on are `count` elements of the entry buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RowDelta {
    /// Index of the query.
    pub row: u32,
    /// First entry that may differ.
    pub start: u32,
    /// Entries written; what the row showed behind them is void.
    pub count: u32,
}

/// What [`Cache::export_changed`] wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeltaReport {
    /// Rows that changed.
    pub rows: u32,
    /// Entries of these rows.
    pub entries: u32,
    /// Version that all rows show once the deltas are applied.
    pub version: u64,
}

impl Cache<'_> {
    /// Writes the rows of a group that differ from what the caller shows. O(queries + entries written).
    ///
    /// # Errors
    /// `ShortBuffer` with the larger of the rows and entries needed; `Argument`; `Stale`. Nothing is written then.
    pub fn export_changed(
        &self,
        queries: &[RowQuery],
        group: GroupId,
        rows: &mut [RowDelta],
        entries: &mut [i32],
    ) -> Result<DeltaReport, Error> {
        let (index, _) = self.group(group)?;
        let mut report = DeltaReport { version: self.version, ..DeltaReport::default() };
        for (row, query) in (0..).zip(queries) {
            if let Some((delta, _)) = self.delta(index, row, query)? {
                report.rows = report.rows.saturating_add(1);
                report.entries = report.entries.saturating_add(delta.count);
            }
        }
        if count(rows.len()) < report.rows || count(entries.len()) < report.entries {
            return Err(Error::ShortBuffer(report.rows.max(report.entries)));
        }
        let mut at = 0_usize;
        let mut out = rows.iter_mut();
        for (row, query) in (0..).zip(queries) {
            let Some((delta, holder)) = self.delta(index, row, query)? else { continue };
            let end = at.saturating_add(delta.count as usize);
            if let (Some(slot), Some(entries)) = (out.next(), entries.get_mut(at..end)) {
                *slot = delta;
                self.write_row(holder, index, delta.start, delta.start.saturating_add(delta.count), entries);
            }
            at = end;
        }
        Ok(report)
    }

    fn delta(&self, index: u32, row: u32, query: &RowQuery) -> Result<Option<(RowDelta, u32)>, Error> {
        let holder = self.sequence(query.sequence)?;
        let sequence = self.holders.get(holder);
        if query.since >= sequence.version {
            return Ok(None);
        }
        let end = self.row_end(index, sequence, self.written(sequence));
        let is_next = query.since >= sequence.previous && query.since > 0;
        let start = if is_next { (sequence.stable >> self.groups.get(index).shift).min(end) } else { 0 };
        Ok(Some((RowDelta { row, start, count: end.saturating_sub(start) }, holder)))
    }
}
