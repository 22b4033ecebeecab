//! Retention
//!
//! The caller's say in the eviction order. All of it is soft: a leased page still goes when nothing else is left. Only
//! tickets pin.

use kvfolio::{LeaseId, Move, SequenceId};

use crate::cache::kvf_cache;
use crate::prefix::read_prompt;
use crate::ptr;
use crate::short::explain;
use crate::status::{KVF_ERR_ARGUMENT, Status, answer, kvf_status};
use crate::types::{kvf_lease, kvf_prompt, kvf_seq, kvf_shortage, kvf_tick};

/// Move to be evicted first. Pages that have children elsewhere stay.
pub const KVF_MOVE_COLD: u32 = 0;
/// Move to be evicted last within their class.
pub const KVF_MOVE_HOT: u32 = 1;

/// Keeps the published pages of a sequence's first `upto` tokens above all others until time passes `until`.
/// KVF_ERR_ARGUMENT when none of these tokens is published or `until` has passed.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_retain_lease(
    cache: *mut kvf_cache,
    seq: kvf_seq,
    upto: u32,
    until: kvf_tick,
    lease: *mut kvf_lease,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let begin = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let (lease, shortage) = unsafe { (ptr::out(lease)?, ptr::optional_output(shortage)?) };
        lease.set(explain(cache.cache.lease(SequenceId::from_bits(seq), upto, until), shortage)?.to_bits());
        Ok(())
    };
    answer(begin())
}

/// Ends a lease early.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_retain_end(cache: *mut kvf_cache, lease: kvf_lease) -> kvf_status {
    let end = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        Ok(cache.cache.end_lease(LeaseId::from_bits(lease))?)
    };
    answer(end())
}

/// Puts the cached prefix of a prompt into an eviction class; lower classes are evicted first. `tokens` gets the length of
/// that prefix. KVF_ERR_ARGUMENT for a class beyond the configured ones, or under KVF_POLICY_LFU. O(pages).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_retain_set_class(
    cache: *mut kvf_cache,
    prompt: *const kvf_prompt,
    eviction_class: u32,
    tokens: *mut u32,
) -> kvf_status {
    let set = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let (prompt, tokens) = unsafe { (read_prompt(prompt)?, ptr::out(tokens)?) };
        let class = u8::try_from(eviction_class).map_err(|_| Status(KVF_ERR_ARGUMENT))?;
        tokens.set(cache.cache.set_class(&prompt, class)?);
        Ok(())
    };
    answer(set())
}

/// Moves the cached prefix of a prompt to an end of the eviction order; `to` is KVF_MOVE_*. Used pages and pages that have
/// other children behind them stay where they are. `tokens` gets the length of the prefix. O(pages).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_retain_move(
    cache: *mut kvf_cache,
    prompt: *const kvf_prompt,
    to: u32,
    tokens: *mut u32,
) -> kvf_status {
    let reorder = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let (prompt, tokens) = unsafe { (read_prompt(prompt)?, ptr::out(tokens)?) };
        let to = match to {
            KVF_MOVE_COLD => Move::Cold,
            KVF_MOVE_HOT => Move::Hot,
            _ => return Err(Status(KVF_ERR_ARGUMENT)),
        };
        tokens.set(cache.cache.reorder(&prompt, to)?);
        Ok(())
    };
    answer(reorder())
}
