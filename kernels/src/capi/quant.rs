//! The C functions over quantised pages. What they do is written in the header.
//!
//! Invariant: as in `exports`.

use core::ffi::c_void;

use super::exports::{give, status};
use super::structs::{
    self, kvf_kernel_attention, kvf_kernel_pages, kvf_kernel_quant, kvf_kernel_queries, kvf_kernel_split,
    kvf_kernel_table, kvf_kernel_work, non_finite, read,
};
use crate::cpu::PageCopy;
use crate::error::Error;
use crate::quant::{
    Seal, append_quant_raw, attention_quant_raw, attention_quant_scratch, copy_quant_raw, encode_scratch,
    gather_quant_raw, seal_raw,
};

/// Floats of scratch for appending, sealing and gathering.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_quant_scratch(layout: *const c_void, scratch_floats: *mut u64) -> i32 {
    let floats = || {
        // SAFETY: the header's promise.
        let layout = unsafe { structs::layout(layout) }?;
        layout.verify().map_err(|_| Error::Layout)?;
        Ok(encode_scratch(layout))
    };
    // SAFETY: the header's promise.
    status(unsafe { give(scratch_floats, floats) })
}

/// Write rows to slots.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_quant_append(
    quant: *const kvf_kernel_quant,
    on_non_finite: u32,
    k: *const f32,
    v: *const f32,
    slots: *const i64,
    n: u32,
    scratch: *mut f32,
    scratch_floats: u64,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let (quant, isa) = unsafe { read(quant)?.raw() }?;
        let on = non_finite(on_non_finite)?;
        // SAFETY: the header's promise on arrays.
        unsafe { append_quant_raw(&quant, isa, on, k, v, slots, n as usize, (scratch, scratch_floats)) }
    };
    status(run())
}

/// Encode full exact pages.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_quant_seal(
    exact: *const kvf_kernel_pages,
    quant: *const kvf_kernel_quant,
    on_non_finite: u32,
    seals: *const Seal,
    n: u32,
    scratch: *mut f32,
    scratch_floats: u64,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let exact = unsafe { read(exact) }?.raw()?;
        // SAFETY: the header's promise on structs.
        let (quant, isa) = unsafe { read(quant)?.raw() }?;
        let on = non_finite(on_non_finite)?;
        // SAFETY: the header's promise on arrays.
        unsafe { seal_raw(&exact, &quant, isa, on, seals, n as usize, (scratch, scratch_floats)) }
    };
    status(run())
}

/// Copy quantised pages.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_quant_copy_pages(
    quant: *const kvf_kernel_quant,
    copies: *const PageCopy,
    n: u32,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let (quant, _) = unsafe { read(quant)?.raw() }?;
        // SAFETY: the header's promise on arrays.
        unsafe { copy_quant_raw(&quant, copies, n as usize) }
    };
    status(run())
}

/// Read tokens of a table row.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_quant_gather(
    quant: *const kvf_kernel_quant,
    table: *const kvf_kernel_table,
    row: u32,
    token_begin: u32,
    token_end: u32,
    k: *mut f32,
    v: *mut f32,
    scratch: *mut f32,
    scratch_floats: u64,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let (quant, isa) = unsafe { read(quant)?.raw() }?;
        // SAFETY: the header's promise on structs.
        let table = unsafe { read(table) }?.raw();
        let scratch = (scratch, scratch_floats);
        // SAFETY: the header's promise on arrays.
        unsafe { gather_quant_raw(&quant, isa, &table, row, (token_begin, token_end), k, v, scratch) }
    };
    status(run())
}

/// Floats of scratch that are enough for attention.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_quant_attention_scratch(
    quant: *const kvf_kernel_quant,
    params: *const kvf_kernel_attention,
    max_tokens: u32,
    scratch_floats: *mut u64,
) -> i32 {
    let floats = || {
        // SAFETY: the header's promise on structs.
        let (quant, _) = unsafe { read(quant)?.raw() }?;
        // SAFETY: the header's promise on structs and on sink_logits.
        let params = unsafe { read(params)?.params() }?;
        // SAFETY: the header's promise on the scales.
        unsafe { attention_quant_scratch(&quant, &params, max_tokens) }
    };
    // SAFETY: the header's promise.
    status(unsafe { give(scratch_floats, floats) })
}

/// Attention over exact and quantised pages.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_quant_attention(
    exact: *const kvf_kernel_pages,
    quant: *const kvf_kernel_quant,
    split: *const kvf_kernel_split,
    table: *const kvf_kernel_table,
    params: *const kvf_kernel_attention,
    queries: *const kvf_kernel_queries,
    work: *const kvf_kernel_work,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let exact = if exact.is_null() { None } else { Some(unsafe { read(exact) }?.raw()?) };
        // SAFETY: the header's promise on structs.
        let (quant, _) = unsafe { read(quant)?.raw() }?;
        // SAFETY: the header's promise on structs.
        let split = unsafe { read(split) }?.raw();
        // SAFETY: the header's promise on structs.
        let table = unsafe { read(table) }?.raw();
        // SAFETY: the header's promise on structs and on sink_logits.
        let params = unsafe { read(params)?.params() }?;
        // SAFETY: the header's promise on structs.
        let queries = unsafe { read(queries) }?.raw();
        // SAFETY: the header's promise on structs.
        let work = unsafe { read(work) }?.raw(queries.n, params.heads);
        // SAFETY: the header's promise on arrays.
        unsafe { attention_quant_raw(exact.as_ref(), &quant, &split, &table, &params, &queries, &work) }
    };
    status(run())
}
