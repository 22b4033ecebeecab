//! Random programs: the model obeys its own invariants, and every machine agrees with it.

use std::collections::BTreeMap;

use kvfolio_tests::machine::{EventKind, Value};
use kvfolio_tests::op::Op;
use kvfolio_tests::runner::Harness;
use kvfolio_tests::spec::Spec;
use kvfolio_tests::stream::{self, Build};
use kvfolio_tests::{drivers, shrink, text};

/// Runs that shortening a failure may take.
const MOST_RUNS: u32 = 3_000;

/// Runs seeds and shows the first failure as a short case.
fn sweep(seeds: core::ops::Range<u64>, program: fn(u64) -> (Spec, Vec<Op>), build: Build<'_>) {
    for seed in seeds {
        let (spec, ops) = program(seed);
        let reason =
            |spec: &Spec, ops: &[Op]| stream::run_caught(spec, ops, build, 1).err().map(|failure| failure.message);
        if let Some((message, spec, ops)) = shrink::shorten(&spec, &ops, &reason, MOST_RUNS) {
            panic!("seed {seed}: {message}\n{}", text::print_program("found", &spec, &ops));
        }
    }
}

fn noise(seed: u64) -> (Spec, Vec<Op>) {
    stream::random_program(seed, 1_500)
}

fn guided(seed: u64) -> (Spec, Vec<Op>) {
    stream::guided_program(seed, None, 400)
}

#[test]
fn the_model_obeys_its_invariants() {
    sweep(0..25, noise, &drivers::none);
    sweep(0..40, guided, &drivers::none);
}

#[test]
fn every_machine_agrees_with_the_model() {
    sweep(1_000..1_025, noise, &drivers::all);
    sweep(1_000..1_060, guided, &drivers::all);
}

#[test]
fn two_runs_give_the_same_digest() {
    for seed in 0..4 {
        let (spec, ops) = guided(seed);
        let runs = [0, 1].map(|_| stream::run(&spec, &ops, &drivers::all, 0).expect("runs"));
        assert_eq!(runs[0], runs[1], "seed {seed}");
    }
}

/// Random programs are worth nothing when they only collect refusals.
#[test]
fn random_programs_reach_every_answer() {
    let mut reached: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..80 {
        let (spec, ops) = guided(seed);
        let mut harness = Harness::new(&spec, Vec::new()).expect("modelled");
        harness.thorough_every = 0;
        for op in &ops {
            let outcome = harness.apply(op).expect("the model agrees with itself");
            let verb = text::print_op(op);
            let verb = verb.split(' ').next().unwrap_or_default();
            let mut count = |what: &str| *reached.entry(format!("{verb} {what}")).or_insert(0) += 1;
            count(&format!("{:?}", outcome.status));
            match outcome.value {
                Value::Hit(hit) if hit % spec.hit_step() > 0 => count("partial hit"),
                Value::Hit(hit) if hit > 0 => count("hit"),
                Value::Pages(pages) if pages > 0 => count("pages"),
                Value::Short(short) => count(&format!("{:?}", short.resource)),
                Value::Plan(plan) if !plan.copies.is_empty() => count("copies"),
                Value::Events(events, _) if events.iter().any(|e| e.kind == EventKind::Removed) => count("removed"),
                _ => {}
            }
        }
    }
    for (what, count) in &reached {
        println!("{count:7} {what}");
    }
    let wanted = [
        "OPEN Ok",
        "OPEN hit",
        "FORK Ok",
        "FORK WindowLost",
        "FORK Busy",
        "TRUNC Ok",
        "TRUNC WindowLost",
        "CLOSE Ok",
        "CLOSE Stale",
        "PLAN Ok",
        "ADD Ok",
        "ADD Retry",
        "ADD Never",
        "FINISH Ok",
        "FINISH copies",
        "CANCEL Ok",
        "COMMIT Ok",
        "COMMIT Argument",
        "ABORT Ok",
        "APPEND Ok",
        "APPEND copies",
        "APPEND Retry",
        "VERIFY Ok",
        "PUBLISH pages",
        "MATCH hit",
        "MATCH partial hit",
        "DROP Ok",
        "EVICT pages",
        "CLEAR Ok",
        "IO Ok",
        "DONE Ok",
        "DRAIN removed",
        "APPEND Pending",
        "APPEND Chunks",
        "ADD Chunks",
        "FORK Chunks",
        "MATCH Chunks",
        "CLOSENS Ok",
        "CLOSENS Busy",
        "OPENNS Ok",
        "OPENNS Namespaces",
        "EXPORT Ok",
        "RING Ok",
        "RING Argument",
    ];
    for what in wanted {
        assert!(reached.get(what).is_some_and(|count| *count >= 1), "{what} is not reached");
    }
}
