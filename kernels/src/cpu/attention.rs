//! Attention of query rows over pages: decode and chunked prefill in one.
//!
//! Invariant: the mask and the table alone decide which tokens are read, and
//! everything is checked before the first output is written.

use super::element::with_element;
use super::lanes::Rows;
use super::mask::Mask;
use super::pages::RawPages;
use super::query::{AttentionParams, RawQueries, RawWork};
use super::table::{RawTable, Row};
use super::tile::{Chunk, Heads, Source};
use crate::error::Error;

/// Attention over pages.
///
/// Complexity: O(rows * heads * tokens read * d); the tables of the rows are read twice more.
///
/// # Errors
/// Any argument error; nothing has been written then.
///
/// # Safety
/// Non-NULL addresses are valid for the sizes given: `pages` for reads of pages 1..=N wherever a
/// table names them, `out`, `lse` and `scratch` for writes. `out` and `lse` are written only in
/// the share of `work`. What is written overlaps nothing that is read, and no other thread
/// writes what is read or touches what is written.
pub unsafe fn attention_raw(
    pages: &RawPages,
    table: &RawTable,
    params: &AttentionParams<'_>,
    queries: &RawQueries,
    work: &RawWork,
) -> Result<(), Error> {
    let geometry = &pages.geometry;
    pages.check()?;
    table.check()?;
    params.check(geometry.kv_heads)?;
    queries.check()?;
    work.check(queries.n, params.heads)?;
    let head = Heads::new(geometry.kv_heads, geometry.head_dim, params);
    for row in work.rows.0..work.rows.1 {
        // SAFETY: row < n; the caller's promise.
        let tokens = unsafe { read_row(pages, table, params, queries, row) }?.2;
        work.check_scratch(head.group, tokens)?;
    }
    for row in work.rows.0..work.rows.1 {
        // SAFETY: as above.
        let (table_row, mask, tokens) = unsafe { read_row(pages, table, params, queries, row) }?;
        let run = PagedRow { pages, table_row, mask };
        // SAFETY: all of it was checked, the scratch for this number of tokens; the caller's promise.
        with_element!(geometry.dtype, E => unsafe {
            head.attend::<E>(&run, tokens as usize, queries, row, work)
        });
    }
    Ok(())
}

/// Table row and mask of a query row, and the number of tokens that it reads.
///
/// # Safety
/// As [`attention_raw`]; the arguments passed their checks and row < n.
unsafe fn read_row(
    pages: &RawPages,
    table: &RawTable,
    params: &AttentionParams<'_>,
    queries: &RawQueries,
    row: u32,
) -> Result<(Row, Mask, u32), Error> {
    // SAFETY: the caller's promise.
    let mask = params.mask(unsafe { queries.position(row) });
    // SAFETY: the caller's promise.
    let index = unsafe { queries.table_row(row) };
    // A padding row needs no table row.
    let index = if mask.end == 0 { 0 } else { index };
    // SAFETY: the caller's promise.
    let table_row = unsafe { table.row(index, mask.end as u64, pages.geometry.page_tokens) }?;
    // SAFETY: the row has columns for all tokens below mask.end.
    let tokens = unsafe { table_row.check(mask, |run| pages.page(i64::from(run.entry))) }?;
    Ok((table_row, mask, tokens))
}

/// A query row over pages.
struct PagedRow<'a> {
    pages: &'a RawPages,
    table_row: Row,
    mask: Mask,
}

impl Source for PagedRow<'_> {
    #[inline(always)]
    unsafe fn each(&self, is_k: bool, head: u32, mut f: impl FnMut(usize, Chunk)) {
        let mut first = 0;
        // SAFETY: the caller's promise.
        for run in unsafe { self.table_row.readable(self.mask) } {
            // SAFETY: the entry was checked to be in 1..=N; slot and head are in range.
            let (base, stride) = unsafe { self.pages.row(is_k, run.entry as u32, run.slot, head) };
            let tokens = run.tokens as usize;
            f(first, Chunk::Stored(Rows { base, stride, tokens }));
            first += tokens;
        }
    }
}
