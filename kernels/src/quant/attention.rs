//! Attention over rows that span exact and quantised pages.
//!
//! Invariant: as for exact pages, the mask, the table and the split alone decide what is read, and everything is checked before the
//! first output is written. Values that cannot be decoded, which no encoder writes, count as NaN.

use super::part::{Part, Place};
use super::rows;
use super::view::{Quant, RawQuant};
use crate::cpu::{
    AttentionParams, Chunk, Dtype, Heads, Isa, LANES, Mask, RawPages, RawQueries, RawTable, RawWork, Row, Rows, Run,
    Source, attention_scratch, with_element,
};
use crate::error::{Error, ensure};

/// Which columns of each table row are quantised pages.
#[derive(Clone, Copy, Debug)]
pub struct RawSplit {
    /// First one, `[table rows]`; NULL = 0.
    pub begin: *const u32,
    /// One past the last, `[table rows]`; NULL = all are.
    pub end: *const u32,
}

impl RawSplit {
    /// # Safety
    /// Non-NULL addresses are aligned and valid for `row`.
    unsafe fn of(&self, row: u32) -> (u32, u32) {
        // SAFETY: the caller's promise.
        let at = |list: *const u32, none| if list.is_null() { none } else { unsafe { *list.add(row as usize) } };
        (at(self.begin, 0), at(self.end, u32::MAX))
    }
}

/// Floats of scratch that are enough for positions below `max_tokens`.
///
/// # Errors
/// [`Error::Shape`], [`Error::Value`], or those of the view.
///
/// # Safety
/// Non-NULL scales are valid for reads.
pub unsafe fn attention_quant_scratch(
    pages: &RawQuant<'_>,
    params: &AttentionParams<'_>,
    max_tokens: u32,
) -> Result<u64, Error> {
    // SAFETY: the caller's promise.
    let quant = unsafe { pages.checked() }?;
    Ok(attention_scratch(quant.heads, params, max_tokens)? + buffer_floats(&quant))
}

/// Rows that are decoded at a time.
fn buffer_rows(quant: &Quant<'_>) -> u32 {
    quant.block_tokens().max(LANES as u32)
}

fn buffer_floats(quant: &Quant<'_>) -> u64 {
    u64::from(buffer_rows(quant)) * quant.dim as u64
}

/// Attention over pages of two pools. Without `exact` every page must be quantised.
///
/// Complexity: O(rows * heads * tokens read * d), and for each 4 query heads of a KV head, or less, the decoding of the row's
/// quantised tokens; the tables of the rows are read twice more.
///
/// # Errors
/// Any argument error; nothing has been written then.
///
/// # Safety
/// As [`attention_raw`](crate::cpu::attention_raw) for both views, and the split is valid for the table's rows.
pub unsafe fn attention_quant_raw(
    exact: Option<&RawPages>,
    pages: &RawQuant<'_>,
    split: &RawSplit,
    table: &RawTable,
    params: &AttentionParams<'_>,
    queries: &RawQueries,
    work: &RawWork,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let quant = unsafe { pages.checked() }?;
    if let Some(exact) = exact {
        quant.check_exact(exact)?;
    }
    table.check()?;
    params.check(quant.heads)?;
    queries.check()?;
    work.check(queries.n, params.heads)?;
    ensure(split.begin.is_aligned() && split.end.is_aligned(), Error::Align)?;
    let buffer = buffer_floats(&quant);
    ensure(work.scratch_floats >= buffer, Error::Scratch)?;
    let logits = RawWork { scratch_floats: work.scratch_floats - buffer, ..*work };
    let heads = Heads::new(quant.heads, quant.dim as u32, params);
    let isa = params.isa.resolved();
    let row_of = |row: u32| {
        // SAFETY: row < n; the caller's promise.
        let mask = params.mask(unsafe { queries.position(row) });
        // SAFETY: as above.
        let index = if mask.end == 0 { 0 } else { unsafe { queries.table_row(row) } };
        // SAFETY: the caller's promise.
        let table_row = unsafe { table.row(index, u64::from(mask.end), quant.page_tokens) }?;
        // SAFETY: the index was checked to be a row of the table.
        let (begin, end) = unsafe { split.of(index as u32) };
        let row = SplitRow { exact, quant: &quant, table_row, mask, begin, end, isa, buffer: core::ptr::null_mut() };
        // SAFETY: the row has columns for all tokens of the mask.
        Ok((row, unsafe { row.check() }?))
    };
    for row in work.rows.0..work.rows.1 {
        logits.check_scratch(heads.group, row_of(row)?.1)?;
    }
    for row in work.rows.0..work.rows.1 {
        let (source, tokens) = row_of(row)?;
        // SAFETY: the scratch holds the logits and then the buffer.
        let source = SplitRow { buffer: unsafe { work.scratch.add(logits.scratch_floats as usize) }, ..source };
        let dtype = exact.map_or(Dtype::F32, |exact| exact.geometry.dtype);
        // SAFETY: all of it was checked, the scratch for this number of tokens; the caller's promise.
        with_element!(dtype, E => unsafe {
            heads.attend::<E>(&source, tokens as usize, queries, row, &logits)
        });
    }
    Ok(())
}

/// A query row over pages of two pools.
#[derive(Clone, Copy)]
struct SplitRow<'a> {
    exact: Option<&'a RawPages>,
    quant: &'a Quant<'a>,
    table_row: Row,
    mask: Mask,
    begin: u32,
    end: u32,
    /// Resolved.
    isa: Isa,
    /// [`buffer_floats`]
    buffer: *mut f32,
}

impl SplitRow<'_> {
    #[inline(always)]
    fn is_quant(&self, run: &Run) -> bool {
        (self.begin..self.end).contains(&run.column)
    }

    /// The number of tokens read, once their pages are found to exist.
    ///
    /// # Safety
    /// As [`Row::readable`].
    unsafe fn check(&self) -> Result<u32, Error> {
        let page = |run: &Run| match self.exact {
            _ if self.is_quant(run) => self.quant.id(i64::from(run.entry)),
            Some(exact) => exact.page(i64::from(run.entry)),
            None => Err(Error::Page),
        };
        // SAFETY: the caller's promise.
        unsafe { self.table_row.check(self.mask, page) }
    }

    /// Tokens `from..to` of a page, a buffer at a time.
    ///
    /// # Safety
    /// The buffer is valid.
    #[inline(always)]
    unsafe fn decode(
        &self,
        part: &Part<'_>,
        page: &[u8],
        head: u32,
        (from, to): (u32, u32),
        first: usize,
        f: &mut impl FnMut(usize, Chunk),
    ) {
        let d = self.quant.dim;
        let place = Place { layer: self.quant.layer, head };
        let step = buffer_rows(self.quant);
        let block = part.block_tokens().max(1);
        let mut at = from;
        while at < to {
            // Whole blocks are decoded; those that no query reads are left out.
            let begin = at - at % block;
            let end = to.next_multiple_of(block).min(begin + step);
            // SAFETY: at most `step` rows, which the buffer holds.
            let rows = unsafe { core::slice::from_raw_parts_mut(self.buffer, (end - begin) as usize * d) };
            // SAFETY: the set was resolved.
            if unsafe { rows::read(self.isa, part, page, place, begin..end, rows) }.is_err() {
                rows.fill(f32::NAN);
            }
            let end = end.min(to);
            // SAFETY: row `at` is in the buffer.
            let base = unsafe { self.buffer.add((at - begin) as usize * d) }.cast_const().cast();
            let tokens = (end - at) as usize;
            f(first + (at - from) as usize, Chunk::Decoded(Rows { base, stride: d as u64 * 4, tokens }));
            at = end;
        }
    }
}

impl Source for SplitRow<'_> {
    #[inline(always)]
    unsafe fn each(&self, is_k: bool, head: u32, mut f: impl FnMut(usize, Chunk)) {
        let part = if is_k { &self.quant.k } else { &self.quant.v };
        let mut first = 0;
        // SAFETY: the caller's promise.
        for run in unsafe { self.table_row.readable(self.mask) } {
            let tokens = run.tokens as usize;
            if self.is_quant(&run) {
                // SAFETY: the entry was checked to be in 1..=N.
                let page = unsafe { self.quant.page(run.entry as u32) };
                // SAFETY: the caller's promise.
                unsafe { self.decode(part, page, head, (run.slot, run.slot + run.tokens), first, &mut f) };
            } else if let Some(exact) = self.exact {
                // SAFETY: the entry was checked to be in 1..=N; slot and head are in range.
                let (base, stride) = unsafe { exact.row(is_k, run.entry as u32, run.slot, head) };
                f(first, Chunk::Stored(Rows { base, stride, tokens }));
            }
            first += tokens;
        }
    }
}
