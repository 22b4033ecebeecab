//! Replays case files (`.kvt`) and byte streams (anything else) and prints one verdict per case.
//!
//! `kvf-replay [--trace] [--minimise] [--by COMMAND] FILE...`; exit status 1 when a case failed. `--trace` prints a line
//! per op: index, status, digest, op. `--minimise` prints a failing case again as short as it gets, first by whole ops;
//! with `--by COMMAND` what counts as failing is that `COMMAND FILE` fails on its byte form, so that a harness of any kind
//! can be asked.

use std::process::{Command, ExitCode, Stdio};

use kvfolio_tests::case::{self, Case, Done, Step, Verdict};
use kvfolio_tests::op::Op;
use kvfolio_tests::spec::Spec;
use kvfolio_tests::{bytes, drivers, shrink, stream, text};

/// Runs that shortening a case may take.
const MOST_RUNS: u32 = 3_000;

#[derive(Default)]
struct Wanted {
    trace: bool,
    minimise: bool,
    by: Option<String>,
    files: Vec<String>,
}

fn main() -> ExitCode {
    let Some(wanted) = wanted() else {
        eprintln!("kvf-replay [--trace] [--minimise] [--by COMMAND] FILE...");
        return ExitCode::from(2);
    };
    std::panic::set_hook(Box::new(|_| {}));
    let (mut passed, mut failed, mut skipped) = (0u32, 0u32, 0u32);
    for path in &wanted.files {
        let cases = match read(path) {
            Ok(cases) => cases,
            Err(message) => {
                println!("{path}: {message}");
                failed += 1;
                continue;
            }
        };
        for case in cases {
            let mut watch = |done: Done<'_>| {
                if wanted.trace {
                    trace(&done);
                }
            };
            match case::run_caught(&case, &drivers::all, &mut watch) {
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
            if wanted.minimise {
                minimise(&case, wanted.by.as_deref());
            }
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    ExitCode::from(u8::from(failed > 0))
}

fn wanted() -> Option<Wanted> {
    let mut wanted = Wanted::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--trace" => wanted.trace = true,
            "--minimise" => wanted.minimise = true,
            "--by" => wanted.by = Some(args.next()?),
            _ if arg.starts_with("--") => return None,
            _ => wanted.files.push(arg),
        }
    }
    Some(wanted)
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

fn trace(done: &Done<'_>) {
    let status = done.status.map_or("FAILED".into(), |status| format!("{status:?}"));
    println!("op {:<4} {status:<10} {:016x} {}", done.nth, done.digest, text::print_op(done.op));
}

/// Prints the case as short as it gets while it fails in the same way, if it fails without its expectations.
fn minimise(case: &Case, by: Option<&str>) {
    let ops: Vec<Op> = case.steps.iter().filter_map(|step| step.op.clone()).collect();
    let reason = |spec: &Spec, ops: &[Op]| match by {
        Some(command) => asked(command, spec, ops),
        None => stream::run_caught(spec, ops, &drivers::all, 1).err().map(|failure| failure.message),
    };
    match shrink::shorten(&case.spec, &ops, &reason, MOST_RUNS) {
        Some((message, spec, ops)) => println!("{message}\n{}", text::print_program("found", &spec, &ops)),
        None => println!("{} does not fail without its expectations", case.name),
    }
}

/// Why a command says that the byte form of a program fails.
fn asked(command: &str, spec: &Spec, ops: &[Op]) -> Option<String> {
    let wire = bytes::encode(spec, ops)?;
    let file = std::env::temp_dir().join(format!("kvf-replay-{}", std::process::id()));
    std::fs::write(&file, wire).expect("the folder for temporary files can be written");
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{command} '{}'", file.display())).stdout(Stdio::null()).stderr(Stdio::null());
    let status = shell.status().expect("there is a shell");
    let _ = std::fs::remove_file(&file);
    (!status.success()).then(|| status.to_string())
}
