//! CPU kernels over paged key/value memory, in Rust and C.
//!
//! Invariant: every result is a function of the values read and of nothing
//! else. Page size, page ids, batch, split over threads, CPU features and the
//! Rust or C interface do not change one bit. The portable code here is the
//! oracle: a faster variant must give the same bits.
//!
//! # Shapes
//!
//! | name | meaning |
//! |---|---|
//! | P | tokens per page, a power of two from 1 to 256 |
//! | N | pages; ids are 1..=N, 0 is the NULL page, never read and never written |
//! | Hk, H | key/value heads, query heads; H is a multiple of Hk |
//! | d | elements of one head |
//! | T, n | tokens of a sequence, rows of a batch |
//!
//! # Modules, in the order of dependence
//!
//! - [`Error`]: the one error type and its C codes.
//! - [`cpu`]: element types, page geometry, the kernels, and their safe API.
//! - [`quant`]: the kernels over quantised pages.
//! - [`capi`]: the same for C, declared in `include/kvfolio_kernels.h`.
//! - `cuda`: whether a CUDA driver is present (feature `cuda`).
//!
//! # Example
//!
//! ```
//! use kvfolio_kernels::cpu::{self, Dtype, Geometry, PagesMut, Strides, Table};
//!
//! #[repr(align(64))]
//! struct Memory([u8; 48]); // pages 0 to 2 of two tokens; page 0 is the NULL page
//! let (mut k, mut v) = (Memory([0; 48]), Memory([0; 48]));
//! let geometry = Geometry { dtype: Dtype::F32, page_tokens: 2, n_pages: 2, kv_heads: 1, head_dim: 2 };
//! let strides = Strides { page: 16, token: 8, head: 8 };
//! let mut pages = PagesMut::new(geometry, (&mut k.0, strides), (&mut v.0, strides))?;
//!
//! // Three tokens, to the slots that the cache gave: page 2, then the first half of page 1.
//! let keys = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
//! cpu::append(&mut pages, &keys, &keys, &[4, 5, 2])?;
//!
//! // Read back through the page table.
//! let row = [2, 1];
//! let (mut k_out, mut v_out) = ([0.0; 6], [0.0; 6]);
//! cpu::gather(&pages.as_pages(), &Table::new(&row, 2)?, 0, (0, 3), &mut k_out, &mut v_out)?;
//! assert_eq!((k_out, v_out), (keys, keys));
//! # Ok::<(), kvfolio_kernels::Error>(())
//! ```
//!
//! # C archive
//!
//! ```text
//! cargo rustc -p kvfolio-kernels --profile capi --crate-type staticlib -- --cfg kvf_capi
//! ```
//!
//! The C symbols exist only under `--cfg kvf_capi`, so that a Rust program
//! that uses this crate exports none of them.

#![no_std]

#[cfg(any(test, feature = "std"))]
extern crate std;

mod error;

pub mod capi;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod quant;

pub use error::Error;

/// Stop at once: no code path leads here, and a trap is visible where a loop is not.
#[cfg(all(kvf_capi, not(feature = "std")))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: each instruction raises the CPU's undefined-instruction trap and does not return.
    unsafe {
        #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
        core::arch::asm!("ud2", options(noreturn, nomem, nostack));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("brk #1", options(noreturn, nomem, nostack));
        #[cfg(target_arch = "arm")]
        core::arch::asm!("udf #0", options(noreturn, nomem, nostack));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64", target_arch = "arm")))]
    loop {
        core::hint::spin_loop();
    }
}
