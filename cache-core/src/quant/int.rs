//! INT8, INT4 and INT2 with an f16 scale and an f16 zero per group.
//!
//! With `n = 2^bits - 1`, over the values of a group:
//! ```text
//! z = f16 toward -inf of min x          s = f16 toward +inf of (max x - z) / n
//! c = clamp(rne((x - z) / s), 0, n)     x' = c s + z          all codes 0 where s = 0
//! ```
//! Rounded this way the parameters cover the group, so no code is clamped and `|x' - x| <= s / 2`, but for the rounding of
//! f32 itself. A product of code and scale has at most 19 bits, so `c s + z` rounds once, fused or not.
//!
//! Where `min x` is -0, z is +0. A scale is 0 only where the group is one f16 value.

use super::error::{NonFinite, QuantError, Report};
use super::format::{BLOCK, IntBits, IntFormat};
use super::pack::{split2, split4};
use super::range::{Extremes, admit, first_non_finite, survey};
use super::rounding::{f16_ceil, f16_floor, f16_is_finite, f16_nearest_saturating, f16_to_f32};
use super::slices::{each, gather, pieces, pieces_mut, scatter};

/// Encoded rows. Sections: codes of row after row, packed; scales and zeros, f16 bits, one per group.
#[derive(Clone, Copy, Debug)]
pub struct GroupsRef<'a> {
    /// Packed codes.
    pub codes: &'a [u8],
    /// Scales, f16 bits.
    pub scales: &'a [u16],
    /// Zeros, f16 bits.
    pub zeros: &'a [u16],
}

/// The same, to be written.
#[derive(Debug)]
pub struct GroupsMut<'a> {
    /// Packed codes.
    pub codes: &'a mut [u8],
    /// Scales, f16 bits.
    pub scales: &'a mut [u16],
    /// Zeros, f16 bits.
    pub zeros: &'a mut [u16],
}

impl GroupsMut<'_> {
    #[inline(always)]
    fn elements(&self, format: IntFormat) -> Result<usize, QuantError> {
        format.elements(self.codes.len(), self.scales.len(), self.zeros.len())
    }

    #[inline(always)]
    fn groups(&mut self, format: IntFormat) -> impl Iterator<Item = (&mut [u8], &mut u16, &mut u16)> {
        let parameters = self.scales.iter_mut().zip(self.zeros.iter_mut());
        pieces_mut(self.codes, format.group_bytes()).zip(parameters).map(|(codes, (s, z))| (codes, s, z))
    }
}

/// Encodes rows, each cut into groups: the channels of tokens and heads. `x` holds whole rows. O(x).
///
/// # Errors
/// `Length`; `NonFinite` under [`NonFinite::Reject`].
#[inline(always)]
pub fn encode(format: IntFormat, x: &[f32], on: NonFinite, mut into: GroupsMut<'_>) -> Result<Report, QuantError> {
    if into.elements(format)? != x.len() {
        return Err(QuantError::Length);
    }
    admit(x, on)?;
    let groups = pieces(x, format.groups().group()).zip(into.groups(format));
    Ok(groups.fold(Report::default(), |report, (x, (codes, scale, zero))| {
        report.and(encode_group(format.bits(), x, codes, scale, zero))
    }))
}

/// Encodes channels, each cut into groups of tokens: element (token t, channel c) is `x[t * stride + c]`, a row of `format`
/// is one channel, and rows are written in the order of channels. As many channels as `into` has rows. O(x).
///
/// # Errors
/// `Length`; `Group` for one above 128; `NonFinite` under [`NonFinite::Reject`], with an index into `x`.
#[inline(always)]
pub fn encode_channels(
    format: IntFormat,
    x: &[f32],
    stride: usize,
    on: NonFinite,
    mut into: GroupsMut<'_>,
) -> Result<Report, QuantError> {
    let tokens = format.groups().row();
    let channels = channels(format, into.elements(format)?, x.len(), stride)?;
    if on == NonFinite::Reject {
        for (token, row) in x.chunks(stride.max(1)).take(tokens).enumerate() {
            if let Some(index) = first_non_finite(row.get(..channels).unwrap_or(row)) {
                return Err(QuantError::NonFinite { index: token.saturating_mul(stride).saturating_add(index) });
            }
        }
    }
    let (group, per_row) = (format.groups().group(), format.groups().per_row());
    let mut report = Report::default();
    let mut into = into.groups(format);
    for channel in 0..channels {
        let mut column = x.get(channel..).unwrap_or(&[]);
        for (codes, scale, zero) in into.by_ref().take(per_row) {
            let mut block = [0.0; BLOCK];
            let block = block.get_mut(..group).unwrap_or(&mut []);
            gather(column, stride, block);
            report = report.and(encode_group(format.bits(), block, codes, scale, zero));
            column = column.get(group.saturating_mul(stride)..).unwrap_or(&[]);
        }
    }
    Ok(report)
}

/// Encodes rows with the scales and zeros that are there, for instance static ones: what they do not cover is clamped. A
/// decoded row gets the codes that it had, where `s` is at least 4 units in the last place of its greatest magnitude. O(x).
///
/// # Errors
/// `Length`; `Scale`; `NonFinite`.
#[inline(always)]
pub fn encode_with(
    format: IntFormat,
    x: &[f32],
    scales: &[u16],
    zeros: &[u16],
    codes: &mut [u8],
) -> Result<(), QuantError> {
    if format.elements(codes.len(), scales.len(), zeros.len())? != x.len() {
        return Err(QuantError::Length);
    }
    are_usable(scales, zeros)?;
    admit(x, NonFinite::Reject)?;
    let groups = pieces_mut(codes, format.group_bytes()).zip(pieces(x, format.groups().group()));
    for ((codes, x), (&scale, &zero)) in groups.zip(scales.iter().zip(zeros)) {
        fill(format.bits(), x, |x| x, scale, zero, codes);
    }
    Ok(())
}

/// Decodes rows to f32. O(out).
///
/// # Errors
/// `Length`; `Scale` for a scale that is negative or not finite, or a zero that is not finite, with the index of the group.
#[inline(always)]
pub fn decode(format: IntFormat, from: GroupsRef<'_>, out: &mut [f32]) -> Result<(), QuantError> {
    decode_as(format, from, out, |x| x)
}

/// Decodes rows to f16 bits; what rounds beyond the largest f16 saturates. O(out).
///
/// # Errors
/// As [`decode`].
#[inline(always)]
pub fn decode_f16(format: IntFormat, from: GroupsRef<'_>, out: &mut [u16]) -> Result<(), QuantError> {
    decode_as(format, from, out, f16_nearest_saturating)
}

/// Decodes channels, to where [`encode_channels`] reads; what lies between is left. O(elements).
///
/// # Errors
/// As [`decode`]; `Group` for one above 128.
#[inline(always)]
pub fn decode_channels(
    format: IntFormat,
    from: GroupsRef<'_>,
    out: &mut [f32],
    stride: usize,
) -> Result<(), QuantError> {
    let elements = format.elements(from.codes.len(), from.scales.len(), from.zeros.len())?;
    let channels = channels(format, elements, out.len(), stride)?;
    are_usable(from.scales, from.zeros)?;
    let (group, per_row) = (format.groups().group(), format.groups().per_row());
    let mut groups = pieces(from.codes, format.group_bytes()).zip(from.scales.iter().zip(from.zeros));
    for channel in 0..channels {
        let mut column = out.get_mut(channel..).unwrap_or(&mut []);
        for (codes, (&scale, &zero)) in groups.by_ref().take(per_row) {
            let mut block = [0.0; BLOCK];
            let block = block.get_mut(..group).unwrap_or(&mut []);
            expand(format.bits(), codes, scale, zero, block, |x| x);
            scatter(block, column, stride);
            column = column.get_mut(group.saturating_mul(stride)..).unwrap_or(&mut []);
        }
    }
    Ok(())
}

/// Channels of a strided array, once it is found to hold them.
#[inline(always)]
fn channels(format: IntFormat, elements: usize, held: usize, stride: usize) -> Result<usize, QuantError> {
    if format.groups().group() > BLOCK {
        return Err(QuantError::Group);
    }
    let tokens = format.groups().row();
    let channels = elements.checked_div(tokens).unwrap_or(0);
    let last = tokens.wrapping_sub(1).checked_mul(stride).and_then(|last| last.checked_add(channels));
    match last {
        Some(needed) if channels == 0 || (needed <= held && channels <= stride) => Ok(channels),
        _ => Err(QuantError::Length),
    }
}

#[inline(always)]
fn are_usable(scales: &[u16], zeros: &[u16]) -> Result<(), QuantError> {
    // A scale is not negative, so all above the finite ones are the unusable ones.
    let is_bad = |(&scale, &zero): (&u16, &u16)| scale >= 0x7c00 || !f16_is_finite(zero);
    scales.iter().zip(zeros).position(is_bad).map_or(Ok(()), |index| Err(QuantError::Scale { index }))
}

#[inline(always)]
fn encode_group(bits: IntBits, x: &[f32], codes: &mut [u8], scale: &mut u16, zero: &mut u16) -> Report {
    let (extremes, report) = survey(x);
    let is_saturated;
    (*scale, *zero, is_saturated) = parameters(extremes, f32::from(bits.most()));
    if report.replaced == 0 {
        fill(bits, x, |x| x, *scale, *zero, codes);
    } else {
        fill(bits, x, |x| extremes.nearest(x), *scale, *zero, codes);
    }
    report.and(Report::saturated(is_saturated))
}

/// Scale and zero that cover the group, and whether f16 could not.
#[inline(always)]
fn parameters(Extremes { least, greatest }: Extremes, most: f32) -> (u16, u16, bool) {
    let (zero, is_below) = f16_floor(least + 0.0); // -0 becomes +0
    let span = greatest - f16_to_f32(zero) + 0.0; // likewise: a scale is never -0
    let (scale, is_above) = f16_ceil(span / most);
    // A quotient may underflow; a scale that covers does not.
    (scale.max(u16::from(span > 0.0)), zero, is_below || is_above)
}

/// Codes of a group, packed, of what `of` makes of its values.
#[inline(always)]
fn fill(bits: IntBits, x: &[f32], of: impl Fn(f32) -> f32, scale: u16, zero: u16, packed: &mut [u8]) {
    let (zero, most) = (f16_to_f32(zero), f32::from(bits.most()));
    // With scale 0 nothing is above zero: any divisor gives code 0.
    let scale = if scale == 0 { f32::INFINITY } else { f16_to_f32(scale) };
    let code = |x: f32| {
        let steps = (of(x) - zero) / scale;
        let steps = if steps > 0.0 { steps } else { 0.0 };
        let steps = if steps < most { steps } else { most };
        // 2^23 has unit 1: the addition rounds to even, and leaves the code in the low bits.
        let [code, ..] = (steps + 8_388_608.0).to_bits().to_le_bytes();
        code
    };
    // A group fills its bytes.
    match bits {
        IntBits::B8 => each(x, packed, code),
        IntBits::B4 => each(x.as_chunks().0, packed, |[a, b]| code(a) | code(b) << 4),
        IntBits::B2 => {
            each(x.as_chunks().0, packed, |[a, b, c, d]| code(a) | code(b) << 2 | code(c) << 4 | code(d) << 6)
        }
    }
}

#[inline(always)]
fn decode_as<T>(
    format: IntFormat,
    from: GroupsRef<'_>,
    out: &mut [T],
    cast: impl Fn(f32) -> T + Copy,
) -> Result<(), QuantError> {
    if format.elements(from.codes.len(), from.scales.len(), from.zeros.len())? != out.len() {
        return Err(QuantError::Length);
    }
    are_usable(from.scales, from.zeros)?;
    let groups = pieces(from.codes, format.group_bytes()).zip(from.scales.iter().zip(from.zeros));
    for (out, (codes, (&scale, &zero))) in pieces_mut(out, format.groups().group()).zip(groups) {
        expand(format.bits(), codes, scale, zero, out, cast);
    }
    Ok(())
}

/// Values of a group.
#[inline(always)]
fn expand<T>(bits: IntBits, packed: &[u8], scale: u16, zero: u16, out: &mut [T], cast: impl Fn(f32) -> T) {
    let (scale, zero) = (f16_to_f32(scale), f16_to_f32(zero));
    let value = |code: u8| cast(f32::from(code) * scale + zero);
    match bits {
        IntBits::B8 => packed.iter().zip(out).for_each(|(&code, to)| *to = value(code)),
        IntBits::B4 => each(packed, out.as_chunks_mut().0, |byte| split4(byte).map(value)),
        IntBits::B2 => each(packed, out.as_chunks_mut().0, |byte| split2(byte).map(value)),
    }
}
