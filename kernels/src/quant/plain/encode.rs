//! Plain rows through the encoders, a row or a few channels at a time.

use core::slice::from_raw_parts;

use kvfolio::quant::fp8_scale::{ScaleRule, row_scales};
use kvfolio::quant::{Fp8Kind, Groups, IntFormat, NonFinite, QuantError, Report, fp8, ggml, int, symmetric};

use super::super::kind::{Form, Kind, Run};
use super::shape::{BUFFER, CHANNELS, NEAR, Sections, bits, shape};
use crate::cpu::element::{Element, with_element};
use crate::cpu::{Dtype, Isa, per_isa};

/// Encodes.
///
/// # Safety
/// All that the form, which is valid, and the run name is valid; `isa` is resolved.
pub(super) unsafe fn encode_run(
    isa: Isa,
    dtype: Dtype,
    form: &Form,
    run: &Run,
    on: NonFinite,
) -> Result<Report, QuantError> {
    // SAFETY: the caller's promise.
    with_element!(dtype, E => unsafe { encode_for::<E>(isa, form, run, on) })
}

per_isa! {
    /// # Safety
    /// As [`encode_run`].
    unsafe fn encode_for[E: Element][E](form: &Form, run: &Run, on: NonFinite) -> Result<Report, QuantError> {
        if form.is_channel { encode_channels::<E>(form, run, on) } else { encode_rows::<E>(form, run, on) }
    }
}

/// Rows that are groups of channels, which follow each other without gaps: as many at a time as stay near.
///
/// # Safety
/// As [`encode_run`].
#[inline(always)]
unsafe fn encode_rows<E: Element>(form: &Form, run: &Run, on: NonFinite) -> Result<Report, QuantError> {
    let mut buffer = [0.0_f32; BUFFER];
    let mut all = Report::default();
    let at_once = NEAR.checked_div(form.dim).unwrap_or(1).max(1);
    for block in (0..run.blocks).step_by(at_once) {
        let rows = at_once.min(run.blocks - block);
        let from = run.x.wrapping_add(block * run.x_step).cast::<E>();
        // SAFETY: the elements of the rows.
        let from = unsafe { from_raw_parts(from, rows * form.dim) };
        let x = E::as_floats(from).unwrap_or_else(|| {
            let buffer = buffer.get_mut(..from.len()).unwrap_or(&mut []);
            from.iter().zip(&mut *buffer).for_each(|(x, to)| *to = x.to_f32());
            buffer
        });
        let to = Sections::of(form, run, block, 0, rows * form.block_groups());
        // SAFETY: the groups are in the blocks.
        all = all.and(unsafe { encode_groups(form, x, form.dim, on, &to, run.fixed) }?);
    }
    Ok(all)
}

/// Groups of tokens, a few channels at a time.
///
/// # Safety
/// As [`encode_run`].
#[inline(always)]
unsafe fn encode_channels<E: Element>(form: &Form, run: &Run, on: NonFinite) -> Result<Report, QuantError> {
    let mut buffer = [0.0_f32; BUFFER];
    let mut all = Report::default();
    for block in 0..run.blocks {
        let rows = run.x.wrapping_add(block * form.block_tokens() * run.x_step);
        for channel in (0..form.dim).step_by(CHANNELS) {
            let width = CHANNELS.min(form.dim - channel);
            let x = buffer.get_mut(..width * form.block_tokens()).unwrap_or(&mut []);
            for (token, to) in x.chunks_exact_mut(width.max(1)).enumerate() {
                let from = rows.wrapping_add(token * run.x_step).cast::<E>().wrapping_add(channel);
                // SAFETY: the elements are in the row.
                let from = unsafe { from_raw_parts(from, width) };
                from.iter().zip(to).for_each(|(x, to)| *to = x.to_f32());
            }
            let to = Sections::of(form, run, block, channel, width);
            // SAFETY: the groups are in the block.
            all = all.and(unsafe { encode_groups(form, x, width, on, &to, run.fixed) }?);
        }
    }
    Ok(all)
}

/// # Safety
/// The sections are valid, and nobody else's.
#[inline(always)]
unsafe fn encode_groups(
    form: &Form,
    x: &[f32],
    width: usize,
    on: NonFinite,
    to: &Sections,
    fixed: f32,
) -> Result<Report, QuantError> {
    let (row, group) = shape(form);
    let (codes, scales, fp8_scales, zeros) =
        // SAFETY: the caller's promise.
        unsafe { (&mut *to.codes, &mut *to.scales, &mut *to.fp8_scales, &mut *to.zeros) };
    match form.kind {
        Kind::Int(n) => {
            let format = IntFormat::new(bits(n), row, group)?;
            let into = int::GroupsMut { codes, scales, zeros };
            if form.is_channel {
                int::encode_channels(format, x, width, on, into)
            } else {
                int::encode(format, x, on, into)
            }
        }
        Kind::Symmetric if form.is_channel => {
            let mut all = Report::default();
            for ((channel, codes), scale) in codes.chunks_exact_mut(form.group.max(1)).enumerate().zip(scales) {
                let mut column = [0.0; BUFFER / CHANNELS];
                let column = column.get_mut(..form.group).unwrap_or(&mut []);
                x.iter().skip(channel).step_by(width.max(1)).zip(&mut *column).for_each(|(x, to)| *to = *x);
                let scale = core::slice::from_mut(scale);
                all = all.and(symmetric::encode(Groups::new(row, group)?, column, on, signed(codes), scale)?);
            }
            Ok(all)
        }
        Kind::Symmetric => symmetric::encode(Groups::new(row, group)?, x, on, signed(codes), scales),
        Kind::Q8_0 => ggml::q8_0_encode(x, on, codes),
        Kind::Q4_0 => ggml::q4_0_encode(x, on, codes),
        Kind::E4m3 => {
            row_scales(Fp8Kind::E4m3Fn, ScaleRule::Exact, x, form.group, on, fp8_scales)?;
            fp8::encode(Fp8Kind::E4m3Fn, x, form.group, fp8_scales, codes).map(|()| Report::default())
        }
        Kind::E4m3Fixed => {
            if on == NonFinite::Reject {
                let index = x.iter().position(|x| !x.is_finite());
                index.map_or(Ok(()), |index| Err(QuantError::NonFinite { index }))?;
            }
            fp8::encode(Fp8Kind::E4m3Fn, x, form.group, &[fixed], codes).map(|()| Report::default())
        }
    }
}

/// Bytes as codes with a sign.
fn signed(codes: &mut [u8]) -> &mut [i8] {
    // SAFETY: both are bytes.
    unsafe { &mut *(core::ptr::from_mut(codes) as *mut [i8]) }
}
