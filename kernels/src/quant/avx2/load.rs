//! Plain elements as vectors of 8 floats, and the extremes of groups.

use core::arch::x86_64::{
    __m128i, __m256, __m256i, _CMP_UNORD_Q, _mm_cvtph_ps, _mm_cvtsi32_si128, _mm_cvtsi128_si32, _mm_cvtss_f32,
    _mm_loadu_si128, _mm_max_epi16, _mm_max_ps, _mm_min_epi16, _mm_min_ps, _mm_minpos_epu16, _mm_movehl_ps,
    _mm_set1_epi16, _mm_shuffle_ps, _mm_xor_si128, _mm256_castps256_ps128, _mm256_castsi256_ps,
    _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cvtepu16_epi32, _mm256_cvtph_ps, _mm256_extractf128_ps,
    _mm256_extracti128_si256, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_max_epi16, _mm256_max_ps, _mm256_min_epi16,
    _mm256_min_ps, _mm256_movemask_ps, _mm256_or_ps, _mm256_set1_epi16, _mm256_set1_ps, _mm256_slli_epi32,
    _mm256_srai_epi16, _mm256_srli_epi16, _mm256_xor_si256,
};

use crate::cpu::element::{Bf16, Element, F16};

/// Elements that are read in vectors. For all functions: the CPU has AVX2 and F16C.
pub(super) trait Vector: Element {
    /// # Safety
    /// `src` is valid for reads of 8 elements.
    unsafe fn load8(src: *const Self) -> __m256;

    /// Least and greatest element; one of them is not finite where one of those is not. The sign of a zero is any.
    ///
    /// # Safety
    /// `src` is valid for reads of `n` elements, a multiple of 16 above 0.
    #[inline(always)]
    unsafe fn survey(src: *const Self, n: usize) -> (f32, f32) {
        // SAFETY: the caller's promise.
        unsafe { survey_floats(src, n) }
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
    unsafe fn survey(src: *const Self, n: usize) -> (f32, f32) {
        // SAFETY: the caller's promise.
        unsafe { survey_halves(src, n) }
    }
}

/// As [`Vector::survey`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn survey_floats<E: Vector>(src: *const E, n: usize) -> (f32, f32) {
    let mut least = [_mm256_set1_ps(f32::INFINITY); 2];
    let mut greatest = [_mm256_set1_ps(f32::NEG_INFINITY); 2];
    let mut nan = _mm256_set1_ps(0.0);
    let mut at = 0;
    while at < n {
        // SAFETY: at + 16 <= n.
        let (a, b) = unsafe { (E::load8(src.add(at)), E::load8(src.add(at + 8))) };
        least = [_mm256_min_ps(least[0], a), _mm256_min_ps(least[1], b)];
        greatest = [_mm256_max_ps(greatest[0], a), _mm256_max_ps(greatest[1], b)];
        nan = _mm256_or_ps(nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, b));
        at += 16;
    }
    let least = _mm256_min_ps(least[0], least[1]);
    let greatest = _mm256_max_ps(greatest[0], greatest[1]);
    if _mm256_movemask_ps(nan) != 0 {
        return (f32::NAN, f32::NAN);
    }
    let least = _mm_min_ps(_mm256_castps256_ps128(least), _mm256_extractf128_ps::<1>(least));
    let least = _mm_min_ps(least, _mm_movehl_ps(least, least));
    let least = _mm_min_ps(least, _mm_shuffle_ps::<1>(least, least));
    let greatest = _mm_max_ps(_mm256_castps256_ps128(greatest), _mm256_extractf128_ps::<1>(greatest));
    let greatest = _mm_max_ps(greatest, _mm_movehl_ps(greatest, greatest));
    let greatest = _mm_max_ps(greatest, _mm_shuffle_ps::<1>(greatest, greatest));
    (_mm_cvtss_f32(least), _mm_cvtss_f32(greatest))
}

/// As [`Vector::survey`]: 16 at a time, as integers in the order of the values, where NaN lies beyond infinity.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn survey_halves(src: *const F16, n: usize) -> (f32, f32) {
    let mut least = _mm256_set1_epi16(i16::MAX);
    let mut greatest = _mm256_set1_epi16(i16::MIN);
    let mut at = 0;
    while at < n {
        // SAFETY: at + 16 <= n.
        let bits: __m256i = unsafe { _mm256_loadu_si256(src.add(at).cast()) };
        let keys = _mm256_xor_si256(bits, _mm256_srli_epi16::<1>(_mm256_srai_epi16::<15>(bits)));
        least = _mm256_min_epi16(least, keys);
        greatest = _mm256_max_epi16(greatest, keys);
        at += 16;
    }
    let least = _mm_min_epi16(_mm256_castsi256_si128(least), _mm256_extracti128_si256::<1>(least));
    let greatest = _mm_max_epi16(_mm256_castsi256_si128(greatest), _mm256_extracti128_si256::<1>(greatest));
    // The least of unsigned words is one instruction: the top bit makes them so, the others turn the order round.
    let least = first(_mm_minpos_epu16(_mm_xor_si128(least, _mm_set1_epi16(i16::MIN)))) ^ 0x8000;
    let greatest = first(_mm_minpos_epu16(_mm_xor_si128(greatest, _mm_set1_epi16(i16::MAX)))) ^ 0x7fff;
    (half(least), half(greatest))
}

/// The first word.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn first(v: __m128i) -> u16 {
    _mm_cvtsi128_si32(v) as u16
}

/// The value of an ordered f16.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn half(key: u16) -> f32 {
    let bits = key ^ ((key as i16 >> 15) as u16 >> 1);
    _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(bits))))
}
