//! Writes what fuzzers begin with: `kvf-seeds DIR` puts every case of `tests/cases`, some guided programs and some noise
//! there, each in its byte form.

use std::path::Path;
use std::process::ExitCode;

use kvfolio_tests::rng::Rng;
use kvfolio_tests::{bytes, stream, text};

/// Guided programs, and ops in each.
const GUIDED: u64 = 200;
const OPS: usize = 60;
/// Random bytes, of every version that is read.
const NOISE: u64 = 100;
const LENGTH: usize = 300;

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("kvf-seeds DIR");
        return ExitCode::from(2);
    };
    match write_all(Path::new(&folder)) {
        Ok(count) => {
            println!("{count} seeds in {folder}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("kvf-seeds: {message}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(folder: &Path) -> Result<usize, String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let mut seeds = Vec::new();
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    for entry in std::fs::read_dir(cases).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.extension().is_some_and(|extension| extension == "kvt") {
            let source = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
            for case in text::parse(&source).map_err(|error| format!("{}: {error}", path.display()))? {
                let ops: Vec<_> = case.steps.into_iter().filter_map(|step| step.op).collect();
                let wire = bytes::encode(&case.spec, &ops).ok_or(format!("{} has no byte form", case.name))?;
                seeds.push((format!("case-{}", case.name), wire));
            }
        }
    }
    for seed in 0..GUIDED {
        let (spec, ops) = stream::guided_program(seed, None, OPS);
        let wire = bytes::encode(&spec, &ops).ok_or(format!("guided program {seed} has no byte form"))?;
        seeds.push((format!("guided-{seed}"), wire));
    }
    for seed in 0..NOISE {
        let mut wire = Rng::new(seed).bytes(LENGTH);
        wire[0] = (seed % u64::from(bytes::VERSION + 1)) as u8;
        let (spec, ops) = bytes::decode(&wire);
        let mut bounded = (spec.clone(), ops.clone());
        stream::bound(&mut bounded.0, &mut bounded.1);
        if bounded == (spec, ops) {
            seeds.push((format!("noise-{seed}"), wire));
        }
    }
    for (name, wire) in &seeds {
        std::fs::write(folder.join(name), wire).map_err(|error| error.to_string())?;
    }
    Ok(seeds.len())
}
