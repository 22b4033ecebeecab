//! Long guided runs over a grid of configurations, every machine in lock step with the model.
//!
//! `kvf-soak [--ops N] [--seed S] [--only NAME] [--without WORD]`; N ops per small configuration (20000 by default; larger
//! ones get a share of that, see `share`), without those whose text has the word. After every op all answers and counters
//! are compared; pages, digests, the machines' own checks and device memory too, but with pools of 512 pages and more, or
//! many groups, only every 64th time. A failure is printed as a short case; exit status 1.

use std::process::ExitCode;

use kvfolio_tests::op::Op;
use kvfolio_tests::rng::Rng;
use kvfolio_tests::runner::Harness;
use kvfolio_tests::spec::{GroupKind, GroupSpec, IndexKind, Policy, PoolSpec, Spec};
use kvfolio_tests::stream::{self, Failure};
use kvfolio_tests::{drivers, guided, shrink, text};

/// Ops after which a run starts afresh: bounds the length of what a failure has to be shrunk from.
const STRETCH: usize = 4_000;

/// Runs that shrinking a failure may take.
const MOST_RUNS: u32 = 1_500;

/// Configurations drawn by chance.
const RANDOM: u64 = 16;

/// Configurations with fixed rings drawn by chance.
const RANDOM_RINGS: usize = 8;

fn main() -> ExitCode {
    let (mut ops, mut seed, mut only, mut without) = (20_000usize, 1u64, String::new(), None);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().unwrap_or_default();
        match arg.as_str() {
            "--ops" => ops = value.parse().unwrap_or(ops),
            "--seed" => seed = value.parse().unwrap_or(seed),
            "--only" => only = value,
            "--without" => without = Some(value),
            _ => {
                eprintln!("kvf-soak [--ops N] [--seed S] [--only NAME] [--without WORD]");
                return ExitCode::from(2);
            }
        }
    }
    let (mut passed, mut failed) = (0, 0);
    for (name, spec) in grid().into_iter().filter(|(name, _)| name.contains(&only)) {
        let ops = ops.div_ceil(share(&spec));
        match soak(&spec, ops, seed, without.as_deref()) {
            Ok(digest) => {
                passed += 1;
                println!("pass {name:<28} {ops} ops {digest:016x}");
            }
            Err((program, failure)) => {
                failed += 1;
                println!("FAIL {name:<28} {}", failure.message);
                println!("{}", shortened(&spec, &program, &failure.message));
            }
        }
    }
    println!("{passed} passed, {failed} failed, 0 skipped");
    ExitCode::from(u8::from(failed > 0))
}

/// One op costs the model up to O(pages) and each machine's check O(pages): larger configurations get fewer ops, so that
/// all of them take about the same time.
fn share(spec: &Spec) -> usize {
    let pages: u32 = spec.pools.iter().map(|pool| pool.pages).sum();
    match pages {
        _ if spec.groups.len() > 8 => 32,
        0..=256 => 1,
        257..=2048 => 8,
        _ => 32,
    }
}

/// P x groups x pages, and once as many groups as a model with one table per layer and head has.
fn grid() -> Vec<(String, Spec)> {
    let mut grid = Vec::new();
    for page_tokens in [1, 4, 16] {
        for groups in 1..=3 {
            for pages in [8, 64, 512, 4096] {
                let mut spec = Spec { pools: Vec::new(), ..Spec::default() };
                for group in 0..groups {
                    spec.pools.push(PoolSpec { pages, policy: Policy::Lru });
                    spec.groups.push(group_of(group, page_tokens));
                }
                spec.deferred = pages == 64;
                grid.push((format!("P{page_tokens} groups{groups} N{pages}"), spec));
            }
        }
    }
    let mut wide = Spec { pools: vec![PoolSpec { pages: 2048, policy: Policy::Lru }], ..Spec::default() };
    wide.groups = (0..90).map(|group| GroupSpec { pool: 0, ..group_of(group % 2, 4) }).collect();
    grid.push(("P4 groups90 N2048".into(), wide));
    grid.extend(rings());
    // Small pools under pressure, with policies, classes, leases, quotas, media spans and scrubbing drawn by chance.
    grid.extend((0..RANDOM).map(|n| (format!("random {n}"), guided::spec(&mut Rng::new(n)))));
    grid
}

/// Fixed rings: alone, beside a full group, beside a plain window, in a pool of their own and in a common one.
fn rings() -> Vec<(String, Spec)> {
    let mut grid = Vec::new();
    for (page_tokens, ring) in [(1, 3), (4, 1), (4, 9), (16, 40)] {
        for groups in ["ring", "full ring", "full window ring", "window ring"] {
            let mut spec = Spec { pools: vec![PoolSpec { pages: 48, policy: Policy::Lru }; 2], ..Spec::default() };
            for word in groups.split(' ') {
                let group = group_of(u16::from(word != "full"), page_tokens);
                spec.groups.push(GroupSpec { ring: if word == "ring" { ring } else { 0 }, ..group });
            }
            if spec.anchor().is_none() {
                spec.index = IndexKind::None;
            }
            spec.groups.iter_mut().filter(|_| ring == 9).for_each(|group| group.pool = 0);
            grid.push((format!("P{page_tokens} ring{ring} {groups}"), spec));
        }
    }
    let ringed = |n: u64| {
        let mut rng = Rng::new(1000 + n);
        let mut spec = guided::spec(&mut rng);
        for group in spec.groups.iter_mut().filter(|group| group.kind != GroupKind::Full) {
            group.ring = 1 + rng.below(3 * u64::from(group.page_tokens) + 4) as u32;
        }
        spec.groups.iter().any(|group| group.ring > 0).then(|| (format!("random ring {n}"), spec))
    };
    grid.extend((0..).filter_map(ringed).take(RANDOM_RINGS));
    grid
}

fn group_of(group: u16, page_tokens: u32) -> GroupSpec {
    let full = GroupSpec { kind: GroupKind::Full, page_tokens, pool: group, exact: false, ring: 0 };
    match group {
        0 => full,
        1 => GroupSpec { kind: GroupKind::Window { window: 2 * page_tokens + 3, sinks: page_tokens / 2 + 1 }, ..full },
        _ => GroupSpec { page_tokens: page_tokens * 2, ..full },
    }
}

fn soak(spec: &Spec, ops: usize, seed: u64, without: Option<&str>) -> Result<u64, (Vec<Op>, Failure)> {
    let largest = spec.pools.iter().map(|pool| pool.pages).max().unwrap_or(0);
    let wide = spec.groups.len() > 8;
    let mut digest = 0;
    let mut rng = Rng::new(seed);
    for _ in 0..ops.div_ceil(STRETCH) {
        let mut program = Vec::new();
        let fail = |program: &[Op], message: String| (program.to_vec(), Failure { op: program.len(), message });
        let machines = drivers::all(spec).map_err(|message| fail(&[], message))?;
        let mut harness = Harness::new(spec, machines).map_err(|message| fail(&[], message))?;
        harness.thorough_every = if largest >= 512 || wide { 64 } else { 1 };
        for _ in 0..STRETCH.min(ops) {
            let op = guided::op(&mut rng, spec, harness.oracle());
            if without.is_some_and(|word| text::print_op(&op).contains(word)) {
                continue;
            }
            program.push(op.clone());
            let step = core::panic::AssertUnwindSafe(|| harness.apply(&op));
            match std::panic::catch_unwind(step) {
                Ok(Ok(_)) => {}
                Ok(Err(message)) => return Err(fail(&program, message)),
                Err(_) => return Err(fail(&program, "panic".into())),
            }
        }
        harness.finish().map_err(|message| fail(&program, message))?;
        digest = harness.digest();
    }
    Ok(digest)
}

fn shortened(spec: &Spec, program: &[Op], message: &str) -> String {
    std::panic::set_hook(Box::new(|_| {}));
    let run = |spec: &Spec, ops: &[Op]| stream::run_caught(spec, ops, &drivers::all, 1).err();
    let first = run(spec, program).map_or(message.into(), |failure| failure.message);
    let kind = shrink::kind(&first);
    let runs = core::cell::Cell::new(0);
    let fails = |spec: &Spec, ops: &[Op]| {
        runs.set(runs.get() + 1);
        runs.get() < MOST_RUNS && run(spec, ops).is_some_and(|failure| shrink::kind(&failure.message) == kind)
    };
    let (spec, ops) = shrink::program(spec, program, &fails);
    let message = run(&spec, &ops).map_or(first, |failure| failure.message);
    let _ = std::panic::take_hook();
    format!("{message}\n{}", text::print_program("found", &spec, &ops))
}
