//! The structs of `kvfolio_kernels.h`, and how they are read.
//!
//! Invariant: the layouts are those of the header. All fields are integers,
//! floats or pointers, for which any bits are valid.

use core::ffi::c_void;
use core::mem::{MaybeUninit, offset_of};
use core::ptr;

use kvfolio::layout::PageLayout;
use kvfolio::quant::NonFinite;

use crate::cpu::{
    AttentionParams, Dtype, Geometry, Isa, RawContiguous, RawPages, RawQueries, RawTable, RawWork, Strides,
};
use crate::error::{Error, ensure};
use crate::quant::{RawQuant, RawSplit};

/// Longest struct that is searched for unknown bytes.
const LONGEST: usize = 4096;

/// A struct that begins with `struct_size`.
///
/// # Safety
/// `repr(C)`, begins with a `u32`, and every bit pattern, zero included, is a valid value.
pub(super) unsafe trait CStruct: Copy {
    /// Bytes up to the first field that has a default.
    const REQUIRED: usize;
}

/// Copy a struct in: bytes that the caller's version lacks are zero, bytes unknown here must be.
///
/// # Safety
/// If not NULL, `src` is valid for reads of as many bytes as its `struct_size` says.
pub(super) unsafe fn read<T: CStruct>(src: *const T) -> Result<T, Error> {
    ensure(!src.is_null(), Error::Null)?;
    ensure(src.is_aligned(), Error::Align)?;
    let bytes = src.cast::<u8>();
    // SAFETY: every struct begins with its size.
    let given = unsafe { *src.cast::<u32>() } as usize;
    ensure(given >= T::REQUIRED && given <= LONGEST, Error::StructSize)?;
    for i in size_of::<T>()..given {
        // SAFETY: i < struct_size.
        ensure(unsafe { *bytes.add(i) } == 0, Error::StructSize)?;
    }
    let mut value = MaybeUninit::<T>::zeroed();
    let known = given.min(size_of::<T>());
    // SAFETY: both sides have `known` bytes; any bits are a valid T.
    unsafe {
        ptr::copy_nonoverlapping(bytes, value.as_mut_ptr().cast(), known);
        Ok(value.assume_init())
    }
}

/// A struct of the header, with its size where addresses have 64 bits.
macro_rules! c_struct {
    (
        $(#[$meta:meta])*
        $name:ident, size $size:literal, required $required:expr => {
            $($(#[$field_meta:meta])* $field:ident: $type:ty,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        #[allow(non_camel_case_types)]
        pub struct $name {
            /// `size_of::<Self>()`
            pub struct_size: u32,
            $($(#[$field_meta])* pub $field: $type,)+
        }

        // SAFETY: repr(C), begins with a u32, and has only integers, floats and raw pointers.
        unsafe impl CStruct for $name {
            const REQUIRED: usize = $required;
        }

        #[cfg(target_pointer_width = "64")]
        const _: () = assert!(size_of::<$name>() == $size && align_of::<$name>() == 8);
    };
}
pub(super) use c_struct;

c_struct! {
    /// Pages of one (layer, group).
    kvf_kernel_pages, size 88, required offset_of!(Self, v_page_stride) => {
        /// `KVF_KERNEL_DTYPE_*`
        dtype: u32,
        /// P
        page_tokens: u32,
        /// N
        n_pages: u32,
        /// Hk
        kv_heads: u32,
        /// d
        head_dim: u32,
        /// Address of page 0, K.
        k: *mut u8,
        /// Address of page 0, V.
        v: *mut u8,
        /// Bytes from page to page, K.
        k_page_stride: u64,
        /// Bytes from token to token, K.
        k_token_stride: u64,
        /// Bytes from head to head, K.
        k_head_stride: u64,
        /// Bytes from page to page, V; all three 0 = as K.
        v_page_stride: u64,
        /// Bytes from token to token, V.
        v_token_stride: u64,
        /// Bytes from head to head, V.
        v_head_stride: u64,
    }
}

c_struct! {
    /// Page tables of a batch.
    kvf_kernel_table, size 24, required size_of::<Self>() => {
        /// Rows.
        rows: u32,
        /// Entries from row to row.
        stride: u32,
        /// 0
        reserved: u32,
        /// `[rows][stride]`
        entries: *const i32,
    }
}

c_struct! {
    /// Keys and values of one sequence without pages.
    kvf_kernel_contiguous, size 40, required size_of::<Self>() => {
        /// `KVF_KERNEL_DTYPE_*`
        dtype: u32,
        /// T
        tokens: u32,
        /// Hk
        kv_heads: u32,
        /// d
        head_dim: u32,
        /// 0
        reserved: u32,
        /// `[T][Hk][d]`
        k: *const u8,
        /// `[T][Hk][d]`
        v: *const u8,
    }
}

c_struct! {
    /// What attention computes.
    kvf_kernel_attention, size 40, required offset_of!(Self, scale) => {
        /// H
        heads: u32,
        /// 0 = 1 / sqrt(d)
        scale: f32,
        /// 0 = none
        soft_cap: f32,
        /// 0 = no limit
        window: u32,
        /// First tokens that stay readable.
        sink_tokens: u32,
        /// `[H]`, or NULL
        sink_logits: *const f32,
        /// `KVF_KERNEL_ISA_*`
        isa: u32,
        /// 0
        reserved: u32,
    }
}

c_struct! {
    /// Query rows and results.
    kvf_kernel_queries, size 48, required offset_of!(Self, table_rows) => {
        /// Rows.
        n: u32,
        /// `[n][H][d]`
        q: *const f32,
        /// `[n]`
        positions: *const i32,
        /// `[n][H][d]`
        out: *mut f32,
        /// `[n]`, or NULL
        table_rows: *const i32,
        /// `[n][H]`, or NULL
        lse: *mut f32,
    }
}

c_struct! {
    /// The share of one call.
    kvf_kernel_work, size 40, required size_of::<Self>() => {
        /// First row.
        row_begin: u32,
        /// One past the last row, or `KVF_KERNEL_ALL`.
        row_end: u32,
        /// First head.
        head_begin: u32,
        /// One past the last head, or `KVF_KERNEL_ALL`.
        head_end: u32,
        /// 0
        reserved: u32,
        /// Scratch.
        scratch: *mut f32,
        /// Floats of scratch.
        scratch_floats: u64,
    }
}

c_struct! {
    /// Quantised pages of one layer.
    kvf_kernel_quant, size 48, required offset_of!(Self, k_scales) => {
        /// N
        n_pages: u32,
        /// A `kvf_page_layout`.
        layout: *const c_void,
        /// Address of page 0.
        base: *mut u8,
        /// Which of the layout's layers.
        layer: u32,
        /// `KVF_KERNEL_ISA_*`
        isa: u32,
        /// Scales of K that lie outside pages, of all layers; NULL = there are none.
        k_scales: *const f32,
        /// The same of V.
        v_scales: *const f32,
    }
}

c_struct! {
    /// Which columns of a table are quantised pages.
    kvf_kernel_split, size 24, required size_of::<Self>() => {
        /// `[rows]` first one; NULL = 0.
        begin: *const u32,
        /// `[rows]` one past the last; NULL = all.
        end: *const u32,
    }
}

/// A `kvf_page_layout`, whose numbers are still to be verified.
///
/// # Safety
/// If not NULL, it is valid for reads for the lifetime.
pub(super) unsafe fn layout<'a>(layout: *const c_void) -> Result<&'a PageLayout, Error> {
    let layout = layout.cast::<PageLayout>();
    ensure(!layout.is_null(), Error::Null)?;
    ensure(layout.is_aligned(), Error::Align)?;
    // SAFETY: the caller's promise; a layout is integers, for which any bits are valid.
    Ok(unsafe { &*layout })
}

/// `KVF_KERNEL_NONFINITE_*`
pub(super) fn non_finite(code: u32) -> Result<NonFinite, Error> {
    match code {
        0 => Ok(NonFinite::Reject),
        1 => Ok(NonFinite::Sanitise),
        _ => Err(Error::Value),
    }
}

/// `KVF_KERNEL_ALL`
pub const ALL: u32 = u32::MAX;

impl kvf_kernel_pages {
    pub(super) fn raw(&self) -> Result<RawPages, Error> {
        let k = Strides { page: self.k_page_stride, token: self.k_token_stride, head: self.k_head_stride };
        let v = Strides { page: self.v_page_stride, token: self.v_token_stride, head: self.v_head_stride };
        Ok(RawPages {
            geometry: Geometry {
                dtype: Dtype::from_code(self.dtype).ok_or(Error::Dtype)?,
                page_tokens: self.page_tokens,
                n_pages: self.n_pages,
                kv_heads: self.kv_heads,
                head_dim: self.head_dim,
            },
            k: self.k,
            v: self.v,
            k_strides: k,
            v_strides: if v == Strides::default() { k } else { v },
        })
    }
}

impl kvf_kernel_quant {
    /// # Safety
    /// If not NULL, the layout is valid for reads for the lifetime.
    pub(super) unsafe fn raw<'a>(&self) -> Result<(RawQuant<'a>, Isa), Error> {
        // SAFETY: the caller's promise.
        let layout = unsafe { layout(self.layout) }?;
        let quant = RawQuant {
            layout,
            base: self.base,
            n_pages: self.n_pages,
            layer: self.layer,
            k_scales: self.k_scales,
            v_scales: self.v_scales,
        };
        Ok((quant, Isa::from_code(self.isa).ok_or(Error::Value)?))
    }
}

impl kvf_kernel_split {
    pub(super) fn raw(&self) -> RawSplit {
        RawSplit { begin: self.begin, end: self.end }
    }
}

impl kvf_kernel_table {
    pub(super) fn raw(&self) -> RawTable {
        RawTable { entries: self.entries, rows: self.rows, stride: self.stride }
    }
}

impl kvf_kernel_contiguous {
    pub(super) fn raw(&self) -> Result<RawContiguous, Error> {
        Ok(RawContiguous {
            dtype: Dtype::from_code(self.dtype).ok_or(Error::Dtype)?,
            tokens: self.tokens,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            k: self.k,
            v: self.v,
        })
    }
}

impl kvf_kernel_attention {
    /// # Safety
    /// If not NULL, `sink_logits` is valid for reads of `heads` floats for the lifetime.
    pub(super) unsafe fn params<'a>(&self) -> Result<AttentionParams<'a>, Error> {
        let sink_logits = if self.sink_logits.is_null() {
            None
        } else {
            ensure(self.sink_logits.is_aligned(), Error::Align)?;
            ensure(self.heads <= crate::cpu::MAX_HEADS, Error::Shape)?;
            // SAFETY: the caller's promise; checked to be aligned and short.
            Some(unsafe { core::slice::from_raw_parts(self.sink_logits, self.heads as usize) })
        };
        Ok(AttentionParams {
            heads: self.heads,
            scale: self.scale,
            soft_cap: self.soft_cap,
            window: self.window,
            sink_tokens: self.sink_tokens,
            sink_logits,
            isa: Isa::from_code(self.isa).ok_or(Error::Value)?,
        })
    }
}

impl kvf_kernel_queries {
    pub(super) fn raw(&self) -> RawQueries {
        RawQueries {
            n: self.n,
            q: self.q,
            positions: self.positions,
            table_rows: self.table_rows,
            out: self.out,
            lse: self.lse,
        }
    }
}

impl kvf_kernel_work {
    pub(super) fn raw(&self, n: u32, heads: u32) -> RawWork {
        let end = |end, all| if end == ALL { all } else { end };
        RawWork {
            rows: (self.row_begin, end(self.row_end, n)),
            heads: (self.head_begin, end(self.head_end, heads)),
            scratch: self.scratch,
            scratch_floats: self.scratch_floats,
        }
    }
}
