//! Encoders and decoders in the instructions of AVX2 and F16C.
//!
//! Invariant: the same bits as the portable codec, which does what is rare: values that are not finite, parameters beyond
//! f16, parameters that no encoder writes.

mod blocks;
mod channel;
mod codes;
mod decode;
mod fp8;
mod load;
mod output;
mod params;
mod steps;
mod survey;
mod table;
mod token;
mod walk;

use super::kind::{Form, Kind, Run};
use crate::cpu::Dtype;
use crate::cpu::element::{F16, with_element};

/// Encodes a run of elements of a type; false where that is left to the portable codec, with some of it written.
///
/// # Safety
/// All that the form and the run name is valid, and the form is whole; the CPU has AVX2 and F16C.
pub(super) unsafe fn encode(dtype: Dtype, form: &Form, run: &Run) -> bool {
    // SAFETY: the caller's promise.
    with_element!(dtype, E => unsafe {
        match (form.kind, form.is_channel) {
            (Kind::Int(8), false) => token::encode::<E, 8, false>(form, run),
            (Kind::Int(4), false) => token::encode::<E, 4, false>(form, run),
            (Kind::Int(_), false) => token::encode::<E, 2, false>(form, run),
            (Kind::Symmetric, false) => token::encode::<E, 8, true>(form, run),
            (Kind::Int(8), true) => channel::encode::<E, 8, false>(form, run),
            (Kind::Int(4), true) => channel::encode::<E, 4, false>(form, run),
            (Kind::Int(_), true) => channel::encode::<E, 2, false>(form, run),
            (Kind::Symmetric, true) => channel::encode::<E, 8, true>(form, run),
            (Kind::Q8_0, _) => blocks::encode::<E, 8>(form, run),
            (Kind::Q4_0, _) => blocks::encode::<E, 4>(form, run),
            (Kind::E4m3 | Kind::E4m3Fixed, _) => fp8::encode::<E>(form, run),
        }
    })
}

/// Decodes a run to f32 or f16; false where that is left to the portable codec, with some of it written.
///
/// # Safety
/// As [`encode`].
pub(super) unsafe fn decode(dtype: Dtype, form: &Form, run: &Run) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        match dtype {
            Dtype::F32 => decode_to::<f32>(form, run),
            Dtype::F16 => decode_to::<F16>(form, run),
            Dtype::Bf16 => false,
        }
    }
}

/// # Safety
/// As [`encode`].
unsafe fn decode_to<O: output::Output>(form: &Form, run: &Run) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        match (form.kind, form.is_channel) {
            (Kind::Int(8), false) => decode::decode::<O, 8, false>(form, run),
            (Kind::Int(4), false) => decode::decode::<O, 4, false>(form, run),
            (Kind::Int(_), false) => decode::decode::<O, 2, false>(form, run),
            (Kind::Symmetric, false) => decode::decode::<O, 8, true>(form, run),
            (Kind::Int(8), true) => channel::decode::<O, 8, false>(form, run),
            (Kind::Int(4), true) => channel::decode::<O, 4, false>(form, run),
            (Kind::Int(_), true) => channel::decode::<O, 2, false>(form, run),
            (Kind::Symmetric, true) => channel::decode::<O, 8, true>(form, run),
            (Kind::Q8_0, _) => decode::decode_blocks::<O, 8>(form, run),
            (Kind::Q4_0, _) => decode::decode_blocks::<O, 4>(form, run),
            (Kind::E4m3 | Kind::E4m3Fixed, _) => fp8::decode::<O>(form, run),
        }
    }
}
