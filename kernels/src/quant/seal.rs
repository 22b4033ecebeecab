//! Turn full exact pages into quantised ones.
//!
//! Invariant: everything is checked before the first byte is written.

use kvfolio::quant::NonFinite;

use super::part::{Part, Place};
use super::rows;
use super::view::{Quant, RawQuant, check_scratch, encode_scratch, error};
use crate::cpu::{Isa, RawPages, check_array};
use crate::error::{Error, ensure};

/// An exact page, and the quantised page that gets its tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Seal {
    /// Page of the exact pool.
    pub source: u32,
    /// Page of the quantised pool.
    pub target: u32,
}

/// Encodes all P tokens of each source into its target. A page that was rotated overflows only from values near the greatest
/// f32; such groups are saturated.
///
/// # Errors
/// [`Error::Page`], [`Error::NullPage`], [`Error::NonFinite`] under [`NonFinite::Reject`], [`Error::Scratch`], or those of the views.
///
/// # Safety
/// Non-NULL addresses are valid: scales for reads, `seals` for n reads, `scratch` for writes, the sources for reads, the targets for writes. No
/// thread writes what is read or touches what is written.
pub unsafe fn seal_raw(
    exact: &RawPages,
    pages: &RawQuant<'_>,
    isa: Isa,
    on: NonFinite,
    seals: *const Seal,
    n: usize,
    scratch: (*mut f32, u64),
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let quant = unsafe { pages.checked() }?;
    quant.check_exact(exact)?;
    let isa = isa.resolved();
    check_array(seals, n)?;
    check_scratch(scratch.0, scratch.1, encode_scratch(pages.layout))?;
    // SAFETY: the scratch has that many floats; the caller's promise.
    let rows = unsafe { core::slice::from_raw_parts_mut(scratch.0, quant.page_tokens as usize * quant.dim) };
    // SAFETY: the caller's promise.
    let seals = if n == 0 { &[] } else { unsafe { core::slice::from_raw_parts(seals, n) } };
    for seal in seals {
        exact.page(i64::from(seal.source))?;
        quant.id(i64::from(seal.target))?;
        for head in 0..if on == NonFinite::Reject { quant.heads } else { 0 } {
            for is_k in [true, false] {
                // SAFETY: the source was checked; the caller's promise.
                ensure(unsafe { exact.is_head_finite(isa, is_k, seal.source, head) }, Error::NonFinite)?;
            }
        }
    }
    // Rotating finite rows may overflow; what is refused above is refused before anything is written.
    for seal in seals {
        // SAFETY: the target was checked; the caller's promise.
        let page = unsafe { quant.page_mut(seal.target) };
        for head in 0..quant.heads {
            for (is_k, part) in [(true, &quant.k), (false, &quant.v)] {
                // SAFETY: as above.
                unsafe { write_head(&quant, isa, exact, (seal.source, head, is_k), part, page, rows) }?;
            }
        }
    }
    Ok(())
}

/// One head of a page: from where it is stored, or by way of floats.
///
/// # Safety
/// The source was checked, and `isa` is resolved.
unsafe fn write_head(
    quant: &Quant<'_>,
    isa: Isa,
    exact: &RawPages,
    (source, head, is_k): (u32, u32, bool),
    part: &Part<'_>,
    page: &mut [u8],
    x: &mut [f32],
) -> Result<(), Error> {
    let (place, tokens) = (Place { layer: quant.layer, head }, 0..quant.page_tokens);
    if !part.rotates() {
        // SAFETY: the view has P rows of each head; the caller's promise.
        let is_done = unsafe {
            let (row, step) = exact.row(is_k, source, 0, head);
            let from = (row.cast_const(), step as usize);
            rows::write_stored(isa, part, page, place, tokens.clone(), exact.geometry.dtype, from)
        };
        if is_done {
            return Ok(());
        }
    }
    // SAFETY: the caller's promise.
    unsafe { exact.load_head(is_k, source, head, x) };
    part.rotate(x, quant.layer, head).map_err(error)?;
    // SAFETY: the caller's promise.
    unsafe { rows::write(isa, part, page, place, tokens, x) }.map_err(error)
}
