//! Token eviction: compaction
//!
//! Closing holes by moving rows of bytes. Plan, which changes nothing; move the bytes of keys and values, in the order of the
//! moves; commit, which moves positions and features alike. What a page layout allows is told by kvf_evict_check: where
//! groups of tokens are quantised together, they move together, kvf_evict_move_unit of them.

use kvfolio::evict::{Removal, SlotMove, check_sound, is_sparse, move_unit, plan_moves};

use crate::eviction::{kvf_compaction, kvf_slot_move, kvf_stream};
use crate::formats::kvf_page_layout;
use crate::lent::{answer, lent, slots};
use crate::page_layout::read;
use crate::ptr;
use crate::status::{KVF_ERR_ARGUMENT, KVF_ERR_SHORT_BUFFER, Status, kvf_status};
use crate::stream::position_mode;

/// A hole, masked until its page has no live token. Nothing is copied.
pub const KVF_REMOVE_HOLE: u32 = 0;
/// The next token is written there: KVF_PLACE_REUSE.
pub const KVF_REMOVE_REPLACE: u32 = 1;
/// Holes are closed now and then by moves.
pub const KVF_REMOVE_COMPACT: u32 = 2;

/// `sparse` gets 1 where closing the holes frees a page and at most `percent` of the slots of all columns in use are live, else
/// 0. O(1).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_stream_is_sparse(
    stream: *const kvf_stream,
    percent: u32,
    sparse: *mut u32,
    reason: *mut u32,
) -> kvf_status {
    let ask = || {
        // SAFETY: rule (a).
        let (slots, sparse) = unsafe { (slots(stream)?, ptr::out(sparse)?) };
        sparse.set(u32::from(is_sparse(&slots, percent)));
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, ask) }
}

/// Plans the moves that close all holes, ascending: none moves to where another still has to move from, so they can be carried
/// out in place, one after the other. Units of `group` slots (1, or a power of two up to P) with a live slot move as a whole
/// and keep their holes. `moves`: `live` are always enough. `n` gets how many, or on KVF_ERR_SHORT_BUFFER how many there would
/// be. O(rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_stream_plan_compaction(
    stream: *const kvf_stream,
    group: u32,
    moves: *mut kvf_slot_move,
    cap: usize,
    n: *mut usize,
    report: *mut kvf_compaction,
    reason: *mut u32,
) -> kvf_status {
    let plan = || {
        // SAFETY: rules (a) and (b); the core's record has the same layout.
        let (slots, moves, n, report) = unsafe {
            (slots(stream)?, ptr::slice_mut(moves.cast::<SlotMove>(), cap)?, ptr::out(n)?, ptr::output(report)?)
        };
        let plan = plan_moves(&slots, group, |_| ())?;
        n.set(plan.moves as usize);
        if plan.moves as usize > moves.len() {
            return Err(Status(KVF_ERR_SHORT_BUFFER).into());
        }
        let mut room = moves.iter_mut();
        plan_moves(&slots, group, |each| {
            if let Some(at) = room.next() {
                *at = each;
            }
        })?;
        report.set(&kvf_compaction {
            struct_size: 0,
            rows: plan.rows,
            columns: plan.columns,
            freed: plan.freed,
            first_written: plan.first_written,
        });
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, plan) }
}

/// Carries out in positions and features what kvf_stream_plan_compaction with the same group planned, once the bytes have moved.
/// Pages of the last `freed` columns are free. O(rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_stream_commit_compaction(
    stream: *mut kvf_stream,
    group: u32,
    reason: *mut u32,
) -> kvf_status {
    let commit = || {
        // SAFETY: rules (a) and (b).
        let mut lent = unsafe { lent(stream) }?;
        lent.stream.commit_compaction(group)?;
        lent.give_back();
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, commit) }
}

/// Whether tokens in pages of a layout can be removed in a way (KVF_REMOVE_*) and be seen at positions of a mode
/// (KVF_POSITION_*). KVF_ERR_UNSUPPORTED with the reason where they cannot: groups along tokens are not replaced one by one,
/// and keys after RoPE that are quantised or rotated by Hadamard cannot be turned to a rank. O(1).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_check(
    layout: *const kvf_page_layout,
    removal: u32,
    mode: u32,
    reason: *mut u32,
) -> kvf_status {
    let check = || {
        // SAFETY: rule (a).
        let layout = unsafe { read(layout) }?;
        let removal = match removal {
            KVF_REMOVE_HOLE => Removal::Hole,
            KVF_REMOVE_REPLACE => Removal::Replace,
            KVF_REMOVE_COMPACT => Removal::Compact,
            _ => return Err(Status(KVF_ERR_ARGUMENT).into()),
        };
        Ok(check_sound(&layout, removal, position_mode(mode)?)?)
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, check) }
}

/// Slots that move as one under a layout, which is one that kvf_layout_make has made: 1, or the longest groups along tokens. It
/// is the `group` of a compaction.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_move_unit(layout: *const kvf_page_layout, unit: *mut u32) -> kvf_status {
    let ask = || {
        // SAFETY: rule (a).
        let (layout, unit) = unsafe { (read(layout)?, ptr::out(unit)?) };
        unit.set(move_unit(&layout));
        Ok(())
    };
    crate::status::answer(ask())
}
