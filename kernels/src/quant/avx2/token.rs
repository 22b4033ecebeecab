//! Integer codes of groups along channels: encoding.

use core::arch::x86_64::{
    __m256, __m256i, _mm256_cvtps_epi32, _mm256_div_ps, _mm256_set1_ps, _mm256_sub_ps,
};

use super::super::kind::{Form, Run};
use super::codes::{bytes16, bytes32, store16, store32};
use super::load::Vector;
use super::params::{cover, cover_magnitude, floats, vector, words};
use super::walk::{Group, Walk};

/// Extremes of a batch; groups that are not there have 0.
///
/// # Safety
/// The groups are valid for reads of `n` elements, a multiple of 16 above 0.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn survey<E: Vector>(groups: &[Group; 8], count: usize, n: usize) -> (__m256, __m256) {
    let (mut least, mut greatest) = ([0.0; 8], [0.0; 8]);
    let extremes = least.iter_mut().zip(&mut greatest);
    for (group, (least, greatest)) in groups.iter().zip(extremes).take(count) {
        // SAFETY: the caller's promise.
        (*least, *greatest) = unsafe { E::survey(group.x.cast(), n) };
    }
    (vector(least), vector(greatest))
}

/// Encodes a run; false where a group is left to the portable codec, with groups before it written.
///
/// # Safety
/// All that the form and the run name is valid; the form is whole and not along tokens.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn encode<E: Vector, const BITS: u32, const SIGNED: bool>(form: &Form, run: &Run) -> bool {
    let mut walk = Walk::new(form, run, size_of::<E>());
    loop {
        let (groups, count) = walk.batch();
        if count == 0 {
            return true;
        }
        // SAFETY: the caller's promise.
        let (least, greatest) = unsafe { survey::<E>(&groups, count, form.group) };
        let params = if SIGNED {
            cover_magnitude(least, greatest)
        } else {
            cover(least, greatest, ((1_u32 << BITS) - 1) as f32)
        };
        let Some(params) = params else { return false };
        let stored = words(params.scales).into_iter().zip(words(params.zeros));
        let used = floats(params.zero).into_iter().zip(floats(params.divisor));
        for ((group, (scale, zero)), (from, divisor)) in groups.iter().zip(stored).zip(used).take(count) {
            // SAFETY: the caller's promise.
            unsafe {
                group.scale.cast::<u16>().write_unaligned(scale);
                if !SIGNED {
                    group.zero.cast::<u16>().write_unaligned(zero);
                }
                fill::<E, BITS, SIGNED>(group.x.cast(), form.group, from, divisor, group.codes);
            }
        }
    }
}

/// Codes of a group.
///
/// # Safety
/// `x` is valid for reads of `n` elements, a multiple of 16, and `to` for writes of their codes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn fill<E: Vector, const BITS: u32, const SIGNED: bool>(
    x: *const E,
    n: usize,
    zero: f32,
    divisor: f32,
    to: *mut u8,
) {
    let (zero, divisor) = (_mm256_set1_ps(zero), _mm256_set1_ps(divisor));
    // SAFETY: `at` is such that 8 elements are left.
    let code = |at: usize| unsafe { steps(E::load8(x.add(at)), zero, divisor) };
    let mut at = 0;
    while at + 32 <= n {
        let codes = bytes32::<SIGNED>([code(at), code(at + 8), code(at + 16), code(at + 24)]);
        // SAFETY: at + 32 <= n.
        unsafe { store32::<BITS>(codes, to.add(at * BITS as usize / 8)) };
        at += 32;
    }
    if at < n {
        let codes = bytes16::<SIGNED>([code(at), code(at + 8)]);
        // SAFETY: n is a multiple of 16.
        unsafe { store16::<BITS>(codes, to.add(at * BITS as usize / 8)) };
    }
}

/// Codes of 8 values, which the parameters cover: none needs to be clamped.
#[inline]
#[target_feature(enable = "avx2,f16c")]
pub(super) fn steps(x: __m256, zero: __m256, divisor: __m256) -> __m256i {
    _mm256_cvtps_epi32(_mm256_div_ps(_mm256_sub_ps(x, zero), divisor))
}
