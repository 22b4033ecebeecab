//! Makes `include/kvfolio.h`, and the list of exports beside it.
//!
//! cbindgen turns the Rust declarations into C ones. It prints all types first and all functions last, so its output is
//! taken apart here and put together again by section: one per file of `ffi/src`, whose `//!` text is the banner. A type
//! stands in the first section that uses it, a constant before the type that it belongs to.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kvfolio_ffi::status::LIST;

use crate::exports;
use crate::text::{aligned, comment, signature, wrap};
use crate::warnings;

/// The sections, in the order of the header.
const SECTIONS: &[&str] = &[
    "version",
    "config",
    "cache",
    "namespace",
    "seq",
    "prefix",
    "plan",
    "table",
    "retain",
    "io",
    "events",
    "introspect",
    "page_layout",
    "memory",
    "stream",
    "compaction",
    "keep",
    "scores",
    "key_scores",
    "budgets",
    "losses",
    "keychain",
];
/// Files of `ffi/src` that have types, in the order of the header.
const TYPES: &[&str] = &["types", "reports", "formats", "eviction"];
const HEADER: &str = "include/kvfolio.h";
const PREFACE: &str = include_str!("preface.h");

/// One declaration.
struct Item {
    name: String,
    doc: Vec<String>,
    code: Vec<String>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Constant,
    Type,
    Function,
}

/// Writes the header and the list of exports.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    for (path, text) in files(root)? {
        fs::write(root.join(path), text).map_err(|error| format!("{path}: {error}"))?;
    }
    Ok(())
}

/// Compares them with what they should be.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    for (path, made) in files(root)? {
        let committed = fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
        if committed != made {
            let line = committed.lines().zip(made.lines()).take_while(|(a, b)| a == b).count() + 1;
            return Err(format!("{path} differs from ffi/src in line {line}; run: cargo run -p xtask -- header"));
        }
    }
    Ok(())
}

/// What is made from `ffi/src`: paths and texts.
fn files(root: &Path) -> Result<[(&'static str, String); 2], String> {
    let items = declarations(root)?;
    let functions = items.iter().filter(|item| item.kind == Kind::Function);
    let map = exports::list(functions.map(|item| item.name.as_str()));
    Ok([(HEADER, make(root, &items)?), (exports::MAP, map)])
}

fn make(root: &Path, items: &[Item]) -> Result<String, String> {
    let mut done = BTreeSet::from(["kvf_status".to_owned()]); // printed with its numbers
    let mut out = String::from(PREFACE);
    for (nth, section) in SECTIONS.iter().enumerate() {
        let source = read(root, section)?;
        out.push_str(&banner(nth + 1, &source)?);
        if nth == 0 {
            out.push_str(&statuses());
        }
        let mut body = String::new();
        let functions: Vec<&Item> =
            items.iter().filter(|item| item.kind == Kind::Function && declares(&source, &item.name)).collect();
        let constants = items.iter().filter(|item| item.kind == Kind::Constant && declares(&source, &item.name));
        body.push_str(&constant_lines(&constants.collect::<Vec<_>>()));
        for function in functions {
            for line in &function.code {
                types_of(line, items, &mut done, &mut body);
            }
            body.push_str(&print(function));
        }
        out.push_str(&body);
    }
    let printed = |item: &Item| out.contains(&item.name);
    if let Some(missing) = items.iter().find(|item| !printed(item)) {
        return Err(format!("{} belongs to no section", missing.name));
    }
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* KVFOLIO_H */\n");
    Ok(out)
}

/// Prints the types that a line uses, with their constants, unless they are printed already.
fn types_of(line: &str, items: &[Item], done: &mut BTreeSet<String>, out: &mut String) {
    for word in line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let Some(at) = items.iter().position(|item| item.kind == Kind::Type && item.name == word) else { continue };
        let Some(item) = items.get(at) else { continue };
        if !done.insert(word.to_owned()) {
            continue;
        }
        for line in &item.code {
            types_of(line, items, done, out);
        }
        let before: Vec<&Item> = items.iter().take(at).rev().take_while(|item| item.kind == Kind::Constant).collect();
        out.push_str(&constant_lines(&before.into_iter().rev().collect::<Vec<_>>()));
        out.push_str(&print(item));
    }
}

fn constant_lines(items: &[&Item]) -> String {
    let lines: Vec<_> = items.iter().map(|item| (item.doc.clone(), item.code.join(" "))).collect();
    if lines.is_empty() { String::new() } else { format!("\n{}", aligned(&lines, "")) }
}

fn print(item: &Item) -> String {
    let mut out = format!("\n{}", comment(&item.doc, ""));
    let is_struct = item.code.first().is_some_and(|line| line.ends_with('{'));
    if !is_struct {
        return out + &signature(&item.code).replace("typedef kvf_", "typedef struct kvf_");
    }
    let (Some(first), Some(last)) = (item.code.first(), item.code.last()) else { return out };
    let inner = item.code.get(1..item.code.len().saturating_sub(1)).unwrap_or(&[]);
    out.push_str(&format!("{first}\n{}{last}\n", aligned(&documented(inner), "    ")));
    out
}

/// Lines of code, each with the comment above it.
fn documented(lines: &[String]) -> Vec<(Vec<String>, String)> {
    let (mut items, mut doc) = (Vec::new(), Vec::new());
    for line in lines {
        match comment_text(line) {
            Some(text) => doc.extend(text),
            None => items.push((core::mem::take(&mut doc), line.trim().replace("struct kvf_", "kvf_"))),
        }
    }
    items
}

/// The text of a line of a comment; `None` for code.
fn comment_text(line: &str) -> Option<Option<String>> {
    let line = line.trim();
    if line == "/**" || line == "*/" {
        return Some(None);
    }
    let text = line.strip_prefix('*')?;
    Some(Some(text.strip_prefix(' ').unwrap_or(text).to_owned()))
}

/// All declarations, constants and types in source order, then functions.
fn declarations(root: &Path) -> Result<Vec<Item>, String> {
    let printed = run_cbindgen(root)?;
    let mut items = Vec::new();
    for block in printed.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let lines: Vec<String> = block.lines().map(str::to_owned).collect();
        let code_at = lines.iter().position(|line| comment_text(line).is_none()).unwrap_or(lines.len());
        let (doc, code) = lines.split_at(code_at);
        let Some(first) = code.first() else { continue };
        let word = |line: &str| {
            let end = line.find(['(', ';', '{', '[']).unwrap_or(line.len());
            line.get(..end).unwrap_or("").trim().rsplit([' ', '*']).next().unwrap_or("").to_owned()
        };
        let (kind, name) = if let Some(rest) = first.strip_prefix("#define ") {
            (Kind::Constant, rest.split(' ').next().unwrap_or("").to_owned())
        } else if first.starts_with("typedef") {
            (Kind::Type, word(first))
        } else {
            (Kind::Function, word(first))
        };
        let doc = doc.iter().filter_map(|line| comment_text(line).flatten()).collect();
        items.push(Item { name, doc, code: code.to_vec(), kind });
    }
    order_like_source(root, &mut items)?;
    Ok(items)
}

/// cbindgen sorts constants and types by itself; the source's order says which constant belongs to which type.
fn order_like_source(root: &Path, items: &mut [Item]) -> Result<(), String> {
    let mut sources = String::new();
    for name in TYPES.iter().chain(SECTIONS) {
        sources.push_str(&read(root, name)?);
    }
    items.sort_by_key(|item| {
        let found = ["const ", "type ", "struct ", "fn "].iter().filter_map(|word| {
            let declaration = format!("pub {word}{}", item.name);
            let plain = sources.find(&declaration).filter(|_| item.kind != Kind::Function);
            plain.or_else(|| sources.find(&format!("extern \"C\" fn {}(", item.name)))
        });
        found.min().unwrap_or(usize::MAX)
    });
    Ok(())
}

fn run_cbindgen(root: &Path) -> Result<String, String> {
    warnings::collect();
    let directory = std::env::temp_dir().join(format!("kvfolio-header-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let mut builder = cbindgen::Builder::new().with_config(cbindgen::Config {
        language: cbindgen::Language::C,
        no_includes: true,
        usize_is_size_t: true,
        style: cbindgen::Style::Both,
        documentation_style: cbindgen::DocumentationStyle::Doxy,
        line_length: 96,
        tab_width: 4,
        sort_by: cbindgen::SortKey::None,
        ..cbindgen::Config::default()
    });
    for name in ["status"].iter().chain(TYPES).chain(SECTIONS) {
        let source = read(root, name)?;
        let path = directory.join(format!("{name}.rs"));
        // The library exports its functions only where it is the C library; cbindgen wants to see it plainly.
        let plain = source.replace("#[cfg_attr(kvf_capi, unsafe(no_mangle))]", "#[unsafe(no_mangle)]");
        fs::write(&path, plain).map_err(|error| error.to_string())?;
        builder = builder.with_src(path);
    }
    let bindings = builder.generate().map_err(|error| error.to_string());
    let _ = fs::remove_dir_all(&directory);
    let mut bytes = Vec::new();
    bindings?.write(&mut bytes);
    let found = warnings::found();
    if found.is_empty() {
        String::from_utf8(bytes).map_err(|error| error.to_string())
    } else {
        Err(format!("cbindgen: {}", found.join("\ncbindgen: ")))
    }
}

fn read(root: &Path, name: &str) -> Result<String, String> {
    let path = root.join("ffi/src").join(format!("{name}.rs"));
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn declares(source: &str, name: &str) -> bool {
    source.contains(&format!("extern \"C\" fn {name}(")) || source.contains(&format!("pub const {name}:"))
}

/// The banner of a section: the `//!` text of its file.
fn banner(number: usize, source: &str) -> Result<String, String> {
    let text: Vec<String> = source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned())
        .collect();
    let (title, rest) = text.split_first().ok_or("a section without text")?;
    let rule = "=".repeat(97);
    let mut out = format!("\n/* {rule}\n * {number}. {title}\n");
    for line in wrap(rest, 97) {
        out.push_str(format!(" * {line}").trim_end());
        out.push('\n');
    }
    out.push_str(&format!(" * {rule} */\n"));
    Ok(out)
}

/// The statuses, from the list that the library itself uses.
fn statuses() -> String {
    let doc = "What a function answers: 0 = done, else a positive code. The hundreds tell the kind: 1 argument, 2 state, \
               3 capacity (nothing is wrong, and nothing has changed), 4 transfer, 9 internal.";
    let lines: Vec<_> = LIST
        .iter()
        .map(|entry| {
            let text = entry.text.to_string_lossy().into_owned();
            (vec![text], format!("#define {:<22} {}", entry.name.to_string_lossy(), entry.code))
        })
        .collect();
    format!("\n{}typedef int32_t kvf_status;\n\n{}", comment(&[doc.to_owned()], ""), aligned(&lines, ""))
}
