//! Codecs for keys and values: pure functions over slices of the caller, with the same bits on every target.
//!
//! - [`int`]: INT8, INT4 and INT2 with scale and zero per group, along channels or along tokens; [`symmetric`]: INT8 without
//!   zero.
//! - [`fp8`]: E4M3 and E5M2; [`fp8_scale`]: their scales; [`fp4`]: NVFP4 and MXFP4; [`ggml`]: the blocks q8_0 and q4_0.
//! - [`hadamard`]: the rotation that spreads outliers before quantisation.
//! - [`RowCodec`]: rows of pages, in whatever format their [layout](crate::layout) says.
//! - [`RowCodec::error_bounds`], [`logit_bound`], [`output_bound`]: what quantisation can cost an attention, certified.
//! - [`pack`] and [`fixed`]: packing, and decoding to fixed point without a float; all there is without feature `quant`.
//!
//! # Rules
//! - A call that fails writes nothing, but for [`RowCodec::read`], which may have written rows that came first. What was
//!   saturated or replaced is counted in the [`Report`].
//! - Non-finite input is refused, with its index, unless the caller asks otherwise ([`NonFinite`]).
//! - Codes are computed against the parameters as stored, which are rounded so that the group stays covered: no error is
//!   above half a step.
//! - Rounding is to nearest, ties to even, and division is division, except where a published format says otherwise.
//! - Time is linear in the elements; there is no table and no state.
//! - What loops over elements is always inlined: a caller that is compiled for a wider instruction set gets codecs that are.
//!
//! ```
//! # #[cfg(feature = "quant")] {
//! use kvfolio::quant::{IntBits, IntFormat, NonFinite, int};
//!
//! let row = [0.1, -0.7, 0.33, 1.9];
//! let format = IntFormat::new(IntBits::B4, 4, 4)?;
//! let (mut codes, mut scales, mut zeros) = ([0; 2], [0; 1], [0; 1]);
//! let into = int::GroupsMut { codes: &mut codes, scales: &mut scales, zeros: &mut zeros };
//! let report = int::encode(format, &row, NonFinite::Reject, into)?;
//! assert!(report.is_clean());
//! assert_eq!((codes, scales, zeros), ([0x05, 0xf6], [0x318d], [0xb99a]));
//! # }
//! # Ok::<(), kvfolio::quant::QuantError>(())
//! ```

#[cfg(feature = "quant")]
mod bound;
#[cfg(feature = "quant")]
mod coder;
mod error;
pub mod fixed;
mod format;
#[cfg(feature = "quant")]
pub mod fp4;
#[cfg(feature = "quant")]
pub mod fp8;
#[cfg(feature = "quant")]
pub mod fp8_scale;
#[cfg(feature = "quant")]
pub mod ggml;
#[cfg(feature = "quant")]
pub mod hadamard;
#[cfg(feature = "quant")]
pub mod int;
pub mod pack;
#[cfg(feature = "quant")]
mod page;
#[cfg(feature = "quant")]
mod range;
#[cfg(feature = "quant")]
pub mod rounding;
mod slices;
#[cfg(feature = "quant")]
pub mod symmetric;

#[cfg(feature = "quant")]
pub use bound::{logit_bound, output_bound, variation_bound};
pub use error::{NonFinite, QuantError, Report};
pub use format::{Fp8Kind, Groups, IntBits, IntFormat};
#[cfg(feature = "quant")]
pub use hadamard::Rotation;
#[cfg(feature = "quant")]
pub use page::RowCodec;
