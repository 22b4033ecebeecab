//! Every case file, on every machine.

use std::path::{Path, PathBuf};

use kvfolio_tests::case::{self, Verdict};
use kvfolio_tests::{bytes, drivers, text};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let entries = std::fs::read_dir(folder).expect("tests/cases exists");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "kvt"));
    files.sort();
    files
}

#[test]
fn every_case_holds() {
    let mut failures = Vec::new();
    let mut passed = 0;
    for path in files() {
        let source = std::fs::read_to_string(&path).expect("readable");
        for case in text::parse(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display())) {
            match case::run(&case, &drivers::all) {
                Verdict::Passed(_) => passed += 1,
                Verdict::Failed(message) => failures.push(format!("{}: {}: {message}", path.display(), case.name)),
                Verdict::Skipped(message) => println!("skip {}: {message}", case.name),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(passed > 40, "only {passed} cases ran");
}

#[test]
fn every_case_has_a_byte_form() {
    for path in files() {
        let source = std::fs::read_to_string(&path).expect("readable");
        for case in text::parse(&source).expect("parses") {
            let ops: Vec<_> = case.steps.into_iter().filter_map(|step| step.op).collect();
            let wire = bytes::encode(&case.spec, &ops);
            let wire = wire.unwrap_or_else(|| panic!("{}: beyond the byte form", case.name));
            assert_eq!(bytes::decode(&wire), (case.spec, ops), "{}", case.name);
        }
    }
}
