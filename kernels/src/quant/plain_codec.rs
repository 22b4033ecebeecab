//! Plain rows through the codecs, a row or a few channels at a time.

use core::slice::{from_raw_parts, from_raw_parts_mut};

use kvfolio::quant::fp8_scale::{ScaleRule, row_scales};
use kvfolio::quant::rounding::f16_nearest_saturating;
use kvfolio::quant::{Fp8Kind, Groups, IntBits, IntFormat, NonFinite, QuantError, Report, fp8, ggml, int, symmetric};

use super::kind::{Form, Kind, Run};
use crate::cpu::element::{Bf16, Element, F16, with_element};
use crate::cpu::{Dtype, Isa};

/// Floats of a buffer: a row, or [`CHANNELS`] channels of a group of tokens.
const BUFFER: usize = crate::cpu::MAX_HEAD_DIM as usize;
/// Channels at a time.
const CHANNELS: usize = 64;

fn bits(bits: u32) -> IntBits {
    match bits {
        4 => IntBits::B4,
        2 => IntBits::B2,
        _ => IntBits::B8,
    }
}

/// Row and group of a codec: along tokens a row is one group of one channel.
fn shape(form: &Form) -> (u32, u32) {
    (if form.is_channel { form.group } else { form.dim } as u32, form.group as u32)
}

/// Whether the codec has such groups.
pub(super) fn is_valid(form: &Form) -> bool {
    let (row, group) = shape(form);
    match form.kind {
        // Along tokens a group fits the buffer with its channels.
        Kind::Int(n) => IntFormat::new(bits(n), row, group).is_ok() && !(form.is_channel && form.group > BUFFER / CHANNELS),
        Kind::Symmetric => Groups::new(row, group).is_ok() && !(form.is_channel && form.group > BUFFER / CHANNELS),
        Kind::Q8_0 | Kind::Q4_0 | Kind::E4m3 | Kind::E4m3Fixed => {
            !form.is_channel && form.dim.is_multiple_of(form.group)
        }
    }
}

/// What is written to, or read from, as elements.
unsafe fn cast<'a, T>(at: *mut u8, n: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise. An empty array needs no memory.
    if n == 0 { &mut [] } else { unsafe { from_raw_parts_mut(at.cast(), n) } }
}

/// The sections of some groups.
struct Sections<'a> {
    codes: &'a mut [u8],
    scales: &'a mut [u16],
    fp8_scales: &'a mut [f32],
    zeros: &'a mut [u16],
}

impl Sections<'_> {
    /// Groups `first..first + n` of a block.
    ///
    /// # Safety
    /// They are valid memory and nobody else's.
    unsafe fn of(form: &Form, run: &Run, block: usize, first: usize, n: usize) -> Self {
        let at = |base: *mut u8, step: usize, size: usize| base.wrapping_add(block * step + first * size);
        let scales = at(run.scales, run.scales_step, form.scale_bytes());
        let count = |has: bool| if has { n } else { 0 };
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                codes: cast(at(run.codes, run.codes_step, form.group_bytes()), n * form.group_bytes()),
                scales: cast(scales, count(form.scale_bytes() == 2)),
                fp8_scales: cast(scales, count(form.scale_bytes() == 4)),
                zeros: cast(at(run.zeros, run.zeros_step, form.zero_bytes()), count(form.zero_bytes() > 0)),
            }
        }
    }
}

/// Encodes; `isa` is resolved.
///
/// # Safety
/// All that the form, which is valid, and the run name is valid.
pub(super) unsafe fn encode_run(
    isa: Isa,
    dtype: Dtype,
    form: &Form,
    run: &Run,
    on: NonFinite,
) -> Result<Report, QuantError> {
    // SAFETY: the caller's promise; the CPU has what a resolved `isa` says.
    with_element!(dtype, E => unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => encode_avx2::<E>(form, run, on),
            _ => encode_portable::<E>(form, run, on),
        }
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn encode_avx2<E: Element>(form: &Form, run: &Run, on: NonFinite) -> Result<Report, QuantError> {
    // SAFETY: the caller's promise.
    unsafe { encode_blocks::<E>(form, run, on) }
}

#[inline(never)]
unsafe fn encode_portable<E: Element>(form: &Form, run: &Run, on: NonFinite) -> Result<Report, QuantError> {
    // SAFETY: the caller's promise.
    unsafe { encode_blocks::<E>(form, run, on) }
}

/// As [`encode_run`].
#[inline(always)]
unsafe fn encode_blocks<E: Element>(form: &Form, run: &Run, on: NonFinite) -> Result<Report, QuantError> {
    let mut buffer = [0.0_f32; BUFFER];
    let mut all = Report::default();
    for block in 0..run.blocks {
        let rows = run.x.wrapping_add(block * form.block_tokens() * run.x_step);
        let (step, groups) = if form.is_channel { (CHANNELS, form.dim) } else { (form.dim, form.block_groups()) };
        for channel in (0..form.dim).step_by(step) {
            let width = step.min(form.dim - channel);
            let x = buffer.get_mut(..width * form.block_tokens()).unwrap_or(&mut []);
            for (token, to) in x.chunks_exact_mut(width.max(1)).enumerate() {
                let from = rows.wrapping_add(token * run.x_step).cast::<E>().wrapping_add(channel);
                // SAFETY: the elements are in the row.
                let from = unsafe { from_raw_parts(from, width) };
                from.iter().zip(to).for_each(|(x, to)| *to = x.to_f32());
            }
            let (first, n) = if form.is_channel { (channel, width) } else { (0, groups) };
            // SAFETY: the groups are in the block.
            let report = encode_groups(form, x, width, on, unsafe { Sections::of(form, run, block, first, n) }, run.fixed)?;
            all.saturated = all.saturated.saturating_add(report.saturated);
            all.replaced = all.replaced.saturating_add(report.replaced);
        }
    }
    Ok(all)
}

#[inline(always)]
fn encode_groups(
    form: &Form,
    x: &[f32],
    width: usize,
    on: NonFinite,
    to: Sections<'_>,
    fixed: f32,
) -> Result<Report, QuantError> {
    let (row, group) = shape(form);
    let Sections { codes, scales, fp8_scales, zeros } = to;
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
                let report = symmetric::encode(Groups::new(row, group)?, column, on, signed(codes), scale)?;
                all.saturated = all.saturated.saturating_add(report.saturated);
                all.replaced = all.replaced.saturating_add(report.replaced);
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

/// What a value is stored as: f16 saturates.
trait Store: Element {
    #[inline(always)]
    fn store(x: f32) -> Self {
        Self::from_f32(x)
    }
}

impl Store for f32 {}
impl Store for Bf16 {}
impl Store for F16 {
    #[inline(always)]
    fn store(x: f32) -> Self {
        Self(f16_nearest_saturating(x))
    }
}

/// Decodes; as [`encode_run`].
///
/// # Safety
/// As there.
pub(super) unsafe fn decode_run(isa: Isa, dtype: Dtype, form: &Form, run: &Run) -> Result<(), QuantError> {
    // SAFETY: the caller's promise; the CPU has what a resolved `isa` says.
    with_element!(dtype, E => unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => decode_avx2::<E>(form, run),
            _ => decode_portable::<E>(form, run),
        }
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn decode_avx2<E: Store>(form: &Form, run: &Run) -> Result<(), QuantError> {
    // SAFETY: the caller's promise.
    unsafe { decode_blocks::<E>(form, run) }
}

#[inline(never)]
unsafe fn decode_portable<E: Store>(form: &Form, run: &Run) -> Result<(), QuantError> {
    // SAFETY: the caller's promise.
    unsafe { decode_blocks::<E>(form, run) }
}

#[inline(always)]
unsafe fn decode_blocks<E: Store>(form: &Form, run: &Run) -> Result<(), QuantError> {
    let mut buffer = [0.0_f32; BUFFER];
    for block in 0..run.blocks {
        let rows = run.x.wrapping_add(block * form.block_tokens() * run.x_step);
        let (step, groups) = if form.is_channel { (CHANNELS, form.dim) } else { (form.dim, form.block_groups()) };
        for channel in (0..form.dim).step_by(step) {
            let width = step.min(form.dim - channel);
            let x = buffer.get_mut(..width * form.block_tokens()).unwrap_or(&mut []);
            let (first, n) = if form.is_channel { (channel, width) } else { (0, groups) };
            // SAFETY: the groups are in the block.
            decode_groups(form, unsafe { Sections::of(form, run, block, first, n) }, run.fixed, width, x)?;
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

#[inline(always)]
fn decode_groups(form: &Form, from: Sections<'_>, fixed: f32, width: usize, x: &mut [f32]) -> Result<(), QuantError> {
    let (row, group) = shape(form);
    let Sections { codes, scales, fp8_scales, zeros } = from;
    match form.kind {
        Kind::Int(n) => {
            let format = IntFormat::new(bits(n), row, group)?;
            let from = int::GroupsRef { codes, scales, zeros };
            if form.is_channel { int::decode_channels(format, from, x, width) } else { int::decode(format, from, x) }
        }
        Kind::Symmetric if form.is_channel => {
            for ((channel, codes), scale) in codes.chunks_exact_mut(form.group.max(1)).enumerate().zip(scales) {
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
