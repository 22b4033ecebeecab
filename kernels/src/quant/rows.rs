//! Rows of pages: loops in the instructions of the CPU where there are some for the form, otherwise the codecs, compiled for
//! each instruction set.

use core::ops::Range;

use kvfolio::quant::{NonFinite, QuantError};

use super::kind::{Form, Run};
use super::part::{Part, Place};
use crate::cpu::{Dtype, Isa};

/// Encodes a run with fast loops; false where it is left to the codec, with some of it written. `isa` is resolved.
///
/// # Safety
/// All that the form and the run name is valid, and the form is whole.
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

/// [`RowCodec::read`](kvfolio::quant::RowCodec::read); `isa` is resolved.
#[inline]
pub(super) fn read(
    isa: Isa,
    part: &Part<'_>,
    page: &[u8],
    place: Place,
    tokens: Range<u32>,
    out: &mut [f32],
) -> Result<(), QuantError> {
    if let Some((form, run)) = part.run((page.as_ptr().cast_mut(), page.len()), place, &tokens) {
        let run = Run { x: out.as_mut_ptr().cast(), x_step: form.dim * 4, ..run };
        // SAFETY: the run is whole blocks of the page, and `out` has their elements.
        if out.len() == tokens.len() * form.dim && unsafe { decode(isa, Dtype::F32, &form, &run) } {
            return part.unrotate(out, place.layer, place.head);
        }
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the CPU has what a resolved `isa` says.
        Isa::Avx2 => unsafe { read_avx2(part, page, place, tokens, out) },
        _ => read_portable(part, page, place, tokens, out),
    }
}

#[inline(never)]
fn read_portable(
    part: &Part<'_>,
    page: &[u8],
    place: Place,
    tokens: Range<u32>,
    out: &mut [f32],
) -> Result<(), QuantError> {
    part.read(page, place.layer, place.head, tokens, out)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn read_avx2(
    part: &Part<'_>,
    page: &[u8],
    place: Place,
    tokens: Range<u32>,
    out: &mut [f32],
) -> Result<(), QuantError> {
    part.read(page, place.layer, place.head, tokens, out)
}

/// [`RowCodec::write`](kvfolio::quant::RowCodec::write) of rows that were admitted; `isa` is resolved.
#[inline]
pub(super) fn write(
    isa: Isa,
    part: &Part<'_>,
    page: &mut [u8],
    place: Place,
    tokens: Range<u32>,
    x: &[f32],
    on: NonFinite,
) -> Result<(), QuantError> {
    if x.len() == tokens.len() * part.dim() {
        let from = (x.as_ptr().cast(), part.dim() * 4);
        // SAFETY: `x` has all rows.
        if unsafe { write_stored(isa, part, page, place, tokens.clone(), Dtype::F32, from) } {
            return Ok(());
        }
    }
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the CPU has what a resolved `isa` says.
        Isa::Avx2 => unsafe { write_avx2(part, page, place, tokens, x, on) },
        _ => write_portable(part, page, place, tokens, x, on),
    }
}

/// Encodes rows from where they are stored, with the bytes from one to the next; false as in [`encode`]. They are finite, or what
/// is not is left to the codec.
///
/// # Safety
/// Rows of the type are valid for reads, one for each token.
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

#[inline(never)]
fn write_portable(
    part: &Part<'_>,
    page: &mut [u8],
    place: Place,
    tokens: Range<u32>,
    x: &[f32],
    on: NonFinite,
) -> Result<(), QuantError> {
    part.write(page, place.layer, place.head, tokens, x, on).map(|_| ())
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn write_avx2(
    part: &Part<'_>,
    page: &mut [u8],
    place: Place,
    tokens: Range<u32>,
    x: &[f32],
    on: NonFinite,
) -> Result<(), QuantError> {
    part.write(page, place.layer, place.head, tokens, x, on).map(|_| ())
}
