//! Codes of values: `rne((x - zero) / divisor)`, mostly without the division.
//!
//! Times the inverse, a quotient is off by less than 3 units in 2^24, so a code, which is at most 255, by less than 2^-14. That
//! decides the nearest integer unless one half is as near: only then the division is made.

use core::arch::x86_64::{
    __m256, __m256i, _CMP_GT_OQ, _mm256_andnot_ps, _mm256_cmp_ps, _mm256_cvtepi32_ps, _mm256_cvtps_epi32,
    _mm256_div_ps, _mm256_max_ps, _mm256_movemask_ps, _mm256_mul_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_sub_ps,
};

/// Parameters of the values of each lane, which they cover: no code needs to be clamped.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    pub(super) zero: __m256,
    pub(super) divisor: __m256,
    /// `1 / divisor`
    pub(super) inverse: __m256,
}

impl Steps {
    /// The same for all lanes.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub(super) fn new(zero: f32, divisor: f32, inverse: f32) -> Self {
        Self { zero: _mm256_set1_ps(zero), divisor: _mm256_set1_ps(divisor), inverse: _mm256_set1_ps(inverse) }
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub(super) fn codes<const N: usize>(&self, x: [__m256; N]) -> [__m256i; N] {
        let most = _mm256_set1_ps(0.5 - 1.0 / 16384.0);
        let mut worst = _mm256_setzero_ps();
        let offsets = x.map(|x| _mm256_sub_ps(x, self.zero));
        let codes = offsets.map(|offset| {
            let quotient = _mm256_mul_ps(offset, self.inverse);
            let code = _mm256_cvtps_epi32(quotient);
            let rest = _mm256_sub_ps(quotient, _mm256_cvtepi32_ps(code));
            worst = _mm256_max_ps(worst, _mm256_andnot_ps(_mm256_set1_ps(-0.0), rest));
            code
        });
        if _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(worst, most)) == 0 {
            return codes;
        }
        offsets.map(|offset| _mm256_cvtps_epi32(_mm256_div_ps(offset, self.divisor)))
    }
}
