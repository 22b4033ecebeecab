//! Page tables and slots
//!
//! What kernels read, written into the caller's buffers, every element defined. They show committed tokens and, once a plan
//! is finished, those of the plan. Page ids are those of the group's pool; 0 is the NULL page, which stands for a page that
//! was dropped. The byte offset of a page is id * bytes per page, in 64 bits.

use kvfolio::{Error, RowDelta, RowQuery, SequenceId};

use crate::cache::{group_id, kvf_cache};
use crate::ptr;
use crate::short::needed;
use crate::status::{Status, answer, kvf_status};
use crate::types::{kvf_delta_report, kvf_ring_report, kvf_row_delta, kvf_row_query, kvf_seq};

/// Writes the rows of `n` sequences as a matrix out[n][stride]: page ids, and `pad` behind the last page of each row.
/// KVF_ERR_ARGUMENT when a row is longer than `stride`. `cap` is the length of `out` in elements.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_table_dense(
    cache: *const kvf_cache,
    group: u32,
    seqs: *const kvf_seq,
    n: usize,
    stride: u32,
    pad: i32,
    out: *mut i32,
    cap: usize,
) -> kvf_status {
    let write = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rules (a) and (b).
        let (seqs, out) = unsafe { (sequences(seqs, n)?, ptr::slice_mut(out, cap)?) };
        Ok(cache.cache.export_dense(seqs, group_id(group)?, stride, pad, out)?)
    };
    answer(write())
}

/// Writes the rows of `n` sequences in compressed form: row i is indices[indptr[i]] to indices[indptr[i + 1] - 1], and
/// last_page_len[i] (1 to P, 0 for an empty sequence) says how many tokens its last page holds. `indptr` has n + 1 elements,
/// `last_page_len` n. `n_indices` gets how many elements of `indices` are used, or on KVF_ERR_SHORT_BUFFER needed.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_table_csr(
    cache: *const kvf_cache,
    group: u32,
    seqs: *const kvf_seq,
    n: usize,
    indptr: *mut i32,
    last_page_len: *mut i32,
    indices: *mut i32,
    cap: usize,
    n_indices: *mut usize,
) -> kvf_status {
    let write = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rules (a) and (b).
        let (seqs, indptr, last, indices, n_indices) = unsafe {
            (
                sequences(seqs, n)?,
                ptr::slice_mut(indptr, n.saturating_add(1))?,
                ptr::slice_mut(last_page_len, n)?,
                ptr::slice_mut(indices, cap)?,
                ptr::out(n_indices)?,
            )
        };
        match cache.cache.export_csr(seqs, group_id(group)?, indptr, indices, last) {
            Ok(report) => n_indices.set(report.indices as usize),
            Err(error) => needed(Err(error), Some(n_indices))?,
        }
        Ok(())
    };
    answer(write())
}

/// Writes, for each token of the finished plan in the order of kvf_plan_add, its slot (page * P + offset) in a group and its
/// absolute position. Up to `cap`, the rest of `slots` becomes -1 (do not write) and the rest of `positions` 0. `n` gets the
/// number of tokens, also on KVF_ERR_SHORT_BUFFER. KVF_ERR_PLAN_STATE unless a plan is finished.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_table_slots(
    cache: *const kvf_cache,
    group: u32,
    slots: *mut i64,
    positions: *mut i32,
    cap: usize,
    n: *mut usize,
) -> kvf_status {
    let write = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        let (slots, positions, n) =
            // SAFETY: rules (a) and (b).
            unsafe { (ptr::slice_mut(slots, cap)?, ptr::slice_mut(positions, cap)?, ptr::out(n)?) };
        match cache.cache.export_slots(group_id(group)?, slots, positions) {
            Ok(count) => n.set(count as usize),
            Err(error) => needed(Err(error), Some(n))?,
        }
        Ok(())
    };
    answer(write())
}

/// Writes the rows that differ from what the caller's table shows. The caller keeps, for each row, the sequence in it and
/// the version that it shows (0 when the row's occupant changed). For each row that differs `rows` gets one element, and
/// `entries` the page ids from its `start` on, one row behind the other. `report` says how many, and the version
/// that all rows show afterwards. On KVF_ERR_SHORT_BUFFER `rows` and `entries` of the report both hold a length that is
/// enough for either buffer, and nothing else is written. O(queries + entries).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_table_changed(
    cache: *const kvf_cache,
    group: u32,
    queries: *const kvf_row_query,
    n: usize,
    rows: *mut kvf_row_delta,
    rows_cap: usize,
    entries: *mut i32,
    entries_cap: usize,
    report: *mut kvf_delta_report,
) -> kvf_status {
    let write = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rules (a) and (b); `types` asserts that both records have the core's layout, and any bits are valid.
        let (queries, rows, entries, report) = unsafe {
            (
                ptr::slice(queries.cast::<RowQuery>(), n)?,
                ptr::slice_mut(rows.cast::<RowDelta>(), rows_cap)?,
                ptr::slice_mut(entries, entries_cap)?,
                ptr::output(report)?,
            )
        };
        let empty = kvf_delta_report { struct_size: 0, rows: 0, entries: 0, reserved: 0, version: 0 };
        match cache.cache.export_changed(queries, group_id(group)?, rows, entries) {
            Ok(done) => {
                let version = done.version;
                report.set(&kvf_delta_report { rows: done.rows, entries: done.entries, version, ..empty });
                Ok(())
            }
            Err(error) => {
                if let Error::ShortBuffer(need) = error {
                    report.set(&kvf_delta_report { rows: need, entries: need, ..empty });
                }
                Err(error.into())
            }
        }
    };
    answer(write())
}

/// `pages` gets the columns of a ring that shows a window group while up to `tokens` tokens are added:
/// ceil((window + tokens - 1) / P) + 1. KVF_ERR_ARGUMENT for a group without a window.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_table_ring_pages(
    cache: *const kvf_cache,
    group: u32,
    tokens: u32,
    pages: *mut u32,
) -> kvf_status {
    let count = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rule (a).
        let pages = unsafe { ptr::out(pages) }?;
        pages.set(cache.cache.ring_pages(group_id(group)?, tokens)?);
        Ok(())
    };
    answer(count())
}

/// Writes a sequence's window as sink columns followed by a ring of `ring` columns; columns without a page are 0.
/// Where the group is a fixed ring, `ring` is its number of columns and the row is what the sequence owns.
/// KVF_ERR_ARGUMENT for a group without a window, when more pages are resident than the ring has columns, or when a fixed
/// ring has another number of them.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_table_ring(
    cache: *const kvf_cache,
    seq: kvf_seq,
    group: u32,
    ring: u32,
    out: *mut i32,
    cap: usize,
    report: *mut kvf_ring_report,
) -> kvf_status {
    let write = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rules (a) and (b).
        let (out, report) = unsafe { (ptr::slice_mut(out, cap)?, ptr::output(report)?) };
        let done = cache.cache.export_ring(SequenceId::from_bits(seq), group_id(group)?, ring, out)?;
        report.set(&kvf_ring_report { struct_size: 0, sinks: done.sinks, first: done.first, end: done.end });
        Ok(())
    };
    answer(write())
}

/// Handles of sequences, which are transparent u64 in the core.
///
/// # Safety
/// Rule (a), for as long as they are used.
unsafe fn sequences<'a>(seqs: *const kvf_seq, n: usize) -> Result<&'a [SequenceId], Status> {
    // SAFETY: the caller's.
    unsafe { ptr::slice(seqs.cast(), n) }
}
