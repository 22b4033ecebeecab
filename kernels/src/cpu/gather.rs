//! Move tokens of a table row to contiguous rows, and back.
//!
//! Invariant: every page of the range is checked before the first write.
//!
//! Shapes: k and v `[end - begin][Hk][d]` f32.

use super::element::{check_array, load_row, store_row, with_element};
use super::pages::RawPages;
use super::table::{RawTable, Row};
use crate::error::{Error, ensure};

/// Read tokens `begin..end` of a table row as floats.
///
/// # Errors
/// [`Error::Null`], [`Error::Align`], [`Error::Range`], [`Error::Table`], [`Error::Page`],
/// [`Error::NullPage`], or those of [`RawPages::check`].
///
/// # Safety
/// Non-NULL addresses are valid: the table for reads, the pages for reads where the table names
/// them, `k` and `v` for writes. No thread writes what is read or touches what is written.
pub unsafe fn gather_raw(
    pages: &RawPages,
    table: &RawTable,
    row: u32,
    tokens: (u32, u32),
    k: *mut f32,
    v: *mut f32,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let row = unsafe { check(pages, table, row, tokens, k, v) }?;
    with_element!(pages.geometry.dtype, E => {
        // SAFETY: checked; the caller's promise. `rows` gives addresses of d elements each.
        unsafe {
            rows(pages, row, tokens, |at, d, k_row, v_row| {
                load_row::<E>(k_row.cast(), k.add(at), d);
                load_row::<E>(v_row.cast(), v.add(at), d);
            })
        }
    });
    Ok(())
}

/// Write floats to tokens `begin..end` of a table row.
///
/// # Errors
/// As [`gather_raw`].
///
/// # Safety
/// As [`gather_raw`], with `k` and `v` for reads and the pages for writes.
pub unsafe fn scatter_raw(
    pages: &RawPages,
    table: &RawTable,
    row: u32,
    tokens: (u32, u32),
    k: *const f32,
    v: *const f32,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let row = unsafe { check(pages, table, row, tokens, k, v) }?;
    with_element!(pages.geometry.dtype, E => {
        // SAFETY: checked; the caller's promise. `rows` gives addresses of d elements each.
        unsafe {
            rows(pages, row, tokens, |at, d, k_row, v_row| {
                store_row::<E>(k.add(at), k_row.cast(), d);
                store_row::<E>(v.add(at), v_row.cast(), d);
            })
        }
    });
    Ok(())
}

/// # Safety
/// If not NULL, the table is valid for reads.
unsafe fn check(
    pages: &RawPages,
    table: &RawTable,
    row: u32,
    tokens: (u32, u32),
    k: *const f32,
    v: *const f32,
) -> Result<Row, Error> {
    let (begin, end) = tokens;
    pages.check()?;
    table.check()?;
    ensure(begin <= end && end <= i32::MAX as u32, Error::Range)?;
    check_array(k, (end - begin) as usize)?;
    check_array(v, (end - begin) as usize)?;
    // SAFETY: the table was checked; the caller's promise.
    let row = unsafe { table.row(row as i64, end as u64, pages.geometry.page_tokens) }?;
    // SAFETY: the row has columns for all tokens below `end`.
    for run in unsafe { row.runs(begin, end) } {
        pages.page(run.entry as i64)?;
    }
    Ok(row)
}

/// Call `f(at, d, k_row, v_row)` for each token and head; `at` counts floats of k and v.
///
/// # Safety
/// The arguments passed `check`.
#[inline(always)]
unsafe fn rows(pages: &RawPages, row: Row, tokens: (u32, u32), mut f: impl FnMut(usize, usize, *mut u8, *mut u8)) {
    let d = pages.geometry.head_dim as usize;
    let mut at = 0;
    // SAFETY: the caller's promise.
    for run in unsafe { row.runs(tokens.0, tokens.1) } {
        for slot in run.slot..run.slot + run.tokens {
            for head in 0..pages.geometry.kv_heads {
                // SAFETY: the entry is in 1..=N, slot < P, head < Hk.
                let (k, v) = unsafe {
                    let page = run.entry as u32;
                    (pages.k_row(page, slot, head), pages.v_row(page, slot, head))
                };
                f(at, d, k, v);
                at += d;
            }
        }
    }
}
