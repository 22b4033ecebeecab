//! Presence of the CUDA driver.
//!
//! Invariant: nothing here loads or calls the driver when it is absent.

/// Whether the CUDA driver library can be loaded on this machine.
///
/// Ask before any other use of `cudarc`, which panics without the library.
pub fn available() -> bool {
    // SAFETY: only tries to open the driver library; no driver function is called.
    unsafe { cudarc::driver::sys::is_culib_present() }
}
