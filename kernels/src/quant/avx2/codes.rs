//! Codes: from integers in 32 bits to packed bytes, and back.

use core::arch::x86_64::{
    __m128i, __m256i, _mm_and_si128, _mm_cvtepu8_epi32, _mm_cvtsi32_si128, _mm_cvtsi128_si32, _mm_loadl_epi64,
    _mm_loadu_si128, _mm_madd_epi16, _mm_maddubs_epi16, _mm_or_si128, _mm_packs_epi16, _mm_packs_epi32,
    _mm_packus_epi16, _mm_set1_epi8, _mm_set1_epi16, _mm_set1_epi32, _mm_slli_epi32, _mm_srli_epi16, _mm_storel_epi64,
    _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpacklo_epi8, _mm256_castsi128_si256, _mm256_castsi256_si128,
    _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_packs_epi16, _mm256_packs_epi32, _mm256_packus_epi16,
    _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_setr_epi32,
};

/// 32 integers as bytes, in order.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn bytes32<const SIGNED: bool>([a, b, c, d]: [__m256i; 4]) -> __m256i {
    let (low, high) = (_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    let bytes = if SIGNED { _mm256_packs_epi16(low, high) } else { _mm256_packus_epi16(low, high) };
    _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))
}

/// 16 integers as bytes, in order.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn bytes16<const SIGNED: bool>([a, b]: [__m256i; 2]) -> __m128i {
    let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(a, b));
    let (low, high) = (_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
    if SIGNED { _mm_packs_epi16(low, high) } else { _mm_packus_epi16(low, high) }
}

/// Packs and stores 32 codes.
///
/// # Safety
/// `to` is valid for writes of 4 * BITS bytes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn store32<const BITS: u32>(codes: __m256i, to: *mut u8) {
    let (low, high) = (_mm256_castsi256_si128(codes), _mm256_extracti128_si256::<1>(codes));
    // SAFETY: the caller's promise.
    unsafe {
        match BITS {
            4 => _mm_storeu_si128(to.cast(), _mm_packus_epi16(pairs(low), pairs(high))),
            2 => {
                let words = _mm_packs_epi32(quads(low), quads(high));
                _mm_storel_epi64(to.cast(), _mm_packus_epi16(words, words));
            }
            _ => {
                _mm_storeu_si128(to.cast(), low);
                _mm_storeu_si128(to.add(16).cast(), high);
            }
        }
    }
}

/// Packs and stores 16 codes.
///
/// # Safety
/// `to` is valid for writes of 2 * BITS bytes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn store16<const BITS: u32>(codes: __m128i, to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        match BITS {
            4 => {
                let words = pairs(codes);
                _mm_storel_epi64(to.cast(), _mm_packus_epi16(words, words));
            }
            2 => {
                let words = _mm_packs_epi32(quads(codes), quads(codes));
                to.cast::<i32>().write_unaligned(_mm_cvtsi128_si32(_mm_packus_epi16(words, words)));
            }
            _ => _mm_storeu_si128(to.cast(), codes),
        }
    }
}

/// Bytes of two 4-bit codes each, as words.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn pairs(codes: __m128i) -> __m128i {
    _mm_maddubs_epi16(codes, _mm_set1_epi16(0x1001))
}

/// Bytes of four 2-bit codes each, in 32 bits.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn quads(codes: __m128i) -> __m128i {
    let nibbles = _mm_maddubs_epi16(codes, _mm_set1_epi16(0x0401));
    _mm_madd_epi16(nibbles, _mm_set1_epi32(0x10_0001))
}

/// Loads 16 codes, a byte each.
///
/// # Safety
/// `from` is valid for reads of 2 * BITS bytes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn load16<const BITS: u32>(from: *const u8) -> __m128i {
    // SAFETY: the caller's promise.
    unsafe {
        match BITS {
            4 => {
                let [low, high] = nibbles(_mm_loadl_epi64(from.cast()));
                _mm_unpacklo_epi8(low, high)
            }
            2 => spread(_mm_cvtsi32_si128(from.cast::<i32>().read_unaligned())),
            _ => _mm_loadu_si128(from.cast()),
        }
    }
}

/// Loads 32 codes, a byte each.
///
/// # Safety
/// `from` is valid for reads of 4 * BITS bytes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn load32<const BITS: u32>(from: *const u8) -> __m256i {
    // SAFETY: the caller's promise.
    let [low, high] = unsafe {
        match BITS {
            4 => {
                let [low, high] = nibbles(_mm_loadu_si128(from.cast()));
                [_mm_unpacklo_epi8(low, high), _mm_unpackhi_epi8(low, high)]
            }
            _ => [load16::<BITS>(from), load16::<BITS>(from.add(2 * BITS as usize))],
        }
    };
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
}

/// The low and the high halves of bytes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn nibbles(bytes: __m128i) -> [__m128i; 2] {
    let low = _mm_set1_epi8(15);
    [_mm_and_si128(bytes, low), _mm_and_si128(_mm_srli_epi16::<4>(bytes), low)]
}

/// The 2-bit codes of 4 bytes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn spread(bytes: __m128i) -> __m128i {
    let bytes = _mm_cvtepu8_epi32(bytes);
    let bytes = _mm_or_si128(bytes, _mm_slli_epi32::<12>(bytes));
    let bytes = _mm_or_si128(bytes, _mm_slli_epi32::<6>(bytes));
    _mm_and_si128(bytes, _mm_set1_epi8(3))
}
