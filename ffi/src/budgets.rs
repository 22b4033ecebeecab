//! Token eviction: budgets
//!
//! How layers, or the heads of a layer, share tokens. Sums are exact. `least` is the fewest tokens of one layer (0 = 1), `most`
//! the most (0 = no limit); KVF_ERR_ARGUMENT where no budgets of the wanted sum keep them. O(layers^2).

use kvfolio::evict::{Bounds, by_scores_of, by_weight, pyramid, uniform};

use crate::eviction::{kvf_protected, kvf_stream};
use crate::lent::{answer, protected, slots_and_channel};
use crate::ptr;
use crate::status::kvf_status;

/// The same for all `n` layers, and what is left over to the first ones: `total` tokens.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_budget_uniform(total: u64, budgets: *mut u32, n: usize, reason: *mut u32) -> kvf_status {
    let share = || {
        // SAFETY: rules (a) and (b).
        let budgets = unsafe { ptr::slice_mut(budgets, n) }?;
        Ok(uniform(total, budgets)?)
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, share) }
}

/// PyramidKV: `mean` tokens a layer, which fall from layer to layer in equal steps, from 2 mean - mean / beta to mean / beta.
/// `beta` is 1 to 65,536, and there are as many layers at most.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_budget_pyramid(
    mean: u32,
    beta: u32,
    least: u32,
    most: u32,
    budgets: *mut u32,
    n: usize,
    reason: *mut u32,
) -> kvf_status {
    let share = || {
        // SAFETY: rules (a) and (b).
        let budgets = unsafe { ptr::slice_mut(budgets, n) }?;
        Ok(pyramid(mean, beta, bounds(least, most), budgets)?)
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, share) }
}

/// `total` tokens, below 2^48, in proportion to a weight of each layer, at most 2^40: a wish, or a measured sensitivity. The
/// rest of the division goes to the largest remainders, of equal ones to the lower layer. Where all weights are 0 all are equal.
/// At most 65,536 layers.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_budget_by_weight(
    total: u64,
    weights: *const u64,
    n: usize,
    least: u32,
    most: u32,
    budgets: *mut u32,
    reason: *mut u32,
) -> kvf_status {
    let share = || {
        // SAFETY: rules (a) and (b).
        let (weights, budgets) = unsafe { (ptr::slice(weights, n)?, ptr::slice_mut(budgets, n)?) };
        let weight = |layer: u32| weights.get(layer as usize).copied().unwrap_or(0);
        Ok(by_weight(total, weight, bounds(least, most), budgets)?)
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, share) }
}

/// Ada-KV: `mean` tokens a head on average over `n` heads, at least `floor` for each; the rest goes to the tokens with the highest
/// scores of all heads, which lie in channel `channel` of the features of each stream. Of equal scores the newer token is in,
/// then that of the lower head. 65 passes over the tokens: for the end of a prompt, not for each step.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_budget_by_head_scores(
    streams: *const kvf_stream,
    n: usize,
    channel: u32,
    mean: u32,
    floor: u32,
    guarded: *const kvf_protected,
    budgets: *mut u32,
    reason: *mut u32,
) -> kvf_status {
    let share = || {
        let (streams, protected, budgets) =
            // SAFETY: rules (a) and (b).
            unsafe { (ptr::inputs(streams, n)?, protected(guarded)?, ptr::slice_mut(budgets, n)?) };
        for index in 0..n {
            // SAFETY: rule (a).
            unsafe { slots_and_channel(&streams.get(index)?, channel) }?;
        }
        let head = |index| {
            let stream = streams.get(index).ok()?;
            // SAFETY: rule (a).
            unsafe { slots_and_channel(&stream, channel) }.ok()
        };
        Ok(by_scores_of(mean, floor, &protected, (0..n).filter_map(head), budgets)?)
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, share) }
}

fn bounds(least: u32, most: u32) -> Bounds {
    Bounds { least, most: if most == 0 { u32::MAX } else { most } }
}
