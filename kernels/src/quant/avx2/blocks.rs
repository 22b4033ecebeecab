//! The blocks of ggml: encoding.

use core::arch::x86_64::{
    __m256, _CMP_EQ_OQ, _CMP_GT_OQ, _MM_FROUND_TO_NEAREST_INT, _mm_packus_epi16, _mm_storeu_si128, _mm256_abs_epi16,
    _mm256_add_ps, _mm256_avg_epu16, _mm256_blendv_ps, _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cvtph_ps,
    _mm256_cvtps_ph, _mm256_cvttps_epi32, _mm256_div_ps, _mm256_extracti128_si256, _mm256_min_ps, _mm256_movemask_ps,
    _mm256_mul_ps, _mm256_or_si256, _mm256_packs_epi16, _mm256_packs_epi32, _mm256_permute4x64_epi64,
    _mm256_permutevar8x32_epi32, _mm256_set1_ps, _mm256_setr_epi32, _mm256_setr_ps, _mm256_setzero_si256,
    _mm256_sign_epi16, _mm256_slli_epi16, _mm256_storeu_si256, _mm256_xor_ps,
};

use super::super::kind::{Form, Run};
use super::load::Vector;
use super::params::{are_finite, floats, inverse, words};
use super::walk::{Batch, Walk};

/// Encodes q8_0 (`BITS` = 8) or q4_0 (4); false where a block is left to the portable codec, with blocks before it written.
///
/// # Safety
/// All that the form and the run name is valid; the form is whole and of the kind.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn encode<E: Vector, const BITS: u32>(form: &Form, run: &Run) -> bool {
    let mut walk = Walk::new(form, run, size_of::<E>());
    while let Some(batch) = walk.next() {
        // SAFETY: the caller's promise; a block has 32 elements.
        let d = unsafe {
            if BITS == 8 {
                let amax = E::magnitude(&batch, 32);
                are_finite(amax).then(|| _mm256_div_ps(amax, _mm256_set1_ps(127.0)))
            } else {
                extremes::<E>(&batch).map(|first| _mm256_div_ps(first, _mm256_set1_ps(-8.0)))
            }
        };
        let Some(d) = d else { return false };
        let scales = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(d);
        let inverse = inverse(d);
        // q8_0 counts in half steps.
        let factor = if BITS == 8 { _mm256_add_ps(inverse, inverse) } else { inverse };
        if !are_finite(_mm256_cvtph_ps(scales)) || !are_finite(factor) {
            return false;
        }
        let params = words(scales).into_iter().zip(floats(factor));
        for (nth, (scale, factor)) in params.enumerate().take(batch.count) {
            let (group, factor) = (batch.group(nth), _mm256_set1_ps(factor));
            // SAFETY: a block has 2 bytes of scale and 16 or 32 of codes.
            unsafe {
                group.codes.cast::<u16>().write_unaligned(scale);
                let (x, to) = (group.x.cast(), group.codes.add(2));
                if BITS == 8 { q8_0::<E>(x, factor, to) } else { q4_0::<E>(x, factor, to) }
            }
        }
    }
    true
}

/// The value of the greatest magnitude of each block, of several the first; none where one is not finite.
///
/// # Safety
/// The groups are valid for reads of 32 elements.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn extremes<E: Vector>(batch: &Batch) -> Option<__m256> {
    // SAFETY: the caller's promise.
    let (least, greatest) = unsafe { E::survey(batch, 32) };
    if !are_finite(least) || !are_finite(greatest) {
        return None;
    }
    let opposite = _mm256_xor_ps(least, _mm256_set1_ps(-0.0));
    let first = _mm256_blendv_ps(least, greatest, _mm256_cmp_ps::<_CMP_GT_OQ>(greatest, opposite));
    let ties = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_EQ_OQ>(greatest, opposite)) & ((1 << batch.count) - 1);
    if ties == 0 {
        return Some(first);
    }
    let mut first = floats(first);
    for (lane, to) in first.iter_mut().enumerate().take(batch.count) {
        for at in (0..32).rev().filter(|_| ties & 1 << lane != 0) {
            // SAFETY: a block has 32 elements.
            let x = unsafe { *batch.group(lane).x.cast::<E>().add(at) }.to_f32();
            if x.abs() == to.abs() {
                *to = x;
            }
        }
    }
    let [a, b, c, d, e, f, g, h] = first;
    Some(_mm256_setr_ps(a, b, c, d, e, f, g, h))
}

/// To nearest, ties away from 0. `twice` is 2 / d: a whole number of half steps h, as which products are cut, is nearest to
/// (|h| + 1) / 2 steps, cut likewise. Doubling is exact where the product is not among the smallest floats, which are no half step.
///
/// # Safety
/// `x` is valid for reads of 32 elements, `to` for writes of 32 bytes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn q8_0<E: Vector>(x: *const E, twice: __m256, to: *mut u8) {
    let [a, b, c, d] = [0, 8, 16, 24].map(|at| {
        // SAFETY: at + 8 <= 32.
        _mm256_cvttps_epi32(_mm256_mul_ps(unsafe { E::load8(x.add(at)) }, twice))
    });
    let [low, high] = [(a, b), (c, d)].map(|(a, b)| {
        let halves = _mm256_packs_epi32(a, b);
        _mm256_sign_epi16(_mm256_avg_epu16(_mm256_abs_epi16(halves), _mm256_setzero_si256()), halves)
    });
    let codes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    // SAFETY: the caller's promise.
    unsafe { _mm256_storeu_si256(to.cast(), codes) }
}

/// # Safety
/// `x` is valid for reads of 32 elements, `to` for writes of 16 bytes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn q4_0<E: Vector>(x: *const E, inverse: __m256, to: *mut u8) {
    let [a, b, c, d] = [0, 8, 16, 24].map(|at| {
        // SAFETY: at + 8 <= 32.
        let steps = _mm256_mul_ps(unsafe { E::load8(x.add(at)) }, inverse);
        let steps = _mm256_add_ps(steps, _mm256_set1_ps(8.5));
        _mm256_cvttps_epi32(_mm256_min_ps(steps, _mm256_set1_ps(15.0)))
    });
    let (low, high) = (_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_or_si256(low, _mm256_slli_epi16::<4>(high)));
    let bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
    // SAFETY: the caller's promise.
    unsafe { _mm_storeu_si128(to.cast(), bytes) }
}
