//! How far what is read may be from what was written, and what follows for attention: certified, from the page alone.
//!
//! - [`RowCodec::error_bounds`]: `e`, no less than the error of each element.
//! - [`logit_bound`]: `D = scale * max over keys of sum |q_i| e_i`, no less than any change of a logit.
//! - [`variation_bound`]: if no logit moves by more than D, `TV(p, p') <= tanh(D / 2)`.
//! - [`output_bound`]: `|o' - o| <= tanh(D / 2) (max v - min v + 2 e_v) + e_v` in each channel, of values as read.
//!
//! So an engine can decide to keep a layer exact from its own queries, without running it twice. Sums are rounded up.

use core::ops::Range;

use super::coder::{Coder, cast};
use super::error::QuantError;
use super::format::Fp8Kind;
use super::fp4::{MXFP4_BLOCK, NVFP4_BLOCK, e8m0};
use super::ggml::{BLOCK, Q4_0_BYTES, Q8_0_BYTES};
use super::page::{Bytes, RowCodec};
use super::rounding::f16_to_f32;
use super::slices::{pieces, pieces_mut};

/// One part in a million more: above all rounding of the bounds themselves.
const SLACK: f32 = 1.000_001;
/// Relative half step of f16, its least half step, and its greatest value.
const F16: (f32, f32, f32) = (0.000_488_6, 2.981e-8, 65_504.0);
/// The same of bfloat16.
const BF16: (f32, f32, f32) = (0.003_92, f32::MIN_POSITIVE, 3.38e38);
/// Units of f32 that decoding and encoding may round, relative to the group's greatest magnitude.
const UNITS: f32 = 2.0 / 8_388_608.0;

impl RowCodec<'_> {
    /// Bounds the error of every element of rows of one head: `out` is `[tokens][d]`. Infinity where a value may have been
    /// saturated, or its code is NaN. Where the layout rotates rows the bounds are those of rotated rows: [rotate](Self::rotate)
    /// the query to bound logits. O(out).
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn error_bounds(
        &self,
        page: &[u8],
        layer: u32,
        head: u32,
        tokens: Range<u32>,
        out: &mut [f32],
    ) -> Result<(), QuantError> {
        self.each_block(page, layer, head, tokens, out, |from, out| {
            self.decode(from, out)?;
            self.bound(from, out)
        })
    }

    /// Turns decoded values into bounds of their errors.
    fn bound(&self, from: &Bytes<'_>, out: &mut [f32]) -> Result<(), QuantError> {
        let dim = self.dim();
        match self.coder {
            Coder::F32 => out.fill(0.0),
            Coder::F16 => out.iter_mut().for_each(|x| *x = nearest(*x, F16)),
            Coder::Bf16 => out.iter_mut().for_each(|x| *x = nearest(*x, BF16)),
            Coder::Int(format) => {
                let parameters = cast::<u16>(from.scales)?.iter().zip(cast::<u16>(from.zeros)?);
                for (out, (&scale, &zero)) in pieces_mut(out, format.groups().group()).zip(parameters) {
                    out.fill(half_step(scale, zero, f32::from(format.bits().most())));
                }
            }
            Coder::IntChannels(format) => {
                let parameters = cast::<u16>(from.scales)?.iter().zip(cast::<u16>(from.zeros)?);
                for (channel, (&scale, &zero)) in parameters.enumerate() {
                    let bound = half_step(scale, zero, f32::from(format.bits().most()));
                    out.iter_mut().skip(channel).step_by(dim.max(1)).for_each(|x| *x = bound);
                }
            }
            Coder::Symmetric(groups) => {
                for (out, &scale) in pieces_mut(out, groups.group()).zip(cast::<u16>(from.scales)?) {
                    out.fill(half_step(scale, 0, 127.0));
                }
            }
            Coder::SymmetricChannels(_) => {
                for (channel, &scale) in cast::<u16>(from.scales)?.iter().enumerate() {
                    let bound = half_step(scale, 0, 127.0);
                    out.iter_mut().skip(channel).step_by(dim.max(1)).for_each(|x| *x = bound);
                }
            }
            Coder::Fp8(kind, _, group) => {
                for (out, &scale) in pieces_mut(out, group).zip(cast::<f32>(from.scales)?) {
                    out.iter_mut().for_each(|x| *x = fp8(kind, *x, scale, f32::INFINITY));
                }
            }
            Coder::Fp8Static(kind) => {
                out.iter_mut().for_each(|x| *x = fp8(kind, *x, from.fixed, kind.greatest()));
            }
            Coder::Q8_0 => ggml_blocks(out, from.codes, Q8_0_BYTES, |d| d * 0.5, 127.0),
            // Codes reach +7 only: a value of the other sign and the same magnitude is off by a whole step.
            Coder::Q4_0 => ggml_blocks(out, from.codes, Q4_0_BYTES, |d| d, 8.0),
            Coder::Nvfp4 => {
                for (out, &scale) in pieces_mut(out, NVFP4_BLOCK).zip(from.scales) {
                    let (stored, least) = (Fp8Kind::E4m3Fn.decode(scale), 0.000_977); // half of 2^-9
                    let coarse = (stored * 0.062_5).max(least) * from.fixed;
                    let step = stored * from.fixed;
                    // What the scale's own rounding hides is at most 6 half steps of it.
                    out.iter_mut().for_each(|x| *x = fp4(*x, step, 6.0 * coarse));
                }
            }
            Coder::Mxfp4 => {
                for (out, &scale) in pieces_mut(out, MXFP4_BLOCK).zip(from.scales) {
                    let step = e8m0(scale);
                    // A group's greatest value is below 8 steps, and 6 is the last code.
                    out.iter_mut().for_each(|x| *x = fp4(*x, step, 2.0 * step));
                }
            }
        }
        Ok(())
    }
}

/// Half the distance between codes, and what f32 rounds.
fn half_step(scale: u16, zero: u16, most: f32) -> f32 {
    let (scale, zero) = (f16_to_f32(scale), f16_to_f32(zero));
    // Parameters at the end of f16 may have been saturated.
    if scale >= F16.2 || zero.abs() >= F16.2 {
        return f32::INFINITY;
    }
    let greatest = zero.abs().max((zero + scale * most).abs());
    (scale * 0.5 + greatest * UNITS) * SLACK
}

fn nearest(x: f32, (relative, least, most): (f32, f32, f32)) -> f32 {
    if x.abs() < most { (x.abs() * relative).max(least) } else { f32::INFINITY }
}

/// Of a value decoded with this scale; from code `end` on it may have been saturated.
fn fp8(kind: Fp8Kind, x: f32, scale: f32, end: f32) -> f32 {
    let (relative, least) = match kind {
        Fp8Kind::E4m3Fn => (0.062_5, 0.000_976_562_5),
        Fp8Kind::E4m3Fnuz => (0.062_5, 0.000_488_281_25),
        Fp8Kind::E5m2 => (0.125, 0.000_007_629_394_5),
    };
    let code = (x / scale).abs();
    if code < end * 0.999 { (code * relative).max(least) * scale * SLACK } else { f32::INFINITY }
}

/// Blocks with an f16 step in front: `of` the step, plus what rounding it moves the furthest of `most` codes.
fn ggml_blocks(out: &mut [f32], blocks: &[u8], bytes: usize, of: impl Fn(f32) -> f32, most: f32) {
    for (out, block) in pieces_mut(out, BLOCK).zip(pieces(blocks, bytes)) {
        let d = block.first_chunk().map_or(f32::NAN, |&d| f16_to_f32(u16::from_le_bytes(d)).abs());
        let rounded = nearest(d, F16);
        // Codes are computed with the reciprocal, in f32.
        out.fill((of(d + rounded) + most * (rounded + (d + rounded) * UNITS)) * SLACK);
    }
}

/// Half the distance to the next code, and `beyond` behind the last one.
fn fp4(x: f32, step: f32, beyond: f32) -> f32 {
    let code = (x / step).abs();
    let half = match code {
        ..1.75 => 0.25,
        ..3.5 => 0.5,
        _ => 1.0,
    };
    let half = if step > 0.0 { half * step } else { 0.0 };
    if code < 5.0 { half * SLACK } else { half.max(beyond) * SLACK + if step > 0.0 { 0.0 } else { beyond } }
}

/// The most that a logit `scale * q.k` changes over keys whose [errors](RowCodec::error_bounds) are rows of `errors`, as long as
/// `q`. O(errors).
///
/// ```
/// use kvfolio::quant::{logit_bound, output_bound, variation_bound};
///
/// let d = logit_bound(&[1.0, -2.0], 0.5, &[0.25, 0.125, 0.0, 0.5]);
/// assert!((0.5..0.500_001).contains(&d)); // of the second key
/// let variation = variation_bound(d);
/// assert!((0.244_9..0.245).contains(&variation)); // tanh(1/4)
/// assert!(output_bound(variation, 2.0, 0.125) < 0.677);
/// ```
#[must_use]
pub fn logit_bound(q: &[f32], scale: f32, errors: &[f32]) -> f64 {
    let of = |row: &[f32]| q.iter().zip(row).fold(0.0, |sum, (q, e)| sum + f64::from(q.abs()) * f64::from(*e));
    let most = pieces(errors, q.len()).map(of).fold(0.0, |most: f64, sum| if sum > most { sum } else { most });
    most * f64::from(scale.abs()) * (1.0 + 1e-12)
}

/// The most that probabilities move in total (half the sum of their changes) when no logit moves by more than `d`.
#[must_use]
pub fn variation_bound(d: f64) -> f64 {
    if d.is_nan() { 1.0 } else { (libm::tanh(d * 0.5) * (1.0 + 1e-12)).min(1.0) }
}

/// The most that a channel of the output changes: probabilities move by `variation`, the channel's values span `span` from the
/// least to the greatest as read, and each is off by `error` at most.
#[must_use]
pub fn output_bound(variation: f64, span: f32, error: f32) -> f64 {
    (variation * (f64::from(span) + 2.0 * f64::from(error)) + f64::from(error)) * (1.0 + 1e-12)
}
