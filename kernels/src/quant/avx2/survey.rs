//! Extremes of 8 groups: each is folded into one vector, and the 8 vectors in three steps into one value per group.
//!
//! ```text
//!   a0 a1 a2 a3 | a4 ..    b0 b1 b2 b3 | b4 ..        unpack, low and high, of a and b
//!   a0 b0 a1 b1 | ..       a2 b2 a3 b3 | ..           the lesser of both: 4 vectors are left, of two groups each
//! ```

use core::arch::x86_64::{
    __m128i, __m256, __m256i, _CMP_UNORD_Q, _mm_max_epi16, _mm_min_epi16, _mm_setzero_si128, _mm_srai_epi16,
    _mm_srli_epi16, _mm_unpackhi_epi16, _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi16, _mm_unpacklo_epi32,
    _mm_unpacklo_epi64, _mm_xor_si128, _mm256_and_si256, _mm256_castpd_ps, _mm256_castps_pd, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cvtph_ps, _mm256_extracti128_si256,
    _mm256_loadu_si256, _mm256_max_epi16, _mm256_max_epi32, _mm256_max_ps, _mm256_min_epi16, _mm256_min_ps,
    _mm256_or_ps, _mm256_permute2f128_ps, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_ps,
    _mm256_setzero_si256, _mm256_srai_epi16, _mm256_srli_epi16, _mm256_unpackhi_pd, _mm256_unpackhi_ps,
    _mm256_unpacklo_pd, _mm256_unpacklo_ps, _mm256_xor_si256,
};

use super::load::Vector;
use super::walk::Batch;
use crate::cpu::element::F16;

/// As [`Vector::survey`].
///
/// # Safety
/// As there.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn survey_floats<E: Vector>(batch: &Batch, n: usize) -> (__m256, __m256) {
    let (mut least, mut greatest) = ([_mm256_setzero_ps(); 8], [_mm256_setzero_ps(); 8]);
    let mut nan = _mm256_setzero_ps();
    for (nth, (least, greatest)) in least.iter_mut().zip(&mut greatest).enumerate().take(batch.count) {
        let src = batch.group(nth).x.cast::<E>().cast_const();
        // SAFETY: n is at least 16.
        let (a, b) = unsafe { (E::load8(src), E::load8(src.add(8))) };
        let (mut low, mut high) = ([a, b], [a, b]);
        nan = _mm256_or_ps(nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, b));
        let mut at = 16;
        while at < n {
            // SAFETY: at + 16 <= n.
            let (a, b) = unsafe { (E::load8(src.add(at)), E::load8(src.add(at + 8))) };
            low = [_mm256_min_ps(low[0], a), _mm256_min_ps(low[1], b)];
            high = [_mm256_max_ps(high[0], a), _mm256_max_ps(high[1], b)];
            nan = _mm256_or_ps(nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, b));
            at += 16;
        }
        (*least, *greatest) = (_mm256_min_ps(low[0], low[1]), _mm256_max_ps(high[0], high[1]));
    }
    let least = fold_floats(least, |a, b| _mm256_min_ps(a, b));
    let greatest = fold_floats(greatest, |a, b| _mm256_max_ps(a, b));
    // All bits set are NaN, wherever it was: one lane is enough to refuse the batch.
    (_mm256_or_ps(least, nan), greatest)
}

/// Lane g of the result is the fold of vector g.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn fold_floats([a, b, c, d, e, f, g, h]: [__m256; 8], of: impl Fn(__m256, __m256) -> __m256) -> __m256 {
    let [ab, cd, ef, gh] =
        [(a, b), (c, d), (e, f), (g, h)].map(|(x, y)| of(_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y)));
    let [abcd, efgh] = [(ab, cd), (ef, gh)].map(|(x, y)| {
        let (x, y) = (_mm256_castps_pd(x), _mm256_castps_pd(y));
        of(_mm256_castpd_ps(_mm256_unpacklo_pd(x, y)), _mm256_castpd_ps(_mm256_unpackhi_pd(x, y)))
    });
    of(_mm256_permute2f128_ps::<0x20>(abcd, efgh), _mm256_permute2f128_ps::<0x31>(abcd, efgh))
}

/// As [`Vector::survey`]: 16 at a time, as integers in the order of the values, where NaN lies beyond infinity.
///
/// # Safety
/// As there.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn survey_halves(batch: &Batch, n: usize) -> (__m256, __m256) {
    let (mut least, mut greatest) = ([_mm_setzero_si128(); 8], [_mm_setzero_si128(); 8]);
    for (nth, (least, greatest)) in least.iter_mut().zip(&mut greatest).enumerate().take(batch.count) {
        let src = batch.group(nth).x.cast::<F16>().cast_const();
        // SAFETY: at + 16 <= n.
        let load = |at: usize| keys(unsafe { _mm256_loadu_si256(src.add(at).cast()) });
        let (mut low, mut high) = (load(0), load(0));
        let mut at = 16;
        while at < n {
            let keys = load(at);
            low = _mm256_min_epi16(low, keys);
            high = _mm256_max_epi16(high, keys);
            at += 16;
        }
        *least = _mm_min_epi16(_mm256_castsi256_si128(low), _mm256_extracti128_si256::<1>(low));
        *greatest = _mm_max_epi16(_mm256_castsi256_si128(high), _mm256_extracti128_si256::<1>(high));
    }
    let least = fold_words(least, |a, b| _mm_min_epi16(a, b));
    let greatest = fold_words(greatest, |a, b| _mm_max_epi16(a, b));
    (_mm256_cvtph_ps(bits(least)), _mm256_cvtph_ps(bits(greatest)))
}

/// As [`Vector::magnitude`]: bits without the sign, as integers, where NaN lies beyond infinity.
///
/// # Safety
/// As there.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn magnitude_floats<E: Vector>(batch: &Batch, n: usize) -> __m256 {
    let mut greatest = [_mm256_setzero_si256(); 8];
    for (nth, greatest) in greatest.iter_mut().enumerate().take(batch.count) {
        let src = batch.group(nth).x.cast::<E>().cast_const();
        let load = |at: usize| {
            // SAFETY: at + 8 <= n.
            let bits = _mm256_castps_si256(unsafe { E::load8(src.add(at)) });
            _mm256_and_si256(bits, _mm256_set1_epi32(i32::MAX))
        };
        let mut most = [load(0), load(8)];
        let mut at = 16;
        while at < n {
            most = [_mm256_max_epi32(most[0], load(at)), _mm256_max_epi32(most[1], load(at + 8))];
            at += 16;
        }
        *greatest = _mm256_max_epi32(most[0], most[1]);
    }
    let most = |a, b| _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
    fold_floats(greatest.map(|most| _mm256_castsi256_ps(most)), most)
}

/// As [`magnitude_floats`], 16 at a time.
///
/// # Safety
/// As there.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn magnitude_halves(batch: &Batch, n: usize) -> __m256 {
    let mut greatest = [_mm_setzero_si128(); 8];
    for (nth, greatest) in greatest.iter_mut().enumerate().take(batch.count) {
        let src = batch.group(nth).x.cast::<F16>().cast_const();
        let load = |at: usize| {
            // SAFETY: at + 16 <= n.
            let bits = unsafe { _mm256_loadu_si256(src.add(at).cast()) };
            _mm256_and_si256(bits, _mm256_set1_epi16(i16::MAX))
        };
        let mut most = load(0);
        let mut at = 16;
        while at < n {
            most = _mm256_max_epi16(most, load(at));
            at += 16;
        }
        *greatest = _mm_max_epi16(_mm256_castsi256_si128(most), _mm256_extracti128_si256::<1>(most));
    }
    _mm256_cvtph_ps(fold_words(greatest, |a, b| _mm_max_epi16(a, b)))
}

/// f16 bits as integers in the order of the values.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn keys(bits: __m256i) -> __m256i {
    _mm256_xor_si256(bits, _mm256_srli_epi16::<1>(_mm256_srai_epi16::<15>(bits)))
}

/// The inverse of [`keys`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn bits(keys: __m128i) -> __m128i {
    _mm_xor_si128(keys, _mm_srli_epi16::<1>(_mm_srai_epi16::<15>(keys)))
}

/// As [`fold_floats`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn fold_words([a, b, c, d, e, f, g, h]: [__m128i; 8], of: impl Fn(__m128i, __m128i) -> __m128i) -> __m128i {
    let [ab, cd, ef, gh] =
        [(a, b), (c, d), (e, f), (g, h)].map(|(x, y)| of(_mm_unpacklo_epi16(x, y), _mm_unpackhi_epi16(x, y)));
    let [abcd, efgh] = [(ab, cd), (ef, gh)].map(|(x, y)| of(_mm_unpacklo_epi32(x, y), _mm_unpackhi_epi32(x, y)));
    of(_mm_unpacklo_epi64(abcd, efgh), _mm_unpackhi_epi64(abcd, efgh))
}
