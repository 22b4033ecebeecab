//! What kernels read: tables, slots, deltas, written into the caller's buffers, every element defined.
//!
//! An export shows committed tokens and, once a plan is finished, those of the plan. A buffer that is too short is left
//! as it was.

mod delta;
mod dense;
mod ring;
mod slots;

pub use delta::{DeltaReport, RowDelta, RowQuery};
pub use dense::CsrReport;
pub use ring::RingReport;

use crate::cache::Cache;
use crate::group::Group;
use crate::pages::NULL;
use crate::sequence::Sequence;
use crate::table::SealedColumns;

impl Cache<'_> {
    /// Tokens of a sequence with slots: committed ones and those of the finished plan.
    pub(crate) fn written(&self, sequence: &Sequence) -> u32 {
        if !self.plan.is_finished() || sequence.plan == 0 {
            return sequence.len;
        }
        sequence.len.saturating_add(self.plan.entries.get(sequence.plan.saturating_sub(1)).count)
    }

    /// Entries of a row that hold `len` tokens. The hidden anchor's row ends where the sequence becomes opaque.
    pub(crate) fn row_end(&self, index: u32, sequence: &Sequence, len: u32) -> u32 {
        let group = self.groups.get(index);
        if !self.limits.is_hidden() || index != self.limits.anchor {
            return group.pages(len);
        }
        let entry = self.plan.entries.get(sequence.plan.saturating_sub(1));
        let grows = self.plan.is_finished() && sequence.plan != 0 && entry.flags & crate::plan::NO_NODE == 0;
        let known = if grows && sequence.known == sequence.len { len } else { sequence.known };
        group.pages(len.min(known))
    }

    /// Entries that the row itself has at `len` tokens: those of a fixed ring are its columns.
    pub(crate) fn stored_end(&self, index: u32, sequence: &Sequence, len: u32) -> u32 {
        let group = self.groups.get(index);
        if group.is_ring() { group.entries(len) } else { self.row_end(index, sequence, len) }
    }

    pub(crate) fn anchor_end(&self, sequence: &Sequence, len: u32) -> u32 {
        self.stored_end(self.limits.anchor, sequence, len)
    }

    /// The page of an entry of the table, NULL where it is dropped. The entry is below the table's end.
    pub(crate) fn page_of(&self, holder: u32, index: u32, group: &Group, entry: u32) -> u32 {
        let is_dropped =
            group.is_ring() && entry >= group.sink_pages(u32::MAX) && entry < self.tables.first(holder, index);
        if is_dropped { NULL } else { self.tables.get(holder, index, group.entry_of(entry)) }
    }

    /// A page as kernels see it: its number in its pool, 0 for NULL.
    pub(crate) fn kernel_id(&self, base: u32, page: u32) -> i32 {
        if page == NULL { 0 } else { i32::try_from(page.saturating_sub(base)).unwrap_or(0) }
    }

    /// Writes entries `from..end` of a row to a slice of that length.
    pub(crate) fn write_row(&self, holder: u32, index: u32, from: u32, end: u32, out: &mut [i32]) {
        let group = self.groups.get(index);
        let base = self.pages.pools.get(group.pool).base;
        let has_sealed = group.sealed_pool != 0;
        let (sealed, sealed_base) = match has_sealed {
            true => {
                let pool = self.pages.pools.get(group.sealed_pool.saturating_sub(1));
                (group.sealed_columns(self.tables.sealed(holder, index)), pool.base)
            }
            false => (SealedColumns::default(), base),
        };
        out.fill(0);
        if group.is_ring() {
            for (entry, slot) in (from..end).zip(out.iter_mut()) {
                *slot = self.kernel_id(base, self.page_of(holder, index, &group, entry));
            }
            return;
        }
        for (first, entries) in self.tables.chunks_from(holder, index, from) {
            if first >= end {
                break;
            }
            let skip = from.saturating_sub(first);
            let to = first.max(from).saturating_sub(from);
            let count = end.saturating_sub(first.max(from));
            let entries = entries.get(skip as usize..).unwrap_or(&[]);
            let out = out.get_mut(to as usize..).unwrap_or(&mut []);
            let numbered = (first.max(from)..).zip(entries).take(count as usize);
            for (slot, (entry, page)) in out.iter_mut().zip(numbered) {
                *slot =
                    self.kernel_id(if has_sealed && sealed.contains(entry) { sealed_base } else { base }, page.get());
            }
        }
    }
}

/// A length as `u32`; slices never hold more here.
pub(crate) fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
