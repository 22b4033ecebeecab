//! Plain elements as vectors of 8 floats.

use core::arch::x86_64::{
    __m256, _mm_loadu_si128, _mm256_castsi256_ps, _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_loadu_ps,
    _mm256_slli_epi32,
};

use super::survey::{magnitude_floats, magnitude_halves, survey_floats, survey_halves};
use super::walk::Batch;
use crate::cpu::element::{Bf16, Element, F16};

/// Elements that are read in vectors. For all functions: the CPU has AVX2 and F16C.
pub(super) trait Vector: Element {
    /// # Safety
    /// `src` is valid for reads of 8 elements.
    unsafe fn load8(src: *const Self) -> __m256;

    /// Least and greatest element of each group; 0 for groups that are not there. Not finite where an element of any group is NaN,
    /// or one of the group is infinite. The sign of a zero is any.
    ///
    /// # Safety
    /// The groups are valid for reads of `n` elements, a multiple of 16 above 0.
    #[inline(always)]
    unsafe fn survey(batch: &Batch, n: usize) -> (__m256, __m256) {
        // SAFETY: the caller's promise.
        unsafe { survey_floats::<Self>(batch, n) }
    }

    /// The greatest magnitude of each group; 0 for groups that are not there. NaN or infinite where an element of the group is.
    ///
    /// # Safety
    /// As [`survey`](Vector::survey).
    #[inline(always)]
    unsafe fn magnitude(batch: &Batch, n: usize) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { magnitude_floats::<Self>(batch, n) }
    }
}

impl Vector for f32 {
    #[inline(always)]
    unsafe fn load8(src: *const Self) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_ps(src) }
    }
}

impl Vector for Bf16 {
    #[inline(always)]
    unsafe fn load8(src: *const Self) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe {
            let words = _mm256_cvtepu16_epi32(_mm_loadu_si128(src.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(words))
        }
    }
}

impl Vector for F16 {
    #[inline(always)]
    unsafe fn load8(src: *const Self) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(src.cast())) }
    }

    #[inline(always)]
    unsafe fn survey(batch: &Batch, n: usize) -> (__m256, __m256) {
        // SAFETY: the caller's promise.
        unsafe { survey_halves(batch, n) }
    }

    #[inline(always)]
    unsafe fn magnitude(batch: &Batch, n: usize) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { magnitude_halves(batch, n) }
    }
}
