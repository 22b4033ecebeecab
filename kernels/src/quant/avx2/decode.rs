//! Integer codes of groups along channels: decoding.

use core::arch::x86_64::{
    __m128i, __m256, _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_srli_si128, _mm_storeu_si128, _mm256_add_ps,
    _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32, _mm256_cvtps_ph, _mm256_max_ps, _mm256_min_ps,
    _mm256_mul_ps, _mm256_set1_ps, _mm256_storeu_ps,
};

use super::super::kind::{Form, Kind, Run};
use super::codes::load16;
use super::walk::Walk;
use crate::cpu::element::{Element, F16};

/// What is decoded to.
pub(super) trait Output: Element {
    /// Stores 8 values. They are not NaN. The CPU has AVX2 and F16C.
    ///
    /// # Safety
    /// `to` is valid for writes of 8 elements.
    unsafe fn store8(x: __m256, to: *mut Self);
}

impl Output for f32 {
    #[inline(always)]
    unsafe fn store8(x: __m256, to: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_ps(to, x) }
    }
}

/// To nearest, saturating.
impl Output for F16 {
    #[inline(always)]
    unsafe fn store8(x: __m256, to: *mut Self) {
        // SAFETY: the caller's promise.
        unsafe {
            let x = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(65504.0)), _mm256_set1_ps(-65504.0));
            _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x));
        }
    }
}

/// The value of an f16; none where it is not finite.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn half(bits: u16) -> Option<f32> {
    use core::arch::x86_64::{_mm_cvtph_ps, _mm_cvtsi32_si128, _mm_cvtss_f32};
    (bits & 0x7c00 != 0x7c00).then(|| _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(bits)))))
}

/// The value of a scale of ours, which is not negative.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn scale(bits: u16) -> Option<f32> {
    if bits < 0x7c00 { half(bits) } else { None }
}

/// 16 bytes as floats.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn widen<const SIGNED: bool>(codes: __m128i) -> [__m256; 2] {
    [codes, _mm_srli_si128::<8>(codes)].map(|codes| {
        _mm256_cvtepi32_ps(if SIGNED { _mm256_cvtepi8_epi32(codes) } else { _mm256_cvtepu8_epi32(codes) })
    })
}

/// Decodes a run; false where a parameter is none that an encoder writes, with groups before it written.
///
/// # Safety
/// All that the form and the run name is valid; the form is whole and not along tokens.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn decode<O: Output, const BITS: u32, const SIGNED: bool>(form: &Form, run: &Run) -> bool {
    let mut walk = Walk::new(form, run, size_of::<O>());
    while let Some(group) = walk.next() {
        // SAFETY: the caller's promise.
        let Some(scale) = scale(unsafe { group.scale.cast::<u16>().read_unaligned() }) else { return false };
        let zero = if SIGNED {
            Some(0.0)
        } else {
            // SAFETY: the caller's promise.
            half(unsafe { group.zero.cast::<u16>().read_unaligned() })
        };
        let Some(zero) = zero else { return false };
        let (scale, zero) = (_mm256_set1_ps(scale), _mm256_set1_ps(zero));
        // A product of codes is exact; adding a zero to it would turn -0 into 0.
        let value = |code: __m256| {
            let product = _mm256_mul_ps(code, scale);
            if SIGNED { product } else { _mm256_add_ps(product, zero) }
        };
        let out = group.x.cast::<O>();
        let mut at = 0;
        while at < form.group {
            // SAFETY: at + 16 <= group.
            unsafe {
                let [a, b] = widen::<SIGNED>(load16::<BITS>(group.codes.add(at * BITS as usize / 8)));
                O::store8(value(a), out.add(at));
                O::store8(value(b), out.add(at + 8));
            }
            at += 16;
        }
    }
    true
}

/// Decodes blocks of q8_0 and q4_0; false as in [`decode`].
///
/// # Safety
/// As [`decode`].
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn decode_blocks<O: Output, const BITS: u32>(form: &Form, run: &Run) -> bool {
    use super::codes::nibbles;
    use core::arch::x86_64::{_mm_set1_epi8, _mm_sub_epi8};
    debug_assert!(matches!(form.kind, Kind::Q8_0 | Kind::Q4_0));
    let mut walk = Walk::new(form, run, size_of::<O>());
    while let Some(group) = walk.next() {
        // SAFETY: a block begins with its scale; the caller's promise.
        let Some(d) = half(unsafe { group.codes.cast::<u16>().read_unaligned() }) else { return false };
        let d = _mm256_set1_ps(d);
        // SAFETY: 32 or 16 bytes of codes follow.
        let parts = unsafe {
            let first = _mm_loadu_si128(group.codes.add(2).cast());
            if BITS == 8 {
                [first, _mm_loadu_si128(group.codes.add(18).cast())]
            } else {
                nibbles(first).map(|codes| _mm_sub_epi8(codes, _mm_set1_epi8(8)))
            }
        };
        let out = group.x.cast::<O>();
        for (codes, at) in parts.into_iter().zip([0, 16]) {
            let [a, b] = widen::<true>(codes);
            // SAFETY: a block has 32 elements.
            unsafe {
                O::store8(_mm256_mul_ps(a, d), out.add(at));
                O::store8(_mm256_mul_ps(b, d), out.add(at + 8));
            }
        }
    }
    true
}
