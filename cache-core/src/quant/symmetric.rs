//! INT8 without a zero, for integer matrix units: `s = f16 toward +inf of (max |x|) / 127`, `c = clamp(rne(x / s), -127, 127)`,
//! `x' = c s`, with `|x' - x| <= s / 2`. No code is -128. The product is exact.

use super::error::{NonFinite, QuantError, Report};
use super::format::Groups;
use super::range::{admit, survey};
use super::rounding::{f16_ceil, f16_to_f32};
use super::slices::{each, pieces, pieces_mut};

/// Encodes rows; `scales`, f16 bits, has one per group. An infinity counts as the greatest or least value, NaN as the one
/// nearest to 0, where they are not refused. O(x).
///
/// # Errors
/// `Length`; `NonFinite` under [`NonFinite::Reject`].
#[inline(always)]
pub fn encode(
    groups: Groups,
    x: &[f32],
    on: NonFinite,
    codes: &mut [i8],
    scales: &mut [u16],
) -> Result<Report, QuantError> {
    if x.len() != codes.len() || scales.len() != groups.count(x.len())? {
        return Err(QuantError::Length);
    }
    admit(x, on)?;
    let mut report = Report::default();
    let group = groups.group();
    for ((x, codes), scale) in pieces(x, group).zip(pieces_mut(codes, group)).zip(scales) {
        let is_above;
        let (extremes, replaced) = survey(x);
        let amax = extremes.magnitude();
        (*scale, is_above) = f16_ceil(amax / 127.0);
        *scale = (*scale).max(u16::from(amax > 0.0)); // the quotient may underflow
        if replaced.is_clean() {
            fill(x, |x| x, *scale, codes);
        } else {
            fill(x, |x| extremes.nearest(x), *scale, codes);
        }
        report = report.and(replaced).and(Report::saturated(is_above));
    }
    Ok(report)
}

/// Decodes rows. O(out).
///
/// # Errors
/// `Length`; `Scale` for one that is negative or not finite, with the index of the group.
#[inline(always)]
pub fn decode(groups: Groups, codes: &[i8], scales: &[u16], out: &mut [f32]) -> Result<(), QuantError> {
    if out.len() != codes.len() || scales.len() != groups.count(out.len())? {
        return Err(QuantError::Length);
    }
    if let Some(index) = scales.iter().position(|&scale| scale >= 0x7c00) {
        return Err(QuantError::Scale { index });
    }
    let group = groups.group();
    for ((out, codes), &scale) in pieces_mut(out, group).zip(pieces(codes, group)).zip(scales) {
        let scale = f16_to_f32(scale);
        each(codes, out, |code| f32::from(code) * scale);
    }
    Ok(())
}

#[inline(always)]
fn fill(x: &[f32], of: impl Fn(f32) -> f32, scale: u16, codes: &mut [i8]) {
    let scale = if scale == 0 { f32::INFINITY } else { f16_to_f32(scale) };
    each(x, codes, |x| {
        let steps = of(x) / scale;
        let steps = if steps > -127.0 { steps } else { -127.0 };
        let steps = if steps < 127.0 { steps } else { 127.0 };
        // 1.5 * 2^23 has unit 1 on both sides: the addition rounds to even, and the low bits are the code.
        let [code, ..] = (steps + 12_582_912.0).to_bits().to_le_bytes();
        i8::from_le_bytes([code])
    });
}
