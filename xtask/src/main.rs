//! Tasks of the developers.
//!
//! ```text
//! cargo run -p xtask -- header            writes include/kvfolio.h and ffi/exports.map
//! cargo run -p xtask -- header --check    says whether they are what they should be
//! cargo run -p xtask -- capi [--check]    builds libkvfolio.a and libkvfolio.so; --check: with assertions, for tests
//! ```

mod capi;
mod exports;
mod header;
mod text;
mod warnings;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["header"] => header::write(&root()),
        ["header", "--check"] => header::check(&root()),
        ["capi"] => capi::build(&root(), "capi"),
        ["capi", "--check"] => capi::build(&root(), "capi-check"),
        _ => Err("usage: xtask header [--check] | capi [--check]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}
