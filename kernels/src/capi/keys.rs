//! The C functions over keys alone. What they do is written in the header.
//!
//! Invariant: as in `exports`.

use core::mem::offset_of;

use super::exports::status;
use super::slots::{kvf_kernel_slots, slots_or_plain};
use super::structs::{CStruct, c_struct, kvf_kernel_pages, kvf_kernel_table, read};
use crate::cpu::{Isa, RawBounds, RawKeys, key_extremes_raw, keys_raw, page_bounds_raw};
use crate::error::{Error, ensure};

c_struct! {
    /// What is asked of keys.
    kvf_kernel_keys, size 56, required offset_of!(Self, norms) => {
        /// `KVF_KERNEL_ISA_*`
        isa: u32,
        /// `KVF_KERNEL_KEYS_*`
        flags: u32,
        /// Slots of each row.
        slots: u32,
        /// `[Hk][slots]`, or NULL
        norms: *mut f32,
        /// `[Hk][slots]`, or NULL
        dots: *mut f32,
        /// `[Hk][d]`, for `dots`
        vectors: *const f32,
        /// `[Hk][d]`, or NULL
        unit_sums: *mut f32,
        /// Floats from KV head to KV head; 0 = slots
        head_stride: u64,
    }
}

/// `KVF_KERNEL_KEYS_REMOVE`
pub const KEYS_REMOVE: u32 = 1;

impl kvf_kernel_keys {
    fn raw(&self) -> Result<RawKeys, Error> {
        ensure(self.flags & !KEYS_REMOVE == 0, Error::Value)?;
        Ok(RawKeys {
            isa: Isa::from_code(self.isa).ok_or(Error::Value)?,
            remove: self.flags & KEYS_REMOVE != 0,
            slots: self.slots,
            head_stride: if self.head_stride == 0 { u64::from(self.slots) } else { self.head_stride },
            vectors: self.vectors,
            norms: self.norms,
            dots: self.dots,
            unit_sums: self.unit_sums,
        })
    }
}

c_struct! {
    /// Queries and extremes of pages.
    kvf_kernel_bounds, size 64, required size_of::<Self>() => {
        /// `KVF_KERNEL_ISA_*`
        isa: u32,
        /// Query rows.
        n: u32,
        /// H
        heads: u32,
        /// Hk
        kv_heads: u32,
        /// d
        head_dim: u32,
        /// Columns.
        columns: u32,
        /// 0
        reserved: u32,
        /// `[n][H][d]`
        q: *const f32,
        /// `[columns][Hk][d]`
        least: *const f32,
        /// `[columns][Hk][d]`
        greatest: *const f32,
        /// `[n][H][columns]`
        out: *mut f32,
    }
}

/// Look at keys.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_keys(
    pages: *const kvf_kernel_pages,
    table: *const kvf_kernel_table,
    slots: *const kvf_kernel_slots,
    row: u32,
    slot_begin: u32,
    slot_end: u32,
    keys: *const kvf_kernel_keys,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let pages = unsafe { read(pages) }?.raw()?;
        // SAFETY: the header's promise on structs.
        let table = unsafe { read(table) }?.raw();
        // SAFETY: the header's promise on structs.
        let slots = unsafe { slots_or_plain(slots) }?;
        // SAFETY: the header's promise on structs.
        let keys = unsafe { read(keys) }?.raw()?;
        // SAFETY: the header's promise on arrays.
        unsafe { keys_raw(&pages, &table, &slots, row, (slot_begin, slot_end), &keys) }
    };
    status(run())
}

/// Extremes of keys by channel.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_key_extremes(
    pages: *const kvf_kernel_pages,
    table: *const kvf_kernel_table,
    slots: *const kvf_kernel_slots,
    row: u32,
    column_begin: u32,
    column_end: u32,
    isa: u32,
    least: *mut f32,
    greatest: *mut f32,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let pages = unsafe { read(pages) }?.raw()?;
        // SAFETY: the header's promise on structs.
        let table = unsafe { read(table) }?.raw();
        // SAFETY: the header's promise on structs.
        let slots = unsafe { slots_or_plain(slots) }?;
        let isa = Isa::from_code(isa).ok_or(Error::Value)?;
        // SAFETY: the header's promise on arrays.
        unsafe { key_extremes_raw(&pages, &table, &slots, row, (column_begin, column_end), isa, least, greatest) }
    };
    status(run())
}

/// Bounds of dot products by page.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_page_bounds(bounds: *const kvf_kernel_bounds) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let b = unsafe { read(bounds) }?;
        let raw = RawBounds {
            isa: Isa::from_code(b.isa).ok_or(Error::Value)?,
            n: b.n,
            heads: b.heads,
            kv_heads: b.kv_heads,
            head_dim: b.head_dim,
            columns: b.columns,
            q: b.q,
            least: b.least,
            greatest: b.greatest,
        };
        // SAFETY: the header's promise on arrays.
        unsafe { page_bounds_raw(&raw, b.out) }
    };
    status(run())
}
