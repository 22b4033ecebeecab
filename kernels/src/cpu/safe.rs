//! The kernels over slices.
//!
//! Invariant: a view exists iff every row of pages 1..=N lies inside its
//! slices, so that the raw kernels can only touch memory the caller lent.

use core::marker::PhantomData;

use super::attention::attention_raw;
use super::contiguous::{RawContiguous, attention_contiguous_raw};
use super::copy::{PageCopy, copy_pages_raw};
use super::element::Dtype;
use super::pages::{Geometry, RawPages, Strides};
use super::query::{AttentionParams, RawQueries, RawWork};
use super::table::Table;
use super::{append::append_raw, gather::gather_raw, gather::scatter_raw};
use crate::error::{Error, ensure};

/// Paged keys and values, to be read.
#[derive(Clone, Copy)]
pub struct Pages<'a> {
    pub(super) raw: RawPages,
    memory: PhantomData<&'a [u8]>,
}

/// Paged keys and values, to be written.
pub struct PagesMut<'a> {
    pub(super) raw: RawPages,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: a shared borrow of bytes; the kernels only read through it.
unsafe impl Send for Pages<'_> {}
// SAFETY: as above.
unsafe impl Sync for Pages<'_> {}
// SAFETY: an exclusive borrow of bytes; writing needs `&mut`.
unsafe impl Send for PagesMut<'_> {}
// SAFETY: as above.
unsafe impl Sync for PagesMut<'_> {}

impl<'a> Pages<'a> {
    /// A view of page 0 to page N in two slices, which may be the same.
    ///
    /// # Errors
    /// Those of [`RawPages::check`]; [`Error::Stride`] if a slice is too short.
    pub fn new(geometry: Geometry, k: (&'a [u8], Strides), v: (&'a [u8], Strides)) -> Result<Self, Error> {
        let raw = RawPages {
            geometry,
            k: k.0.as_ptr().cast_mut(),
            v: v.0.as_ptr().cast_mut(),
            k_strides: k.1,
            v_strides: v.1,
        };
        check_lengths(&raw, k.0.len(), v.0.len())?;
        Ok(Self { raw, memory: PhantomData })
    }
}

impl<'a> PagesMut<'a> {
    /// A view of page 0 to page N in two slices.
    ///
    /// # Errors
    /// Those of [`RawPages::check`]; [`Error::Stride`] if a slice is too short.
    pub fn new(geometry: Geometry, k: (&'a mut [u8], Strides), v: (&'a mut [u8], Strides)) -> Result<Self, Error> {
        let lengths = (k.0.len(), v.0.len());
        let raw = RawPages { geometry, k: k.0.as_mut_ptr(), v: v.0.as_mut_ptr(), k_strides: k.1, v_strides: v.1 };
        check_lengths(&raw, lengths.0, lengths.1)?;
        Ok(Self { raw, memory: PhantomData })
    }

    /// A view of page 0 to page N in one slice, where the V of page 0 begins at `v_offset`.
    ///
    /// # Errors
    /// As [`PagesMut::new`].
    pub fn interleaved(
        geometry: Geometry,
        memory: &'a mut [u8],
        strides: Strides,
        v_offset: usize,
    ) -> Result<Self, Error> {
        let length = memory.len();
        let v_length = length.checked_sub(v_offset).ok_or(Error::Stride)?;
        let k = memory.as_mut_ptr();
        let v = k.wrapping_add(v_offset);
        let raw = RawPages { geometry, k, v, k_strides: strides, v_strides: strides };
        check_lengths(&raw, length, v_length)?;
        Ok(Self { raw, memory: PhantomData })
    }

    /// The same pages, to be read.
    pub fn as_pages(&self) -> Pages<'_> {
        Pages { raw: self.raw, memory: PhantomData }
    }
}

fn check_lengths(raw: &RawPages, k: usize, v: usize) -> Result<(), Error> {
    let (k_extent, v_extent) = raw.extents()?;
    ensure(k_extent <= k as u64 && v_extent <= v as u64, Error::Stride)
}

/// Write rows of K and V `[n][Hk][d]` to slots `[n]`; -1 = do not write.
///
/// # Errors
/// [`Error::Shape`], [`Error::Slot`].
pub fn append(pages: &mut PagesMut<'_>, k: &[f32], v: &[f32], slots: &[i64]) -> Result<(), Error> {
    let floats = pages.raw.geometry.floats(slots.len());
    ensure(k.len() == floats && v.len() == floats, Error::Shape)?;
    // SAFETY: the view is exclusive and inside its slices; the lengths were checked.
    unsafe { append_raw(&pages.raw, k.as_ptr(), v.as_ptr(), slots.as_ptr(), slots.len()) }
}

/// Copy the first tokens of pages, in list order.
///
/// # Errors
/// [`Error::NullPage`], [`Error::Page`], [`Error::Tokens`].
pub fn copy_pages(pages: &mut PagesMut<'_>, copies: &[PageCopy]) -> Result<(), Error> {
    // SAFETY: the view is exclusive and inside its slices.
    unsafe { copy_pages_raw(&pages.raw, copies.as_ptr(), copies.len()) }
}

/// Read tokens `begin..end` of a table row into K and V `[end - begin][Hk][d]`.
///
/// # Errors
/// [`Error::Shape`], [`Error::Range`], [`Error::Table`], [`Error::Page`], [`Error::NullPage`].
pub fn gather(
    pages: &Pages<'_>,
    table: &Table<'_>,
    row: u32,
    tokens: (u32, u32),
    k: &mut [f32],
    v: &mut [f32],
) -> Result<(), Error> {
    check_range(&pages.raw, tokens, k.len(), v.len())?;
    let table = table.raw();
    // SAFETY: the view and the table are inside their slices; the lengths were checked.
    unsafe { gather_raw(&pages.raw, &table, row, tokens, k.as_mut_ptr(), v.as_mut_ptr()) }
}

/// Write K and V `[end - begin][Hk][d]` to tokens `begin..end` of a table row.
///
/// # Errors
/// As [`gather`].
pub fn scatter(
    pages: &mut PagesMut<'_>,
    table: &Table<'_>,
    row: u32,
    tokens: (u32, u32),
    k: &[f32],
    v: &[f32],
) -> Result<(), Error> {
    check_range(&pages.raw, tokens, k.len(), v.len())?;
    let table = table.raw();
    // SAFETY: the view is exclusive; view and table are inside their slices; lengths checked.
    unsafe { scatter_raw(&pages.raw, &table, row, tokens, k.as_ptr(), v.as_ptr()) }
}

fn check_range(raw: &RawPages, tokens: (u32, u32), k: usize, v: usize) -> Result<(), Error> {
    let n = tokens.1.checked_sub(tokens.0).ok_or(Error::Range)?;
    let floats = raw.geometry.floats(n as usize);
    ensure(k == floats && v == floats, Error::Shape)
}

/// Query rows: q `[n][H][d]`, positions `[n]`, table rows `[n]` or row i for row i.
#[derive(Clone, Copy)]
pub struct Queries<'a> {
    /// `[n][H][d]`
    pub q: &'a [f32],
    /// `[n]` absolute position; negative = padding row.
    pub positions: &'a [i32],
    /// `[n]` table row, or `None`: row i uses table row i.
    pub table_rows: Option<&'a [i32]>,
}

impl Queries<'_> {
    pub(super) fn raw(
        &self,
        heads: u32,
        head_dim: u32,
        out: &mut [f32],
        lse: Option<&mut [f32]>,
    ) -> Result<RawQueries, Error> {
        let rows = self.positions.len();
        let n = u32::try_from(rows).map_err(|_| Error::Shape)?;
        let per_head = rows.saturating_mul(heads as usize);
        let floats = per_head.saturating_mul(head_dim as usize);
        ensure(self.q.len() == floats && out.len() == floats, Error::Shape)?;
        ensure(self.table_rows.is_none_or(|t| t.len() == rows), Error::Shape)?;
        ensure(lse.as_ref().is_none_or(|l| l.len() == per_head), Error::Shape)?;
        Ok(RawQueries {
            n,
            q: self.q.as_ptr(),
            positions: self.positions.as_ptr(),
            table_rows: self.table_rows.map_or(core::ptr::null(), <[i32]>::as_ptr),
            out: out.as_mut_ptr(),
            lse: lse.map_or(core::ptr::null_mut(), <[f32]>::as_mut_ptr),
        })
    }
}

pub(super) fn whole(n: u32, heads: u32, scratch: &mut [f32]) -> RawWork {
    RawWork { rows: (0, n), heads: (0, heads), scratch: scratch.as_mut_ptr(), scratch_floats: scratch.len() as u64 }
}

/// Causal attention over pages: out `[n][H][d]`, lse `[n][H]`.
///
/// For the scratch see [`attention_scratch`](super::attention_scratch). Threads may take disjoint
/// rows; to split heads too, use [`attention_raw`](super::attention_raw).
///
/// # Errors
/// Any argument error; nothing has been written then.
pub fn attention(
    pages: &Pages<'_>,
    table: &Table<'_>,
    params: &AttentionParams<'_>,
    queries: &Queries<'_>,
    out: &mut [f32],
    lse: Option<&mut [f32]>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let raw = queries.raw(params.heads, pages.raw.geometry.head_dim, out, lse)?;
    let work = whole(raw.n, params.heads, scratch);
    // SAFETY: the views are inside their slices, the lengths were checked, outputs are exclusive.
    unsafe { attention_raw(&pages.raw, &table.raw(), params, &raw, &work) }
}

/// Keys and values of one sequence `[T][Hk][d]`.
#[derive(Clone, Copy)]
pub struct Contiguous<'a> {
    raw: RawContiguous,
    memory: PhantomData<&'a [u8]>,
}

// SAFETY: a shared borrow of bytes; the kernels only read through it.
unsafe impl Send for Contiguous<'_> {}
// SAFETY: as above.
unsafe impl Sync for Contiguous<'_> {}

impl<'a> Contiguous<'a> {
    /// A view of T tokens, where T is the length of K and of V over that of a token.
    ///
    /// # Errors
    /// [`Error::Shape`] if the lengths differ or are no multiple of a token's.
    pub fn new(dtype: Dtype, kv_heads: u32, head_dim: u32, k: &'a [u8], v: &'a [u8]) -> Result<Self, Error> {
        super::pages::check_heads(kv_heads, head_dim)?;
        let token = kv_heads as u64 * head_dim as u64 * dtype.bytes();
        let tokens = (k.len() as u64).checked_div(token).unwrap_or(0);
        let tokens = u32::try_from(tokens).map_err(|_| Error::Shape)?;
        let raw = RawContiguous { dtype, tokens, kv_heads, head_dim, k: k.as_ptr(), v: v.as_ptr() };
        ensure(raw.extent()? == k.len() as u64 && k.len() == v.len(), Error::Shape)?;
        Ok(Self { raw, memory: PhantomData })
    }
}

/// Causal attention over one contiguous sequence; `table_rows` is ignored.
///
/// # Errors
/// Any argument error; nothing has been written then.
pub fn attention_contiguous(
    kv: &Contiguous<'_>,
    params: &AttentionParams<'_>,
    queries: &Queries<'_>,
    out: &mut [f32],
    lse: Option<&mut [f32]>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let raw = queries.raw(params.heads, kv.raw.head_dim, out, lse)?;
    let work = whole(raw.n, params.heads, scratch);
    // SAFETY: the view is inside its slices, the lengths were checked, outputs are exclusive.
    unsafe { attention_contiguous_raw(&kv.raw, params, &raw, &work) }
}
