//! Token eviction: what stays
//!
//! Kept sets from scores, one float per slot. Tokens are ordered by score, then by position: the lowest go first, NaN is lowest
//! of all, and of equal scores the older goes. Pins, sinks and the newest tokens stay whatever their score. `keep` [used] gets a
//! bit per slot in the form of a stream's `valid`, `kept` the number of bits. Nothing changes until kvf_stream_retain.

use kvfolio::evict::{keep_above, keep_best, keep_best_by, keep_union};

use crate::eviction::{kvf_protected, kvf_stream};
use crate::lent::{answer, protected, slots};
use crate::ptr;
use crate::status::kvf_status;

/// The tokens that are protected at most, which is the least budget. O(pins).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_protected_tokens(
    guarded: *const kvf_protected,
    tokens: *mut u32,
    reason: *mut u32,
) -> kvf_status {
    let count = || {
        // SAFETY: rule (a).
        let (protected, tokens) = unsafe { (protected(guarded)?, ptr::out(tokens)?) };
        tokens.set(protected.tokens()?);
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, count) }
}

/// Keeps the `budget` best tokens, what is protected among them. `scores` [rows]; NULL = all equal, so that the oldest go: a
/// window, or with sinks StreamingLLM. A budget counts the token that was just appended. O(rows) for each token that goes if
/// they are few, else 17 passes over the rows.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_keep_best(
    stream: *const kvf_stream,
    scores: *const f32,
    guarded: *const kvf_protected,
    budget: u32,
    keep: *mut u64,
    kept: *mut u32,
    reason: *mut u32,
) -> kvf_status {
    let choose = || {
        // SAFETY: rule (a).
        let (slots, protected, kept) = unsafe { (slots(stream)?, protected(guarded)?, ptr::out(kept)?) };
        // SAFETY: rules (a) and (b).
        let (scores, keep) = unsafe {
            (ptr::optional_slice(scores, slots.rows as usize)?, ptr::slice_mut(keep, slots.columns() as usize)?)
        };
        kept.set(match scores {
            Some(scores) => keep_best(&slots, scores, &protected, budget, keep)?,
            None => keep_best_by(&slots, |_, _| 0.0, &protected, budget, keep)?,
        });
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, choose) }
}

/// Keeps what is protected, and every token whose score is `threshold` or more. With `recent` as a delay, what was decided when
/// a token came is carried out when it leaves the newest ones. O(rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_keep_above(
    stream: *const kvf_stream,
    scores: *const f32,
    guarded: *const kvf_protected,
    threshold: f32,
    keep: *mut u64,
    kept: *mut u32,
    reason: *mut u32,
) -> kvf_status {
    let choose = || {
        // SAFETY: rule (a).
        let (slots, protected, kept) = unsafe { (slots(stream)?, protected(guarded)?, ptr::out(kept)?) };
        let (scores, keep) =
            // SAFETY: rules (a) and (b).
            unsafe { (ptr::slice(scores, slots.rows as usize)?, ptr::slice_mut(keep, slots.columns() as usize)?) };
        kept.set(keep_above(&slots, scores, &protected, threshold, keep)?);
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, choose) }
}

/// Adds to `keep` [n] what `other` [n] keeps: one set for all heads or layers that share a table. `kept` gets the number of
/// bits. O(n).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_keep_union(
    other: *const u64,
    n: usize,
    keep: *mut u64,
    kept: *mut u32,
) -> kvf_status {
    let join = || {
        // SAFETY: rules (a) and (b).
        let (other, keep, kept) = unsafe { (ptr::slice(other, n)?, ptr::slice_mut(keep, n)?, ptr::out(kept)?) };
        kept.set(keep_union(keep, other)?);
        Ok(())
    };
    // SAFETY: NULL is good.
    unsafe { answer(core::ptr::null_mut(), join) }
}
