//! The C functions over rows in plain buffers. What they do is written in the header.
//!
//! Invariant: as in `exports`.

use core::ffi::c_void;

use kvfolio::layout::{Axis, ElementCode, ScaleMode, TensorFormat};
use kvfolio::quant::NonFinite;

use super::exports::status;
use super::structs::{CStruct, c_struct, non_finite, read};
use crate::cpu::{Dtype, Isa};
use crate::error::{Error, ensure};
use crate::quant::{RawRows, decode_rows_raw, encode_rows_raw};

c_struct! {
    /// Rows in quantised form.
    kvf_kernel_rows, size 64, required size_of::<Self>() => {
        /// `KVF_ELEMENT_*`
        element: u32,
        /// `KVF_AXIS_*`
        axis: u32,
        /// G; 0 = d
        group: u32,
        /// d
        dim: u32,
        /// `KVF_KERNEL_ISA_*`
        isa: u32,
        /// `KVF_KERNEL_NONFINITE_*`
        on_non_finite: u32,
        /// The scale of FP8; 0 = computed for each group.
        scale: f32,
        /// T
        tokens: u64,
        /// Codes.
        codes: *mut u8,
        /// Scales.
        scales: *mut u8,
        /// Zeros.
        zeros: *mut u8,
    }
}

impl kvf_kernel_rows {
    fn raw(&self) -> Result<(RawRows, Isa, NonFinite), Error> {
        let element = ElementCode::new(self.element);
        let format = if element == ElementCode::FP8_E4M3FN {
            let scale = if self.scale == 0.0 { ScaleMode::TOKEN_HEAD } else { ScaleMode::TENSOR };
            TensorFormat { group: self.group, ..TensorFormat::fp8(element, scale) }
        } else {
            TensorFormat { axis: Axis::new(self.axis), group: self.group, ..TensorFormat::of(element) }
        };
        let on = non_finite(self.on_non_finite)?;
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
