//! Integer codes of groups along channels: encoding.

use super::super::kind::{Form, Run};
use super::codes::{bytes16, bytes32, store16, store32};
use super::load::Vector;
use super::params::{cover, cover_magnitude, floats, put_words};
use super::steps::Steps;
use super::walk::Walk;

/// Encodes a run; false where a group is left to the portable codec, with groups before it written.
///
/// # Safety
/// All that the form and the run name is valid; the form is whole and not along tokens.
#[target_feature(enable = "avx2,f16c")]
pub(super) unsafe fn encode<E: Vector, const BITS: u32, const SIGNED: bool>(form: &Form, run: &Run) -> bool {
    let mut walk = Walk::new(form, run, size_of::<E>());
    while let Some(batch) = walk.next() {
        // SAFETY: the caller's promise.
        let params = unsafe {
            if SIGNED {
                cover_magnitude(E::magnitude(&batch, form.group))
            } else {
                let (least, greatest) = E::survey(&batch, form.group);
                cover(least, greatest, ((1_u32 << BITS) - 1) as f32)
            }
        };
        let Some(params) = params else { return false };
        // SAFETY: the caller's promise.
        unsafe {
            put_words(params.scales, batch.count, batch.scales());
            if !SIGNED {
                put_words(params.zeros, batch.count, batch.zeros());
            }
        }
        let used = floats(params.zero).into_iter().zip(floats(params.divisor)).zip(floats(params.inverse));
        for (nth, ((zero, divisor), inverse)) in used.enumerate().take(batch.count) {
            let (group, steps) = (batch.group(nth), Steps::new(zero, divisor, inverse));
            // SAFETY: the caller's promise.
            unsafe { fill::<E, BITS, SIGNED>(group.x.cast(), form.group, &steps, group.codes) };
        }
    }
    true
}

/// Codes of a group.
///
/// # Safety
/// `x` is valid for reads of `n` elements, a multiple of 16, and `to` for writes of their codes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn fill<E: Vector, const BITS: u32, const SIGNED: bool>(x: *const E, n: usize, steps: &Steps, to: *mut u8) {
    // SAFETY: `at` is such that 8 elements are left.
    let load = |at: usize| unsafe { E::load8(x.add(at)) };
    let mut at = 0;
    while at + 32 <= n {
        let codes = steps.codes([load(at), load(at + 8), load(at + 16), load(at + 24)]);
        // SAFETY: at + 32 <= n.
        unsafe { store32::<BITS>(bytes32::<SIGNED>(codes), to.add(at * BITS as usize / 8)) };
        at += 32;
    }
    if at < n {
        let codes = steps.codes([load(at), load(at + 8)]);
        // SAFETY: n is a multiple of 16.
        unsafe { store16::<BITS>(bytes16::<SIGNED>(codes), to.add(at * BITS as usize / 8)) };
    }
}
