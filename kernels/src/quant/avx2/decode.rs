//! Integer codes of groups along channels: decoding.

use core::arch::x86_64::{
    __m128i, __m256, _mm_cvtph_ps, _mm_cvtsi32_si128, _mm_cvtss_f32, _mm_loadl_epi64, _mm_loadu_si128, _mm_set1_epi8,
    _mm_srli_si128, _mm_sub_epi8, _mm256_add_ps, _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32,
    _mm256_mul_ps, _mm256_set1_ps,
};

use super::super::kind::{Form, Run};
use super::codes::{load16, nibbles};
use super::output::Output;
use super::table::Table;
use super::walk::{Group, Walk};

/// The value of an f16; none where it is not finite.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn half(bits: u16) -> Option<f32> {
    (bits & 0x7c00 != 0x7c00).then(|| _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(bits)))))
}

/// The value of a scale of ours, which is not negative.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn scale(bits: u16) -> Option<f32> {
    if bits < 0x7c00 { half(bits) } else { None }
}

/// The first 8 bytes as floats.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn widen<const SIGNED: bool>(codes: __m128i) -> __m256 {
    _mm256_cvtepi32_ps(if SIGNED { _mm256_cvtepi8_epi32(codes) } else { _mm256_cvtepu8_epi32(codes) })
}

/// 16 codes as floats.
///
/// # Safety
/// As [`load16`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn values16<const BITS: u32, const SIGNED: bool>(from: *const u8) -> [__m256; 2] {
    // SAFETY: the caller's promise.
    unsafe {
        if BITS == 8 {
            return [_mm_loadl_epi64(from.cast()), _mm_loadl_epi64(from.add(8).cast())].map(|x| widen::<SIGNED>(x));
        }
        let codes = load16::<BITS>(from);
        [codes, _mm_srli_si128::<8>(codes)].map(|x| widen::<SIGNED>(x))
    }
}

/// Decodes a run; false where a parameter is none that an encoder writes, with groups before it written.
///
/// # Safety
/// All that the form and the run name is valid; the form is whole and not along tokens.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn decode<O: Output, const BITS: u32, const SIGNED: bool>(form: &Form, run: &Run) -> bool {
    // SAFETY: the caller's promise.
    Walk::new(form, run, size_of::<O>()).all(|group| unsafe { decode_group::<O, BITS, SIGNED>(form.group, group) })
}

/// # Safety
/// As [`decode`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn decode_group<O: Output, const BITS: u32, const SIGNED: bool>(n: usize, group: Group) -> bool {
    // SAFETY: the caller's promise.
    let Some(scale) = scale(unsafe { group.scale.cast::<u16>().read_unaligned() }) else { return false };
    let zero = if SIGNED {
        Some(0.0)
    } else {
        // SAFETY: the caller's promise.
        half(unsafe { group.zero.cast::<u16>().read_unaligned() })
    };
    let Some(zero) = zero else { return false };
    let most = if SIGNED { 128.0 * scale } else { ((1_u32 << BITS) - 1) as f32 * scale + zero };
    let out = group.x.cast::<O>();
    // SAFETY: the caller's promise.
    unsafe {
        if O::IS_HALF && BITS == 4 {
            let table = Table::new(0, scale, Some(zero));
            for at in (0..n).step_by(16) {
                table.store(load16::<4>(group.codes.add(at / 2)), group.x.add(at * 2));
            }
        } else if O::clamps(most) {
            expand::<O, BITS, SIGNED, true>(group.codes, n, scale, zero, out);
        } else {
            expand::<O, BITS, SIGNED, false>(group.codes, n, scale, zero, out);
        }
    }
    true
}

/// Values of a group.
///
/// # Safety
/// `codes` is valid for reads of `n` codes, a multiple of 16, and `out` for writes of their values.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn expand<O: Output, const BITS: u32, const SIGNED: bool, const CLAMP: bool>(
    codes: *const u8,
    n: usize,
    scale: f32,
    zero: f32,
    out: *mut O,
) {
    let (scale, zero) = (_mm256_set1_ps(scale), _mm256_set1_ps(zero));
    let value = |code: __m256| {
        let product = _mm256_mul_ps(code, scale);
        // Adding a zero would turn -0 into 0.
        if SIGNED { product } else { _mm256_add_ps(product, zero) }
    };
    let mut at = 0;
    while at < n {
        // SAFETY: at + 16 <= n.
        unsafe {
            let [a, b] = values16::<BITS, SIGNED>(codes.add(at * BITS as usize / 8));
            O::store8::<CLAMP>(value(a), out.add(at));
            O::store8::<CLAMP>(value(b), out.add(at + 8));
        }
        at += 16;
    }
}

/// Decodes blocks of q8_0 (`BITS` = 8) and q4_0 (4); false as in [`decode`].
///
/// # Safety
/// As [`decode`].
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn decode_blocks<O: Output, const BITS: u32>(form: &Form, run: &Run) -> bool {
    // SAFETY: the caller's promise.
    Walk::new(form, run, size_of::<O>()).all(|group| unsafe { decode_block::<O, BITS>(group) })
}

/// # Safety
/// As [`decode_blocks`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn decode_block<O: Output, const BITS: u32>(group: Group) -> bool {
    // SAFETY: a block begins with its scale; the caller's promise.
    let Some(d) = half(unsafe { group.codes.cast::<u16>().read_unaligned() }) else { return false };
    let (codes, out) = (group.codes.wrapping_add(2), group.x.cast::<O>());
    // SAFETY: 32 or 16 bytes of codes follow, of 32 elements.
    unsafe {
        if BITS == 8 {
            if O::clamps(128.0 * d.abs()) {
                expand::<O, 8, true, true>(codes, 32, d, 0.0, out);
            } else {
                expand::<O, 8, true, false>(codes, 32, d, 0.0, out);
            }
            return true;
        }
        let parts = nibbles(_mm_loadu_si128(codes.cast()));
        let table = if O::IS_HALF { Some(Table::new(8, d, None)) } else { None };
        for (codes, at) in parts.into_iter().zip([0, 16]) {
            if let Some(table) = &table {
                table.store(codes, group.x.add(at * 2));
                continue;
            }
            let codes = _mm_sub_epi8(codes, _mm_set1_epi8(8));
            let d = _mm256_set1_ps(d);
            O::store8::<true>(_mm256_mul_ps(widen::<true>(codes), d), out.add(at));
            O::store8::<true>(_mm256_mul_ps(widen::<true>(_mm_srli_si128::<8>(codes)), d), out.add(at + 8));
        }
    }
    true
}
