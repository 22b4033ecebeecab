//! From a layout's format to the codec that it names.

use super::error::{NonFinite, QuantError, Report};
use super::format::{BLOCK, Fp8Kind, Groups, IntBits, IntFormat};
use super::fp8_scale::{ScaleRule, row_scales};
use super::page::{Bytes, RowCodec};
use super::range::{greatest_finite, survey};
use super::rounding::{bf16_nearest_saturating, f16_nearest_saturating, f16_to_f32};
use super::slices::{pieces, pieces_mut};
use super::{fp4, fp8, ggml, int, symmetric};
use crate::layout::{Axis, ElementCode, PartLayout, ScaleMode, TensorFormat};

/// A format, with what its codec wants to know.
#[derive(Clone, Copy, Debug)]
pub(super) enum Coder {
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

impl Coder {
    pub(super) fn of(part: &PartLayout) -> Result<Self, QuantError> {
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

/// Whole blocks of one head, in the sections of a page.
impl RowCodec<'_> {
    #[inline(always)]
    pub(super) fn decode(&self, from: &Bytes<'_>, out: &mut [f32]) -> Result<(), QuantError> {
        let &Bytes { codes, scales, zeros, fixed } = from;
        match self.coder {
            Coder::F32 => words(codes).zip(out).for_each(|(word, to)| *to = f32::from_ne_bytes(word)),
            Coder::F16 => words(codes).zip(out).for_each(|(word, to)| *to = f16_to_f32(u16::from_ne_bytes(word))),
            Coder::Bf16 => words(codes)
                .zip(out)
                .for_each(|(word, to)| *to = f32::from_bits(u32::from(u16::from_ne_bytes(word)) << 16)),
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
                let blocks = pieces(codes, groups.group()).zip(pieces(scales, 1));
                for (channel, (codes, scale)) in blocks.enumerate() {
                    let mut values = [0.0; BLOCK];
                    let values = values.get_mut(..groups.group()).unwrap_or(&mut []);
                    symmetric::decode(groups, cast(codes)?, scale, values).map_err(|e| e.after_groups(channel))?;
                    let to = out.iter_mut().skip(channel).step_by(self.dim().max(1));
                    to.zip(values).for_each(|(to, x)| *to = *x);
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
    pub(super) fn encode(
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
            Coder::F32 => report = plain(x, self.dim(), codes, f32::MAX, f32::to_ne_bytes),
            Coder::F16 => {
                report = plain(x, self.dim(), codes, 65_504.0, |x| f16_nearest_saturating(x).to_ne_bytes());
            }
            Coder::Bf16 => {
                let most = f32::from_bits(0x7f7f_0000);
                report = plain(x, self.dim(), codes, most, |x| bf16_nearest_saturating(x).to_ne_bytes());
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
                let blocks = pieces_mut(codes, groups.group()).zip(pieces_mut(scales, 1));
                for (channel, (codes, scale)) in blocks.enumerate() {
                    let mut values = [0.0; BLOCK];
                    let values = values.get_mut(..groups.group()).unwrap_or(&mut []);
                    let of = x.iter().skip(channel).step_by(self.dim().max(1));
                    values.iter_mut().zip(of).for_each(|(to, &x)| *to = x);
                    report = report.and(symmetric::encode(groups, values, on, cast_mut(codes)?, scale)?);
                }
            }
            Coder::Fp8(kind, rule, group) => {
                let scales = cast_mut(scales)?;
                row_scales(kind, rule, x, group, on, scales)?;
                fp8::encode(kind, x, group, scales, codes)?;
            }
            Coder::Fp8Static(kind) => {
                fp8::encode(kind, x, self.dim(), &[fixed], codes)?;
                let is_beyond = |row: &[f32]| greatest_finite(row) / fixed > kind.greatest();
                report =
                    pieces(x, self.dim()).fold(report, |report, row| report.and(Report::saturated(is_beyond(row))));
            }
            Coder::Q8_0 => report = ggml::q8_0_encode(x, on, codes)?,
            Coder::Q4_0 => report = ggml::q4_0_encode(x, on, codes)?,
            Coder::Nvfp4 => report = fp4::nvfp4_encode(x, fixed, on, codes, scales)?,
            Coder::Mxfp4 => report = fp4::mxfp4_encode(x, on, codes, scales)?,
        }
        Ok(report)
    }
}

/// Elements of N bytes.
#[inline(always)]
fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.as_chunks().0.iter().copied()
}

/// Rows of elements that are numbers of their own, up to `most`.
#[inline(always)]
fn plain<const N: usize>(
    x: &[f32],
    dim: usize,
    codes: &mut [u8],
    most: f32,
    number: impl Fn(f32) -> [u8; N],
) -> Report {
    let mut words = codes.as_chunks_mut().0.iter_mut();
    pieces(x, dim).fold(Report::default(), |report, row| {
        let (extremes, replaced) = survey(row);
        row.iter().zip(words.by_ref()).for_each(|(&x, word)| *word = number(extremes.nearest(x)));
        report.and(replaced).and(Report::saturated(extremes.least < -most || extremes.greatest > most))
    })
}

/// Bytes as numbers; sections are aligned where pages are.
#[inline(always)]
pub(super) fn cast<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Result<&[T], QuantError> {
    bytemuck::try_cast_slice(bytes).map_err(|_| QuantError::Length)
}

#[inline(always)]
fn cast_mut<T: bytemuck::Pod>(bytes: &mut [u8]) -> Result<&mut [T], QuantError> {
    bytemuck::try_cast_slice_mut(bytes).map_err(|_| QuantError::Length)
}
