//! Conversions to binary16 (f16), as bit patterns: toward minus and plus infinity for parameters, to nearest for values; and to
//! bf16.

/// The largest finite f16, 65,504.
pub(super) const F16_MAX: u16 = 0x7bff;
const F32_MAGNITUDE: u32 = 0x7fff_ffff;

/// The largest f16 that is not above `x`. The flag: there is none, and the least finite one is given.
///
/// `x` is finite. O(1), integers only.
#[inline(always)]
pub fn f16_floor(x: f32) -> (u16, bool) {
    let (magnitude, is_inexact, is_beyond) = truncated(x);
    match x.is_sign_negative() {
        true if is_beyond => (0x8000 | F16_MAX, true),
        true => (0x8000 | magnitude.wrapping_add(u16::from(is_inexact)), false),
        false => (magnitude, false),
    }
}

/// The smallest f16 that is not below `x`. The flag: there is none, and the greatest finite one is given.
///
/// `x` is finite. O(1), integers only.
#[inline(always)]
pub fn f16_ceil(x: f32) -> (u16, bool) {
    let (bits, is_beyond) = f16_floor(-x);
    (bits ^ 0x8000, is_beyond)
}

/// The value of an f16 bit pattern, exactly.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32()
}

/// A stored parameter that is a number.
#[inline(always)]
pub(super) fn f16_is_finite(bits: u16) -> bool {
    bits & 0x7c00 != 0x7c00
}

/// The nearest f16, ties to even; what is beyond the largest one saturates. NaN stays NaN. O(1), without a branch.
#[inline(always)]
pub fn f16_nearest_saturating(x: f32) -> u16 {
    let bits = x.to_bits();
    let magnitude = bits & F32_MAGNITUDE;
    // Normal: the bias moves from 127 to 15; adding a half less one, or a half where the kept part is odd, rounds.
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(odd).wrapping_add(0xfff) >> 13;
    // Subnormal: in the binade of 0.5 the unit is that of the result, so the addition rounds.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
    let value = if magnitude < 113 << 23 { small } else { normal };
    let value = if value < u32::from(F16_MAX) { value } else { u32::from(F16_MAX) };
    let value = if magnitude > 0x7f80_0000 { 0x7e00 } else { value };
    let [low, high, ..] = (value | bits >> 16 & 0x8000).to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// The nearest bf16, ties to even; what is beyond the largest one saturates. NaN stays NaN. O(1), without a branch.
#[inline]
pub fn bf16_nearest_saturating(x: f32) -> u16 {
    let bits = x.to_bits();
    let magnitude = bits & F32_MAGNITUDE;
    let value = magnitude.wrapping_add(magnitude >> 16 & 1).wrapping_add(0x7fff) >> 16;
    let value = if value < 0x7f7f { value } else { 0x7f7f };
    let value = if magnitude > 0x7f80_0000 { 0x7fc0 } else { value };
    let [low, high, ..] = (value | bits >> 16 & 0x8000).to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// Magnitude rounded toward 0, whether that lost something, whether the magnitude is beyond all f16.
#[inline(always)]
fn truncated(x: f32) -> (u16, bool, bool) {
    let magnitude = x.to_bits() & F32_MAGNITUDE;
    let exponent = magnitude >> 23;
    // The f32 bits that the result drops: 13 where it is normal, more below.
    let (kept, dropped) = if exponent > 112 {
        (magnitude.wrapping_sub(112 << 23) >> 13, magnitude & 0x1fff)
    } else {
        let significand = magnitude & 0x7f_ffff | u32::from(exponent > 0) << 23;
        let shift = 126_u32.saturating_sub(exponent).min(31);
        let kept = significand.wrapping_shr(shift);
        (kept, significand ^ kept.wrapping_shl(shift))
    };
    let [low, high, ..] = kept.min(u32::from(F16_MAX)).to_le_bytes();
    let is_beyond = magnitude > 65_504_f32.to_bits();
    (u16::from_le_bytes([low, high]), dropped != 0, is_beyond)
}
