//! Integer codes of groups along tokens, 8 channels at a time: a lane is a channel.
//!
//! ```text
//!   4 tokens of 8 channels as bytes, a channel in 32 bits    8 such vectors transposed
//!   c0: t0 t1 t2 t3 | c1: t0 t1 t2 t3 | ... | c7             c0: t0 .. t31
//! ```

use core::arch::x86_64::{
    __m256, __m256i, _CMP_UNORD_Q, _mm_loadu_si128, _mm_storeu_si128, _mm256_add_ps, _mm256_and_si256,
    _mm256_castsi128_si256, _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cvtepi32_ps, _mm256_cvtph_ps,
    _mm256_loadu_ps, _mm256_max_ps, _mm256_min_ps, _mm256_movemask_ps, _mm256_mul_ps, _mm256_or_ps, _mm256_packs_epi16,
    _mm256_packs_epi32, _mm256_packus_epi16, _mm256_permute2x128_si256, _mm256_set1_epi32, _mm256_set1_ps,
    _mm256_setr_epi8, _mm256_setzero_ps, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi32,
    _mm256_srai_epi32, _mm256_srli_epi32, _mm256_storeu_ps, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
};

use super::super::kind::{Form, Run};
use super::codes::{load16, load32, store16, store32};
use super::load::Vector;
use super::output::Output;
use super::params::{Params, are_finite, cover, cover_magnitude, magnitude, words};

/// Longest group.
const GROUP: usize = 128;
/// Channels of a tile: what a line of the cache holds of f16.
const TILE: usize = 32;

/// Values of a tile, `[tokens][channels]`.
#[repr(align(32))]
struct Tile([[f32; TILE]; GROUP]);

/// Encodes a run; false where a group is left to the portable codec, with groups before it written.
///
/// # Safety
/// All that the form and the run name is valid; the form is whole and along tokens.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn encode<E: Vector, const BITS: u32, const SIGNED: bool>(form: &Form, run: &Run) -> bool {
    let mut tile = Tile([[0.0; TILE]; GROUP]);
    for block in 0..run.blocks {
        let mut channel = 0;
        while channel < form.dim {
            let vectors = (form.dim - channel).min(TILE) / 8;
            let x = run.x.wrapping_add(block * form.group * run.x_step).cast::<E>().wrapping_add(channel);
            // SAFETY: the tile has the channels of so many vectors; the caller's promise.
            let extremes = unsafe { fill(x, run.x_step, form.group, vectors, &mut tile) };
            let Some(extremes) = extremes else { return false };
            for (vector, (least, greatest)) in extremes.into_iter().enumerate().take(vectors) {
                let params = if SIGNED {
                    cover_magnitude(magnitude(least, greatest))
                } else {
                    cover(least, greatest, ((1_u32 << BITS) - 1) as f32)
                };
                let Some(params) = params else { return false };
                let at = channel + vector * 8;
                // SAFETY: channels at..at + 8 of the block.
                unsafe {
                    let scales = run.scales.wrapping_add(block * run.scales_step + at * 2);
                    _mm_storeu_si128(scales.cast(), params.scales);
                    if !SIGNED {
                        let zeros = run.zeros.wrapping_add(block * run.zeros_step + at * 2);
                        _mm_storeu_si128(zeros.cast(), params.zeros);
                    }
                    let codes = run.codes.wrapping_add(block * run.codes_step + at * form.group_bytes());
                    pack::<BITS, SIGNED>(&tile, vector * 8, form.group, &params, codes);
                }
            }
            channel += TILE;
        }
    }
    true
}

/// Copies rows into the tile and gives the extremes of its channels; none for a NaN.
///
/// # Safety
/// `x` is valid for reads of 8 * `vectors` elements, at most [`TILE`], of `tokens` rows, at most [`GROUP`].
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn fill<E: Vector>(
    x: *const E,
    step: usize,
    tokens: usize,
    vectors: usize,
    tile: &mut Tile,
) -> Option<[(__m256, __m256); TILE / 8]> {
    let start = (_mm256_set1_ps(f32::INFINITY), _mm256_set1_ps(f32::NEG_INFINITY));
    let mut extremes = [start; TILE / 8];
    let mut nan = _mm256_setzero_ps();
    for (token, row) in tile.0.iter_mut().enumerate().take(tokens) {
        let x = x.wrapping_byte_add(token * step);
        let lanes = row.as_chunks_mut::<8>().0.iter_mut().zip(&mut extremes).enumerate().take(vectors);
        for (vector, (to, (least, greatest))) in lanes {
            // SAFETY: vector < vectors.
            let x = unsafe { E::load8(x.wrapping_add(vector * 8)) };
            *least = _mm256_min_ps(*least, x);
            *greatest = _mm256_max_ps(*greatest, x);
            nan = _mm256_or_ps(nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
            // SAFETY: 8 floats.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), x) };
        }
    }
    (_mm256_movemask_ps(nan) == 0).then_some(extremes)
}

/// Codes of 8 channels.
///
/// # Safety
/// `channel` + 8 is at most [`TILE`], `tokens` at most [`GROUP`] and a multiple of 16; `to` is valid for the codes of 8 groups.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn pack<const BITS: u32, const SIGNED: bool>(
    tile: &Tile,
    channel: usize,
    tokens: usize,
    params: &Params,
    to: *mut u8,
) {
    let base = tile.0.as_ptr().cast::<f32>().wrapping_add(channel);
    // SAFETY: the token is below GROUP, and the channel is that of a vector.
    let load = |token: usize| unsafe { _mm256_loadu_ps(base.wrapping_add(token * TILE)) };
    let steps = params.steps();
    let bytes = tokens * BITS as usize / 8;
    let mut token = 0;
    while token < tokens {
        let is_half = tokens - token < 32;
        let mut parts = [_mm256_setzero_si256(); 8];
        for (nth, part) in parts.iter_mut().enumerate().take(if is_half { 4 } else { 8 }) {
            let at = token + nth * 4;
            *part = quad::<SIGNED>(steps.codes([load(at), load(at + 1), load(at + 2), load(at + 3)]));
        }
        for (nth, codes) in transpose(parts).into_iter().enumerate() {
            let to = to.wrapping_add(nth * bytes + token * BITS as usize / 8);
            // SAFETY: 16 or 32 codes of group `nth`.
            unsafe {
                if is_half {
                    store16::<BITS>(_mm256_castsi256_si128(codes), to);
                } else {
                    store32::<BITS>(codes, to);
                }
            }
        }
        token += 32;
    }
}

/// Codes of 4 tokens, a channel's in 32 bits.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn quad<const SIGNED: bool>([a, b, c, d]: [__m256i; 4]) -> __m256i {
    let (low, high) = (_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    let bytes = if SIGNED { _mm256_packs_epi16(low, high) } else { _mm256_packus_epi16(low, high) };
    let order = _mm256_setr_epi8(
        0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15,
    );
    _mm256_shuffle_epi8(bytes, order)
}

/// Rows and columns of 8 by 8 integers change places.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn transpose([a, b, c, d, e, f, g, h]: [__m256i; 8]) -> [__m256i; 8] {
    let [ab, cd, ef, gh] =
        [(a, b), (c, d), (e, f), (g, h)].map(|(x, y)| (_mm256_unpacklo_epi32(x, y), _mm256_unpackhi_epi32(x, y)));
    let [first, second] = [(ab, cd), (ef, gh)].map(|(x, y)| {
        [
            _mm256_unpacklo_epi64(x.0, y.0),
            _mm256_unpackhi_epi64(x.0, y.0),
            _mm256_unpacklo_epi64(x.1, y.1),
            _mm256_unpackhi_epi64(x.1, y.1),
        ]
    });
    let [a, b, c, d] = first;
    let [e, f, g, h] = second;
    [
        _mm256_permute2x128_si256::<0x20>(a, e),
        _mm256_permute2x128_si256::<0x20>(b, f),
        _mm256_permute2x128_si256::<0x20>(c, g),
        _mm256_permute2x128_si256::<0x20>(d, h),
        _mm256_permute2x128_si256::<0x31>(a, e),
        _mm256_permute2x128_si256::<0x31>(b, f),
        _mm256_permute2x128_si256::<0x31>(c, g),
        _mm256_permute2x128_si256::<0x31>(d, h),
    ]
}

/// Decodes a run; false where a parameter is none that an encoder writes, with groups before it written.
///
/// # Safety
/// As [`encode`].
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn decode<O: Output, const BITS: u32, const SIGNED: bool>(form: &Form, run: &Run) -> bool {
    for block in 0..run.blocks {
        let mut channel = 0;
        while channel < form.dim {
            let codes = run.codes.wrapping_add(block * run.codes_step + channel * form.group_bytes());
            let x = run.x.wrapping_add(block * form.group * run.x_step).cast::<O>().wrapping_add(channel);
            // SAFETY: channels channel..channel + 8 of the block.
            let params = unsafe {
                let scales = _mm_loadu_si128(run.scales.wrapping_add(block * run.scales_step + channel * 2).cast());
                let zeros = if SIGNED {
                    _mm256_castsi256_si128(_mm256_setzero_si256())
                } else {
                    _mm_loadu_si128(run.zeros.wrapping_add(block * run.zeros_step + channel * 2).cast())
                };
                let is_negative = words(scales).into_iter().any(|scale| scale >= 0x8000);
                let (scale, zero) = (_mm256_cvtph_ps(scales), _mm256_cvtph_ps(zeros));
                (!is_negative && are_finite(scale) && are_finite(zero)).then_some((scale, zero))
            };
            let Some((scale, zero)) = params else { return false };
            // SAFETY: as above.
            unsafe { unpack::<O, BITS, SIGNED>(codes, form.group, scale, zero, x, run.x_step) };
            channel += 8;
        }
    }
    true
}

/// Values of 8 channels.
///
/// # Safety
/// `codes` is valid for reads of 8 groups, `x` for writes of 8 elements of `tokens` rows, a multiple of 16.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn unpack<O: Output, const BITS: u32, const SIGNED: bool>(
    codes: *const u8,
    tokens: usize,
    scale: __m256,
    zero: __m256,
    x: *mut O,
    step: usize,
) {
    let bytes = tokens * BITS as usize / 8;
    let mut token = 0;
    while token < tokens {
        let is_half = tokens - token < 32;
        let mut parts = [_mm256_setzero_si256(); 8];
        for (nth, part) in parts.iter_mut().enumerate() {
            let from = codes.wrapping_add(nth * bytes + token * BITS as usize / 8);
            // SAFETY: 16 or 32 codes of group `nth`.
            *part =
                unsafe { if is_half { _mm256_castsi128_si256(load16::<BITS>(from)) } else { load32::<BITS>(from) } };
        }
        for (nth, codes) in transpose(parts).into_iter().enumerate().take(if is_half { 4 } else { 8 }) {
            for (byte, code) in integers::<SIGNED>(codes).into_iter().enumerate() {
                let product = _mm256_mul_ps(_mm256_cvtepi32_ps(code), scale);
                let value = if SIGNED { product } else { _mm256_add_ps(product, zero) };
                // SAFETY: the token is below `tokens`.
                unsafe { O::store8::<true>(value, x.wrapping_byte_add((token + nth * 4 + byte) * step)) };
            }
        }
        token += 32;
    }
}

/// The 4 bytes of each 32 bits.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn integers<const SIGNED: bool>(v: __m256i) -> [__m256i; 4] {
    if SIGNED {
        let shifted = [_mm256_slli_epi32::<24>(v), _mm256_slli_epi32::<16>(v), _mm256_slli_epi32::<8>(v), v];
        shifted.map(|v| _mm256_srai_epi32::<24>(v))
    } else {
        let low = _mm256_set1_epi32(0xff);
        let (b, c) = (_mm256_srli_epi32::<8>(v), _mm256_srli_epi32::<16>(v));
        [_mm256_and_si256(v, low), _mm256_and_si256(b, low), _mm256_and_si256(c, low), _mm256_srli_epi32::<24>(v)]
    }
}
