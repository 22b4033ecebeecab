//! Pages that a query may leave out: extremes of their keys by channel, and what a dot product cannot exceed.
//!
//! Invariant: the bound of a page is not below the dot product of any of its
//! keys as attention computes it. It is the same sequence of roundings with
//! each product replaced by one that is not smaller, and a rounded sum does not
//! shrink when a term grows: no slack is needed.
//!
//! Shapes: least and greatest `[columns][Hk][d]`, q `[n][H][d]`, bounds `[n][H][columns]`.

use super::element::{Element, check_array, with_element};
use super::isa::{Isa, per_isa};
use super::keys::live_slots;
use super::lanes::{LANES, load, tree_sum};
use super::pages::{Geometry, MAX_HEADS, RawPages, check_heads};
use super::slots::{RawSlots, Word};
use super::table::RawTable;
use crate::error::{Error, ensure};

/// Extremes by channel of the keys of live slots, for columns `begin..end` of a table row. A column without a live slot gets
/// +infinity and -infinity, a channel with a NaN gets NaN.
///
/// Complexity: O(columns * P * Hk * d).
///
/// # Errors
/// Any argument error; nothing has been written then.
///
/// # Safety
/// Non-NULL addresses are valid: the table for reads, `slots` for its rows and columns, the pages for reads where the table names
/// them, `least` and `greatest` for writes of `end` columns. No thread writes what is read or touches what is written.
#[allow(clippy::too_many_arguments)] // addresses and what they belong to
pub unsafe fn key_extremes_raw(
    pages: &RawPages,
    table: &RawTable,
    slots: &RawSlots,
    row: u32,
    (begin, end): (u32, u32),
    isa: Isa,
    least: *mut f32,
    greatest: *mut f32,
) -> Result<(), Error> {
    table.check()?;
    ensure(begin <= end, Error::Range)?;
    ensure(end <= table.stride, Error::Table)?;
    pages.check()?;
    let Geometry { page_tokens, kv_heads, head_dim, dtype, .. } = pages.geometry;
    let slot = |column: u32| column.checked_mul(page_tokens).ok_or(Error::Shape);
    // SAFETY: the caller's promise.
    let live = unsafe { live_slots(pages, table, slots, row, (slot(begin)?, slot(end)?)) }?;
    let floats = kv_heads as usize * head_dim as usize;
    check_array(least, (end - begin) as usize)?;
    check_array(greatest, (end - begin) as usize)?;
    for (array, x) in [(least, f32::INFINITY), (greatest, f32::NEG_INFINITY)] {
        for at in begin as usize * floats..end as usize * floats {
            // SAFETY: below `end` columns; the caller's promise.
            unsafe { array.add(at).write(x) };
        }
    }
    let isa = isa.resolved();
    let word = |word: Word| {
        let column = (word.begin >> page_tokens.trailing_zeros()) as usize;
        for head in 0..kv_heads {
            let at = (column * kv_heads as usize + head as usize) * head_dim as usize;
            // SAFETY: the column is below `end`, the page was checked; the set is resolved; the caller's promise.
            with_element!(dtype, E => unsafe { widen::<E>(isa, pages, &word, head, least.add(at), greatest.add(at)) });
        }
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { live.words(word) }
}

per_isa! {
    /// The slots of a word, for one head.
    ///
    /// # Safety
    /// As [`key_extremes_raw`], for d floats at `least` and `greatest`; `isa` is resolved.
    unsafe fn widen[E: Element][E](
        pages: &RawPages,
        word: &Word,
        head: u32,
        least: *mut f32,
        greatest: *mut f32,
    ) -> () {
        widen_body::<E, AVX2>(pages, word, head, least, greatest)
    }
}

/// # Safety
/// As [`widen`]; with `AVX2` the CPU has AVX2 and F16C.
#[inline(always)]
unsafe fn widen_body<E: Element, const AVX2: bool>(
    pages: &RawPages,
    word: &Word,
    head: u32,
    least: *mut f32,
    greatest: *mut f32,
) {
    let d = pages.geometry.head_dim as usize;
    let mut bits = word.bits;
    while bits != 0 {
        let slot = (word.begin + bits.trailing_zeros()) & (pages.geometry.page_tokens - 1);
        bits &= bits - 1;
        for at in (0..d).step_by(LANES) {
            let n = (d - at).min(LANES);
            // SAFETY: page, slot and head are in range, and at + n <= d; the caller's promise.
            let (k, least, greatest) = unsafe {
                let key = pages.k_row(word.entry as u32, slot, head).cast::<E>().add(at);
                let k = if n < LANES { E::load_tail(key, n) } else { load::<E, AVX2>(key) };
                let floats = |array: *mut f32| core::slice::from_raw_parts_mut(array.add(at), n);
                (k, floats(least), floats(greatest))
            };
            for ((least, greatest), k) in least.iter_mut().zip(greatest).zip(k) {
                // A NaN stays.
                *least = if k < *least || k.is_nan() { k } else { *least };
                *greatest = if k > *greatest || k.is_nan() { k } else { *greatest };
            }
        }
    }
}

/// Queries and the extremes of pages, by address.
#[derive(Clone, Copy, Debug)]
pub struct RawBounds {
    /// Instruction set; it changes no bit.
    pub isa: Isa,
    /// Query rows.
    pub n: u32,
    /// H, a multiple of Hk.
    pub heads: u32,
    /// Hk
    pub kv_heads: u32,
    /// d
    pub head_dim: u32,
    /// Columns.
    pub columns: u32,
    /// `[n][H][d]`
    pub q: *const f32,
    /// `[columns][Hk][d]`
    pub least: *const f32,
    /// `[columns][Hk][d]`
    pub greatest: *const f32,
}

/// What the dot product of each query with any key of each page cannot exceed: the sum over channels of the greater of
/// q * least and q * greatest. Columns without a live slot get -infinity; where a NaN comes up, the bound is +infinity.
///
/// Complexity: O(n * H * columns * d).
///
/// # Errors
/// [`Error::Shape`], [`Error::Null`], [`Error::Align`]; nothing has been written then.
///
/// # Safety
/// Non-NULL addresses are valid: those of `bounds` for reads, `out`, `[n][H][columns]`, for writes. No thread writes what is read or
/// touches what is written.
pub unsafe fn page_bounds_raw(bounds: &RawBounds, out: *mut f32) -> Result<(), Error> {
    let RawBounds { n, heads, kv_heads, head_dim, columns, .. } = *bounds;
    check_heads(kv_heads, head_dim)?;
    ensure((1..=MAX_HEADS).contains(&heads) && heads.checked_rem(kv_heads) == Some(0), Error::Shape)?;
    let results = n as usize * usize::from(columns > 0);
    check_array(bounds.q, results)?;
    check_array(bounds.least, results)?;
    check_array(bounds.greatest, results)?;
    check_array(out, results)?;
    let floats = u64::from(n.max(1)).checked_mul(u64::from(heads) * u64::from(columns));
    let pages = u64::from(columns).checked_mul(u64::from(kv_heads) * u64::from(head_dim));
    let queries = u64::from(n).checked_mul(u64::from(heads) * u64::from(head_dim));
    let limit = isize::MAX as u64 / 4;
    ensure([floats, pages, queries].iter().all(|n| n.is_some_and(|n| n <= limit)), Error::Shape)?;
    let group = heads.checked_div(kv_heads).unwrap_or(1).max(1) as usize;
    let (d, heads, columns) = (head_dim as usize, heads as usize, columns as usize);
    let isa = bounds.isa.resolved();
    for row in 0..n as usize {
        for head in 0..heads {
            let (at, kv_head) = (row * heads + head, head / group);
            for column in 0..columns {
                let page = (column * kv_heads as usize + kv_head) * d;
                // SAFETY: row and head are below n and H, the column below their number; the set is resolved; the caller's promise.
                unsafe {
                    let bound = bound(isa, bounds.q.add(at * d), bounds.least.add(page), bounds.greatest.add(page), d);
                    out.add(at * columns + column).write(bound);
                }
            }
        }
    }
    Ok(())
}

per_isa! {
    /// # Safety
    /// All three are valid for reads of d floats, d > 0; `isa` is resolved.
    unsafe fn bound(q: *const f32, least: *const f32, greatest: *const f32, d: usize) -> f32 {
        bound_body(q, least, greatest, d)
    }
}

/// # Safety
/// As [`bound`].
#[inline(always)]
unsafe fn bound_body(q: *const f32, least: *const f32, greatest: *const f32, d: usize) -> f32 {
    // SAFETY: the caller's promise.
    if unsafe { *least > *greatest } {
        return f32::NEG_INFINITY;
    }
    let mut sums = [0.0f32; LANES];
    for at in (0..d).step_by(LANES) {
        let n = (d - at).min(LANES);
        // SAFETY: at + n <= d; the caller's promise.
        let block =
            |x: *const f32| unsafe { if n < LANES { f32::load_tail(x.add(at), n) } else { f32::load(x.add(at)) } };
        let (q, least, greatest) = (block(q), block(least), block(greatest));
        for lane in 0..LANES {
            let (a, b) = (q[lane] * least[lane], q[lane] * greatest[lane]);
            // A NaN stays.
            sums[lane] += if a > b || a.is_nan() { a } else { b };
        }
    }
    let bound = tree_sum(&sums);
    if bound.is_nan() { f32::INFINITY } else { bound }
}
