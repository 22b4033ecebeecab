//! The exponential of softmax, as a fixed sequence of f32 operations.
//!
//! Invariant: [`exp_neg`] uses only additions, multiplications and bit
//! operations in a stated order, without fused multiply-add, so that any SIMD
//! width gives the same bits. A library `exp` has branches and table look-ups
//! that no SIMD variant reproduces.

/// Below this the result is 0. Above it every result is a normal number.
const LOWEST: f32 = -86.0;
/// 1.5 * 2^23: adding it rounds a small float to an integer in the low bits.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts; the first has few enough bits for an exact product.
const LN2_HIGH: f32 = 355.0 / 512.0;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Coefficients of x^7 .. x^2 of exp on [-ln 2 / 2, ln 2 / 2] (Cephes `expf`).
const POLYNOMIAL: [f32; 6] = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

/// e^x for x <= 0 or NaN, with an error below one unit in the last place.
///
/// e^x = 2^n e^r with n = round(x / ln 2) and r = x - n ln 2.
#[inline(always)]
pub(crate) fn exp_neg(x: f32) -> f32 {
    // The comparison is false for a NaN, which then stays in the sum.
    let clamped = if x < LOWEST { LOWEST } else { x };
    let rounded = clamped * core::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
    let mut p = POLYNOMIAL[0];
    p = p * r + POLYNOMIAL[1];
    p = p * r + POLYNOMIAL[2];
    p = p * r + POLYNOMIAL[3];
    p = p * r + POLYNOMIAL[4];
    p = p * r + POLYNOMIAL[5];
    let y = (p * (r * r) + r) + 1.0;
    let exponent = rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    let value = y * f32::from_bits(exponent);
    if x < LOWEST { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_below_one_ulp() {
        let mut worst = 0.0f64;
        let step = if cfg!(miri) { 1_000_003 } else { 61 };
        for bits in (0x8000_0000..0x8000_0000 | 86.0f32.to_bits()).step_by(step) {
            let x = f32::from_bits(bits);
            let want = libm::exp(x as f64);
            let got = exp_neg(x);
            let ulp = f32::from_bits((want as f32).to_bits() + 1) as f64 - want as f32 as f64;
            worst = worst.max((got as f64 - want).abs() / ulp);
        }
        assert!(worst <= 1.0, "{worst} ulp");
    }

    #[test]
    fn edges() {
        assert_eq!(exp_neg(0.0), 1.0);
        assert_eq!(exp_neg(-0.0), 1.0);
        assert!(exp_neg(-86.0) >= f32::MIN_POSITIVE);
        assert_eq!(exp_neg(-86.00001), 0.0);
        assert_eq!(exp_neg(f32::MIN), 0.0);
        assert_eq!(exp_neg(f32::NEG_INFINITY), 0.0);
        assert!(exp_neg(f32::NAN).is_nan());
    }
}
