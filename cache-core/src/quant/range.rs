//! Extremes of a group, and values that are none. Comparisons hide NaN, so what is not finite is looked for in the bits.

use super::error::{NonFinite, QuantError, Report};

const MAGNITUDE: u32 = 0x7fff_ffff;
const INFINITY: u32 = 0x7f80_0000;

/// Has its top bit set for what is not finite: one unit of exponent more carries into it where the exponent is the greatest one.
#[inline(always)]
fn carry(x: f32) -> u32 {
    (x.to_bits() & MAGNITUDE).wrapping_add(MAGNITUDE.wrapping_sub(INFINITY).wrapping_add(1))
}

/// The first element that is NaN or infinite. O(n).
#[inline(always)]
pub(super) fn first_non_finite(x: &[f32]) -> Option<usize> {
    if x.iter().fold(0, |any, &x| any | carry(x)) <= MAGNITUDE {
        return None;
    }
    x.iter().position(|x| !x.is_finite())
}

/// Refuses non-finite values where the policy says so.
#[inline(always)]
pub(super) fn admit(x: &[f32], on: NonFinite) -> Result<(), QuantError> {
    match on {
        NonFinite::Reject => first_non_finite(x).map_or(Ok(()), |index| Err(QuantError::NonFinite { index })),
        NonFinite::Sanitise => Ok(()),
    }
}

/// Bits of the greatest magnitude, NaN above infinity above all; 0 when empty.
#[inline(always)]
pub(super) fn greatest_magnitude(x: &[f32]) -> u32 {
    x.iter().fold(0, |most: i32, x| most.max((x.to_bits() & MAGNITUDE).cast_signed())).cast_unsigned()
}

/// The greatest finite magnitude; 0 when there is none.
#[inline(always)]
pub(super) fn greatest_finite(x: &[f32]) -> f32 {
    let most = greatest_magnitude(x);
    if most < INFINITY {
        return f32::from_bits(most);
    }
    let finite = x.iter().map(|x| x.to_bits() & MAGNITUDE).filter(|&bits| bits < INFINITY);
    f32::from_bits(finite.max().unwrap_or(0))
}

/// Least and greatest value of a group.
#[derive(Clone, Copy)]
pub(super) struct Extremes {
    pub(super) least: f32,
    pub(super) greatest: f32,
}

impl Extremes {
    /// Over all, where the sign of a 0 is any; none where one is not finite, or there is none.
    #[inline(always)]
    fn of(x: &[f32]) -> Option<Self> {
        let any = x.iter().fold(0, |any, &x| any | carry(x));
        (any <= MAGNITUDE && !x.is_empty()).then(|| Self::of_finite(x))
    }

    /// Over all, which are finite, where the sign of a 0 is any.
    #[inline(always)]
    pub(super) fn of_finite(x: &[f32]) -> Self {
        Self { least: fold(x, f32::INFINITY, lesser), greatest: fold(x, f32::NEG_INFINITY, greater) }
    }

    /// Over the finite ones, with -0 below +0; both 0 when there is none.
    fn finite(x: &[f32]) -> Self {
        let finite = || x.iter().copied().filter(|x| x.is_finite());
        let [least, greatest] = [finite().min_by(f32::total_cmp), finite().max_by(f32::total_cmp)];
        Self { least: least.unwrap_or(0.0), greatest: greatest.unwrap_or(0.0) }
    }

    /// The greatest magnitude.
    #[inline(always)]
    pub(super) fn magnitude(self) -> f32 {
        greater(self.least.abs(), self.greatest.abs())
    }

    /// What stands for `x`: itself, the nearer extreme for an infinity, the nearest to 0 for NaN.
    #[inline(always)]
    pub(super) fn nearest(self, x: f32) -> f32 {
        let x = if x.is_nan() { 0.0 } else { x };
        let x = if x < self.least { self.least } else { x };
        if x > self.greatest { self.greatest } else { x }
    }
}

/// Extremes of a group, over its finite values where there are others, and how many others.
#[inline(always)]
pub(super) fn survey(x: &[f32]) -> (Extremes, Report) {
    Extremes::of(x).map_or_else(|| survey_dirty(x), |all| (all, Report::default()))
}

/// Of two that are not NaN, as one instruction: the first of equal ones.
#[inline(always)]
fn lesser(a: f32, b: f32) -> f32 {
    if b < a { b } else { a }
}

/// Likewise.
#[inline(always)]
fn greater(a: f32, b: f32) -> f32 {
    if b > a { b } else { a }
}

/// Eight at a time, in lanes that are folded at last: the order of comparisons changes nothing but the sign of a 0.
#[inline(always)]
fn fold(x: &[f32], start: f32, of: impl Fn(f32, f32) -> f32) -> f32 {
    let (blocks, rest) = x.as_chunks::<8>();
    let mut lanes = [start; 8];
    for block in blocks {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane = of(*lane, x);
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    rest.iter().fold(of(of(of(a, e), of(c, g)), of(of(b, f), of(d, h))), |all, &x| of(all, x))
}

/// The greatest magnitude of finite values; 0 when empty.
#[inline(always)]
pub(super) fn magnitude(x: &[f32]) -> f32 {
    fold(x, 0.0, |most, x| greater(most, x.abs()))
}

#[cold]
fn survey_dirty(x: &[f32]) -> (Extremes, Report) {
    let replaced = x.iter().filter(|x| !x.is_finite()).fold(0_u32, |n, _| n.saturating_add(1));
    (Extremes::finite(x), Report { saturated: 0, replaced })
}
