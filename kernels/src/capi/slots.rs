//! The C functions over rows with holes. What they do is written in the header.
//!
//! Invariant: as in `exports`.

use core::mem::offset_of;

use super::exports::{give, status};
use super::structs::{
    CStruct, c_struct, kvf_kernel_attention, kvf_kernel_pages, kvf_kernel_quant, kvf_kernel_queries, kvf_kernel_table,
    kvf_kernel_work, read,
};
use crate::cpu::{RawScores, RawSlots, Reduce, RowMove, attention_slots_raw, attention_slots_scratch, move_rows_raw};
use crate::error::{Error, ensure};
use crate::quant::move_quant_rows_raw;

c_struct! {
    /// Which slots of table rows are live.
    kvf_kernel_slots, size 40, required offset_of!(Self, valid) => {
        /// `[rows][stride]`, or NULL
        valid: *const u64,
        /// `[rows][stride * P]`, or NULL
        positions: *const i32,
        /// `[rows]`, or NULL
        first: *const i32,
        /// `[rows]`, or NULL
        used: *const u32,
    }
}

c_struct! {
    /// Where scores go.
    kvf_kernel_scores, size 48, required offset_of!(Self, row_stride) => {
        /// `KVF_KERNEL_REDUCE_*`
        reduce: u32,
        /// `KVF_KERNEL_SCORES_*`
        flags: u32,
        /// Slots of each row.
        slots: u32,
        /// `[table rows][Hk][slots]`, or NULL
        sums: *mut f32,
        /// `[n][H][slots]`, or NULL
        probabilities: *mut f32,
        /// Floats from table row to table row; 0 = Hk * head_stride
        row_stride: u64,
        /// Floats from KV head to KV head; 0 = slots
        head_stride: u64,
    }
}

/// `KVF_KERNEL_SCORES_STORE`
pub const SCORES_STORE: u32 = 1;
/// `KVF_KERNEL_SCORES_WITHOUT_OWN`
pub const SCORES_WITHOUT_OWN: u32 = 2;

impl kvf_kernel_slots {
    fn raw(&self) -> RawSlots {
        RawSlots { valid: self.valid, positions: self.positions, first: self.first, used: self.used }
    }
}

/// # Safety
/// As [`read`], but NULL is the default.
pub(super) unsafe fn slots_or_plain(slots: *const kvf_kernel_slots) -> Result<RawSlots, Error> {
    // SAFETY: the caller's promise.
    if slots.is_null() { Ok(RawSlots::PLAIN) } else { Ok(unsafe { read(slots) }?.raw()) }
}

impl kvf_kernel_scores {
    fn raw(&self, kv_heads: u32) -> Result<RawScores, Error> {
        ensure(self.flags & !(SCORES_STORE | SCORES_WITHOUT_OWN) == 0, Error::Value)?;
        let or = |stride: u64, default: u64| if stride == 0 { default } else { stride };
        let head_stride = or(self.head_stride, u64::from(self.slots));
        Ok(RawScores {
            reduce: Reduce::from_code(self.reduce).ok_or(Error::Value)?,
            store: self.flags & SCORES_STORE != 0,
            without_own: self.flags & SCORES_WITHOUT_OWN != 0,
            slots: self.slots,
            row_stride: or(self.row_stride, head_stride.saturating_mul(u64::from(kv_heads))),
            head_stride,
            sums: self.sums,
            probabilities: self.probabilities,
        })
    }
}

/// Floats of scratch that are enough.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_attention_slots_scratch(
    kv_heads: u32,
    params: *const kvf_kernel_attention,
    max_slots: u32,
    scratch_floats: *mut u64,
) -> i32 {
    let floats = || {
        // SAFETY: the header's promise on structs and on sink_logits.
        let params = unsafe { read(params)?.params() }?;
        attention_slots_scratch(kv_heads, &params, max_slots)
    };
    // SAFETY: the header's promise.
    status(unsafe { give(scratch_floats, floats) })
}

/// Attention over live slots, with scores.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_attention_slots(
    pages: *const kvf_kernel_pages,
    table: *const kvf_kernel_table,
    slots: *const kvf_kernel_slots,
    params: *const kvf_kernel_attention,
    queries: *const kvf_kernel_queries,
    scores: *const kvf_kernel_scores,
    work: *const kvf_kernel_work,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let pages = unsafe { read(pages) }?.raw()?;
        // SAFETY: the header's promise on structs.
        let table = unsafe { read(table) }?.raw();
        // SAFETY: the header's promise on structs.
        let slots = unsafe { slots_or_plain(slots) }?;
        // SAFETY: the header's promise on structs and on sink_logits.
        let params = unsafe { read(params)?.params() }?;
        // SAFETY: the header's promise on structs.
        let queries = unsafe { read(queries) }?.raw();
        let scores = match scores.is_null() {
            true => None,
            // SAFETY: the header's promise on structs.
            false => Some(unsafe { read(scores) }?.raw(pages.geometry.kv_heads)?),
        };
        // SAFETY: the header's promise on structs.
        let work = unsafe { read(work) }?.raw(queries.n, params.heads);
        // SAFETY: the header's promise on arrays.
        unsafe { attention_slots_raw(&pages, &table, &slots, &params, &queries, scores.as_ref(), &work) }
    };
    status(run())
}

/// Move tokens from slot to slot.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_move_rows(pages: *const kvf_kernel_pages, moves: *const RowMove, n: u32) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let pages = unsafe { read(pages) }?.raw()?;
        // SAFETY: the header's promise on arrays.
        unsafe { move_rows_raw(&pages, moves, n as usize) }
    };
    status(run())
}

/// Move quantised tokens from slot to slot.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_quant_move_rows(quant: *const kvf_kernel_quant, moves: *const RowMove, n: u32) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let (quant, _) = unsafe { read(quant)?.raw() }?;
        // SAFETY: the header's promise on arrays.
        unsafe { move_quant_rows_raw(&quant, moves, n as usize) }
    };
    status(run())
}
