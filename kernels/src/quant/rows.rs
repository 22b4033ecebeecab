//! Rows of pages: loops in the instructions of the CPU where there are some for the form, otherwise the codecs, compiled for
//! each instruction set.

use core::ops::Range;

use kvfolio::quant::{NonFinite, QuantError};

use super::kind::{Form, Run};
use super::part::{Part, Place};
use crate::cpu::{Dtype, Isa, per_isa};

/// Encodes a run with fast loops; false where it is left to the codec, with some of it written.
///
/// # Safety
/// All that the form and the run name is valid, and the form is whole; `isa` is resolved.
#[inline]
pub(super) unsafe fn encode(isa: Isa, dtype: Dtype, form: &Form, run: &Run) -> bool {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx2 {
        // SAFETY: the caller's promise; the CPU has what a resolved `isa` says.
        return unsafe { super::avx2::encode(dtype, form, run) };
    }
    let _ = (isa, dtype, form, run);
    false
}

/// Decodes a run with fast loops; as [`encode`].
///
/// # Safety
/// As [`encode`].
#[inline]
pub(super) unsafe fn decode(isa: Isa, dtype: Dtype, form: &Form, run: &Run) -> bool {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx2 {
        // SAFETY: the caller's promise; the CPU has what a resolved `isa` says.
        return unsafe { super::avx2::decode(dtype, form, run) };
    }
    let _ = (isa, dtype, form, run);
    false
}

/// [`RowCodec::read`](kvfolio::quant::RowCodec::read).
///
/// # Safety
/// `isa` is resolved.
#[inline]
pub(super) unsafe fn read(
    isa: Isa,
    part: &Part<'_>,
    page: &[u8],
    place: Place,
    tokens: Range<u32>,
    out: &mut [f32],
) -> Result<(), QuantError> {
    if let Some((form, run)) = part.run((page.as_ptr().cast_mut(), page.len()), place, &tokens) {
        let run = Run { x: out.as_mut_ptr().cast(), x_step: form.dim * 4, ..run };
        // SAFETY: the run is whole blocks of the page, and `out` has their elements; the caller's promise.
        if out.len() == tokens.len() * form.dim && unsafe { decode(isa, Dtype::F32, &form, &run) } {
            return part.unrotate(out, place.layer, place.head);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { read_codec(isa, part, page, place, tokens, out) }
}

per_isa! {
    /// # Safety
    /// `isa` is resolved.
    unsafe fn read_codec(
        part: &Part<'_>,
        page: &[u8],
        place: Place,
        tokens: Range<u32>,
        out: &mut [f32],
    ) -> Result<(), QuantError> {
        part.read(page, place.layer, place.head, tokens, out)
    }
}

/// [`RowCodec::write`](kvfolio::quant::RowCodec::write) of rows that were admitted: what is not finite is what rotating made of
/// finite values.
///
/// # Safety
/// `isa` is resolved.
#[inline]
pub(super) unsafe fn write(
    isa: Isa,
    part: &Part<'_>,
    page: &mut [u8],
    place: Place,
    tokens: Range<u32>,
    x: &[f32],
) -> Result<(), QuantError> {
    if x.len() == tokens.len() * part.dim() {
        let from = (x.as_ptr().cast(), part.dim() * 4);
        // SAFETY: `x` has all rows; the caller's promise.
        if unsafe { write_stored(isa, part, page, place, tokens.clone(), Dtype::F32, from) } {
            return Ok(());
        }
    }
    // SAFETY: the caller's promise.
    unsafe { write_codec(isa, part, page, place, tokens, x) }
}

per_isa! {
    /// # Safety
    /// `isa` is resolved.
    unsafe fn write_codec(
        part: &Part<'_>,
        page: &mut [u8],
        place: Place,
        tokens: Range<u32>,
        x: &[f32],
    ) -> Result<(), QuantError> {
        part.write(page, place.layer, place.head, tokens, x, NonFinite::Sanitise).map(|_| ())
    }
}

/// Encodes rows from where they are stored, with the bytes from one to the next; false as in [`encode`]. They are finite, or what
/// is not is left to the codec.
///
/// # Safety
/// Rows of the type are valid for reads, one for each token; `isa` is resolved.
#[inline]
pub(super) unsafe fn write_stored(
    isa: Isa,
    part: &Part<'_>,
    page: &mut [u8],
    place: Place,
    tokens: Range<u32>,
    dtype: Dtype,
    (x, x_step): (*const u8, usize),
) -> bool {
    let Some((form, run)) = part.run((page.as_mut_ptr(), page.len()), place, &tokens) else { return false };
    let run = Run { x: x.cast_mut(), x_step, ..run };
    // SAFETY: the run is whole blocks of the page; the caller's promise.
    unsafe { encode(isa, dtype, &form, &run) }
}
