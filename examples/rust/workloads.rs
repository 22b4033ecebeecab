//! `kvf-workloads [W1 .. W6]... [--write DIR]`: runs workloads, all without a name, and prints what they cost.
//!
//! W6 reads a request trace below `KVF_DATA` (default `../shared/data`); without it, W6 is skipped. With a folder the
//! workloads are written there as `.kvw` files and nothing is run.

use core::error::Error;
use std::{env, fs, path::Path};

use kvfolio_examples::manager::{self, Outcome};
use kvfolio_examples::workload::Workload;

const USAGE: &str = "usage: kvf-workloads [W1 .. W6]... [--write DIR]";

fn main() -> Result<(), Box<dyn Error>> {
    let (mut folder, mut names) = (None, Vec::new());
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--write" => folder = Some(arguments.next().ok_or("--write needs a folder")?),
            name if Workload::NAMES.contains(&name) => names.push(argument),
            _ => return Err(format!("{argument}: not a workload; {USAGE}").into()),
        }
    }
    let runs: u32 = env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(5);
    if folder.is_none() {
        println!("{:<4}{:>12}{:>14}{:>12}{:>10}{:>18}", "", "cpu s", "hit tokens", "evicted", "B/page", "digest");
    }
    for name in Workload::NAMES.into_iter().filter(|name| names.is_empty() || names.iter().any(|n| n == name)) {
        let Some(work) = Workload::named(name)? else {
            println!("{name:<4}skipped: no trace below KVF_DATA");
            continue;
        };
        if let Some(folder) = &folder {
            fs::write(Path::new(folder).join(format!("{name}.kvw")), work.to_bytes())?;
            continue;
        }
        let mut best: Option<Outcome> = None;
        for _ in 0..runs.max(1) {
            let outcome = manager::run(&work)?;
            if best.is_none_or(|best| outcome.seconds < best.seconds) {
                best = Some(outcome);
            }
        }
        let Some(best) = best else { continue };
        println!(
            "{name:<4}{:>12.5}{:>14}{:>12}{:>10.1}  {:016x}",
            best.seconds, best.hit_tokens, best.evicted_pages, best.bytes_per_page, best.digest
        );
    }
    Ok(())
}
