//! FP8 E4M3FN.

use core::arch::x86_64::{
    __m256, __m256i, _mm_and_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8, _mm_set1_epi16,
    _mm_setzero_si128, _mm_srai_epi16, _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpacklo_epi8, _mm256_add_epi32,
    _mm256_add_ps, _mm256_and_ps, _mm256_and_si256, _mm256_blendv_epi8, _mm256_castps_si256, _mm256_castsi256_ps,
    _mm256_cmpgt_epi32, _mm256_cvtph_ps, _mm256_div_ps, _mm256_max_ps, _mm256_min_epi32, _mm256_mul_ps,
    _mm256_or_si256, _mm256_set1_epi32, _mm256_set1_ps, _mm256_srli_epi32, _mm256_sub_epi32,
};

use super::super::kind::{Form, Kind, Run};
use super::codes::{bytes16, bytes32, store32};
use super::load::Vector;
use super::output::Output;
use super::params::{are_finite, floats};
use super::walk::{Group, Walk};

/// Encodes a run; false where a value is not finite, with groups before it written.
///
/// # Safety
/// All that the form and the run name is valid; the form is whole and of the kind.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn encode<E: Vector>(form: &Form, run: &Run) -> bool {
    let mut walk = Walk::new(form, run, size_of::<E>());
    let is_fixed = form.kind == Kind::E4m3Fixed;
    while let Some(batch) = walk.next() {
        // SAFETY: the caller's promise.
        let amax = unsafe { E::magnitude(&batch, form.group) };
        if !are_finite(amax) {
            return false;
        }
        let scales = if is_fixed {
            _mm256_set1_ps(run.fixed)
        } else {
            _mm256_max_ps(_mm256_div_ps(amax, _mm256_set1_ps(448.0)), _mm256_set1_ps(1e-12))
        };
        for (nth, scale) in floats(scales).into_iter().enumerate().take(batch.count) {
            let group = batch.group(nth);
            // SAFETY: the caller's promise.
            unsafe {
                if !is_fixed {
                    group.scale.cast::<f32>().write_unaligned(scale);
                }
                fill::<E>(group.x.cast(), form.group, scale, group.codes);
            }
        }
    }
    true
}

/// Codes of a group.
///
/// # Safety
/// `x` is valid for reads of `n` elements, a multiple of 16, and `to` for writes of `n` bytes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn fill<E: Vector>(x: *const E, n: usize, scale: f32, to: *mut u8) {
    let scale = _mm256_set1_ps(scale);
    // SAFETY: `at` is such that 8 elements are left.
    let code = |at: usize| code(_mm256_div_ps(unsafe { E::load8(x.add(at)) }, scale));
    let mut at = 0;
    while at + 32 <= n {
        let codes = bytes32::<false>([code(at), code(at + 8), code(at + 16), code(at + 24)]);
        // SAFETY: at + 32 <= n.
        unsafe { store32::<8>(codes, to.add(at)) };
        at += 32;
    }
    if at < n {
        // SAFETY: n is a multiple of 16.
        unsafe { _mm_storeu_si128(to.add(at).cast(), bytes16::<false>([code(at), code(at + 8)])) };
    }
}

/// Codes of values that are not NaN.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn code(x: __m256) -> __m256i {
    let bits = _mm256_castps_si256(x);
    let magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(i32::MAX));
    // Normal: to nearest even at the last bit kept; the bias moves from 127 to 7.
    let odd = _mm256_and_si256(_mm256_srli_epi32::<20>(magnitude), _mm256_set1_epi32(1));
    let rounded = _mm256_add_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32(0x7_ffff)), odd);
    let normal = _mm256_sub_epi32(_mm256_srli_epi32::<20>(rounded), _mm256_set1_epi32(120 << 3));
    // Subnormal: in the binade of 2^14 the unit is that of the code, so the addition rounds.
    let binade = _mm256_set1_ps(16384.0);
    let sum = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(magnitude), binade));
    let small = _mm256_sub_epi32(sum, _mm256_castps_si256(binade));
    let is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(121 << 23), magnitude);
    let value = _mm256_min_epi32(_mm256_blendv_epi8(normal, small, is_small), _mm256_set1_epi32(0x7e));
    let sign = _mm256_castps_si256(_mm256_and_ps(x, _mm256_set1_ps(-0.0)));
    _mm256_or_si256(value, _mm256_srli_epi32::<24>(sign))
}

/// Decodes a run; false where a code is NaN, with codes before it decoded, or a scale is not finite and above 0.
///
/// # Safety
/// As [`encode`].
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn decode<O: Output>(form: &Form, run: &Run) -> bool {
    // SAFETY: the caller's promise.
    Walk::new(form, run, size_of::<O>()).all(|group| unsafe { decode_group::<O>(form, run, group) })
}

/// # Safety
/// As [`decode`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn decode_group<O: Output>(form: &Form, run: &Run, group: Group) -> bool {
    let scale = if form.kind == Kind::E4m3Fixed {
        run.fixed
    } else {
        // SAFETY: the caller's promise.
        unsafe { group.scale.cast::<f32>().read_unaligned() }
    };
    // As f16 a code is 2^-8 of its value. Where the product with the scale is a number, it rounds once.
    let scale = scale * 256.0;
    if !(scale > 0.0 && scale < f32::INFINITY) {
        return false;
    }
    let scale = _mm256_set1_ps(scale);
    let out = group.x.cast::<O>();
    let mut at = 0;
    while at < form.group {
        // SAFETY: the group is of multiples of 16.
        let codes = unsafe { _mm_loadu_si128(group.codes.add(at).cast()) };
        let nan = _mm_set1_epi8(0x7f);
        if _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_and_si128(codes, nan), nan)) != 0 {
            return false;
        }
        let high = [_mm_unpacklo_epi8(_mm_setzero_si128(), codes), _mm_unpackhi_epi8(_mm_setzero_si128(), codes)];
        for (codes, at) in high.into_iter().zip([at, at + 8]) {
            // The sign stays; exponent and fraction move by one place.
            let half = _mm_and_si128(_mm_srai_epi16::<1>(codes), _mm_set1_epi16(0xbfff_u16 as i16));
            // SAFETY: as above.
            unsafe { O::store8::<true>(_mm256_mul_ps(_mm256_cvtph_ps(half), scale), out.add(at)) };
        }
        at += 16;
    }
    true
}
