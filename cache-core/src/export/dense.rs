//! Page tables as a dense matrix and as compressed rows.

use super::count;
use crate::cache::Cache;
use crate::error::Error;
use crate::ids::{GroupId, SequenceId};

/// What [`Cache::export_csr`] wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsrReport {
    /// Elements of `indices`.
    pub indices: u32,
}

impl Cache<'_> {
    /// Writes the tables of a group as `out[sequences][stride]`: page ids, 0 for dropped pages, `pad` behind the last.
    /// O(elements written).
    ///
    /// # Errors
    /// `ShortBuffer` with the elements needed; `Argument` when a row is longer than `stride` or there is no such group;
    /// `Stale`. Nothing is written then.
    pub fn export_dense(
        &self,
        sequences: &[SequenceId],
        group: GroupId,
        stride: u32,
        pad: i32,
        out: &mut [i32],
    ) -> Result<(), Error> {
        let (index, _) = self.group(group)?;
        let need = u64::from(stride).saturating_mul(sequences.len() as u64);
        if (out.len() as u64) < need {
            return Err(Error::ShortBuffer(u32::try_from(need).unwrap_or(u32::MAX)));
        }
        for &id in sequences {
            let sequence = self.holders.get(self.sequence(id)?);
            if self.row_end(index, sequence, self.written(sequence)) > stride {
                return Err(Error::Argument);
            }
        }
        if stride == 0 {
            return Ok(());
        }
        for (&id, row) in sequences.iter().zip(out.chunks_exact_mut(stride as usize)) {
            let holder = self.sequence(id)?;
            let sequence = self.holders.get(holder);
            let end = self.row_end(index, sequence, self.written(sequence));
            if let Some((entries, rest)) = row.split_at_mut_checked(end as usize) {
                self.write_row(holder, index, 0, end, entries);
                rest.fill(pad);
            }
        }
        Ok(())
    }

    /// Writes the tables of a group as compressed rows: row `i` is `indices[indptr[i]..indptr[i + 1]]`, and
    /// `last_page_len[i]` (`1..=P`) tells how many tokens its last page holds, 0 for an empty sequence. `indptr` has one
    /// element more than there are sequences. O(elements written).
    ///
    /// # Errors
    /// `ShortBuffer` with the elements that `indices` needs, or `indptr` and `last_page_len` if those are short;
    /// `Argument`; `Stale`. Nothing is written then.
    pub fn export_csr(
        &self,
        sequences: &[SequenceId],
        group: GroupId,
        indptr: &mut [i32],
        indices: &mut [i32],
        last_page_len: &mut [i32],
    ) -> Result<CsrReport, Error> {
        let (index, group) = self.group(group)?;
        if indptr.len() <= sequences.len() || last_page_len.len() < sequences.len() {
            return Err(Error::ShortBuffer(count(sequences.len()).saturating_add(1)));
        }
        let mut need = 0_u32;
        for &id in sequences {
            let sequence = self.holders.get(self.sequence(id)?);
            need = need.saturating_add(self.row_end(index, sequence, self.written(sequence)));
        }
        if count(indices.len()) < need {
            return Err(Error::ShortBuffer(need));
        }
        let mut at = 0_u32;
        let mut starts = indptr.iter_mut();
        for (&id, last) in sequences.iter().zip(last_page_len.iter_mut()) {
            let holder = self.sequence(id)?;
            let sequence = self.holders.get(holder);
            let len = self.written(sequence);
            let end = self.row_end(index, sequence, len);
            if let Some(start) = starts.next() {
                *start = i32::try_from(at).unwrap_or(i32::MAX);
            }
            let to = at.saturating_add(end);
            if let Some(row) = indices.get_mut(at as usize..to as usize) {
                self.write_row(holder, index, 0, end, row);
            }
            let mask = group.page_tokens().wrapping_sub(1);
            let used = if len == 0 { 0 } else { (len.wrapping_sub(1) & mask).wrapping_add(1) };
            *last = i32::try_from(used).unwrap_or(0);
            at = to;
        }
        if let Some(start) = starts.next() {
            *start = i32::try_from(at).unwrap_or(i32::MAX);
        }
        Ok(CsrReport { indices: at })
    }
}
