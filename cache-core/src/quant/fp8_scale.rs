//! Scales of FP8 from the data: one per row, that is, per token and head.

use super::error::{NonFinite, QuantError};
use super::format::Fp8Kind;
use super::range::{admit, greatest_finite};
use super::slices::pieces;

/// The least scale, for rows that are all 0.
const LEAST: f32 = 1e-12;

/// How a scale follows from the greatest magnitude of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ScaleRule {
    /// `s = max(amax / greatest, 1e-12)`: the row's extreme becomes the kind's greatest value.
    #[default]
    Exact = 0,
    /// The least power of two that is not below that: multiplying by it does not round.
    PowerOfTwo = 1,
}

/// One scale per row of `row` elements. Where non-finite values are not refused, they do not count. O(x).
///
/// # Errors
/// `Length` for rows that are not whole; `NonFinite` under [`NonFinite::Reject`].
#[inline(always)]
pub fn row_scales(
    kind: Fp8Kind,
    rule: ScaleRule,
    x: &[f32],
    row: usize,
    on: NonFinite,
    scales: &mut [f32],
) -> Result<(), QuantError> {
    if x.len().checked_rem(row) != Some(0) || x.len().checked_div(row) != Some(scales.len()) {
        return Err(QuantError::Length);
    }
    admit(x, on)?;
    scales.iter_mut().zip(pieces(x, row)).for_each(|(scale, x)| *scale = scale_of(kind, rule, greatest_finite(x)));
    Ok(())
}

/// The scale for a greatest magnitude `amax`, which is finite. O(1).
#[inline(always)]
pub fn scale_of(kind: Fp8Kind, rule: ScaleRule, amax: f32) -> f32 {
    match rule {
        ScaleRule::Exact => {
            let scale = amax / kind.greatest();
            if scale > LEAST { scale } else { LEAST }
        }
        ScaleRule::PowerOfTwo => power_of_two(amax, kind.greatest()),
    }
}

/// `2^k` with the least k for which `greatest * 2^k >= amax`, but no less than 2^-39, the first above 1e-12. Integers only: the
/// quotient of exponents, and one more where the fraction of `amax` is the greater one.
#[inline(always)]
fn power_of_two(amax: f32, greatest: f32) -> f32 {
    let parts = |x: f32| (x.to_bits() >> 23 & 0xff, x.to_bits() & 0x7f_ffff);
    let ((exponent, fraction), (most_exponent, most_fraction)) = (parts(amax), parts(greatest));
    let more = u32::from(fraction > most_fraction);
    // 127 is the bias; the sum is below 255, as `greatest` is at least 1.
    let biased = exponent.saturating_add(more).saturating_add(127).saturating_sub(most_exponent);
    f32::from_bits(biased.max(127 - 39) << 23)
}
