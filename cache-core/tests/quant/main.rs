//! The codecs: golden values, bounds, properties over random groups, and the faults that others have had.
#![allow(missing_docs)]

mod bounds;
mod certified;
mod faults;
mod fixed;
mod fp8;
mod hadamard;
mod int;
mod page;
mod reference;
mod support;
mod vectors;
