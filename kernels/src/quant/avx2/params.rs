//! Parameters of 8 groups at a time.
//!
//! F16C rounds toward either infinity as `kvfolio::quant::rounding` does, but gives infinity where that saturates: such
//! groups are left to the portable codec.

use core::arch::x86_64::{
    __m128i, __m256, _CMP_EQ_OQ, _CMP_GT_OQ, _CMP_NLT_UQ, _MM_FROUND_TO_NEG_INF, _MM_FROUND_TO_POS_INF, _mm_max_epu16,
    _mm_packs_epi32, _mm_srli_epi16, _mm_storeu_si128, _mm256_add_ps, _mm256_andnot_ps, _mm256_blendv_ps,
    _mm256_castps_si256, _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_div_ps,
    _mm256_extracti128_si256, _mm256_max_ps, _mm256_movemask_ps, _mm256_or_ps, _mm256_set1_ps, _mm256_setzero_ps,
    _mm256_sub_ps,
};

use super::steps::Steps;

/// Parameters of 8 groups: as stored, and as they are calculated with.
pub(super) struct Params {
    /// f16 bits.
    pub(super) scales: __m128i,
    /// f16 bits.
    pub(super) zeros: __m128i,
    /// What codes are counted from.
    pub(super) zero: __m256,
    /// What they are counted in: the scale, or infinity where that is 0.
    pub(super) divisor: __m256,
    /// `1 / divisor`
    pub(super) inverse: __m256,
}

impl Params {
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    fn new(scales: __m128i, zeros: __m128i, zero: __m256) -> Self {
        let divisor = divisor(scales);
        Self { scales, zeros, zero, divisor, inverse: _mm256_div_ps(_mm256_set1_ps(1.0), divisor) }
    }

    /// With a lane for each group.
    pub(super) fn steps(&self) -> Steps {
        Steps { zero: self.zero, divisor: self.divisor, inverse: self.inverse }
    }
}

/// Scale and zero that cover the extremes; none where a value is not finite or f16 cannot cover.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn cover(least: __m256, greatest: __m256, most: f32) -> Option<Params> {
    if !are_finite(least) || !are_finite(greatest) {
        return None;
    }
    // -0 becomes +0.
    let zeros = _mm256_cvtps_ph::<_MM_FROUND_TO_NEG_INF>(_mm256_add_ps(least, _mm256_setzero_ps()));
    let zero = _mm256_cvtph_ps(zeros);
    let span = _mm256_add_ps(_mm256_sub_ps(greatest, zero), _mm256_setzero_ps());
    let scales = above(span, most)?;
    are_finite(zero).then(|| Params::new(scales, zeros, zero))
}

/// The scale of symmetric codes from the greatest magnitudes; none as in [`cover`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn cover_magnitude(amax: __m256) -> Option<Params> {
    if !are_finite(amax) {
        return None;
    }
    let scales = above(amax, 127.0)?;
    Some(Params::new(scales, scales, _mm256_setzero_ps()))
}

/// The greatest magnitudes of values between extremes that are not NaN.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn magnitude(least: __m256, greatest: __m256) -> __m256 {
    let sign = _mm256_set1_ps(-0.0);
    _mm256_max_ps(_mm256_andnot_ps(sign, least), _mm256_andnot_ps(sign, greatest))
}

/// `span / most` rounded up to f16, and above 0 where `span` is; none where that is beyond f16.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn above(span: __m256, most: f32) -> Option<__m128i> {
    let scales = _mm256_cvtps_ph::<_MM_FROUND_TO_POS_INF>(_mm256_div_ps(span, _mm256_set1_ps(most)));
    let is_some = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_GT_OQ>(span, _mm256_setzero_ps()));
    let is_some = _mm_packs_epi32(_mm256_castsi256_si128(is_some), _mm256_extracti128_si256::<1>(is_some));
    let scales = _mm_max_epu16(scales, _mm_srli_epi16::<15>(is_some));
    are_finite(_mm256_cvtph_ps(scales)).then_some(scales)
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn divisor(scales: __m128i) -> __m256 {
    let scale = _mm256_cvtph_ps(scales);
    let is_zero = _mm256_cmp_ps::<_CMP_EQ_OQ>(scale, _mm256_setzero_ps());
    _mm256_blendv_ps(scale, _mm256_set1_ps(f32::INFINITY), is_zero)
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn are_finite(x: __m256) -> bool {
    let magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0), x);
    _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_NLT_UQ>(magnitude, _mm256_set1_ps(f32::INFINITY))) == 0
}

/// The words of a vector.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn words(v: __m128i) -> [u16; 8] {
    // SAFETY: both are 16 bytes, of which all are valid.
    unsafe { core::mem::transmute(v) }
}

/// The floats of a vector.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn floats(v: __m256) -> [f32; 8] {
    // SAFETY: both are 32 bytes, of which all are valid.
    unsafe { core::mem::transmute(v) }
}

/// Stores the first `count` words, the first at `to` and each `step` bytes after the one before.
///
/// # Safety
/// The addresses are valid for writes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn put_words(v: __m128i, count: usize, (to, step): (*mut u8, usize)) {
    if count == 8 && step == 2 {
        // SAFETY: the caller's promise.
        return unsafe { _mm_storeu_si128(to.cast(), v) };
    }
    for (nth, word) in words(v).into_iter().enumerate().take(count) {
        // SAFETY: the caller's promise.
        unsafe { to.wrapping_add(nth * step).cast::<u16>().write_unaligned(word) };
    }
}

/// `1 / d`, or 0 where that is not finite.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn inverse(d: __m256) -> __m256 {
    let inverse = _mm256_div_ps(_mm256_set1_ps(1.0), d);
    let magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0), inverse);
    let is_bad = _mm256_cmp_ps::<_CMP_NLT_UQ>(magnitude, _mm256_set1_ps(f32::INFINITY));
    _mm256_andnot_ps(is_bad, _mm256_or_ps(inverse, _mm256_setzero_ps()))
}

#[cfg(test)]
mod tests {
    use kvfolio::quant::rounding::{f16_ceil, f16_floor, f16_to_f32};

    use super::*;
    use crate::cpu::Isa;

    #[target_feature(enable = "avx2,f16c")]
    fn both(x: [f32; 8]) -> ([u16; 8], [u16; 8]) {
        // SAFETY: both are 32 bytes, of which all are valid.
        let x: __m256 = unsafe { core::mem::transmute(x) };
        (words(_mm256_cvtps_ph::<_MM_FROUND_TO_NEG_INF>(x)), words(_mm256_cvtps_ph::<_MM_FROUND_TO_POS_INF>(x)))
    }

    /// Around every f16, and beyond: the same bits, or infinity where the codec says that f16 has none.
    #[test]
    fn directed_rounding_is_that_of_the_codec() {
        if Isa::Auto.resolved() != Isa::Avx2 {
            return;
        }
        let check = |x: f32| {
            // SAFETY: the CPU has what a resolved `Isa` says.
            let (down, up) = unsafe { both([x; 8]) };
            let (floor, ceil) = (f16_floor(x), f16_ceil(x));
            assert_eq!(down[7], if floor.1 { 0xfc00 } else { floor.0 }, "{x:e} down");
            assert_eq!(up[7], if ceil.1 { 0x7c00 } else { ceil.0 }, "{x:e} up");
        };
        for bits in 0..=u16::MAX {
            let value = f16_to_f32(bits);
            if !value.is_finite() {
                continue;
            }
            for delta in [0_u32, 1, 2, 0xfff, 0x1000, 0x1001, 0x1fff, u32::MAX, u32::MAX - 1] {
                let x = f32::from_bits(value.to_bits().wrapping_add(delta));
                if x.is_finite() {
                    check(x);
                }
            }
        }
        for magnitude in [1, 2, 0x7f_ffff, 0x80_0000, 0x3380_0000, 0x4780_0000, 0x477f_e001, 0x7f7f_ffff] {
            check(f32::from_bits(magnitude));
            check(-f32::from_bits(magnitude));
        }
    }
}
