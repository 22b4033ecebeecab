//! 4-bit codes to f16: the 16 values of a group are worked out once, and looked up by byte.

use core::arch::x86_64::{
    __m128i, __m256, _mm_and_si128, _mm_loadu_si128, _mm_packus_epi16, _mm_set1_epi16, _mm_shuffle_epi8,
    _mm_srli_epi16, _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpacklo_epi8, _mm256_add_ps, _mm256_cvtepi32_ps,
    _mm256_mul_ps, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setr_epi32, _mm256_sub_epi32,
};

use super::output::Output;
use crate::cpu::element::F16;

/// The low and the high bytes of 16 values.
pub(super) struct Table {
    low: __m128i,
    high: __m128i,
}

impl Table {
    /// `(code - first) * scale + zero`, where there is a zero.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub(super) fn new(first: i32, scale: f32, zero: Option<f32>) -> Self {
        let mut values = [F16(0); 16];
        let codes = [_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)];
        for (codes, to) in codes.into_iter().zip(values.as_chunks_mut::<8>().0) {
            let codes = _mm256_cvtepi32_ps(_mm256_sub_epi32(codes, _mm256_set1_epi32(first)));
            let product: __m256 = _mm256_mul_ps(codes, _mm256_set1_ps(scale));
            let x = zero.map_or(product, |zero| _mm256_add_ps(product, _mm256_set1_ps(zero)));
            // SAFETY: 8 elements.
            unsafe { F16::store8::<true>(x, to.as_mut_ptr()) };
        }
        // SAFETY: 16 values are two vectors.
        let [a, b] = unsafe {
            let values = values.as_ptr().cast::<__m128i>();
            [_mm_loadu_si128(values), _mm_loadu_si128(values.add(1))]
        };
        let byte = _mm_set1_epi16(0xff);
        Self {
            low: _mm_packus_epi16(_mm_and_si128(a, byte), _mm_and_si128(b, byte)),
            high: _mm_packus_epi16(_mm_srli_epi16::<8>(a), _mm_srli_epi16::<8>(b)),
        }
    }

    /// Stores the values of 16 codes, a byte each.
    ///
    /// # Safety
    /// `to` is valid for writes of 16 f16.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    pub(super) unsafe fn store(&self, codes: __m128i, to: *mut u8) {
        let (low, high) = (_mm_shuffle_epi8(self.low, codes), _mm_shuffle_epi8(self.high, codes));
        // SAFETY: the caller's promise.
        unsafe {
            _mm_storeu_si128(to.cast(), _mm_unpacklo_epi8(low, high));
            _mm_storeu_si128(to.add(16).cast(), _mm_unpackhi_epi8(low, high));
        }
    }
}
