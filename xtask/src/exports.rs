//! The functions that the shared library exports, as a version script for the linker.

/// Where the list is.
pub(crate) const MAP: &str = "ffi/exports.map";
/// The version that exported functions carry. It changes with the library's SONAME.
const VERSION: &str = "KVFOLIO_0";

/// The list: these functions and nothing else.
pub(crate) fn list<'a>(functions: impl Iterator<Item = &'a str>) -> String {
    let mut out =
        format!("# Made from ffi/src by \"cargo run -p xtask -- header\": do not edit.\n{VERSION} {{\nglobal:\n");
    for name in functions {
        out.push_str(&format!("    {name};\n"));
    }
    out.push_str("local:\n    *;\n};\n");
    out
}
