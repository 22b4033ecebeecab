//! The blocks q8_0 and q4_0 of ggml, bit for bit, to read and write its caches.
//!
//! Both hold 32 elements: the scale `d` as f16, little-endian, then codes. Unlike our own formats they compute codes with the
//! f32 reciprocal of `d` before it was rounded to f16, so errors may be above half a step.
//! ```text
//! q8_0, 34 bytes   d = max |x| / 127                       c = round(x (1/d)), ties away from 0       x' = c d
//! q4_0, 18 bytes   d = (x of the greatest |x|) / -8        c = min(15, floor(x (1/d) + 8.5))          x' = (c - 8) d
//!                  of several the first; byte j holds code j below and code j + 16 above
//! ```
//! A value of q4_0 that is opposite to the extreme can be a whole `|d|` off: there is no code +8.
//!
//! Not of the published format: where `1/d` is infinite the codes are those of 0, and a `d` beyond f16 saturates and is
//! reported, in place of an infinity that decodes to NaN.

use super::error::{NonFinite, QuantError, Report};
use super::range::{admit, survey};
use super::rounding::{F16_MAX, f16_is_finite, f16_to_f32};
use super::slices::{pieces, pieces_mut};

/// Elements of a block.
pub const BLOCK: usize = 32;
/// Bytes of a block of q8_0.
pub const Q8_0_BYTES: usize = 34;
/// Bytes of a block of q4_0.
pub const Q4_0_BYTES: usize = 18;

/// Encodes blocks of q8_0. O(x).
///
/// # Errors
/// `Length` for blocks that are not whole; `NonFinite` under [`NonFinite::Reject`].
#[inline(always)]
pub fn q8_0_encode(x: &[f32], on: NonFinite, bytes: &mut [u8]) -> Result<Report, QuantError> {
    encode(x, on, bytes, |x, codes: &mut [u8; BLOCK]| {
        let d = greatest(x).abs() / 127.0;
        let inverse = inverse(d);
        codes.iter_mut().zip(x).for_each(|(code, &x)| *code = round_away(x * inverse));
        d
    })
}

/// Decodes blocks of q8_0. O(out).
///
/// # Errors
/// `Length`; `Scale` for a `d` that is not finite, with the index of the block.
#[inline(always)]
pub fn q8_0_decode(bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
    decode(bytes, out, |codes: &[u8; BLOCK], d, out| {
        out.iter_mut().zip(codes).for_each(|(to, &code)| *to = f32::from(code.cast_signed()) * d);
    })
}

/// Encodes blocks of q4_0. O(x).
///
/// # Errors
/// As [`q8_0_encode`].
#[inline(always)]
pub fn q4_0_encode(x: &[f32], on: NonFinite, bytes: &mut [u8]) -> Result<Report, QuantError> {
    encode(x, on, bytes, |x, codes: &mut [u8; 16]| {
        let d = greatest(x) / -8.0;
        let inverse = inverse(d);
        let code = |x: f32| {
            let steps = x * inverse + 8.5;
            let steps = if steps < 15.0 { steps } else { 15.0 };
            // Round to even; one less where that was above.
            let rounded = steps + 8_388_608.0;
            let whole =
                if rounded - 8_388_608.0 > steps { rounded.to_bits().wrapping_sub(1) } else { rounded.to_bits() };
            let [code, ..] = whole.to_le_bytes();
            code
        };
        let (low, high) = x.split_at_checked(16).unwrap_or((x, &[]));
        codes.iter_mut().zip(low.iter().zip(high)).for_each(|(to, (&a, &b))| *to = code(a) | code(b) << 4);
        d
    })
}

/// Decodes blocks of q4_0. O(out).
///
/// # Errors
/// As [`q8_0_decode`].
#[inline(always)]
pub fn q4_0_decode(bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
    decode(bytes, out, |codes: &[u8; 16], d, out| {
        let value = |code: u8| (f32::from(code) - 8.0) * d;
        let Some((low, high)) = out.split_at_mut_checked(16) else { return };
        for ((a, b), &code) in low.iter_mut().zip(high).zip(codes) {
            (*a, *b) = (value(code & 15), value(code >> 4));
        }
    })
}

/// Block by block: `one` writes the codes and gives `d`.
#[inline(always)]
fn encode<const CODES: usize>(
    x: &[f32],
    on: NonFinite,
    bytes: &mut [u8],
    one: impl Fn(&[f32; BLOCK], &mut [u8; CODES]) -> f32,
) -> Result<Report, QuantError> {
    let (blocks, rest) = x.as_chunks();
    let size = CODES.wrapping_add(2);
    if !rest.is_empty() || Some(bytes.len()) != blocks.len().checked_mul(size) {
        return Err(QuantError::Length);
    }
    admit(x, on)?;
    let mut report = Report::default();
    for (x, bytes) in blocks.iter().zip(pieces_mut(bytes, size)) {
        let Some((scale, codes)) = bytes.split_first_chunk_mut() else { continue };
        let Some(codes) = codes.first_chunk_mut() else { continue };
        let (extremes, replaced) = survey(x);
        let d = if replaced.is_clean() { one(x, codes) } else { one(&x.map(|x| extremes.nearest(x)), codes) };
        let nearest = half::f16::from_f32(d).to_bits();
        let is_beyond = !f16_is_finite(nearest);
        *scale = (if is_beyond { nearest & 0x8000 | F16_MAX } else { nearest }).to_le_bytes();
        report = report.and(replaced).and(Report::saturated(is_beyond));
    }
    Ok(report)
}

#[inline(always)]
fn decode<const CODES: usize>(
    bytes: &[u8],
    out: &mut [f32],
    one: impl Fn(&[u8; CODES], f32, &mut [f32; BLOCK]),
) -> Result<(), QuantError> {
    let (blocks, rest) = out.as_chunks_mut();
    let size = CODES.wrapping_add(2);
    if !rest.is_empty() || Some(bytes.len()) != blocks.len().checked_mul(size) {
        return Err(QuantError::Length);
    }
    let parts = |bytes: &'_ [u8]| bytes.split_first_chunk().map_or(0, |(scale, _)| u16::from_le_bytes(*scale));
    if let Some(index) = pieces(bytes, size).position(|bytes| !f16_is_finite(parts(bytes))) {
        return Err(QuantError::Scale { index });
    }
    for (out, bytes) in blocks.iter_mut().zip(pieces(bytes, size)) {
        if let Some(codes) = bytes.last_chunk() {
            one(codes, f16_to_f32(parts(bytes)), out);
        }
    }
    Ok(())
}

/// The element of the greatest magnitude, of several the first.
#[inline(always)]
fn greatest(x: &[f32; BLOCK]) -> f32 {
    let magnitude = |x: &f32| x.to_bits() & 0x7fff_ffff;
    let most = x.iter().fold(0, |most, x| magnitude(x).max(most));
    x.iter().find(|x| magnitude(x) == most).copied().unwrap_or(0.0)
}

/// `1 / d`, or 0 where that is no number.
#[inline(always)]
fn inverse(d: f32) -> f32 {
    let inverse = 1.0 / d;
    if inverse.is_finite() { inverse } else { 0.0 }
}

/// The nearest integer, ties away from 0, as a byte in two's complement; `|x|` is below 2^22.
#[inline(always)]
fn round_away(x: f32) -> u8 {
    let magnitude = x.abs();
    let even = magnitude + 8_388_608.0;
    // The difference is exact.
    let is_short = magnitude - (even - 8_388_608.0) == 0.5;
    let [code, ..] = even.to_bits().wrapping_add(u32::from(is_short)).to_le_bytes();
    if x < 0.0 { code.wrapping_neg() } else { code }
}
