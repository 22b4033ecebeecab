//! Rows of pages: the bytes that a layout names, through the codec that it names.

use core::ops::Range;

use super::error::{NonFinite, QuantError, Report};
use super::format::{Fp8Kind, Groups, IntBits, IntFormat};
use super::fp8_scale::{ScaleRule, row_scales};
use super::hadamard::Rotation;
use super::range::admit;
use super::rounding::f16_to_f32;
use super::{fp4, fp8, ggml, int, symmetric};
use crate::layout::{self, Axis, ElementCode, PageLayout, PageLayoutSpec, PartLayout, ScaleMode, Tensor, TensorFormat};

/// Reads and writes rows of one part of the pages of a layout, K or V. A view: it costs nothing to make one again.
#[derive(Clone, Copy, Debug)]
pub struct RowCodec<'a> {
    layout: &'a PageLayout,
    tensor: Tensor,
    coder: Coder,
    rotation: Rotation,
    scales: &'a [f32],
}

/// A format, with what its codec wants to know.
#[derive(Clone, Copy, Debug)]
enum Coder {
    F32,
    F16,
    Bf16,
    Int(IntFormat),
    /// A row of the format is the tokens of one channel in one block.
    IntChannels(IntFormat),
    Symmetric(Groups),
    SymmetricChannels(Groups),
    /// One scale for each `group` elements, computed.
    Fp8(Fp8Kind, ScaleRule, usize),
    /// One scale for the tensor, or one for each head, given.
    Fp8Static(Fp8Kind),
    Q8_0,
    Q4_0,
    Nvfp4,
    Mxfp4,
}

impl<'a> RowCodec<'a> {
    /// The rows of `tensor` under a layout that [`PageLayout::new`] made or [`PageLayout::verify`] accepted. `scales` are the ones
    /// that lie outside pages: [`PartLayout::static_scales`] for each layer, layer after layer. O(scales).
    ///
    /// # Errors
    /// `Group` for a layout that is neither; `Length` for another number of scales, or a part that the layout lacks; `Scale`
    /// for one that is not finite and above 0.
    pub fn new(layout: &'a PageLayout, tensor: Tensor, scales: &'a [f32]) -> Result<Self, QuantError> {
        let part = layout.part(tensor);
        let wanted = u64::from(layout.layers).saturating_mul(u64::from(part.static_scales));
        if !part.exists() || u64::try_from(scales.len()) != Ok(wanted) {
            return Err(QuantError::Length);
        }
        if let Some(index) = scales.iter().position(|&scale| !(scale > 0.0 && scale.is_finite())) {
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
    /// rotated back.
    ///
    /// # Errors
    /// `Length` for tokens, a layer or a head that are not there, blocks that are not whole, or slices that are too short;
    /// `Scale` where the page holds what no encoder writes.
    #[inline(always)]
    pub fn read(
        &self,
        page: &[u8],
        layer: u32,
        head: u32,
        tokens: Range<u32>,
        out: &mut [f32],
    ) -> Result<(), QuantError> {
        let rows = self.rows(layer, head, &tokens)?;
        if out.len() != rows.tokens.checked_mul(self.dim()).ok_or(QuantError::Length)? {
            return Err(QuantError::Length);
        }
        let at_once = rows.at_once();
        for (nth, out) in out.chunks_exact_mut(at_once.saturating_mul(rows.block_elements)).enumerate() {
            let from = rows.block(nth.saturating_mul(at_once), at_once);
            let codes = page.get(from.codes).ok_or(QuantError::Length)?;
            let scales = page.get(from.scales).ok_or(QuantError::Length)?;
            let zeros = page.get(from.zeros).ok_or(QuantError::Length)?;
            self.decode(codes, scales, zeros, self.static_scale(layer, head), out)?;
        }
        self.rotation.revert(out, self.dim(), layer, head)
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
        for (nth, x) in x.chunks_exact(at_once.saturating_mul(rows.block_elements)).enumerate() {
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
        Ok(Rows {
            tokens: tokens.len(),
            block_elements: (block as usize).saturating_mul(self.dim()),
            blocks: tokens.len().checked_div(block as usize).unwrap_or(0),
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

    #[inline(always)]
    fn decode(&self, codes: &[u8], scales: &[u8], zeros: &[u8], fixed: f32, out: &mut [f32]) -> Result<(), QuantError> {
        match self.coder {
            Coder::F32 => words(codes).zip(out).for_each(|(word, to)| *to = f32::from_le_bytes(word)),
            Coder::F16 => words(codes).zip(out).for_each(|(word, to)| *to = f16_to_f32(u16::from_le_bytes(word))),
            Coder::Bf16 => words(codes)
                .zip(out)
                .for_each(|(word, to)| *to = f32::from_bits(u32::from(u16::from_le_bytes(word)) << 16)),
            Coder::Int(format) => {
                let from = int::GroupsRef { codes, scales: cast(scales)?, zeros: cast(zeros)? };
                int::decode(format, from, out)?;
            }
            Coder::IntChannels(format) => {
                let from = int::GroupsRef { codes, scales: cast(scales)?, zeros: cast(zeros)? };
                int::decode_channels(format, from, out, self.dim())?;
            }
            Coder::Symmetric(groups) => symmetric::decode(groups, cast(codes)?, cast(scales)?, out)?,
            Coder::SymmetricChannels(groups) => {
                let scales: &[u16] = cast(scales)?;
                let blocks = codes.chunks_exact(groups.group()).zip(scales.chunks(1));
                for (channel, (codes, scale)) in blocks.enumerate() {
                    let mut values = [0.0; GROUP];
                    let values = values.get_mut(..groups.group()).unwrap_or(&mut []);
                    symmetric::decode(groups, cast(codes)?, scale, values)?;
                    column(out, channel, self.dim()).zip(values).for_each(|(to, x)| *to = *x);
                }
            }
            Coder::Fp8(kind, _, group) => fp8::decode(kind, codes, group, cast(scales)?, out)?,
            Coder::Fp8Static(kind) => fp8::decode(kind, codes, self.dim(), &[fixed], out)?,
            Coder::Q8_0 => ggml::q8_0_decode(codes, out)?,
            Coder::Q4_0 => ggml::q4_0_decode(codes, out)?,
            Coder::Nvfp4 => fp4::nvfp4_decode(codes, scales, fixed, out)?,
            Coder::Mxfp4 => fp4::mxfp4_decode(codes, scales, out)?,
        }
        Ok(())
    }

    #[inline(always)]
    fn encode(
        &self,
        x: &[f32],
        on: NonFinite,
        fixed: f32,
        codes: &mut [u8],
        scales: &mut [u8],
        zeros: &mut [u8],
    ) -> Result<Report, QuantError> {
        let mut report = Report::default();
        match self.coder {
            Coder::F32 => words_mut(codes).zip(x).for_each(|(word, x)| *word = x.to_le_bytes()),
            Coder::F16 => {
                words_mut(codes).zip(x).for_each(|(word, &x)| *word = half::f16::from_f32(x).to_bits().to_le_bytes());
            }
            Coder::Bf16 => {
                words_mut(codes).zip(x).for_each(|(word, &x)| *word = half::bf16::from_f32(x).to_bits().to_le_bytes());
            }
            Coder::Int(format) => {
                let into = int::GroupsMut { codes, scales: cast_mut(scales)?, zeros: cast_mut(zeros)? };
                report = int::encode(format, x, on, into)?;
            }
            Coder::IntChannels(format) => {
                let into = int::GroupsMut { codes, scales: cast_mut(scales)?, zeros: cast_mut(zeros)? };
                report = int::encode_channels(format, x, self.dim(), on, into)?;
            }
            Coder::Symmetric(groups) => {
                report = symmetric::encode(groups, x, on, cast_mut(codes)?, cast_mut(scales)?)?;
            }
            Coder::SymmetricChannels(groups) => {
                let scales: &mut [u16] = cast_mut(scales)?;
                let blocks = codes.chunks_exact_mut(groups.group()).zip(scales.chunks_mut(1));
                for (channel, (codes, scale)) in blocks.enumerate() {
                    let mut values = [0.0; GROUP];
                    let values = values.get_mut(..groups.group()).unwrap_or(&mut []);
                    let of = x.iter().skip(channel).step_by(self.dim());
                    values.iter_mut().zip(of).for_each(|(to, &x)| *to = x);
                    report = report.and(symmetric::encode(groups, values, on, cast_mut(codes)?, scale)?);
                }
            }
            Coder::Fp8(kind, rule, group) => {
                let scales = cast_mut(scales)?;
                row_scales(kind, rule, x, group, on, scales)?;
                fp8::encode(kind, x, group, scales, codes)?;
            }
            Coder::Fp8Static(kind) => fp8::encode(kind, x, self.dim(), &[fixed], codes)?,
            Coder::Q8_0 => report = ggml::q8_0_encode(x, on, codes)?,
            Coder::Q4_0 => report = ggml::q4_0_encode(x, on, codes)?,
            Coder::Nvfp4 => report = fp4::nvfp4_encode(x, fixed, on, codes, scales)?,
            Coder::Mxfp4 => report = fp4::mxfp4_encode(x, on, codes, scales)?,
        }
        Ok(report)
    }
}

/// Longest group along tokens.
const GROUP: usize = 128;

impl Coder {
    fn of(part: &PartLayout) -> Result<Self, QuantError> {
        let TensorFormat { element, axis, group, scale, flags, .. } = part.format;
        let is_channel = axis == Axis::CHANNEL;
        let group_of = |group: u32| if group == 0 { part.dim } else { group };
        let groups = || if is_channel { Groups::new(group, group) } else { Groups::new(part.dim, group_of(group)) };
        let int = |bits: IntBits| {
            if is_channel {
                IntFormat::new(bits, group, group).map(Self::IntChannels)
            } else {
                IntFormat::new(bits, part.dim, group_of(group)).map(Self::Int)
            }
        };
        let rule = if flags & TensorFormat::POWER_OF_TWO == 0 { ScaleRule::Exact } else { ScaleRule::PowerOfTwo };
        let fp8 = |kind: Fp8Kind| {
            let is_dynamic = scale == ScaleMode::TOKEN_HEAD;
            Ok(if is_dynamic { Self::Fp8(kind, rule, group_of(group) as usize) } else { Self::Fp8Static(kind) })
        };
        match element {
            ElementCode::F32 => Ok(Self::F32),
            ElementCode::F16 => Ok(Self::F16),
            ElementCode::BF16 => Ok(Self::Bf16),
            ElementCode::INT8 => int(IntBits::B8),
            ElementCode::INT4 => int(IntBits::B4),
            ElementCode::INT2 => int(IntBits::B2),
            ElementCode::INT8_SYMMETRIC if is_channel => groups().map(Self::SymmetricChannels),
            ElementCode::INT8_SYMMETRIC => groups().map(Self::Symmetric),
            ElementCode::FP8_E4M3FN => fp8(Fp8Kind::E4m3Fn),
            ElementCode::FP8_E4M3FNUZ => fp8(Fp8Kind::E4m3Fnuz),
            ElementCode::FP8_E5M2 => fp8(Fp8Kind::E5m2),
            ElementCode::Q8_0 => Ok(Self::Q8_0),
            ElementCode::Q4_0 => Ok(Self::Q4_0),
            ElementCode::NVFP4 => Ok(Self::Nvfp4),
            ElementCode::MXFP4 => Ok(Self::Mxfp4),
            _ => Err(QuantError::Group),
        }
    }
}

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

/// Bytes of blocks that follow each other.
struct Blocks {
    codes: Range<usize>,
    scales: Range<usize>,
    zeros: Range<usize>,
}

impl Rows {
    /// Blocks that codecs take as one: all, where one section is as dense as the other and groups lie along channels.
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

/// Elements of N bytes.
#[inline(always)]
fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.as_chunks().0.iter().copied()
}

#[inline(always)]
fn words_mut<const N: usize>(bytes: &mut [u8]) -> impl Iterator<Item = &mut [u8; N]> {
    bytes.as_chunks_mut().0.iter_mut()
}

/// A channel of `[tokens][dim]`.
#[inline(always)]
fn column(out: &mut [f32], channel: usize, dim: usize) -> impl Iterator<Item = &mut f32> {
    out.iter_mut().skip(channel).step_by(dim)
}

/// Bytes as numbers; sections are aligned where pages are.
#[inline(always)]
fn cast<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Result<&[T], QuantError> {
    bytemuck::try_cast_slice(bytes).map_err(|_| QuantError::Length)
}

#[inline(always)]
fn cast_mut<T: bytemuck::Pod>(bytes: &mut [u8]) -> Result<&mut [T], QuantError> {
    bytemuck::try_cast_slice_mut(bytes).map_err(|_| QuantError::Length)
}
