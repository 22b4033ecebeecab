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
use super::range::{Extremes, admit, first_non_finite, magnitude, survey};
use super::rounding::{f16_is_finite, f16_nearest_saturating, f16_to_f32};
use super::slices::{each, pieces, pieces_mut};

/// Elements of a block.
pub const BLOCK: usize = 32;
/// Bytes of a block of q8_0.
pub const Q8_0_BYTES: usize = 34;
/// Bytes of a block of q4_0.
pub const Q4_0_BYTES: usize = 18;
/// The least magnitude that is not rounded to an f16.
const BEYOND: f32 = 65_520.0;

/// Encodes blocks of q8_0. O(x).
///
/// # Errors
/// `Length` for blocks that are not whole; `NonFinite` under [`NonFinite::Reject`].
#[inline(always)]
pub fn q8_0_encode(x: &[f32], on: NonFinite, bytes: &mut [u8]) -> Result<Report, QuantError> {
    let extreme = |x: &[f32; BLOCK]| magnitude(x);
    encode(x, on, bytes, 127.0, extreme, |x, inverse, codes: &mut [u8; BLOCK]| {
        each(x, codes, |x| round_away(x * inverse));
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
    encode(x, on, bytes, -8.0, greatest, |x, inverse, codes: &mut [u8; 16]| {
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

/// Blocks whose scales are computed together: divisions are slow one by one.
const BATCH: usize = 8;

/// `extreme` over `divisor` is `d`; `fill` writes codes, given `1/d`.
#[inline(always)]
fn encode<const CODES: usize>(
    x: &[f32],
    on: NonFinite,
    bytes: &mut [u8],
    divisor: f32,
    extreme: impl Fn(&[f32; BLOCK]) -> f32 + Copy,
    fill: impl Fn(&[f32; BLOCK], f32, &mut [u8; CODES]) + Copy,
) -> Result<Report, QuantError> {
    let (blocks, rest) = x.as_chunks();
    let size = CODES.wrapping_add(2);
    if !rest.is_empty() || Some(bytes.len()) != blocks.len().checked_mul(size) {
        return Err(QuantError::Length);
    }
    let mut report = Report::default();
    if first_non_finite(x).is_none() {
        let mut left = (blocks, bytes);
        while let (Some((x, blocks)), Some((to, bytes))) = (
            left.0.split_at_checked(left.0.len().min(BATCH)).filter(|(x, _)| !x.is_empty()),
            left.1.split_at_mut_checked(left.0.len().min(BATCH).wrapping_mul(size)),
        ) {
            report = report.and(encode_finite(x, to, divisor, extreme, fill));
            left = (blocks, bytes);
        }
        return Ok(report);
    }
    admit(x, on)?;
    for (x, bytes) in blocks.iter().zip(pieces_mut(bytes, size)) {
        let (extremes, replaced) = survey(x);
        let x = [x.map(|x| if replaced.is_clean() { x } else { extremes.nearest(x) })];
        report = report.and(replaced).and(encode_finite(&x, bytes, divisor, extreme, fill));
    }
    Ok(report)
}

/// Up to [`BATCH`] blocks of finite values.
#[inline(always)]
fn encode_finite<const CODES: usize>(
    blocks: &[[f32; BLOCK]],
    bytes: &mut [u8],
    divisor: f32,
    extreme: impl Fn(&[f32; BLOCK]) -> f32,
    fill: impl Fn(&[f32; BLOCK], f32, &mut [u8; CODES]),
) -> Report {
    let mut d = [0.0; BATCH];
    d.iter_mut().zip(blocks).for_each(|(d, x)| *d = extreme(x));
    let d = d.map(|extreme| extreme / divisor);
    let scales = d.map(f16_nearest_saturating);
    let params = scales.into_iter().zip(d.map(inverse));
    for ((x, bytes), (scale, inverse)) in blocks.iter().zip(pieces_mut(bytes, CODES.wrapping_add(2))).zip(params) {
        let Some((to, codes)) = bytes.split_first_chunk_mut() else { continue };
        let Some(codes) = codes.first_chunk_mut() else { continue };
        *to = scale.to_le_bytes();
        fill(x, inverse, codes);
    }
    let beyond = d.iter().filter(|d| d.abs() >= BEYOND);
    beyond.fold(Report::default(), |report, _| report.and(Report::saturated(true)))
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
    let Extremes { least, greatest } = Extremes::of_finite(x);
    if greatest > -least {
        greatest
    } else if greatest < -least {
        least
    } else {
        x.iter().find(|x| x.abs() == greatest.abs()).copied().unwrap_or(0.0)
    }
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
