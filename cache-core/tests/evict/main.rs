//! Token eviction against a plain list of tokens that is sorted, and against published values.
#![allow(missing_docs)]

mod budgets;
mod compaction;
mod conformance;
mod faults;
#[cfg(feature = "alloc")]
mod paged;
mod policies;
mod select;
mod sound;
mod support;
