//! Where a row or an element lies: O(1), 64 bits.

use super::codes::{Axis, ElementCode};
use super::error::LayoutError;
use super::page::{PageLayout, PartLayout};
use crate::ids::PageId;

/// A part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Tensor {
    /// Keys; with MLA the latent part.
    K = 0,
    /// Values; with MLA the latent part.
    V = 1,
    /// The rope part of MLA.
    Rope = 2,
}

/// Where the row of one token and head lies, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RowAddress {
    /// Codes of its block: the row itself, or the G tokens that share groups with it.
    pub codes: u64,
    /// Scales of that block, one per group; 0 = none in the page.
    pub scales: u64,
    /// Zeros of that block, one per group; 0 = none.
    pub zeros: u64,
}

/// Where one element lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ElementAddress {
    /// The byte that its code begins in.
    pub byte: u64,
    /// Its scale; 0 = none in the page.
    pub scale: u64,
    /// Its zero; 0 = none.
    pub zero: u64,
    /// Lowest bit of the code within the byte.
    pub bit: u32,
    /// Bits of the code.
    pub bits: u32,
}

impl PageLayout {
    /// Byte offset of a page from page 0, where the NULL page would lie.
    ///
    /// # Errors
    /// `Index` for the NULL page.
    pub fn page_offset(&self, page: PageId) -> Result<u64, LayoutError> {
        if page == PageId::NULL {
            return Err(LayoutError::Index);
        }
        u64::from(page.get()).checked_mul(self.page_bytes).ok_or(LayoutError::TooLarge)
    }

    /// Where the row of a token and head lies, counted from page 0.
    ///
    /// # Errors
    /// `Index` for the NULL page and for a layer, head or token that is not there, or a part that the layout lacks.
    pub fn offset(
        &self,
        page: PageId,
        layer: u32,
        tensor: Tensor,
        head: u32,
        token: u32,
    ) -> Result<RowAddress, LayoutError> {
        let (start, row) = (self.page_offset(page)?, self.row(layer, tensor, head, token)?);
        let from = |at: u64| if at == 0 { Ok(0) } else { start.checked_add(at).ok_or(LayoutError::TooLarge) };
        let codes = start.checked_add(row.codes).ok_or(LayoutError::TooLarge)?;
        Ok(RowAddress { codes, scales: from(row.scales)?, zeros: from(row.zeros)? })
    }

    /// Where the row of a token and head lies, counted from its page's start.
    ///
    /// # Errors
    /// As [`Self::offset`].
    pub fn row(&self, layer: u32, tensor: Tensor, head: u32, token: u32) -> Result<RowAddress, LayoutError> {
        let part = self.part(tensor);
        if layer >= self.layers || head >= self.kv_heads || token >= self.page_tokens || !part.exists() {
            return Err(LayoutError::Index);
        }
        // Below page_bytes, which `new` keeps below 2^63; a descriptor that was not verified may wrap, and gives a wrong number.
        let layer = u64::from(layer).wrapping_mul(self.layer_bytes);
        let block = u64::from(token.checked_div(part.block_tokens).unwrap_or(0));
        let head = u64::from(head);
        let codes = head.wrapping_mul(part.codes_head).wrapping_add(block.wrapping_mul(part.codes_block));
        let params =
            layer.wrapping_add(head.wrapping_mul(part.params_head)).wrapping_add(block.wrapping_mul(part.params_block));
        Ok(RowAddress {
            codes: layer.wrapping_add(part.codes).wrapping_add(codes),
            scales: if part.scale_bytes == 0 { 0 } else { part.scales.wrapping_add(params) },
            zeros: if part.zero_bytes == 0 { 0 } else { part.zeros.wrapping_add(params) },
        })
    }

    /// Where one element lies, counted from its page's start. For tests and tools: kernels walk groups.
    ///
    /// # Errors
    /// As [`Self::offset`], and for a channel that is not there.
    pub fn element(
        &self,
        layer: u32,
        tensor: Tensor,
        head: u32,
        token: u32,
        channel: u32,
    ) -> Result<ElementAddress, LayoutError> {
        let (row, part) = (self.row(layer, tensor, head, token)?, self.part(tensor));
        if channel >= part.dim {
            return Err(LayoutError::Index);
        }
        let (group, nth) = part.group_of(token, channel);
        let (bits, group) = (part.format.code_bits(), u64::from(group));
        // q4_0 keeps the second half of a block in the high halves of its bytes.
        let (nth, high) = match (part.format.element, nth.checked_sub(16)) {
            (ElementCode::Q4_0, Some(beyond)) => (beyond.wrapping_mul(2), 4),
            (ElementCode::Q4_0, None) => (nth.wrapping_mul(2), 0),
            _ => (nth, 0),
        };
        let bit = u64::from(nth).wrapping_mul(u64::from(bits));
        let inside = u64::from(part.format.inline_bytes()).wrapping_add(bit >> 3);
        let param = |at: u64, bytes: u32| if at == 0 { 0 } else { at.wrapping_add(group.wrapping_mul(bytes.into())) };
        let first = row.codes.wrapping_add(group.wrapping_mul(u64::from(part.group_bytes)));
        Ok(ElementAddress {
            byte: first.wrapping_add(inside),
            scale: param(row.scales, part.scale_bytes),
            zero: param(row.zeros, part.zero_bytes),
            bit: (bit & 7) as u32 | high,
            bits,
        })
    }
}

impl PartLayout {
    /// The group of its block that an element belongs to, and its number in it.
    fn group_of(&self, token: u32, channel: u32) -> (u32, u32) {
        if self.format.axis == Axis::CHANNEL {
            return (channel, token.checked_rem(self.block_tokens).unwrap_or(0));
        }
        // One group is a whole row where the format has none.
        let size = self.dim.checked_div(self.groups).unwrap_or(0);
        (channel.checked_div(size).unwrap_or(0), channel.checked_rem(size).unwrap_or(0))
    }
}
