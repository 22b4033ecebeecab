//! Plain rows through the decoders, a row or a few channels at a time.

use core::slice::from_raw_parts_mut;

use kvfolio::quant::rounding::{bf16_nearest_saturating, f16_nearest_saturating};
use kvfolio::quant::{Fp8Kind, Groups, IntFormat, QuantError, fp8, ggml, int, symmetric};

use super::super::kind::{Form, Kind, Run};
use super::shape::{BUFFER, CHANNELS, Sections, bits, shape, step};
use crate::cpu::element::{Bf16, Element, F16, with_element};
use crate::cpu::{Dtype, Isa, per_isa};

/// Bytes as codes with a sign.
fn signed(codes: &[u8]) -> &[i8] {
    // SAFETY: both are bytes.
    unsafe { &*(core::ptr::from_ref(codes) as *const [i8]) }
}

/// What a value is stored as: what is beyond the type saturates.
trait Store: Element {
    fn store(x: f32) -> Self;
}

impl Store for f32 {
    #[inline(always)]
    fn store(x: f32) -> Self {
        x
    }
}

impl Store for Bf16 {
    #[inline(always)]
    fn store(x: f32) -> Self {
        Self(bf16_nearest_saturating(x))
    }
}

impl Store for F16 {
    #[inline(always)]
    fn store(x: f32) -> Self {
        Self(f16_nearest_saturating(x))
    }
}

/// Decodes.
///
/// # Safety
/// All that the form, which is valid, and the run name is valid; `isa` is resolved.
pub(super) unsafe fn decode_run(isa: Isa, dtype: Dtype, form: &Form, run: &Run) -> Result<(), QuantError> {
    // SAFETY: the caller's promise.
    with_element!(dtype, E => unsafe { decode_for::<E>(isa, form, run) })
}

per_isa! {
    /// # Safety
    /// As [`decode_run`].
    unsafe fn decode_for[E: Store][E](form: &Form, run: &Run) -> Result<(), QuantError> {
        decode_blocks::<E>(form, run)
    }
}

#[inline(always)]
unsafe fn decode_blocks<E: Store>(form: &Form, run: &Run) -> Result<(), QuantError> {
    let mut buffer = [0.0_f32; BUFFER];
    for block in 0..run.blocks {
        let rows = run.x.wrapping_add(block * form.block_tokens() * run.x_step);
        let step = step(form).max(1);
        for channel in (0..form.dim).step_by(step) {
            let width = step.min(form.dim - channel);
            let x = buffer.get_mut(..width * form.block_tokens()).unwrap_or(&mut []);
            let (first, n) = if form.is_channel { (channel, width) } else { (0, form.block_groups()) };
            // SAFETY: the groups are in the block.
            unsafe { decode_groups(form, &Sections::of(form, run, block, first, n), run.fixed, width, x) }?;
            for (token, from) in x.chunks_exact(width.max(1)).enumerate() {
                let to = rows.wrapping_add(token * run.x_step).cast::<E>().wrapping_add(channel);
                // SAFETY: the elements are in the row.
                let to = unsafe { from_raw_parts_mut(to, width) };
                from.iter().zip(to).for_each(|(&x, to)| *to = E::store(x));
            }
        }
    }
    Ok(())
}

/// # Safety
/// The sections are valid for reads.
#[inline(always)]
unsafe fn decode_groups(
    form: &Form,
    from: &Sections,
    fixed: f32,
    width: usize,
    x: &mut [f32],
) -> Result<(), QuantError> {
    let (row, group) = shape(form);
    // SAFETY: the caller's promise.
    let (codes, scales, fp8_scales, zeros) = unsafe { (&*from.codes, &*from.scales, &*from.fp8_scales, &*from.zeros) };
    match form.kind {
        Kind::Int(n) => {
            let format = IntFormat::new(bits(n), row, group)?;
            let from = int::GroupsRef { codes, scales, zeros };
            if form.is_channel { int::decode_channels(format, from, x, width) } else { int::decode(format, from, x) }
        }
        Kind::Symmetric if form.is_channel => {
            for ((channel, codes), scale) in codes.chunks_exact(form.group.max(1)).enumerate().zip(scales) {
                let mut column = [0.0; BUFFER / CHANNELS];
                let column = column.get_mut(..form.group).unwrap_or(&mut []);
                symmetric::decode(Groups::new(row, group)?, signed(codes), core::slice::from_ref(scale), column)?;
                x.iter_mut().skip(channel).step_by(width.max(1)).zip(column).for_each(|(to, x)| *to = *x);
            }
            Ok(())
        }
        Kind::Symmetric => symmetric::decode(Groups::new(row, group)?, signed(codes), scales, x),
        Kind::Q8_0 => ggml::q8_0_decode(codes, x),
        Kind::Q4_0 => ggml::q4_0_decode(codes, x),
        Kind::E4m3 => fp8::decode(Fp8Kind::E4m3Fn, codes, form.group, fp8_scales, x),
        Kind::E4m3Fixed => fp8::decode(Fp8Kind::E4m3Fn, codes, form.group, &[fixed], x),
    }
}
