//! Geometry and addresses of paged memory.
//!
//! Invariant: a row (one token, one head) is reached only through
//! [`Strides::offset`], in 64 bits, and only for pages 1..=N.
//!
//! ```text
//!   base (page 0)       page p                     row of token s, head h
//!   |<-- p * page ----->|<-- s * token + h * head -->|d elements|
//! ```

use super::element::{Dtype, is_aligned, is_row_finite, load_row, with_element};
use super::isa::Isa;
use crate::error::{Error, ensure};

/// Most heads, query or key/value.
pub const MAX_HEADS: u32 = 8192;
/// Most elements of one head.
pub const MAX_HEAD_DIM: u32 = 8192;

/// Distances in bytes between pages, tokens of a page, and heads of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strides {
    /// From page p to page p + 1.
    pub page: u64,
    /// From a token to the next token of its page.
    pub token: u64,
    /// From a head to the next head of its token.
    pub head: u64,
}

impl Strides {
    /// Byte offset of the row of one token and head from the base.
    ///
    /// Cannot overflow for strides and ids that [`RawPages::check`] accepted.
    #[inline(always)]
    pub const fn offset(&self, page: u64, slot: u64, head: u64) -> u64 {
        page.wrapping_mul(self.page)
            .wrapping_add(slot.wrapping_mul(self.token))
            .wrapping_add(head.wrapping_mul(self.head))
    }

    /// End of the last row of page `n_pages`, or `None` if that overflows.
    fn extent(&self, g: &Geometry) -> Option<u64> {
        let page = (g.n_pages as u64).checked_mul(self.page)?;
        let token = (g.page_tokens as u64 - 1).checked_mul(self.token)?;
        let head = (g.kv_heads as u64 - 1).checked_mul(self.head)?;
        page.checked_add(token)?.checked_add(head)?.checked_add(g.row_bytes())
    }
}

/// Sizes that K and V share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Element type.
    pub dtype: Dtype,
    /// P, a power of two in 1..=256.
    pub page_tokens: u32,
    /// N: ids 1..=N are valid.
    pub n_pages: u32,
    /// Hk.
    pub kv_heads: u32,
    /// d.
    pub head_dim: u32,
}

impl Geometry {
    /// Bytes of one row.
    pub const fn row_bytes(&self) -> u64 {
        self.head_dim as u64 * self.dtype.bytes()
    }

    /// Strides of the plain layout `[page][slot][head][d]`.
    pub const fn plain_strides(&self) -> Strides {
        let head = self.row_bytes();
        let token = head * self.kv_heads as u64;
        Strides { page: token * self.page_tokens as u64, token, head }
    }

    /// Floats of `tokens` rows of all heads.
    pub(crate) const fn floats(&self, tokens: usize) -> usize {
        tokens.saturating_mul(self.kv_heads as usize).saturating_mul(self.head_dim as usize)
    }

    fn check(&self) -> Result<(), Error> {
        let p = self.page_tokens;
        ensure(p.is_power_of_two() && p <= 256, Error::PageTokens)?;
        ensure(self.n_pages >= 1 && self.n_pages <= i32::MAX as u32, Error::Shape)?;
        check_heads(self.kv_heads, self.head_dim)
    }
}

/// Check key/value heads and head size.
pub(crate) fn check_heads(kv_heads: u32, head_dim: u32) -> Result<(), Error> {
    ensure((1..=MAX_HEADS).contains(&kv_heads), Error::Shape)?;
    ensure((1..=MAX_HEAD_DIM).contains(&head_dim), Error::Shape)
}

/// Paged keys and values by address.
#[derive(Clone, Copy, Debug)]
pub struct RawPages {
    /// Sizes.
    pub geometry: Geometry,
    /// Address of page 0, K.
    pub k: *mut u8,
    /// Address of page 0, V.
    pub v: *mut u8,
    /// Strides of K.
    pub k_strides: Strides,
    /// Strides of V.
    pub v_strides: Strides,
}

impl RawPages {
    /// Check everything except whether the addresses are valid.
    ///
    /// # Errors
    /// [`Error::Null`], [`Error::PageTokens`], [`Error::Shape`], [`Error::Align`],
    /// [`Error::Stride`].
    pub fn check(&self) -> Result<(), Error> {
        ensure(!self.k.is_null() && !self.v.is_null(), Error::Null)?;
        self.geometry.check()?;
        self.check_half(self.k, &self.k_strides)?;
        self.check_half(self.v, &self.v_strides)
    }

    /// Bytes from page 0 to the end of page N, for K and V.
    ///
    /// # Errors
    /// As [`RawPages::check`].
    pub fn extents(&self) -> Result<(u64, u64), Error> {
        self.check()?;
        let k = self.k_strides.extent(&self.geometry).ok_or(Error::Stride)?;
        let v = self.v_strides.extent(&self.geometry).ok_or(Error::Stride)?;
        Ok((k, v))
    }

    fn check_half(&self, base: *mut u8, s: &Strides) -> Result<(), Error> {
        let g = &self.geometry;
        let bytes = g.dtype.bytes();
        let multiples = (s.page | s.token | s.head) & (bytes - 1) == 0;
        ensure(is_aligned(base, bytes) && multiples, Error::Align)?;
        let row = g.row_bytes();
        // Two rows would share bytes. With one token or one head the stride is not used.
        ensure(s.page >= row, Error::Stride)?;
        ensure(g.page_tokens == 1 || s.token >= row, Error::Stride)?;
        ensure(g.kv_heads == 1 || s.head >= row, Error::Stride)?;
        let extent = s.extent(g).ok_or(Error::Stride)?;
        ensure(extent <= isize::MAX as u64, Error::Stride)
    }

    /// Address of one row of K.
    ///
    /// # Safety
    /// The view passed `check` and its memory is valid; 1 <= page <= N, slot < P, head < Hk.
    #[inline(always)]
    pub(crate) unsafe fn k_row(&self, page: u32, slot: u32, head: u32) -> *mut u8 {
        let offset = self.k_strides.offset(page as u64, slot as u64, head as u64);
        // SAFETY: inside the extent that `check` limits to isize::MAX; memory is the caller's promise.
        unsafe { self.k.add(offset as usize) }
    }

    /// Address of one row of V.
    ///
    /// # Safety
    /// As [`RawPages::k_row`].
    #[inline(always)]
    pub(crate) unsafe fn v_row(&self, page: u32, slot: u32, head: u32) -> *mut u8 {
        let offset = self.v_strides.offset(page as u64, slot as u64, head as u64);
        // SAFETY: as in `k_row`.
        unsafe { self.v.add(offset as usize) }
    }

    /// Address of one row of K or V, and the bytes to the next token's.
    ///
    /// # Safety
    /// As [`RawPages::k_row`].
    #[inline(always)]
    pub(crate) unsafe fn row(&self, is_k: bool, page: u32, slot: u32, head: u32) -> (*mut u8, u64) {
        // SAFETY: the caller's promise.
        unsafe {
            if is_k {
                (self.k_row(page, slot, head), self.k_strides.token)
            } else {
                (self.v_row(page, slot, head), self.v_strides.token)
            }
        }
    }

    /// Read all tokens of one head of a page: `out` is `[P][d]`.
    ///
    /// # Safety
    /// The view passed `check` and its memory is valid; 1 <= page <= N, head < Hk, and `out` has P * d floats.
    pub(crate) unsafe fn load_head(&self, is_k: bool, page: u32, head: u32, out: &mut [f32]) {
        let d = self.geometry.head_dim as usize;
        for (slot, out) in (0..self.geometry.page_tokens).zip(out.chunks_exact_mut(d.max(1))) {
            // SAFETY: the caller's promise.
            unsafe {
                let (row, _) = self.row(is_k, page, slot, head);
                with_element!(self.geometry.dtype, E => load_row::<E>(row.cast(), out.as_mut_ptr(), d));
            }
        }
    }

    /// Whether all elements of one head of a page are finite.
    ///
    /// # Safety
    /// As [`RawPages::load_head`]; `isa` is resolved.
    pub(crate) unsafe fn is_head_finite(&self, isa: Isa, is_k: bool, page: u32, head: u32) -> bool {
        let d = self.geometry.head_dim as usize;
        (0..self.geometry.page_tokens).all(|slot| {
            // SAFETY: the caller's promise.
            unsafe {
                let (row, _) = self.row(is_k, page, slot, head);
                is_row_finite(isa, self.geometry.dtype, row, d)
            }
        })
    }

    /// The page with an id that C or a table gave, or why there is none.
    #[inline]
    pub(crate) fn page(&self, id: i64) -> Result<u32, Error> {
        page_id(id, self.geometry.n_pages)
    }
}

/// A page id in 1..=N, or why there is none.
#[inline]
pub(crate) fn page_id(id: i64, n_pages: u32) -> Result<u32, Error> {
    ensure(id != 0, Error::NullPage)?;
    ensure(id > 0 && id <= i64::from(n_pages), Error::Page)?;
    Ok(id as u32)
}

/// Page and offset of a slot id, if the page is in 1..=N.
#[inline(always)]
pub(crate) fn slot_place(slot: i64, page_tokens: u32, n_pages: u32) -> Option<(u32, u32)> {
    let page = page_id(slot >> page_tokens.trailing_zeros(), n_pages).ok()?;
    Some((page, slot as u32 & (page_tokens - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_pass_32_bits() {
        let strides = Strides { page: 1 << 21, token: 1 << 14, head: 1 << 8 };
        assert_eq!(strides.offset(1 << 22, 3, 5), (1 << 43) + (3 << 14) + (5 << 8));
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn addresses_pass_32_bits() {
        let strides = Strides { page: 1 << 21, token: 1 << 14, head: 1 << 8 };
        let geometry = Geometry { dtype: Dtype::F16, page_tokens: 128, n_pages: 1 << 22, kv_heads: 64, head_dim: 128 };
        // Addresses that are computed and never read.
        let k = core::ptr::without_provenance_mut::<u8>(1 << 12);
        let v = core::ptr::without_provenance_mut::<u8>(1 << 46);
        let pages = RawPages { geometry, k, v, k_strides: strides, v_strides: strides };
        assert_eq!(pages.check(), Ok(()));
        let offset = (1usize << 43) + (127 << 14) + (63 << 8);
        assert_eq!(pages.k_strides.offset(1 << 22, 127, 63), offset as u64);
        assert_eq!(k.wrapping_add(offset).addr(), (1 << 12) + offset);
        assert_eq!(pages.extents(), Ok((offset as u64 + 256, offset as u64 + 256)));

        let beyond = Strides { page: 1 << 42, ..strides };
        let pages = RawPages { k_strides: beyond, ..pages };
        assert_eq!(pages.check(), Err(Error::Stride));
    }
}
