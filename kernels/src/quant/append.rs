//! Write new keys and values to quantised slots.
//!
//! Invariant: all slots and values are checked before the first byte is written.
//!
//! Shapes: k and v `[n][Hk][d]` f32, slots `[n]`; slot = page * P + offset, -1 = do not write.

use kvfolio::quant::NonFinite;

use super::part::{Part, Place};
use super::rows;
use super::view::{Quant, RawQuant, check_scratch, encode_scratch, error};
use crate::cpu::{Isa, check_array};
use crate::error::{Error, ensure};

/// Append `n` rows to pages whose groups lie along channels. If a slot occurs twice the later row stays. Rotating overflows only
/// from values near the greatest f32; such groups are saturated.
///
/// # Errors
/// [`Error::Null`], [`Error::Align`], [`Error::Slot`], [`Error::Layout`] also for groups along tokens, [`Error::NonFinite`]
/// under [`NonFinite::Reject`], [`Error::Scratch`], or those of the view.
///
/// # Safety
/// Non-NULL addresses are valid: scales for reads, `k`, `v` for reads of n * Hk * d floats, `slots` for n reads, `scratch` for writes, and the
/// pages for writes where a slot names them. No thread touches what is written, and nothing written overlaps what is read.
#[allow(clippy::too_many_arguments)] // addresses with their lengths
pub unsafe fn append_quant_raw(
    pages: &RawQuant<'_>,
    isa: Isa,
    on: NonFinite,
    k: *const f32,
    v: *const f32,
    slots: *const i64,
    n: usize,
    scratch: (*mut f32, u64),
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let quant = unsafe { pages.checked() }?;
    ensure(quant.block_tokens() == 1, Error::Layout)?;
    check_array(k, n)?;
    check_array(v, n)?;
    check_array(slots, n)?;
    check_scratch(scratch.0, scratch.1, encode_scratch(pages.layout))?;
    let row = quant.heads as usize * quant.dim;
    for at in 0..n {
        // SAFETY: at < n; the caller's promise.
        let slot = unsafe { *slots.add(at) };
        if slot == -1 {
            continue;
        }
        quant.place(slot)?;
        // SAFETY: at < n, so both rows are in the arrays.
        let (k, v) = unsafe { (slice(k.add(at * row), row), slice(v.add(at * row), row)) };
        let is_finite = || k.iter().chain(v).all(|x| x.is_finite());
        ensure(on != NonFinite::Reject || is_finite(), Error::NonFinite)?;
    }
    let isa = isa.resolved();
    // SAFETY: it has at least d floats; the caller's promise.
    let scratch = unsafe { core::slice::from_raw_parts_mut(scratch.0, quant.dim) };
    for at in 0..n {
        // SAFETY: at < n.
        let Ok((page, offset)) = quant.place(unsafe { *slots.add(at) }) else { continue };
        // SAFETY: the slot was checked; the caller's promise.
        let page = unsafe { quant.page_mut(page) };
        // SAFETY: as above.
        let (k, v) = unsafe { (slice(k.add(at * row), row), slice(v.add(at * row), row)) };
        for (part, row) in [(&quant.k, k), (&quant.v, v)] {
            // SAFETY: it was resolved.
            unsafe { write_token(&quant, isa, part, page, offset, row, scratch) }?;
        }
    }
    Ok(())
}

/// All heads of one token.
///
/// # Safety
/// `isa` is resolved.
unsafe fn write_token(
    quant: &Quant<'_>,
    isa: Isa,
    part: &Part<'_>,
    page: &mut [u8],
    offset: u32,
    row: &[f32],
    scratch: &mut [f32],
) -> Result<(), Error> {
    for (head, x) in (0..quant.heads).zip(row.chunks_exact(quant.dim.max(1))) {
        let place = Place { layer: quant.layer, head };
        let mut x = x;
        if part.rotates() {
            scratch.iter_mut().zip(x).for_each(|(to, x)| *to = *x);
            part.rotate(scratch, quant.layer, head).map_err(error)?;
            x = scratch;
        }
        // SAFETY: the caller's promise.
        unsafe { rows::write(isa, part, page, place, offset..offset + 1, x) }.map_err(error)?;
    }
    Ok(())
}

/// # Safety
/// The address is aligned and valid for `n` reads for as long as the slice is used.
unsafe fn slice<'a>(at: *const f32, n: usize) -> &'a [f32] {
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(at, n) }
}
