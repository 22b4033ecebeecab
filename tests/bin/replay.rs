//! Replays case files (`.kvt`) and byte streams (anything else) and prints one verdict per case.
//!
//! `kvf-replay FILE...`; exit status 1 when a case failed.

use std::process::ExitCode;

use kvfolio_tests::case::{self, Case, Step, Verdict};
use kvfolio_tests::{bytes, drivers, text};

fn main() -> ExitCode {
    let (mut passed, mut failed, mut skipped) = (0u32, 0u32, 0u32);
    for path in std::env::args().skip(1) {
        let cases = match read(&path) {
            Ok(cases) => cases,
            Err(message) => {
                println!("{path}: {message}");
                failed += 1;
                continue;
            }
        };
        for case in cases {
            match case::run(&case, &drivers::all) {
                Verdict::Passed(digest) => {
                    passed += 1;
                    println!("pass {:<8} {digest:016x} {}", case.name, case.title);
                }
                Verdict::Failed(message) => {
                    failed += 1;
                    println!("FAIL {:<8} {path}: {message}", case.name);
                }
                Verdict::Skipped(message) => {
                    skipped += 1;
                    println!("skip {:<8} {message}", case.name);
                }
            }
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    ExitCode::from(u8::from(failed > 0))
}

fn read(path: &str) -> Result<Vec<Case>, String> {
    let content = std::fs::read(path).map_err(|error| error.to_string())?;
    if path.ends_with(".kvt") {
        let source = String::from_utf8(content).map_err(|error| error.to_string())?;
        return text::parse(&source).map_err(|error| error.to_string());
    }
    let (spec, ops) = bytes::decode(&content);
    let steps = ops.into_iter().map(|op| Step { op: Some(op), any_status: true, ..Step::default() }).collect();
    Ok(vec![Case { name: "bytes".into(), title: path.into(), spec, steps }])
}
