//! Copy the first tokens of pages to other pages (copy-on-write).
//!
//! Invariant: the bytes of all heads of the first `tokens` tokens are copied,
//! and no byte behind or between those rows is written.

use super::element::check_array;
use super::pages::{RawPages, Strides};
use crate::error::{Error, ensure};

/// The first `tokens` tokens of page `src` go to page `dst`. Same layout as `kvf_kernel_copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PageCopy {
    /// Page read.
    pub src: u32,
    /// Page written.
    pub dst: u32,
    /// 0..=P
    pub tokens: u32,
}

const _: () = assert!(size_of::<PageCopy>() == 12 && align_of::<PageCopy>() == 4);

/// Copy pages, in list order.
///
/// # Errors
/// [`Error::NullPage`], [`Error::Page`], [`Error::Tokens`], [`Error::Null`], [`Error::Align`], or
/// those of [`RawPages::check`].
///
/// # Safety
/// Non-NULL addresses are valid: `copies` for n reads, the pages for what the copies name. No
/// thread writes what is read or touches what is written.
pub unsafe fn copy_pages_raw(pages: &RawPages, copies: *const PageCopy, n: usize) -> Result<(), Error> {
    pages.check()?;
    check_array(copies, n)?;
    for i in 0..n {
        // SAFETY: i < n; the caller's promise.
        let copy = unsafe { *copies.add(i) };
        pages.page(copy.src as i64)?;
        pages.page(copy.dst as i64)?;
        let fits = copy.tokens <= pages.geometry.page_tokens;
        ensure(fits && copy.src != copy.dst, Error::Tokens)?;
    }
    for i in 0..n {
        // SAFETY: i < n; the caller's promise.
        let copy = unsafe { *copies.add(i) };
        // SAFETY: both pages are in 1..=N, different, and the tokens are at most P.
        unsafe {
            for (base, strides) in [(pages.k, &pages.k_strides), (pages.v, &pages.v_strides)] {
                let (from, to) = (strides.offset(copy.src.into(), 0, 0), strides.offset(copy.dst.into(), 0, 0));
                copy_tokens(pages, base, strides, (from, to), copy.tokens);
            }
        }
    }
    Ok(())
}

/// Copy the rows of K or of V of adjacent tokens, in as few pieces as their order allows. From and to: offsets of the first
/// token. In one page, the target is not behind the source.
///
/// # Safety
/// As [`copy_pages_raw`], with checked arguments; all tokens are in their pages.
pub(crate) unsafe fn copy_tokens(
    pages: &RawPages,
    base: *mut u8,
    strides: &Strides,
    (from, to): (u64, u64),
    tokens: u32,
) {
    let row = pages.geometry.row_bytes();
    let heads = pages.geometry.kv_heads as u64;
    let tokens = tokens as u64;
    // [tokens][heads]: one piece, or one per token. Otherwise [heads][tokens]: one per head or row.
    let tokens_dense = strides.token == row;
    let heads_dense = heads == 1 || strides.head == row;
    let token_rows = if heads_dense { row * heads } else { row };
    let (outer, outer_stride, inner, inner_stride, bytes) = if heads_dense && strides.token == token_rows {
        (1, 0, 1, 0, token_rows * tokens)
    } else if heads_dense {
        (tokens, strides.token, 1, 0, token_rows)
    } else if tokens_dense {
        (heads, strides.head, 1, 0, row * tokens)
    } else {
        (tokens, strides.token, heads, strides.head, row)
    };
    for i in 0..outer {
        for j in 0..inner {
            let at = i * outer_stride + j * inner_stride;
            // SAFETY: whole rows of tokens below P and heads below Hk, inside the checked extent.
            unsafe {
                let from = base.add((from + at) as usize);
                let to = base.add((to + at) as usize);
                core::ptr::copy(from, to, bytes as usize);
            }
        }
    }
}
