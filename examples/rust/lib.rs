//! What the examples of kvfolio share.

pub mod workload;
