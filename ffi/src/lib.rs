//! C ABI of kvfolio. All pointer work of the project is in this crate.
//!
//! One file per section of `include/kvfolio.h`. The text above each function is the text of the header, written for C
//! programmers; so what makes the functions safe to call is said once, here.
//!
//! # Safety
//! Every function with the C ABI is `unsafe`. A caller must keep these rules; `SAFETY` comments name them by letter.
//! - (a) A pointer that is not NULL points to as many elements as its count says, or to one, readable if the parameter is
//!   `*const`, writable if it is `*mut`. Where a struct has `struct_size`, so many bytes are readable, or writable.
//! - (b) Buffers that one call writes overlap neither each other nor anything that the call reads.
//! - (c) The memory given to `kvf_cache_init` is used by nobody else until `kvf_cache_deinit`.
//! - (d) A `*const kvf_cache` may be used by several threads at the same time. While a call with a `*mut kvf_cache` runs,
//!   no other call with that cache does.
//! - (e) A handle is what `kvf_cache_init` gave. This is checked by a mark, but memory that is no longer mapped cannot be
//!   checked.
//!
//! NULL, alignment, counts whose bytes exceed the address space, `struct_size`, and handles are checked in `ptr.rs`. A
//! call first checks and converts all its pointers, then calls the core once, then writes its outputs once.
//!
//! # Panics
//! None can be reached, and the archive contains none: `scripts/gates.sh` looks for their symbols.
#![no_std]
#![allow(
    non_camel_case_types, // C names
    clippy::missing_safety_doc, // stated once, above: the text of each function goes to the header
    clippy::too_many_arguments, // C has no slices
    rustdoc::broken_intra_doc_links, // the text is C's: [n] says how many elements there are
)]
#![warn(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

mod carve;
mod layout;
#[cfg(feature = "evict")]
mod lent;
mod ptr;
mod reports;
mod short;

pub mod eviction;
pub mod formats;
pub mod status;
pub mod types;

#[cfg(feature = "evict")]
pub mod budgets;
pub mod cache;
#[cfg(feature = "evict")]
pub mod compaction;
pub mod config;
pub mod events;
pub mod introspect;
pub mod io;
#[cfg(feature = "evict")]
pub mod keep;
#[cfg(feature = "evict")]
pub mod key_scores;
#[cfg(feature = "keychain")]
pub mod keychain;
#[cfg(feature = "evict")]
pub mod losses;
#[cfg(feature = "layout")]
pub mod memory;
pub mod namespace;
#[cfg(feature = "layout")]
pub mod page_layout;
pub mod plan;
pub mod prefix;
pub mod retain;
#[cfg(feature = "evict")]
pub mod scores;
pub mod seq;
#[cfg(feature = "evict")]
pub mod stream;
pub mod table;
pub mod version;

// As in C, where all names are in one place.
#[cfg(feature = "evict")]
pub use budgets::*;
pub use cache::*;
#[cfg(feature = "evict")]
pub use compaction::*;
pub use config::*;
pub use events::*;
pub use eviction::*;
pub use formats::*;
pub use introspect::*;
pub use io::*;
#[cfg(feature = "evict")]
pub use keep::*;
#[cfg(feature = "evict")]
pub use key_scores::*;
#[cfg(feature = "keychain")]
pub use keychain::*;
#[cfg(feature = "evict")]
pub use losses::*;
#[cfg(feature = "layout")]
pub use memory::*;
pub use namespace::*;
#[cfg(feature = "layout")]
pub use page_layout::*;
pub use plan::*;
pub use prefix::*;
pub use retain::*;
#[cfg(feature = "evict")]
pub use scores::*;
pub use seq::*;
pub use status::*;
#[cfg(feature = "evict")]
pub use stream::*;
pub use table::*;
pub use types::*;
pub use version::*;

/// Nothing reaches this: it is here because a library without `std` must have one. It stops the program at once.
#[cfg(kvf_capi)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        // SAFETY: raises an illegal-instruction exception and touches nothing.
        unsafe {
            core::arch::asm!("ud2", options(nomem, nostack));
        }
        #[cfg(any(target_arch = "arm", target_arch = "aarch64"))]
        // SAFETY: as above.
        unsafe {
            core::arch::asm!("udf #0", options(nomem, nostack));
        }
        #[cfg(any(target_arch = "riscv32", target_arch = "riscv64"))]
        // SAFETY: as above.
        unsafe {
            core::arch::asm!("unimp", options(nomem, nostack));
        }
    }
}
