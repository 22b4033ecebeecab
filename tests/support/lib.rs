//! Everything that proves the control plane without a GPU.
//!
//! A scenario is data ([`case::Case`]): a [`spec::Spec`] and a list of [`op::Op`]s, written as text
//! ([`text`]) or as bytes ([`bytes`], where every byte string is valid). The [`runner::Harness`] applies
//! each op to every [`machine::Machine`] it holds (the reference [`model`], the Rust API, the C ABI) and
//! to the simulated [`device`] memory, and reports the first difference.
//!
//! Data path: spec, op -> text, bytes -> machine -> model, drivers -> device -> runner -> case, streams.

pub mod bytes;
pub mod c_machine;
pub mod case;
pub mod device;
pub mod drivers;
pub mod guided;
pub mod machine;
mod mirror;
pub mod model;
pub mod op;
pub mod rng;
pub mod runner;
pub mod rust_machine;
pub mod shrink;
mod space_names;
pub mod spec;
pub mod stream;
pub mod text;
