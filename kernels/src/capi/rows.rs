//! The C functions over rows in plain buffers. What they do is written in the header.
//!
//! Invariant: as in `exports`.

use core::ffi::c_void;

use kvfolio::layout::{Axis, ElementCode, ScaleMode, TensorFormat};
use kvfolio::quant::NonFinite;

use super::exports::status;
use super::structs::{CStruct, read};
use crate::cpu::{Dtype, Isa};
use crate::error::{Error, ensure};
use crate::quant::{RawRows, decode_rows_raw, encode_rows_raw};

/// Rows in quantised form.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct kvf_kernel_rows {
    /// `size_of::<Self>()`
    pub struct_size: u32,
    /// `KVF_ELEMENT_*`
    pub element: u32,
    /// `KVF_AXIS_*`
    pub axis: u32,
    /// G; 0 = d
    pub group: u32,
    /// d
    pub dim: u32,
    /// `KVF_KERNEL_ISA_*`
    pub isa: u32,
    /// `KVF_KERNEL_NONFINITE_*`
    pub on_non_finite: u32,
    /// The scale of FP8; 0 = computed for each group.
    pub scale: f32,
    /// T
    pub tokens: u64,
    /// Codes.
    pub codes: *mut u8,
    /// Scales.
    pub scales: *mut u8,
    /// Zeros.
    pub zeros: *mut u8,
}

// SAFETY: repr(C), begins with a u32, and has only integers, floats and raw pointers.
unsafe impl CStruct for kvf_kernel_rows {
    const REQUIRED: usize = size_of::<Self>();
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<kvf_kernel_rows>() == 64 && align_of::<kvf_kernel_rows>() == 8);

impl kvf_kernel_rows {
    fn raw(&self) -> Result<(RawRows, Isa, NonFinite), Error> {
        let element = ElementCode::new(self.element);
        let format = if element == ElementCode::FP8_E4M3FN {
            let scale = if self.scale == 0.0 { ScaleMode::TOKEN_HEAD } else { ScaleMode::TENSOR };
            TensorFormat { group: self.group, ..TensorFormat::fp8(element, scale) }
        } else {
            TensorFormat { axis: Axis::new(self.axis), group: self.group, ..TensorFormat::of(element) }
        };
        let on = match self.on_non_finite {
            0 => NonFinite::Reject,
            1 => NonFinite::Sanitise,
            _ => return Err(Error::Value),
        };
        let rows = RawRows {
            format,
            dim: self.dim,
            tokens: self.tokens,
            codes: self.codes,
            scales: self.scales,
            zeros: self.zeros,
            scale: self.scale,
        };
        Ok((rows, Isa::from_code(self.isa).ok_or(Error::Value)?, on))
    }
}

/// Encode rows.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_quantize(
    rows: *const kvf_kernel_rows,
    dtype: u32,
    x: *const c_void,
    report: *mut u64,
) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let (rows, isa, on) = unsafe { read(rows) }?.raw()?;
        let dtype = Dtype::from_code(dtype).ok_or(Error::Dtype)?;
        ensure(report.is_aligned(), Error::Align)?;
        // SAFETY: the header's promise on arrays.
        let done = unsafe { encode_rows_raw(&rows, isa, on, dtype, x.cast()) }?;
        if !report.is_null() {
            // SAFETY: not NULL and aligned; the header's promise.
            unsafe {
                report.write(done.saturated);
                report.add(1).write(done.replaced);
            }
        }
        Ok(())
    };
    status(run())
}

/// Decode rows.
///
/// # Safety
/// As the header says.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cpu_dequantize(rows: *const kvf_kernel_rows, dtype: u32, x: *mut c_void) -> i32 {
    let run = || {
        // SAFETY: the header's promise on structs.
        let (rows, isa, _) = unsafe { read(rows) }?.raw()?;
        let dtype = Dtype::from_code(dtype).ok_or(Error::Dtype)?;
        // SAFETY: the header's promise on arrays.
        unsafe { decode_rows_raw(&rows, isa, dtype, x.cast()) }
    };
    status(run())
}
