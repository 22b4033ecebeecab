//! Quantised pages by address.

use kvfolio::layout::{PageLayout, Tensor};
use kvfolio::quant::QuantError;

use super::part::Part;
use crate::cpu::{Geometry, RawPages, check_array, page_id, slot_place};
use crate::error::{Error, ensure};

/// Pages of one layer under a layout.
#[derive(Clone, Copy, Debug)]
pub struct RawQuant<'a> {
    /// What each byte means. MLA is not read here.
    pub layout: &'a PageLayout,
    /// Address of page 0, a multiple of the layout's alignment.
    pub base: *mut u8,
    /// N: ids 1..=N are valid.
    pub n_pages: u32,
    /// Which of the layout's layers.
    pub layer: u32,
    /// Scales of K that lie outside pages, `[layers][static_scales]` of the layout; not looked at where it has none.
    pub k_scales: *const f32,
    /// The same of V.
    pub v_scales: *const f32,
}

/// Pages that were checked.
#[derive(Clone, Copy)]
pub(super) struct Quant<'a> {
    pub(super) k: Part<'a>,
    pub(super) v: Part<'a>,
    pub(super) n_pages: u32,
    pub(super) layer: u32,
    pub(super) heads: u32,
    pub(super) page_tokens: u32,
    /// Elements of a head of K and of V.
    pub(super) dim: usize,
    base: *mut u8,
    page_bytes: usize,
}

/// Floats of scratch that encoding into pages of a layout needs: the rows of one head of a page.
pub fn encode_scratch(layout: &PageLayout) -> u64 {
    u64::from(layout.page_tokens) * u64::from(layout.k.dim.max(layout.v.dim))
}

impl<'a> RawQuant<'a> {
    /// Checks everything except whether the addresses are valid. O(scales).
    ///
    /// # Safety
    /// Non-NULL scales are valid for reads for the lifetime.
    pub(super) unsafe fn checked(&self) -> Result<Quant<'a>, Error> {
        let layout = self.layout;
        ensure(!self.base.is_null(), Error::Null)?;
        layout.verify().map_err(|_| Error::Layout)?;
        let is_plain = layout.v.is_own() && !layout.rope_part.exists() && layout.k.dim == layout.v.dim;
        ensure(is_plain, Error::Layout)?;
        ensure((1..=i32::MAX as u32).contains(&self.n_pages) && self.layer < layout.layers, Error::Shape)?;
        ensure((self.base as usize as u64).is_multiple_of(u64::from(layout.align)), Error::Align)?;
        let end = (u64::from(self.n_pages) + 1).checked_mul(layout.page_bytes).ok_or(Error::Stride)?;
        ensure(end <= isize::MAX as u64, Error::Stride)?;
        let part = |tensor: Tensor, scales: *const f32| {
            let n = layout.layers as usize * layout.part(tensor).static_scales as usize;
            check_array(scales, n)?;
            // SAFETY: as many as the layout, which was verified, says; the caller's promise.
            let scales = if n == 0 { &[] } else { unsafe { core::slice::from_raw_parts(scales, n) } };
            Part::new(layout, tensor, scales).map_err(error)
        };
        Ok(Quant {
            k: part(Tensor::K, self.k_scales)?,
            v: part(Tensor::V, self.v_scales)?,
            n_pages: self.n_pages,
            layer: self.layer,
            heads: layout.kv_heads,
            page_tokens: layout.page_tokens,
            dim: layout.k.dim as usize,
            base: self.base,
            page_bytes: layout.page_bytes as usize,
        })
    }
}

impl Quant<'_> {
    /// The bytes of a page, to be read.
    ///
    /// # Safety
    /// The memory is valid for reads and 1 <= page <= N.
    #[inline(always)]
    pub(super) unsafe fn page<'b>(&self, page: u32) -> &'b [u8] {
        // SAFETY: below (N + 1) * page_bytes, which is at most isize::MAX; the caller's promise.
        unsafe { core::slice::from_raw_parts(self.base.add(page as usize * self.page_bytes), self.page_bytes) }
    }

    /// The bytes of a page, to be written.
    ///
    /// # Safety
    /// The memory is valid for writes, nobody else uses the page, and 1 <= page <= N.
    #[inline(always)]
    pub(super) unsafe fn page_mut<'b>(&self, page: u32) -> &'b mut [u8] {
        // SAFETY: as in `page`.
        unsafe { core::slice::from_raw_parts_mut(self.base.add(page as usize * self.page_bytes), self.page_bytes) }
    }

    /// The page with an id that C or a table gave, or why there is none.
    #[inline]
    pub(super) fn id(&self, id: i64) -> Result<u32, Error> {
        page_id(id, self.n_pages)
    }

    /// Page and offset of a slot.
    pub(super) fn place(&self, slot: i64) -> Result<(u32, u32), Error> {
        slot_place(slot, self.page_tokens, self.n_pages).ok_or(Error::Slot)
    }

    /// Whether exact pages have the same shape.
    pub(super) fn check_exact(&self, exact: &RawPages) -> Result<(), Error> {
        exact.check()?;
        let Geometry { page_tokens, kv_heads, head_dim, .. } = exact.geometry;
        let is_same = page_tokens == self.page_tokens && kv_heads == self.heads && head_dim as usize == self.dim;
        ensure(is_same, Error::Shape)
    }

    /// Tokens of the larger block of K and V.
    pub(super) fn block_tokens(&self) -> u32 {
        self.k.block_tokens().max(self.v.block_tokens())
    }
}

/// What a codec refused.
pub(super) fn error(error: QuantError) -> Error {
    match error {
        QuantError::NonFinite { .. } => Error::NonFinite,
        QuantError::Scale { .. } => Error::Scale,
        _ => Error::Layout,
    }
}

/// Whether a scratch of `floats` at an address is enough.
pub(super) fn check_scratch(scratch: *const f32, floats: u64, needed: u64) -> Result<(), Error> {
    ensure(floats >= needed, Error::Scratch)?;
    check_array(scratch, needed as usize)
}
