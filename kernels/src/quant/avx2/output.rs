//! What is decoded to.

use core::arch::x86_64::{
    __m256, _MM_FROUND_TO_NEAREST_INT, _mm_storeu_si128, _mm256_cvtps_ph, _mm256_max_ps, _mm256_min_ps, _mm256_set1_ps,
    _mm256_storeu_ps,
};

use crate::cpu::element::{Element, F16};

/// The largest f16.
const MOST: f32 = 65504.0;

/// Elements that are written in vectors.
pub(super) trait Output: Element {
    /// Whether the type is f16.
    const IS_HALF: bool;

    /// Stores 8 values that are not NaN, without `CLAMP` none beyond the type. The CPU has AVX2 and F16C.
    ///
    /// # Safety
    /// `to` is valid for writes of 8 elements.
    unsafe fn store8<const CLAMP: bool>(x: __m256, to: *mut Self);

    /// Whether magnitudes up to this one need to be clamped.
    #[inline(always)]
    fn clamps(most: f32) -> bool {
        Self::IS_HALF && (most > MOST || most.is_nan())
    }
}

impl Output for f32 {
    const IS_HALF: bool = false;

    #[inline(always)]
    unsafe fn store8<const CLAMP: bool>(x: __m256, to: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_ps(to, x) }
    }
}

/// To nearest, saturating.
impl Output for F16 {
    const IS_HALF: bool = true;

    #[inline(always)]
    unsafe fn store8<const CLAMP: bool>(x: __m256, to: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe {
            let x =
                if CLAMP { _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(MOST)), _mm256_set1_ps(-MOST)) } else { x };
            _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x));
        }
    }
}
