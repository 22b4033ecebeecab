//! Whole workloads, side by side: contestants take turns, and the best run of each counts.

use core::error::Error;
use std::fs;

use kvfolio_examples::manager;
use kvfolio_examples::workload::Workload;

use crate::budget::{self, Floor as Against, Verdict};
use crate::c_program::Programs;
use crate::floor::Floor;
use crate::kvbm::Kvbm;
use crate::peer::{Measured, drive};
use crate::router;

type Result<T> = core::result::Result<T, Box<dyn Error>>;

/// Who runs the workloads, in the order of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contestant {
    Rust,
    C,
    Floor,
    Verifying,
    Kvbm,
    Router,
}

impl Contestant {
    const ALL: [Self; 6] = [Self::Rust, Self::C, Self::Floor, Self::Verifying, Self::Kvbm, Self::Router];

    fn name(self) -> &'static str {
        match self {
            Self::Rust => "kvfolio, Rust",
            Self::C => "kvfolio, C",
            Self::Floor => "floor",
            Self::Verifying => "floor, verifying",
            Self::Kvbm => "kvbm-logical",
            Self::Router => "kv-router, index only",
        }
    }

    /// One that only indexes prompts is left out where there are none, or where decoding is the work.
    fn enters(self, work: &Workload) -> bool {
        self != Self::Router || !matches!(work.name, "W1" | "W2")
    }
}

/// One run. `digest` keeps what the first run of kvfolio gave; another one is an error.
fn run(who: Contestant, work: &Workload, programs: &Programs, digest: &mut Option<(u64, u64)>) -> Result<Measured> {
    let peer = match who {
        Contestant::Rust => {
            let outcome = manager::run(work).map_err(|error| format!("kvfolio: {error}"))?;
            agree(digest, (outcome.digest, outcome.evicted_pages))?;
            Some(Measured { seconds: outcome.seconds, hit_tokens: Some(outcome.hit_tokens) })
        }
        Contestant::C => {
            let line = programs.run(work.name)?;
            agree(digest, (line.digest, line.evicted_pages))?;
            Some(Measured { seconds: line.seconds, hit_tokens: Some(line.hit_tokens) })
        }
        Contestant::Floor => drive(&mut Floor::<false>::new(work.pages), work),
        Contestant::Verifying => drive(&mut Floor::<true>::new(work.pages), work),
        Contestant::Kvbm => Kvbm::new(work.pages).and_then(|mut kvbm| drive(&mut kvbm, work)),
        Contestant::Router => router::run(work),
    };
    Ok(peer.ok_or_else(|| format!("{}: a request did not fit", who.name()))?)
}

fn agree(known: &mut Option<(u64, u64)>, now: (u64, u64)) -> Result<()> {
    let known = *known.get_or_insert(now);
    if known != now {
        return Err(format!("digest and evictions differ between runs of kvfolio: {known:x?} and {now:x?}").into());
    }
    Ok(())
}

/// Runs a workload so many times and prints its table.
///
/// # Errors
/// A contestant that fails, hits or digests that differ where they must be equal, and fewer hits than the budget's.
pub fn workload(work: &Workload, programs: &Programs, runs: u32) -> Result<()> {
    fs::write(programs.file(work.name), work.to_bytes())?;
    let mut best: Vec<(Contestant, Measured)> = Vec::new();
    let mut digest = None;
    for _ in 0..runs {
        for who in Contestant::ALL.into_iter().filter(|who| who.enters(work)) {
            let measured = run(who, work, programs, &mut digest)?;
            match best.iter_mut().find(|(known, _)| *known == who) {
                Some((_, known)) if known.hit_tokens != measured.hit_tokens => {
                    return Err(format!("{}: other hits in another run", who.name()).into());
                }
                Some((_, known)) => known.seconds = known.seconds.min(measured.seconds),
                None => best.push((who, measured)),
            }
        }
    }
    fs::remove_file(programs.file(work.name))?;
    report(work, &best)
}

fn report(work: &Workload, best: &[(Contestant, Measured)]) -> Result<()> {
    let budget = budget::of(work.name);
    let against = if budget.floor == Against::Plain { Contestant::Floor } else { Contestant::Verifying };
    let seconds = |who| best.iter().find(|(known, _)| *known == who).map_or(f64::NAN, |(_, known)| known.seconds);
    let (floor, kvbm) = (seconds(against), seconds(Contestant::Kvbm));
    println!(
        "\n{}  {} operations, {} pages\n{:<24}{:>12}{:>14}{:>14}{:>14}",
        work.name,
        work.operations.len(),
        work.pages,
        "",
        "cpu s",
        "of the floor",
        "kvbm / it",
        "hit tokens"
    );
    let hits = |measured: &Measured| measured.hit_tokens.map_or_else(|| "-".to_owned(), |hits| hits.to_string());
    for (who, measured) in best {
        let mark = if *who == against { " *" } else { "" };
        println!(
            "{:<24}{:>12.5}{:>14.2}{:>14.1}{:>14}",
            format!("{}{mark}", who.name()),
            measured.seconds,
            measured.seconds / floor,
            kvbm / measured.seconds,
            hits(measured)
        );
    }
    for who in [Contestant::Rust, Contestant::C] {
        let ratio = Verdict { is: seconds(who) / floor, must: budget.must, aim: budget.aim };
        let times = kvbm / seconds(who);
        let met = if times >= budget.kvbm { "must met" } else { "MISSED" };
        println!("{}: of the floor * {ratio}; {times:.1} x kvbm (must {}): {met}", who.name(), budget.kvbm);
    }
    for (who, measured) in best {
        if measured.hit_tokens.is_some_and(|hits| hits < budget.hits) {
            return Err(format!("{}: {}: fewer hits than {}", work.name, who.name(), budget.hits).into());
        }
    }
    Ok(())
}
