//! Extremes of a group, and values that are none. In integers: floats compared as such would hide NaN, and order of comparison
//! would show in the sign of 0.

use super::error::{NonFinite, QuantError, Report};

const MAGNITUDE: u32 = 0x7fff_ffff;
const INFINITY: u32 = 0x7f80_0000;

/// The first element that is NaN or infinite. O(n).
#[inline(always)]
pub(super) fn first_non_finite(x: &[f32]) -> Option<usize> {
    // One unit of exponent more carries into the top bit where the exponent is the greatest one.
    let carry = |x: &f32| (x.to_bits() & MAGNITUDE).wrapping_add(MAGNITUDE.wrapping_sub(INFINITY).wrapping_add(1));
    if x.iter().fold(0, |any, x| any | carry(x)) <= MAGNITUDE {
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

/// Integers in the order of the floats: -NaN, -infinity, numbers with -0 below +0, infinity, NaN. Its own inverse.
#[inline(always)]
fn ordered(bits: i32) -> i32 {
    bits ^ (bits >> 31 & i32::MAX)
}

#[inline(always)]
fn key(x: f32) -> i32 {
    ordered(x.to_bits().cast_signed())
}

#[inline(always)]
fn value(key: i32) -> f32 {
    f32::from_bits(ordered(key).cast_unsigned())
}

/// Least and greatest value of a group.
#[derive(Clone, Copy)]
pub(super) struct Extremes {
    pub(super) least: f32,
    pub(super) greatest: f32,
}

impl Extremes {
    /// Over all, which may be NaN or infinite: [`is_finite`](Self::is_finite).
    #[inline(always)]
    pub(super) fn of(x: &[f32]) -> Self {
        let start = (i32::MAX, i32::MIN);
        let (least, greatest) = x.iter().fold(start, |(least, greatest), &x| (least.min(key(x)), greatest.max(key(x))));
        Self { least: value(least), greatest: value(greatest) }
    }

    /// Over the finite ones; both 0 when there is none.
    fn finite(x: &[f32]) -> Self {
        let keys = || x.iter().filter(|x| x.is_finite()).map(|&x| key(x));
        Self { least: value(keys().min().unwrap_or(0)), greatest: value(keys().max().unwrap_or(0)) }
    }

    #[inline(always)]
    pub(super) fn is_finite(self) -> bool {
        self.least.is_finite() && self.greatest.is_finite()
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
    let all = Extremes::of(x);
    if all.is_finite() {
        return (all, Report::default());
    }
    survey_dirty(x)
}

#[cold]
fn survey_dirty(x: &[f32]) -> (Extremes, Report) {
    let replaced = x.iter().filter(|x| !x.is_finite()).fold(0_u32, |n, _| n.saturating_add(1));
    (Extremes::finite(x), Report { saturated: 0, replaced })
}
