//! NVFP4 and MXFP4: E2M1 codes (0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign) with a scale per block.
//!
//! ```text
//! NVFP4  block 16, scale E4M3FN, and one f32 scale t per tensor    b = e4m3(max|x| / 6 / t)           x' = e b t
//! MXFP4  block 32, scale E8M0 (byte - 127 is the exponent)         2^(floor(log2 max|x|) - 2)         x' = e 2^k
//! ```
//! Codes are nearest, ties to the even code, and saturate at 6. Two to a byte, element 2i in the low nibble; scales are linear,
//! in the order of the blocks.

use super::error::{NonFinite, QuantError, Report};
use super::format::Fp8Kind;
use super::fp8::is_scale;
use super::range::{admit, greatest_finite, survey};
use super::slices::{each, pieces, pieces_mut};

/// Elements of a block of NVFP4.
pub const NVFP4_BLOCK: usize = 16;
/// Elements of a block of MXFP4.
pub const MXFP4_BLOCK: usize = 32;
/// Code of the scale that is NaN in E8M0.
const E8M0_NAN: u8 = 0xff;

/// The tensor's scale that makes the greatest block scale 448: `max|x| / 2688`, but at least 2^-126, below which f32 is coarse.
/// Non-finite values do not count. O(x).
#[inline(always)]
pub fn nvfp4_tensor_scale(x: &[f32]) -> f32 {
    let scale = greatest_finite(x) / (448.0 * 6.0);
    if scale > f32::MIN_POSITIVE { scale } else { f32::MIN_POSITIVE }
}

/// Encodes blocks of 16. `saturated` counts blocks that need a scale above `448 t`. O(x).
///
/// # Errors
/// `Length` for blocks that are not whole; `Scale` for a `t` that is not finite and above 0; `NonFinite` under
/// [`NonFinite::Reject`].
#[inline(always)]
pub fn nvfp4_encode(
    x: &[f32],
    t: f32,
    on: NonFinite,
    codes: &mut [u8],
    scales: &mut [u8],
) -> Result<Report, QuantError> {
    is_scale(&[t])?;
    encode::<NVFP4_BLOCK>(x, on, codes, scales, |amax| {
        let wanted = amax / 6.0 / t;
        let scale = Fp8Kind::E4m3Fn.encode(wanted);
        (scale, Fp8Kind::E4m3Fn.decode(scale) * t, wanted >= 464.0)
    })
}

/// Decodes blocks of 16. O(out).
///
/// # Errors
/// `Length`; `Scale` for a `t` that is not finite and above 0, or a block scale that is negative or NaN, with its index.
#[inline(always)]
pub fn nvfp4_decode(codes: &[u8], scales: &[u8], t: f32, out: &mut [f32]) -> Result<(), QuantError> {
    is_scale(&[t])?;
    decode::<NVFP4_BLOCK>(codes, scales, out, |scale| (scale < 0x7f).then(|| Fp8Kind::E4m3Fn.decode(scale) * t))
}

/// Encodes blocks of 32. O(x).
///
/// # Errors
/// `Length`; `NonFinite` under [`NonFinite::Reject`].
#[inline(always)]
pub fn mxfp4_encode(x: &[f32], on: NonFinite, codes: &mut [u8], scales: &mut [u8]) -> Result<Report, QuantError> {
    encode::<MXFP4_BLOCK>(x, on, codes, scales, |amax| {
        let [exponent, ..] = (amax.to_bits() >> 23).to_le_bytes();
        let scale = exponent.saturating_sub(2);
        (scale, e8m0(scale), false)
    })
}

/// Decodes blocks of 32. O(out).
///
/// # Errors
/// `Length`; `Scale` for a scale that is NaN, with its index.
#[inline(always)]
pub fn mxfp4_decode(codes: &[u8], scales: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
    decode::<MXFP4_BLOCK>(codes, scales, out, |scale| (scale != E8M0_NAN).then(|| e8m0(scale)))
}

/// `2^(scale - 127)`.
#[inline(always)]
pub(super) fn e8m0(scale: u8) -> f32 {
    f32::from_bits(if scale == 0 { 1 << 22 } else { u32::from(scale) << 23 })
}

/// `scale` gives, for a greatest magnitude, the scale as stored, its value, and whether it is beyond the format.
#[inline(always)]
fn encode<const BLOCK: usize>(
    x: &[f32],
    on: NonFinite,
    codes: &mut [u8],
    scales: &mut [u8],
    scale: impl Fn(f32) -> (u8, f32, bool),
) -> Result<Report, QuantError> {
    let blocks = whole::<BLOCK>(x.len(), codes.len(), scales.len())?;
    admit(x, on)?;
    let mut report = Report::default();
    for ((x, codes), to) in pieces(x, BLOCK).zip(pieces_mut(codes, BLOCK >> 1)).zip(scales).take(blocks) {
        let (extremes, replaced) = survey(x);
        let is_beyond;
        let step;
        (*to, step, is_beyond) = scale(greatest_finite(x));
        // A block too small for its scale is 0.
        let step = if step > 0.0 { step } else { f32::INFINITY };
        if replaced.is_clean() {
            each(x.as_chunks().0, codes, |[a, b]| e2m1(a / step) | e2m1(b / step) << 4);
        } else {
            let code = |x| e2m1(extremes.nearest(x) / step);
            each(x.as_chunks().0, codes, |[a, b]| code(a) | code(b) << 4);
        }
        report = report.and(replaced).and(Report::saturated(is_beyond));
    }
    Ok(report)
}

/// `scale` gives the value of a stored scale, if it has one.
#[inline(always)]
fn decode<const BLOCK: usize>(
    codes: &[u8],
    scales: &[u8],
    out: &mut [f32],
    scale: impl Fn(u8) -> Option<f32>,
) -> Result<(), QuantError> {
    whole::<BLOCK>(out.len(), codes.len(), scales.len())?;
    if let Some(index) = scales.iter().position(|&stored| scale(stored).is_none()) {
        return Err(QuantError::Scale { index });
    }
    for ((out, codes), &stored) in pieces_mut(out, BLOCK).zip(pieces(codes, BLOCK >> 1)).zip(scales) {
        let step = scale(stored).unwrap_or(0.0);
        each(codes, out.as_chunks_mut().0, |code| [e2m1_value(code & 15) * step, e2m1_value(code >> 4) * step]);
    }
    Ok(())
}

#[inline(always)]
fn whole<const BLOCK: usize>(elements: usize, codes: usize, scales: usize) -> Result<usize, QuantError> {
    let blocks = elements.checked_div(BLOCK).unwrap_or(0);
    let is_whole = blocks.checked_mul(BLOCK) == Some(elements) && elements >> 1 == codes && blocks == scales;
    if is_whole { Ok(blocks) } else { Err(QuantError::Length) }
}

/// Nearest code: how many of the midpoints are passed, ties to even.
#[inline(always)]
fn e2m1(x: f32) -> u8 {
    let m = x.abs();
    let passed = [m > 0.25, m >= 0.75, m > 1.25, m >= 1.75, m > 2.5, m >= 3.5, m > 5.0];
    let code = passed.into_iter().fold(0_u32, |code, is| code.wrapping_add(u32::from(is)));
    let [code, ..] = (code | x.to_bits() >> 28 & 8).to_le_bytes();
    code
}

#[inline(always)]
fn e2m1_value(code: u8) -> f32 {
    // One bit of fraction and a bias of 1, as f32 bits; the only subnormal is 0.5.
    let normal = u32::from(code & 7).wrapping_add(126 << 1) << 22;
    let magnitude = match code & 7 {
        0 => 0,
        1 => 0.5_f32.to_bits(),
        _ => normal,
    };
    f32::from_bits(u32::from(code & 8) << 28 | magnitude)
}
