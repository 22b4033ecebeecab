//! What the examples of kvfolio share.

pub mod manager;
pub mod workload;
