//! Token eviction: what it costs
//!
//! The attention that evicted tokens would have had, their mass m: the output over all tokens is (1 - m) kept + m evicted, each
//! over its tokens alone; the output after eviction is the kept part.

use kvfolio::evict::{mass_of_lse, mass_of_row, output_error};

use crate::eviction::kvf_stream;
use crate::lent::{answer, slots};
use crate::ptr;
use crate::status::kvf_status;

/// The mass that a row of probabilities [rows] gives to live tokens that `keep` [used] does not keep: what evicting them would
/// lose. O(rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_mass_of_row(
    stream: *const kvf_stream,
    probabilities: *const f32,
    keep: *const u64,
    mass: *mut f32,
    reason: *mut u32,
) -> kvf_status {
    let ask = || {
        // SAFETY: rule (a).
        let (slots, mass) = unsafe { (slots(stream)?, ptr::out(mass)?) };
        let (probabilities, keep) =
            // SAFETY: rule (a).
            unsafe { (ptr::slice(probabilities, slots.rows as usize)?, ptr::slice(keep, slots.columns() as usize)?) };
        mass.set(mass_of_row(&slots, probabilities, keep)?);
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, ask) }
}

/// The mass of what goes, 0 to 1, from the logarithms of the sums of exponentials over what is kept and over all tokens.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub extern "C" fn kvf_evict_mass_of_lse(kept: f32, all: f32) -> f32 {
    mass_of_lse(kept, all)
}

/// The error that eviction makes in an output of `n` elements: mass * (kept - evicted). O(n).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_output_error(
    mass: f32,
    kept: *const f32,
    evicted: *const f32,
    n: usize,
    error: *mut f32,
) -> kvf_status {
    let write = || {
        let (kept, evicted, error) =
            // SAFETY: rules (a) and (b).
            unsafe { (ptr::slice(kept, n)?, ptr::slice(evicted, n)?, ptr::slice_mut(error, n)?) };
        Ok(output_error(mass, kept, evicted, error)?)
    };
    // SAFETY: NULL is good.
    unsafe { answer(core::ptr::null_mut(), write) }
}
