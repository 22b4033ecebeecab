//! Read quantised tokens as floats, and copy pages.

use super::part::Place;
use super::rows;
use super::view::{RawQuant, check_scratch, encode_scratch, error};
use crate::cpu::{Isa, PageCopy, RawTable, check_array};
use crate::error::{Error, ensure};

/// Read tokens `begin..end` of a table row, all of whose pages are quantised. Where groups lie along tokens the range
/// begins and ends at groups.
///
/// Shapes: k and v `[end - begin][Hk][d]`; scratch: one head of a page, [`encode_scratch`](super::encode_scratch).
///
/// # Errors
/// [`Error::Range`], [`Error::Table`], [`Error::Page`], [`Error::NullPage`], [`Error::Scale`] where a page holds what no encoder
/// writes (rows before it are written then), [`Error::Scratch`], or those of the view.
///
/// # Safety
/// Non-NULL addresses are valid: scales for reads, the table for reads, the pages for reads where the table names them, `k`, `v` and `scratch`
/// for writes. No thread writes what is read or touches what is written.
#[allow(clippy::too_many_arguments)] // addresses with their lengths
pub unsafe fn gather_quant_raw(
    pages: &RawQuant<'_>,
    isa: Isa,
    table: &RawTable,
    row: u32,
    tokens: (u32, u32),
    k: *mut f32,
    v: *mut f32,
    scratch: (*mut f32, u64),
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let quant = unsafe { pages.checked() }?;
    let (begin, end) = tokens;
    table.check()?;
    ensure(begin <= end && end <= i32::MAX as u32, Error::Range)?;
    ensure(begin.is_multiple_of(quant.block_tokens()) && end.is_multiple_of(quant.block_tokens()), Error::Range)?;
    check_array(k, (end - begin) as usize)?;
    check_array(v, (end - begin) as usize)?;
    check_scratch(scratch.0, scratch.1, encode_scratch(pages.layout))?;
    // SAFETY: the table was checked; the caller's promise.
    let row = unsafe { table.row(i64::from(row), u64::from(end), quant.page_tokens) }?;
    // SAFETY: the row has columns for all tokens below `end`.
    for run in unsafe { row.runs(begin, end) } {
        quant.id(i64::from(run.entry))?;
    }
    let (isa, mut first) = (isa.resolved(), 0);
    // SAFETY: as above.
    for run in unsafe { row.runs(begin, end) } {
        // SAFETY: the id was checked; the caller's promise.
        let page = unsafe { quant.page(run.entry as u32) };
        let n = run.tokens as usize * quant.dim;
        // SAFETY: a run has at most P tokens, and the scratch holds so many rows.
        let rows = unsafe { core::slice::from_raw_parts_mut(scratch.0, n) };
        for head in 0..quant.heads {
            for (part, out) in [(&quant.k, k), (&quant.v, v)] {
                let place = Place { layer: quant.layer, head };
                let tokens = run.slot..run.slot + run.tokens;
                // SAFETY: it was resolved.
                unsafe { rows::read(isa, part, page, place, tokens, rows) }.map_err(error)?;
                for (token, x) in rows.chunks_exact(quant.dim.max(1)).enumerate() {
                    let at = ((first + token) * quant.heads as usize + head as usize) * quant.dim;
                    // SAFETY: first + token < end - begin, head < Hk.
                    unsafe { core::ptr::copy_nonoverlapping(x.as_ptr(), out.add(at), quant.dim) };
                }
            }
        }
        first += run.tokens as usize;
    }
    Ok(())
}

/// Copy pages in list order (copy-on-write), as bytes: the layer whole, whatever `tokens` says, so that groups stay whole.
///
/// # Errors
/// [`Error::Page`], [`Error::NullPage`], [`Error::Tokens`] for more than P tokens or a page onto itself, or those of the view.
///
/// # Safety
/// Non-NULL addresses are valid: scales for reads, `copies` for n reads, the pages named for reads and writes. No thread touches them.
pub unsafe fn copy_quant_raw(pages: &RawQuant<'_>, copies: *const PageCopy, n: usize) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let quant = unsafe { pages.checked() }?;
    check_array(copies, n)?;
    // SAFETY: the caller's promise.
    let copies = if n == 0 { &[] } else { unsafe { core::slice::from_raw_parts(copies, n) } };
    for copy in copies {
        quant.id(i64::from(copy.src))?;
        quant.id(i64::from(copy.dst))?;
        ensure(copy.tokens <= quant.page_tokens && copy.src != copy.dst, Error::Tokens)?;
    }
    let layer = pages.layout.layer_bytes as usize;
    let range = quant.layer as usize * layer..(quant.layer as usize + 1) * layer;
    for copy in copies {
        // SAFETY: both ids were checked and differ; the caller's promise.
        let (from, to) = unsafe { (quant.page(copy.src), quant.page_mut(copy.dst)) };
        if let (Some(from), Some(to)) = (from.get(range.clone()), to.get_mut(range.clone())) {
            to.copy_from_slice(from);
        }
    }
    Ok(())
}
