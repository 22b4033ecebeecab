//! Builds the C libraries under the names that C programs link.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the archive and the shared library with a profile; they end up in `target/<profile>`.
pub(crate) fn build(root: &Path, profile: &str) -> Result<(), String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let out = target.join(profile);
    let shared = if cfg!(target_os = "macos") { "dylib" } else { "so" };
    for (kind, extension) in [("staticlib", "a"), ("cdylib", shared)] {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(root).args(["rustc", "-p", "kvfolio-ffi", "--profile", profile, "--crate-type", kind]);
        cargo.args(["--", "--cfg", "kvf_capi"]);
        if kind == "staticlib" {
            // What a program must link besides the archive: an empty file, as a gate checks.
            cargo.arg("--print").arg(format!("native-static-libs={}", out.join("native-static-libs.txt").display()));
        }
        if kind == "cdylib" && cfg!(target_os = "linux") {
            cargo.args(["-C", "link-arg=-Wl,-soname,libkvfolio.so.0"]); // cargo sets none
        }
        let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err(format!("building the {kind} failed"));
        }
        let built = out.join(format!("libkvfolio_ffi.{extension}"));
        let named = out.join(format!("libkvfolio.{extension}"));
        std::fs::copy(&built, &named).map_err(|error| format!("{}: {error}", built.display()))?;
        println!("{}", named.display());
    }
    Ok(())
}
