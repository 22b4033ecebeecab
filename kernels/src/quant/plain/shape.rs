//! What the codecs are asked for.

use core::ptr::{dangling_mut, slice_from_raw_parts_mut};

use kvfolio::quant::{Groups, IntBits, IntFormat};

use super::super::kind::{Form, Kind, Run};

/// Floats of a buffer: a row, or [`CHANNELS`] channels of a group of tokens.
pub(super) const BUFFER: usize = crate::cpu::MAX_HEAD_DIM as usize;
/// Floats of rows that are taken together: with what they are made from and into, in the nearest cache.
pub(super) const NEAR: usize = 2048;
/// Channels at a time.
pub(super) const CHANNELS: usize = 64;

/// The codec's width.
pub(super) fn bits(bits: u32) -> IntBits {
    match bits {
        4 => IntBits::B4,
        2 => IntBits::B2,
        _ => IntBits::B8,
    }
}

/// Row and group of a codec: along tokens a row is one group of one channel.
pub(super) fn shape(form: &Form) -> (u32, u32) {
    (if form.is_channel { form.group } else { form.dim } as u32, form.group as u32)
}

/// Whether the codec has such groups. Along tokens they are those that the buffer holds with their channels.
pub(super) fn is_valid(form: &Form) -> bool {
    let (row, group) = shape(form);
    let fits = !form.is_channel || matches!(form.group, 16 | 32 | 64 | 128);
    match form.kind {
        Kind::Int(n) => fits && IntFormat::new(bits(n), row, group).is_ok(),
        Kind::Symmetric => fits && Groups::new(row, group).is_ok(),
        Kind::Q8_0 | Kind::Q4_0 | Kind::E4m3 | Kind::E4m3Fixed => {
            !form.is_channel && form.dim.is_multiple_of(form.group)
        }
    }
}

const _: () = assert!(CHANNELS * 128 <= BUFFER);

/// The sections of some groups, by address. What the form has not is empty.
pub(super) struct Sections {
    pub(super) codes: *mut [u8],
    pub(super) scales: *mut [u16],
    pub(super) fp8_scales: *mut [f32],
    pub(super) zeros: *mut [u16],
}

impl Sections {
    /// Groups `first..first + n` of a block.
    pub(super) fn of(form: &Form, run: &Run, block: usize, first: usize, n: usize) -> Self {
        let codes = run.codes.wrapping_add(block * run.codes_step + first * form.group_bytes());
        let scales = run.scales.wrapping_add(block * run.scales_step + first * form.scale_bytes());
        let zeros = run.zeros.wrapping_add(block * run.zeros_step + first * form.zero_bytes());
        let count = |has: bool| if has { n } else { 0 };
        Self {
            codes: array(codes, n * form.group_bytes()),
            scales: array(scales, count(form.scale_bytes() == 2)),
            fp8_scales: array(scales, count(form.scale_bytes() == 4)),
            zeros: array(zeros, count(form.zero_bytes() > 0)),
        }
    }
}

/// An array, at an address that may be anything if it is empty.
fn array<T>(at: *mut u8, n: usize) -> *mut [T] {
    slice_from_raw_parts_mut(if n == 0 { dangling_mut() } else { at.cast() }, n)
}

/// Channels that are taken at once, with the groups of a block that they are in: how many of both, from which one.
pub(super) fn step(form: &Form) -> usize {
    if form.is_channel { CHANNELS } else { form.dim }
}
