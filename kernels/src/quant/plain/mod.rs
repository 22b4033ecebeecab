//! Encode and decode rows that lie in plain buffers.
//!
//! Shapes, of T rows of d elements:
//!
//! | what | groups along channels | groups along tokens |
//! |---|---|---|
//! | plain | `[T][d]` | `[T][d]` |
//! | codes | `[T][d]`, packed | `[T / G][d][G]`, packed |
//! | scales, zeros | `[T][d / G]` | `[T / G][d]` |

mod decode;
mod encode;
mod shape;

use kvfolio::layout::TensorFormat;
use kvfolio::quant::NonFinite;

use decode::decode_run;
use encode::encode_run;
use shape::is_valid;

use super::kind::{Form, Kind, Run};
use super::rows;
use super::view::error;
use crate::cpu::{Dtype, Isa, MAX_HEAD_DIM};
use crate::error::{Error, ensure};

/// Rows in quantised form, by address. Formats: INT8, INT4, INT2, symmetric INT8, q8_0, q4_0, FP8 E4M3FN.
#[derive(Clone, Copy, Debug)]
pub struct RawRows {
    /// Format of the rows; the group 0 is the whole row.
    pub format: TensorFormat,
    /// d
    pub dim: u32,
    /// T; where groups lie along tokens a multiple of G.
    pub tokens: u64,
    /// Codes; those of q8_0 and q4_0 hold their scales.
    pub codes: *mut u8,
    /// Scales, where the format has some of its own: f16 bits, or f32 of FP8 with a scale for each group.
    pub scales: *mut u8,
    /// Zeros, f16 bits, where the format has them.
    pub zeros: *mut u8,
    /// The one scale of other FP8.
    pub scale: f32,
}

/// What encoding did beyond rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct RowReport {
    /// Groups whose parameters were beyond f16 and were saturated: their errors have no bound.
    pub saturated: u64,
    /// Elements that were not finite and were replaced.
    pub replaced: u64,
}

impl RawRows {
    /// Checks everything but whether the addresses are valid.
    fn checked(&self, dtype: Dtype, x: *mut u8) -> Result<(Form, Run), Error> {
        ensure(self.dim >= 1 && self.dim <= MAX_HEAD_DIM, Error::Shape)?;
        let form = Form::of(&self.format, self.dim).ok_or(Error::Layout)?;
        ensure(is_valid(&form), Error::Layout)?;
        let block = form.block_tokens() as u64;
        ensure(self.tokens.is_multiple_of(block), Error::Shape)?;
        let (blocks, groups) = (self.tokens.checked_div(block).unwrap_or(0), form.block_groups() as u64);
        // The longest array is below isize::MAX: codes and parameters of an element have no more bytes than this.
        let most = self.tokens.checked_mul(u64::from(self.dim)).and_then(|n| n.checked_mul(8)).ok_or(Error::Shape)?;
        ensure(most <= isize::MAX as u64, Error::Shape)?;
        let is_fixed = form.kind == Kind::E4m3Fixed;
        ensure(!is_fixed || (self.scale > 0.0 && self.scale < f32::INFINITY), Error::Scale)?;
        let arrays = [
            (x, dtype.bytes()),
            (self.codes, 1),
            (self.scales, form.scale_bytes() as u64),
            (self.zeros, form.zero_bytes() as u64),
        ];
        for (array, size) in arrays {
            ensure(size == 0 || self.tokens == 0 || !array.is_null(), Error::Null)?;
            ensure(size == 0 || (array as usize as u64).is_multiple_of(size), Error::Align)?;
        }
        let bytes = |size: usize| (groups * size as u64) as usize;
        let run = Run {
            x,
            x_step: form.dim * dtype.bytes() as usize,
            codes: self.codes,
            codes_step: bytes(form.group_bytes()),
            scales: self.scales,
            zeros: self.zeros,
            scales_step: bytes(form.scale_bytes()),
            zeros_step: bytes(form.zero_bytes()),
            blocks: blocks as usize,
            fixed: self.scale,
        };
        Ok((form, run))
    }
}

/// Blocks that are tried with fast loops before they are left to the codec.
const TRIED: usize = 64;
/// Blocks for the codec where there are no such loops.
const MANY: usize = 1 << 16;

/// The run in pieces of at most so many blocks, above 0.
fn pieces(form: Form, run: Run, at_once: usize) -> impl Iterator<Item = Run> {
    (0..run.blocks).step_by(at_once).map(move |first| Run {
        x: run.x.wrapping_add(first * form.block_tokens() * run.x_step),
        codes: run.codes.wrapping_add(first * run.codes_step),
        scales: run.scales.wrapping_add(first * run.scales_step),
        zeros: run.zeros.wrapping_add(first * run.zeros_step),
        blocks: (run.blocks - first).min(at_once),
        ..run
    })
}

/// Encodes rows of f32, f16 or bf16. O(x), which is read once: where a value is refused, what was encoded before it stays.
///
/// # Errors
/// [`Error::Null`], [`Error::Align`], [`Error::Shape`], [`Error::Layout`] for other formats and groups, [`Error::Scale`];
/// [`Error::NonFinite`] under [`NonFinite::Reject`].
///
/// # Safety
/// Non-NULL addresses are valid: `x` for reads, those of `rows` for writes, without overlap. No thread touches them.
pub unsafe fn encode_rows_raw(
    rows: &RawRows,
    isa: Isa,
    on: NonFinite,
    dtype: Dtype,
    x: *const u8,
) -> Result<RowReport, Error> {
    let (form, run) = rows.checked(dtype, x.cast_mut())?;
    let isa = isa.resolved();
    let is_tried = form.is_whole() && isa != Isa::Portable;
    let mut all = RowReport::default();
    for run in pieces(form, run, if is_tried { TRIED } else { MANY }) {
        // SAFETY: the arrays hold the pieces; the caller's promise.
        if is_tried && unsafe { rows::encode(isa, dtype, &form, &run) } {
            continue;
        }
        // SAFETY: as above.
        let report = unsafe { encode_run(isa, dtype, &form, &run, on) }.map_err(error)?;
        all.saturated += u64::from(report.saturated);
        all.replaced += u64::from(report.replaced);
    }
    Ok(all)
}

/// Decodes rows to f32, f16 or bf16; f16 saturates. O(x): where a scale is refused, what was decoded before it stays.
///
/// # Errors
/// As [`encode_rows_raw`]; [`Error::Scale`] for a scale that is negative or not finite, or a zero that is not finite.
///
/// # Safety
/// As there, `x` for writes and those of `rows` for reads.
pub unsafe fn decode_rows_raw(rows: &RawRows, isa: Isa, dtype: Dtype, x: *mut u8) -> Result<(), Error> {
    let (form, run) = rows.checked(dtype, x)?;
    let isa = isa.resolved();
    let is_tried = form.is_whole() && isa != Isa::Portable;
    for run in pieces(form, run, if is_tried { TRIED } else { MANY }) {
        // SAFETY: the arrays hold the pieces; the caller's promise.
        if is_tried && unsafe { rows::decode(isa, dtype, &form, &run) } {
            continue;
        }
        // SAFETY: as above.
        unsafe { decode_run(isa, dtype, &form, &run) }.map_err(error)?;
    }
    Ok(())
}
