//! The C interface, declared in `include/kvfolio_kernels.h`.
//!
//! Invariant: structs are copied in and checked, then one raw kernel runs;
//! no other code touches the caller's memory, and no path can panic.

mod exports;
mod keys;
mod quant;
mod rows;
mod slots;
mod structs;

pub use exports::*;
pub use keys::*;
pub use quant::*;
pub use rows::*;
pub use slots::*;
pub use structs::*;
