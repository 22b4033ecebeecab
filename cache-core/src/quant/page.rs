//! Rows of pages: the bytes that a layout names, through the codec that it names.

use core::ops::Range;

use super::coder::Coder;
use super::error::{NonFinite, QuantError, Report};
use super::hadamard::Rotation;
use super::range::admit;
use super::slices::{pieces, pieces_mut};
use crate::layout::{self, PageLayout, PageLayoutSpec, PartLayout, Tensor, TensorFormat};

/// Reads and writes rows of one part of the pages of a layout. A view: it costs nothing to make one again.
///
/// Numbers of several bytes lie in the machine's order, but those inside blocks of ggml, which are little-endian. A page begins
/// at a multiple of 4 bytes.
#[derive(Clone, Copy, Debug)]
pub struct RowCodec<'a> {
    layout: &'a PageLayout,
    tensor: Tensor,
    pub(super) coder: Coder,
    rotation: Rotation,
    scales: &'a [f32],
}

impl<'a> RowCodec<'a> {
    /// The rows of `tensor` under a layout that [`PageLayout::new`] made or [`PageLayout::verify`] accepted. `scales` are the ones
    /// that lie outside pages: [`PartLayout::static_scales`] for each layer, layer after layer. O(scales).
    ///
    /// # Errors
    /// `Group` for a layout that is neither, and for integers in rows of one element; `Length` for another number of scales, or
    /// a part that the layout lacks; `Scale` for one that is not finite and above 0, or no power of two where the format says so.
    pub fn new(layout: &'a PageLayout, tensor: Tensor, scales: &'a [f32]) -> Result<Self, QuantError> {
        let part = layout.part(tensor);
        let wanted = u64::from(layout.layers).saturating_mul(u64::from(part.static_scales));
        if !part.exists() || u64::try_from(scales.len()) != Ok(wanted) {
            return Err(QuantError::Length);
        }
        let has_powers = part.format.flags & TensorFormat::POWER_OF_TWO != 0;
        let is_bad =
            |&scale: &f32| !(scale > 0.0 && scale.is_finite()) || has_powers && scale.to_bits() & FRACTION != 0;
        if let Some(index) = scales.iter().position(is_bad) {
            return Err(QuantError::Scale { index });
        }
        let rotated = match tensor {
            Tensor::K => layout.rotation_parts & PageLayoutSpec::ROTATE_K != 0,
            Tensor::V => layout.rotation_parts & PageLayoutSpec::ROTATE_V != 0,
            Tensor::Rope => false,
        };
        let rotation = if rotated && layout.rotation == layout::Rotation::HADAMARD {
            let rotation = Rotation::of(part.dim, layout.rotation_size)?;
            if layout.rotation_seed == 0 { rotation } else { rotation.with_signs(layout.rotation_seed) }
        } else {
            Rotation::NONE
        };
        Ok(Self { layout, tensor, coder: Coder::of(part)?, rotation, scales })
    }

    /// Tokens that are written as one: reads and writes begin and end at multiples of this.
    #[must_use]
    pub const fn block_tokens(&self) -> u32 {
        self.part().block_tokens
    }

    /// Elements of a row.
    #[must_use]
    pub const fn dim(&self) -> usize {
        self.part().dim as usize
    }

    const fn part(&self) -> &'a PartLayout {
        self.layout.part(self.tensor)
    }

    /// Decodes rows of one head: `out` is `[tokens][d]`. `page` is the whole page. O(out), and log n more where rows are
    /// rotated back. Where it fails, part of `out` may be written.
    ///
    /// # Errors
    /// `Length` for tokens, a layer or a head that are not there, blocks that are not whole, slices that are too short, or a
    /// page that is not aligned; `Scale` where the page holds what no encoder writes, with the group's number among those read.
    #[inline(always)]
    pub fn read(
        &self,
        page: &[u8],
        layer: u32,
        head: u32,
        tokens: Range<u32>,
        out: &mut [f32],
    ) -> Result<(), QuantError> {
        self.each_block(page, layer, head, tokens, out, |from, out| self.decode(from, out))?;
        self.rotation.revert(out, self.dim(), layer, head)
    }

    /// Runs `f` on the bytes of block after block, or of all at once, and their part of `out`.
    #[inline(always)]
    pub(super) fn each_block(
        &self,
        page: &[u8],
        layer: u32,
        head: u32,
        tokens: Range<u32>,
        out: &mut [f32],
        f: impl Fn(&Bytes<'_>, &mut [f32]) -> Result<(), QuantError>,
    ) -> Result<(), QuantError> {
        let rows = self.rows(layer, head, &tokens)?;
        if out.len() != rows.tokens.checked_mul(self.dim()).ok_or(QuantError::Length)? {
            return Err(QuantError::Length);
        }
        let at_once = rows.at_once();
        for (nth, out) in pieces_mut(out, at_once.saturating_mul(rows.block_elements)).enumerate() {
            let from = rows.block(nth.saturating_mul(at_once), at_once);
            let bytes = Bytes {
                codes: page.get(from.codes).ok_or(QuantError::Length)?,
                scales: page.get(from.scales).ok_or(QuantError::Length)?,
                zeros: page.get(from.zeros).ok_or(QuantError::Length)?,
                fixed: self.static_scale(layer, head),
            };
            let before = nth.saturating_mul(self.part().groups as usize);
            f(&bytes, out).map_err(|e| e.after_groups(before))?;
        }
        Ok(())
    }

    /// Whether rows are rotated before they are encoded.
    #[must_use]
    pub fn rotates(&self) -> bool {
        self.rotation != Rotation::NONE
    }

    /// Rotates rows of one head in place, `[tokens][d]`, where the layout says so: the form that [`Self::write`] takes. O(x log n).
    ///
    /// # Errors
    /// `Length` for rows that are not whole.
    pub fn rotate(&self, x: &mut [f32], layer: u32, head: u32) -> Result<(), QuantError> {
        self.rotation.apply(x, self.dim(), layer, head)
    }

    /// The inverse of [`Self::rotate`], which [`Self::read`] ends with. O(x log n).
    ///
    /// # Errors
    /// As there.
    pub fn unrotate(&self, x: &mut [f32], layer: u32, head: u32) -> Result<(), QuantError> {
        self.rotation.revert(x, self.dim(), layer, head)
    }

    /// Encodes rows of one head; `x` is `[tokens][d]`, [rotated](Self::rotate). All is checked before the first byte is
    /// written. O(x).
    ///
    /// `saturated` counts rows where elements are f16 or bf16, or FP8 with given scales. FP8 treats NaN and infinities as
    /// [`fp8`](super::fp8) says, uncounted; with f32, f16 and bf16 a row is what takes the place of a group.
    ///
    /// # Errors
    /// As [`Self::read`]; `NonFinite` under [`NonFinite::Reject`].
    #[inline(always)]
    pub fn write(
        &self,
        page: &mut [u8],
        layer: u32,
        head: u32,
        tokens: Range<u32>,
        x: &[f32],
        on: NonFinite,
    ) -> Result<Report, QuantError> {
        let rows = self.rows(layer, head, &tokens)?;
        if x.len() != rows.tokens.checked_mul(self.dim()).ok_or(QuantError::Length)? {
            return Err(QuantError::Length);
        }
        let end = usize::try_from(self.layout.page_bytes).map_err(|_| QuantError::Length)?;
        let page = page.get_mut(..end).ok_or(QuantError::Length)?;
        admit(x, on)?;
        let mut report = Report::default();
        let at_once = rows.at_once();
        for (nth, x) in pieces(x, at_once.saturating_mul(rows.block_elements)).enumerate() {
            let to = rows.block(nth.saturating_mul(at_once), at_once);
            // Sections follow each other: codes, scales, zeros.
            let (front, zeros) = page.split_at_mut_checked(to.zeros.start).ok_or(QuantError::Length)?;
            let zeros = zeros.get_mut(..to.zeros.len()).ok_or(QuantError::Length)?;
            let (front, scales) = front.split_at_mut_checked(to.scales.start).ok_or(QuantError::Length)?;
            let scales = scales.get_mut(..to.scales.len()).ok_or(QuantError::Length)?;
            let codes = front.get_mut(to.codes).ok_or(QuantError::Length)?;
            report = report.and(self.encode(x, on, self.static_scale(layer, head), codes, scales, zeros)?);
        }
        Ok(report)
    }

    #[inline(always)]
    fn static_scale(&self, layer: u32, head: u32) -> f32 {
        let per_layer = self.part().static_scales;
        let nth = layer.wrapping_mul(per_layer).wrapping_add(if per_layer > 1 { head } else { 0 });
        self.scales.get(nth as usize).copied().unwrap_or(1.0)
    }

    #[inline(always)]
    fn rows(&self, layer: u32, head: u32, tokens: &Range<u32>) -> Result<Rows, QuantError> {
        let part = self.part();
        let block = part.block_tokens;
        let whole = |token: u32| token.checked_rem(block) == Some(0);
        let is_there = tokens.start <= tokens.end && tokens.end <= self.layout.page_tokens;
        if !is_there || !whole(tokens.start) || !whole(tokens.end) {
            return Err(QuantError::Length);
        }
        let first = if tokens.is_empty() { 0 } else { tokens.start };
        let row = self.layout.row(layer, self.tensor, head, first).map_err(|_| QuantError::Length)?;
        let size = |x: u64| usize::try_from(x).map_err(|_| QuantError::Length);
        let of = |bytes: u32| size(u64::from(part.groups).wrapping_mul(u64::from(bytes)));
        let end = size(self.layout.page_bytes)?;
        let count = tokens.end.saturating_sub(tokens.start) as usize;
        Ok(Rows {
            tokens: count,
            block_elements: (block as usize).saturating_mul(self.dim()),
            blocks: count.checked_div(block as usize).unwrap_or(0),
            codes: (size(row.codes)?, of(part.group_bytes)?, size(part.codes_block)?),
            // What is not there is empty, and lies behind all else.
            scales: if part.scale_bytes == 0 {
                (end, 0, 0)
            } else {
                (size(row.scales)?, of(part.scale_bytes)?, size(part.params_block)?)
            },
            zeros: if part.zero_bytes == 0 {
                (end, 0, 0)
            } else {
                (size(row.zeros)?, of(part.zero_bytes)?, size(part.params_block)?)
            },
        })
    }
}

/// Fraction bits of an f32.
const FRACTION: u32 = 0x7f_ffff;

/// Where rows of one head lie in a page: of each section the start of the first block, the bytes of one, and the bytes from
/// one to the next.
struct Rows {
    tokens: usize,
    block_elements: usize,
    blocks: usize,
    codes: (usize, usize, usize),
    scales: (usize, usize, usize),
    zeros: (usize, usize, usize),
}

/// What blocks are made of.
pub(super) struct Bytes<'a> {
    pub(super) codes: &'a [u8],
    pub(super) scales: &'a [u8],
    pub(super) zeros: &'a [u8],
    /// The scale outside the page; 1 without one.
    pub(super) fixed: f32,
}

/// Where blocks that follow each other lie.
struct Blocks {
    codes: Range<usize>,
    scales: Range<usize>,
    zeros: Range<usize>,
}

impl Rows {
    /// Blocks that codecs take as one: all, where blocks are tokens and follow each other in every section; else one.
    #[inline(always)]
    fn at_once(&self) -> usize {
        let is_dense = |(_, bytes, stride): (usize, usize, usize)| bytes == stride;
        let all = is_dense(self.codes) && is_dense(self.scales) && is_dense(self.zeros) && self.blocks == self.tokens;
        if all { self.blocks.max(1) } else { 1 }
    }

    #[inline(always)]
    fn block(&self, nth: usize, count: usize) -> Blocks {
        let range = |(start, bytes, stride): (usize, usize, usize)| {
            let start = start.saturating_add(nth.saturating_mul(stride));
            start..start.saturating_add(bytes.saturating_mul(count))
        };
        Blocks { codes: range(self.codes), scales: range(self.scales), zeros: range(self.zeros) }
    }
}
