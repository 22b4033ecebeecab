//! Version and status
//!
//! These functions need no cache and may be called from any thread at any time.

use core::ffi::c_char;

use crate::status::{LIST, kvf_status};

/// Version of the interface. It changes whenever a program must be compiled anew.
pub const KVF_ABI_VERSION: u32 = 1;

const VERSION: &[u8] = concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes();

/// One number of the version: digits up to the next dot.
const fn part(nth: usize) -> u32 {
    let (mut at, mut dots, mut value) = (0, 0, 0_u32);
    #[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects)] // runs in the compiler, which reports both
    while at < VERSION.len() && VERSION[at] != 0 {
        if VERSION[at] == b'.' {
            dots += 1;
        } else if dots == nth && VERSION[at].is_ascii_digit() {
            value = value * 10 + (VERSION[at] - b'0') as u32;
        }
        at += 1;
    }
    value
}

/// Version of the library: major * 65536 + minor * 256 + patch.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub extern "C" fn kvf_version() -> u32 {
    const { part(0) << 16 | part(1) << 8 | part(2) }
}

/// Version of the library as text, such as "0.1.0".
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub extern "C" fn kvf_version_string() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// KVF_ABI_VERSION of the library. kvf_cache_init compares it with that of the program.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub extern "C" fn kvf_abi_version() -> u32 {
    KVF_ABI_VERSION
}

/// Name of a status, such as "KVF_ERR_STALE". "KVF_UNKNOWN" for other numbers.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub extern "C" fn kvf_status_name(status: kvf_status) -> *const c_char {
    LIST.iter().find(|entry| entry.code == status).map_or(c"KVF_UNKNOWN", |entry| entry.name).as_ptr()
}

/// 1 if the status says that something is short and nothing is wrong (300 to 399), else 0.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub extern "C" fn kvf_status_is_capacity(status: kvf_status) -> u32 {
    u32::from((300..400).contains(&status))
}

/// What to call a status in a message for people, such as "the plan is not in the state that the call needs".
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub extern "C" fn kvf_status_text(status: kvf_status) -> *const c_char {
    LIST.iter().find(|entry| entry.code == status).map_or(c"unknown status", |entry| entry.text).as_ptr()
}
