//! The codecs, compiled for each instruction set.

use core::ops::Range;

use kvfolio::quant::{NonFinite, QuantError, Report, RowCodec};

use crate::cpu::Isa;

/// One head of one page.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) layer: u32,
    pub(super) head: u32,
}

/// [`RowCodec::read`]; `isa` is resolved.
#[inline]
pub(super) fn read(
    isa: Isa,
    codec: &RowCodec<'_>,
    page: &[u8],
    place: Place,
    tokens: Range<u32>,
    out: &mut [f32],
) -> Result<(), QuantError> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the CPU has what a resolved `isa` says.
        Isa::Avx2 => unsafe { read_avx2(codec, page, place, tokens, out) },
        _ => read_portable(codec, page, place, tokens, out),
    }
}

#[inline(never)]
fn read_portable(
    codec: &RowCodec<'_>,
    page: &[u8],
    place: Place,
    tokens: Range<u32>,
    out: &mut [f32],
) -> Result<(), QuantError> {
    codec.read(page, place.layer, place.head, tokens, out)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn read_avx2(
    codec: &RowCodec<'_>,
    page: &[u8],
    place: Place,
    tokens: Range<u32>,
    out: &mut [f32],
) -> Result<(), QuantError> {
    codec.read(page, place.layer, place.head, tokens, out)
}

/// [`RowCodec::write`]; `isa` is resolved.
#[inline]
pub(super) fn write(
    isa: Isa,
    codec: &RowCodec<'_>,
    page: &mut [u8],
    place: Place,
    tokens: Range<u32>,
    x: &[f32],
    on: NonFinite,
) -> Result<Report, QuantError> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the CPU has what a resolved `isa` says.
        Isa::Avx2 => unsafe { write_avx2(codec, page, place, tokens, x, on) },
        _ => write_portable(codec, page, place, tokens, x, on),
    }
}

#[inline(never)]
fn write_portable(
    codec: &RowCodec<'_>,
    page: &mut [u8],
    place: Place,
    tokens: Range<u32>,
    x: &[f32],
    on: NonFinite,
) -> Result<Report, QuantError> {
    codec.write(page, place.layer, place.head, tokens, x, on)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn write_avx2(
    codec: &RowCodec<'_>,
    page: &mut [u8],
    place: Place,
    tokens: Range<u32>,
    x: &[f32],
    on: NonFinite,
) -> Result<Report, QuantError> {
    codec.write(page, place.layer, place.head, tokens, x, on)
}
