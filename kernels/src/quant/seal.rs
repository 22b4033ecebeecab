//! Turn full exact pages into quantised ones.
//!
//! Invariant: everything is checked before the first byte is written.

use kvfolio::quant::{NonFinite, RowCodec};

use super::rows::{self, Place};
use super::view::{Quant, RawQuant, check_scratch, encode_scratch, error};
use crate::cpu::{Isa, RawPages};
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
/// Non-NULL addresses are valid: `seals` for n reads, `scratch` for writes, the sources for reads, the targets for writes. No
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
    let quant = pages.checked()?;
    quant.check_exact(exact)?;
    ensure(n == 0 || (!seals.is_null() && seals.is_aligned()), Error::Null)?;
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
                unsafe { exact.load_head(is_k, seal.source, head, rows) };
                ensure(rows.iter().all(|x| x.is_finite()), Error::NonFinite)?;
            }
        }
    }
    // Rotating finite rows may overflow; what is refused above is refused before anything is written.
    for seal in seals {
        // SAFETY: the target was checked; the caller's promise.
        let page = unsafe { quant.page_mut(seal.target) };
        for head in 0..quant.heads {
            for (is_k, codec) in [(true, &quant.k), (false, &quant.v)] {
                // SAFETY: as above.
                unsafe { exact.load_head(is_k, seal.source, head, rows) };
                write_page(&quant, isa.resolved(), codec, page, head, rows)?;
            }
        }
    }
    Ok(())
}

fn write_page(
    quant: &Quant<'_>,
    isa: Isa,
    codec: &RowCodec<'_>,
    page: &mut [u8],
    head: u32,
    x: &mut [f32],
) -> Result<(), Error> {
    codec.rotate(x, quant.layer, head).map_err(error)?;
    let place = Place { layer: quant.layer, head };
    let _ = rows::write(isa, codec, page, place, 0..quant.page_tokens, x, NonFinite::Sanitise).map_err(error)?;
    Ok(())
}
