//! Builds the C libraries under the names that C programs link.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::exports;

/// Builds the archive and the shared library with a profile; they end up in `target/<profile>`.
pub(crate) fn build(root: &Path, profile: &str) -> Result<(), String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let out = target.join(profile);
    let archive = out.join("libkvfolio.a");
    compile(root, profile, "staticlib", &out)?;
    copy(&out.join("libkvfolio_ffi.a"), &archive)?;
    println!("{}", archive.display());
    let shared = if cfg!(target_os = "linux") {
        link(root, &archive, &out.join("libkvfolio.so"))?
    } else {
        compile(root, profile, "cdylib", &out)?;
        let shared = out.join("libkvfolio.dylib");
        copy(&out.join("libkvfolio_ffi.dylib"), &shared)?;
        shared
    };
    println!("{}", shared.display());
    Ok(())
}

/// Has cargo make one kind of library.
fn compile(root: &Path, profile: &str, kind: &str, out: &Path) -> Result<(), String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root).args(["rustc", "-p", "kvfolio-ffi", "--profile", profile, "--crate-type", kind]);
    cargo.args(["--", "--cfg", "kvf_capi"]);
    if kind == "staticlib" {
        // What a program must link besides the archive: an empty file, as a gate checks.
        cargo.arg("--print").arg(format!("native-static-libs={}", out.join("native-static-libs.txt").display()));
    }
    run(cargo, &format!("building the {kind}"))
}

/// Makes the shared library from the archive. Not by rustc, which brings a version script of its own: a linker takes one.
fn link(root: &Path, archive: &Path, shared: &Path) -> Result<PathBuf, String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut words = compiler.split_whitespace(); // such as "ccache gcc"
    let mut cc = Command::new(words.next().unwrap_or("cc"));
    cc.args(words);
    cc.args(["-shared", "-nostdlib", "-Wl,-soname,libkvfolio.so.0", "-Wl,--gc-sections", "-Wl,-z,relro,-z,now"]);
    cc.arg(format!("-Wl,--version-script={}", root.join(exports::MAP).display()));
    cc.arg("-Wl,--whole-archive").arg(archive).args(["-Wl,--no-whole-archive", "-o"]).arg(shared);
    run(cc, "linking the shared library")?;
    Ok(shared.to_path_buf())
}

fn run(mut command: Command, what: &str) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("{what} failed")),
        Err(error) => Err(format!("{what}: {}: {error}", command.get_program().to_string_lossy())),
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::copy(from, to).map(|_| ()).map_err(|error| format!("{}: {error}", from.display()))
}
