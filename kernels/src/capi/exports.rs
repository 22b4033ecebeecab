//! The C functions. What they do is written in the header.
//!
//! Invariant: each returns 0, or the code of the first argument error.

use core::ffi::{c_char, c_void};

use super::structs::{
    kvf_kernel_attention, kvf_kernel_contiguous, kvf_kernel_pages, kvf_kernel_queries, kvf_kernel_table,
    kvf_kernel_work, read,
};
use crate::cpu::{
    Dtype, PageCopy, append_raw, attention_contiguous_raw, attention_raw, attention_scratch, convert_from_f32_raw,
    convert_to_f32_raw, copy_pages_raw, gather_raw, scatter_raw,
};
use crate::error::{Error, ensure, status_name};

/// `KVF_KERNEL_ABI`
pub const ABI: u32 = 1;

pub(super) fn status(result: Result<(), Error>) -> i32 {
    result.map_or_else(Error::code, |()| 0)
}

/// Writes a number of floats to where the caller wants it.
///
/// # Safety
/// If not NULL, `to` is valid for a write.
pub(super) unsafe fn give(to: *mut u64, floats: impl FnOnce() -> Result<u64, Error>) -> Result<(), Error> {
    ensure(!to.is_null(), Error::Null)?;
    ensure(to.is_aligned(), Error::Align)?;
    let floats = floats()?;
    // SAFETY: not NULL and aligned; the caller's promise.
    unsafe { to.write(floats) };
    Ok(())
}

/// Version of the C interface.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub extern "C" fn kvf_kernels_abi() -> u32 {
    ABI
}

/// Name of a status.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub extern "C" fn kvf_kernel_status_name(status: i32) -> *const c_char {
    status_name(status).as_ptr()
}

/// Write rows to slots.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_append(
    pages: *const kvf_kernel_pages,
    k: *const f32,
    v: *const f32,
    slots: *const i64,
    n: u32,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let pages = unsafe { read(pages) }?.raw()?;
        // SAFETY: the header's promise on arrays.
        unsafe { append_raw(&pages, k, v, slots, n as usize) }
    };
    status(run())
}

/// Copy pages.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_copy_pages(pages: *const kvf_kernel_pages, copies: *const PageCopy, n: u32) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let pages = unsafe { read(pages) }?.raw()?;
        // SAFETY: the header's promise on arrays.
        unsafe { copy_pages_raw(&pages, copies, n as usize) }
    };
    status(run())
}

/// Read tokens of a table row.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_gather(
    pages: *const kvf_kernel_pages,
    table: *const kvf_kernel_table,
    row: u32,
    token_begin: u32,
    token_end: u32,
    k: *mut f32,
    v: *mut f32,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let pages = unsafe { read(pages) }?.raw()?;
        // SAFETY: the header's promise on structs.
        let table = unsafe { read(table) }?.raw();
        // SAFETY: the header's promise on arrays.
        unsafe { gather_raw(&pages, &table, row, (token_begin, token_end), k, v) }
    };
    status(run())
}

/// Write tokens of a table row.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_scatter(
    pages: *const kvf_kernel_pages,
    table: *const kvf_kernel_table,
    row: u32,
    token_begin: u32,
    token_end: u32,
    k: *const f32,
    v: *const f32,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let pages = unsafe { read(pages) }?.raw()?;
        // SAFETY: the header's promise on structs.
        let table = unsafe { read(table) }?.raw();
        // SAFETY: the header's promise on arrays.
        unsafe { scatter_raw(&pages, &table, row, (token_begin, token_end), k, v) }
    };
    status(run())
}

/// Floats of scratch that are enough.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_attention_scratch(
    kv_heads: u32,
    params: *const kvf_kernel_attention,
    max_tokens: u32,
    scratch_floats: *mut u64,
) -> i32 {
    let floats = || {
        // SAFETY: the header's promise on structs and on sink_logits.
        let params = unsafe { read(params)?.params() }?;
        attention_scratch(kv_heads, &params, max_tokens)
    };
    // SAFETY: the header's promise.
    status(unsafe { give(scratch_floats, floats) })
}

/// Attention over pages.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_attention(
    pages: *const kvf_kernel_pages,
    table: *const kvf_kernel_table,
    params: *const kvf_kernel_attention,
    queries: *const kvf_kernel_queries,
    work: *const kvf_kernel_work,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let pages = unsafe { read(pages) }?.raw()?;
        // SAFETY: the header's promise on structs.
        let table = unsafe { read(table) }?.raw();
        // SAFETY: the header's promise on structs and on sink_logits.
        let params = unsafe { read(params)?.params() }?;
        // SAFETY: the header's promise on structs.
        let queries = unsafe { read(queries) }?.raw();
        // SAFETY: the header's promise on structs.
        let work = unsafe { read(work) }?.raw(queries.n, params.heads);
        // SAFETY: the header's promise on arrays.
        unsafe { attention_raw(&pages, &table, &params, &queries, &work) }
    };
    status(run())
}

/// Attention over one contiguous sequence.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_attention_contiguous(
    kv: *const kvf_kernel_contiguous,
    params: *const kvf_kernel_attention,
    queries: *const kvf_kernel_queries,
    work: *const kvf_kernel_work,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let kv = unsafe { read(kv) }?.raw()?;
        // SAFETY: the header's promise on structs and on sink_logits.
        let params = unsafe { read(params)?.params() }?;
        // SAFETY: the header's promise on structs.
        let queries = unsafe { read(queries) }?.raw();
        // SAFETY: the header's promise on structs.
        let work = unsafe { read(work) }?.raw(queries.n, params.heads);
        // SAFETY: the header's promise on arrays.
        unsafe { attention_contiguous_raw(&kv, &params, &queries, &work) }
    };
    status(run())
}

/// Convert floats to elements.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_from_f32(dtype: u32, src: *const f32, dst: *mut c_void, n: u64) -> i32 {
    let run = || {
        let dtype = Dtype::from_code(dtype).ok_or(Error::Dtype)?;
        let n = usize::try_from(n).map_err(|_| Error::Range)?;
        // SAFETY: the header's promise on arrays.
        unsafe { convert_from_f32_raw(dtype, src, dst.cast(), n) }
    };
    status(run())
}

/// Convert elements to floats.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_to_f32(dtype: u32, src: *const c_void, dst: *mut f32, n: u64) -> i32 {
    let run = || {
        let dtype = Dtype::from_code(dtype).ok_or(Error::Dtype)?;
        let n = usize::try_from(n).map_err(|_| Error::Range)?;
        // SAFETY: the header's promise on arrays.
        unsafe { convert_to_f32_raw(dtype, src.cast(), dst, n) }
    };
    status(run())
}
