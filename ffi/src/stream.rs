//! Token eviction: streams
//!
//! Which tokens of a row stay when there is no room for all, and how pages follow. These functions know no cache: they work on
//! arrays of the caller, one kvf_stream for each row of pages, and may be called from several threads for different streams. A
//! library built without its feature "evict" lacks this section and those behind it.
//!
//! ```text
//! append     kvf_stream_append says to which slots the keys and values of new tokens go
//! score      kvf_evict_h2o_observe and others keep a float per slot; or the caller writes the array
//! keep       kvf_evict_keep_best: the budget's best tokens, and what is protected, as a bit per slot
//! remove     kvf_stream_retain makes holes, which kernels mask by `valid`;
//!            kvf_stream_drop_dead_columns gives up pages without a live token;
//!            KVF_PLACE_REUSE writes new tokens into holes, kvf_stream_plan_compaction closes them
//! ```
//!
//! Positions of what stays never change. [rows] in a comment: as many elements as the stream has rows; [used]: as many words
//! as it has columns in use, (rows + P - 1) / P. A score of a slot without a live token has no meaning. Streams, scores of
//! H2O, sums of keys, and the kept set of kvf_evict_keep_union are read as well as written.
//!
//! `reason`, which may be NULL, gets the number of the rule that was broken, KVF_EVICT_*, where a call fails with
//! KVF_ERR_ARGUMENT, KVF_ERR_UNSUPPORTED, KVF_ERR_LAYOUT, KVF_RETRY or KVF_NEVER because of one.

use core::ffi::c_char;

use kvfolio::evict::{EvictError, Placement, PositionMode, deltas as rank_deltas};

use crate::eviction::kvf_stream;
use crate::lent::{Refused, answer, lent, slots};
use crate::ptr;
use crate::status::{KVF_ERR_ARGUMENT, KVF_ERR_SHORT_BUFFER, KVF_NEVER, KVF_RETRY, Status, kvf_status};

/// Arrays are shorter than what they describe, or P is not 1, 2, 4, ... 64.
pub const KVF_EVICT_SHAPE: u32 = 1;
/// The counters of the stream do not fit its arrays.
pub const KVF_EVICT_STREAM: u32 = 2;
/// No slot is left: evict, and reuse or compact.
pub const KVF_EVICT_FULL: u32 = 3;
/// More tokens than positions.
pub const KVF_EVICT_POSITION: u32 = 4;
/// `recent` is 0.
pub const KVF_EVICT_RECENT: u32 = 5;
/// Pins are empty, overlap or do not ascend.
pub const KVF_EVICT_PINS: u32 = 6;
/// The budget is less than what is protected.
pub const KVF_EVICT_BUDGET: u32 = 7;
/// An observation of another shape, or of a kind that the policy does not take.
pub const KVF_EVICT_OBSERVATION: u32 = 8;
/// A parameter out of its range.
pub const KVF_EVICT_PARAMETER: u32 = 9;
/// Tokens of a quantised group along tokens are not overwritten or moved one by one.
pub const KVF_EVICT_GROUP_OF_TOKENS: u32 = 10;
/// Keys after RoPE, quantised or rotated, cannot be turned to another position.
pub const KVF_EVICT_KEYS: u32 = 11;
/// Not a layout that kvf_layout_make has made.
pub const KVF_EVICT_LAYOUT: u32 = 12;
/// Behind the last slot: slots stay in the order of positions.
pub const KVF_PLACE_BEHIND: u32 = 0;
/// Into holes first, the lowest first. Masks must then go by position.
pub const KVF_PLACE_REUSE: u32 = 1;
/// Keys and queries are seen at their own position. The next query's is `seen`.
pub const KVF_POSITION_ABSOLUTE: u32 = 0;
/// They are seen at their rank among live tokens. The next query's is `live`.
pub const KVF_POSITION_RANK: u32 = 1;

/// The rule with the number that a `reason` got, in words. "unknown reason" for other numbers.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub extern "C" fn kvf_evict_reason_text(reason: u32) -> *const c_char {
    EvictError::c_text_of(reason).unwrap_or(c"unknown reason").as_ptr()
}

/// Checks that counters, bits and positions of a stream belong together: KVF_OK, or KVF_ERR_ARGUMENT. Other calls check what
/// can be checked in O(1). O(rows), O(rows^2) where slots are not in the order of positions.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_stream_check(stream: *const kvf_stream, reason: *mut u32) -> kvf_status {
    let check = || {
        // SAFETY: rule (a).
        Ok(unsafe { slots(stream) }?.check()?)
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, check) }
}

/// Takes up `count` tokens, at positions from `seen` on. `new_slots` [count], which may be NULL, gets the slot of each, in
/// order: write its key and value there. `placement` is KVF_PLACE_*. KVF_RETRY where no slot is left, KVF_NEVER where `count`
/// is more than the arrays ever hold, or 32 bits can number. O(used + count).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_stream_append(
    stream: *mut kvf_stream,
    count: u32,
    placement: u32,
    new_slots: *mut u32,
    reason: *mut u32,
) -> kvf_status {
    let append = || {
        // SAFETY: rules (a) and (b).
        let mut lent = unsafe { lent(stream) }?;
        let placement = match placement {
            KVF_PLACE_BEHIND => Placement::Behind,
            KVF_PLACE_REUSE => Placement::Reuse,
            _ => return Err(Status(KVF_ERR_ARGUMENT).into()),
        };
        if count > lent.stream.capacity() {
            return Err(Refused { status: KVF_NEVER, ..EvictError::Full.into() });
        }
        // SAFETY: rules (a) and (b).
        let new_slots = unsafe { ptr::slice_mut(new_slots, if new_slots.is_null() { 0 } else { count as usize }) }?;
        let mut room = new_slots.iter_mut();
        lent.stream.append(count, placement, |slot| {
            if let Some(at) = room.next() {
                *at = slot;
            }
        })?;
        lent.give_back();
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, append) }
}

/// Takes back all tokens from position `len` on, such as drafts that were not accepted. Evicted ones do not come back.
/// KVF_ERR_ARGUMENT for a position that was not seen. O(rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_stream_truncate(stream: *mut kvf_stream, len: u32, reason: *mut u32) -> kvf_status {
    let truncate = || {
        // SAFETY: rules (a) and (b).
        let mut lent = unsafe { lent(stream) }?;
        let truncated = lent.stream.truncate(len);
        truncated.map_err(|error| Refused { status: KVF_ERR_ARGUMENT, ..error.into() })?;
        lent.give_back();
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, truncate) }
}

/// Makes holes of what `keep` [used] does not keep. O(used).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_stream_retain(stream: *mut kvf_stream, keep: *const u64, reason: *mut u32) -> kvf_status {
    let retain = || {
        // SAFETY: rules (a) and (b).
        let mut lent = unsafe { lent(stream) }?;
        // SAFETY: rule (a).
        let keep = unsafe { ptr::slice(keep, lent.stream.slots().columns() as usize) }?;
        lent.stream.retain(keep)?;
        lent.give_back();
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, retain) }
}

/// Takes columns without a live token out of the row, and those behind them move up: no byte of a page moves, only the row gets
/// shorter. `dead` gets the numbers that these columns had before, ascending: their pages are free. `n` gets how many, or on
/// KVF_ERR_SHORT_BUFFER how many there would be; nothing has changed then. O(rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_stream_drop_dead_columns(
    stream: *mut kvf_stream,
    dead: *mut u32,
    cap: usize,
    n: *mut usize,
    reason: *mut u32,
) -> kvf_status {
    let drop = || {
        // SAFETY: rules (a) and (b).
        let (mut lent, dead, n) = unsafe { (lent(stream)?, ptr::slice_mut(dead, cap)?, ptr::out(n)?) };
        let slots = lent.stream.slots();
        let found = slots.valid.iter().take(slots.columns() as usize).filter(|&&word| word == 0).count();
        n.set(found);
        if found > dead.len() {
            return Err(Status(KVF_ERR_SHORT_BUFFER).into());
        }
        let mut room = dead.iter_mut();
        lent.stream.drop_dead_columns(|column| {
            if let Some(at) = room.next() {
                *at = column;
            }
        });
        lent.give_back();
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, drop) }
}

/// The position of the next query; `mode` is KVF_POSITION_*. Where it is not below `max_positions`, which is what the model was
/// made for: KVF_RETRY for ranks, after eviction, and KVF_NEVER for absolute positions. O(1).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_stream_next_position(
    stream: *const kvf_stream,
    mode: u32,
    max_positions: u32,
    position: *mut u32,
    reason: *mut u32,
) -> kvf_status {
    let next = || {
        // SAFETY: rule (a).
        let (slots, position) = unsafe { (slots(stream)?, ptr::out(position)?) };
        let mode = position_mode(mode)?;
        match mode.next(&slots, max_positions) {
            Ok(next) => position.set(next),
            Err(error) if mode == PositionMode::CacheRelative => {
                return Err(Refused { status: KVF_RETRY, ..error.into() });
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, next) }
}

/// With KVF_POSITION_RANK: by how many positions the key of each slot, rotated to its own, is to be rotated further. `deltas`
/// [rows] gets rank - position, never above 0, and 0 for slots without a live token. Always rotate the key as it was first
/// stored. O(rows), O(rows^2) where slots are not in the order of positions.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_stream_deltas(
    stream: *const kvf_stream,
    deltas: *mut i32,
    reason: *mut u32,
) -> kvf_status {
    let write = || {
        // SAFETY: rule (a).
        let slots = unsafe { slots(stream) }?;
        // SAFETY: rules (a) and (b).
        let deltas = unsafe { ptr::slice_mut(deltas, slots.rows as usize) }?;
        Ok(rank_deltas(&slots, deltas)?)
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, write) }
}

/// A mode that the caller names.
pub(crate) fn position_mode(mode: u32) -> Result<PositionMode, Status> {
    match mode {
        KVF_POSITION_ABSOLUTE => Ok(PositionMode::Absolute),
        KVF_POSITION_RANK => Ok(PositionMode::CacheRelative),
        _ => Err(Status(KVF_ERR_ARGUMENT)),
    }
}
