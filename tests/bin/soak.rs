//! Long guided runs over a grid of configurations, every machine in lock step with the model.
//!
//! `kvf-soak [--ops N] [--seed S] [--jobs J] [--only NAME] [--without WORD]`: N ops per configuration (20000 by default),
//! on J threads (by default as many as there are cores), for configurations whose name has NAME, without ops whose text has
//! WORD. After every op all answers, counters, digests and the sequences that the op is about are compared; all sequences,
//! pages, the machines' own checks and device memory too, but with pools of 512 pages and more, or many groups, only every
//! 64th time. Each line tells the ops, the seconds and the last digest of a configuration, which depend on its number and the
//! seed alone, the seconds apart. A failure is printed as a short case; exit status 1. Where the library is built without an
//! index, all configurations are without one.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Instant;

use kvfolio_tests::op::Op;
use kvfolio_tests::rng::{self, Rng};
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
/// Configurations without a full group drawn by chance.
const RANDOM_WINDOWS: u64 = 12;
/// Configurations with rows that span two pools drawn by chance.
const RANDOM_SEALS: usize = 12;
/// Further ones for each option that chance alone would seldom combine with others.
const FOCUSED: u64 = 4;

/// What the command line asks for.
struct Wanted {
    ops: usize,
    seed: u64,
    jobs: usize,
    only: String,
    without: Option<String>,
}

/// How one configuration ended: the last digest, or the program that failed.
struct Ended {
    time: Duration,
    result: Result<u64, (Vec<Op>, Failure)>,
}

fn main() -> ExitCode {
    let Some(wanted) = wanted() else {
        eprintln!("kvf-soak [--ops N] [--seed S] [--jobs J] [--only NAME] [--without WORD]");
        return ExitCode::from(2);
    };
    let grid: Vec<(u64, (String, Spec))> =
        (0..).zip(grid()).filter(|(_, (name, _))| name.contains(&wanted.only)).collect();
    let (mut passed, mut failed) = (0, 0);
    let mut report = |nth: usize, ended: Ended| {
        let (_, (name, spec)) = &grid[nth];
        match ended.result {
            Ok(digest) => {
                passed += 1;
                println!("pass {name:<28} {} ops {:6.1} s {digest:016x}", wanted.ops, ended.time.as_secs_f64());
            }
            Err((program, failure)) => {
                failed += 1;
                println!("FAIL {name:<28} {}", failure.message);
                println!("{}", shortened(spec, &program, &failure.message));
            }
        }
    };
    in_order(grid.len(), wanted.jobs, &|nth| run(&grid[nth], &wanted), &mut report);
    println!("{passed} passed, {failed} failed, 0 skipped");
    ExitCode::from(u8::from(failed > 0))
}

fn wanted() -> Option<Wanted> {
    let cores = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
    let mut wanted = Wanted { ops: 20_000, seed: 1, jobs: cores, only: String::new(), without: None };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next()?;
        match arg.as_str() {
            "--ops" => wanted.ops = value.parse().ok()?,
            "--seed" => wanted.seed = value.parse().ok()?,
            "--jobs" => wanted.jobs = value.parse().ok().filter(|jobs| *jobs > 0)?,
            "--only" => wanted.only = value,
            "--without" => wanted.without = Some(value),
            _ => return None,
        }
    }
    Some(wanted)
}

/// Does jobs `0..count` on some threads; tells the results in the order of the jobs, each as soon as those before it are
/// told.
fn in_order<T: Send>(count: usize, threads: usize, job: &(dyn Fn(usize) -> T + Sync), tell: &mut dyn FnMut(usize, T)) {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    if nth >= count || send.send((nth, job(nth))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let mut done: Vec<Option<T>> = (0..count).map(|_| None).collect();
        let mut told = 0;
        for (nth, result) in receive {
            done[nth] = Some(result);
            while let Some(result) = done.get_mut(told).and_then(Option::take) {
                tell(told, result);
                told += 1;
            }
        }
    });
}

fn run((number, (_, spec)): &(u64, (String, Spec)), wanted: &Wanted) -> Ended {
    let begin = Instant::now();
    let result = soak(spec, wanted.ops, rng::mix(wanted.seed) ^ number, wanted.without.as_deref());
    Ended { time: begin.elapsed(), result }
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
    grid.extend(windows());
    grid.extend(sealed());
    // Small pools under pressure, with policies, classes, leases, quotas, media spans and scrubbing drawn by chance.
    grid.extend((0..RANDOM).map(|n| (format!("random {n}"), guided::spec(&mut Rng::new(n)))));
    let with = |name: &'static str, change: fn(&mut Spec)| {
        (0..FOCUSED).map(move |n| {
            let mut spec = guided::spec(&mut Rng::new(1_000 + n));
            change(&mut spec);
            (format!("{name} {n}"), spec)
        })
    };
    grid.extend(with("chunks", |spec| {
        spec.table_chunks = 2 + 3 * spec.groups.len() as u32;
        spec.pools.iter_mut().for_each(|pool| pool.pages *= 4);
    }));
    grid.extend(with("tail", |spec| (spec.tail, spec.index) = (true, IndexKind::Tree)));
    if !cfg!(feature = "index") {
        grid.retain(|(_, spec)| spec.groups.len() <= 8); // 16-bit ids cannot number the chunks of so many tables
        grid.iter_mut().for_each(|(_, spec)| (spec.index, spec.spans, spec.tail) = (IndexKind::None, 0, false));
    }
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

/// No full group: one window, two of different size, with sinks, with fixed rings; nodes in plenty and short.
fn windows() -> Vec<(String, Spec)> {
    let mut grid = Vec::new();
    let window = |page_tokens, window, sinks, pool| GroupSpec {
        kind: GroupKind::Window { window, sinks },
        page_tokens,
        pool,
        ..GroupSpec::FULL
    };
    for page_tokens in [1, 4, 16] {
        let (small, large) = (page_tokens + 2, 4 * page_tokens + 1);
        let all = [
            ("one", vec![window(page_tokens, small, 0, 0)]),
            ("sinks", vec![window(page_tokens, small, page_tokens + 1, 0)]),
            ("two", vec![window(page_tokens, small, 0, 0), window(2 * page_tokens, large, 1, 1)]),
            ("common", vec![window(2 * page_tokens, small, 2, 0), window(page_tokens, large, 0, 0)]),
        ];
        for (name, groups) in all {
            for nodes in [0, 12] {
                let pools = vec![PoolSpec { pages: 40, policy: Policy::Lru }; 2];
                let spec = Spec { pools, groups: groups.clone(), nodes, deferred: nodes > 0, ..Spec::default() };
                grid.push((format!("P{page_tokens} windows {name} nodes{nodes}"), spec));
            }
        }
    }
    grid.extend((0..RANDOM_WINDOWS).map(|n| {
        let mut rng = Rng::new(2_000 + n);
        let mut spec = guided::spec(&mut rng);
        guided::without_full(&mut rng, &mut spec);
        (format!("random windows {n}"), spec)
    }));
    grid
}

/// Rows that span two pools: of one group or two, beside a window, in pools of their own or each in the other's; from their
/// start, or behind pages of sinks; sealed pages scarce and in plenty.
fn sealed() -> Vec<(String, Spec)> {
    let mut grid = Vec::new();
    for page_tokens in [1, 4, 16] {
        let full = GroupSpec { page_tokens, sealed: Some(1), ..GroupSpec::FULL };
        let window = GroupSpec { pool: 0, ..group_of(1, page_tokens) };
        let (one, two) = (GroupSpec { exact_sinks: 1, ..full }, GroupSpec { exact_sinks: page_tokens + 1, ..full });
        let all = [
            ("one", vec![full]),
            ("window", vec![full, window]),
            ("two", vec![full, GroupSpec { page_tokens: 2 * page_tokens, pool: 2, sealed: Some(1), ..full }]),
            ("crossed", vec![full, GroupSpec { pool: 1, sealed: Some(0), ..full }]),
            ("second", vec![GroupSpec { pool: 2, sealed: None, ..full }, full, window]),
            ("sinks", vec![one]),
            ("sinks window", vec![two, window]),
            ("sinks crossed", vec![two, GroupSpec { pool: 1, sealed: Some(0), ..one }]),
            ("sinks second", vec![full, GroupSpec { page_tokens: 2 * page_tokens, pool: 2, ..two }]),
        ];
        for (name, groups) in all {
            for (size, open, sealed) in [("scarce", 24, 7), ("small", 12, 24), ("mid", 80, 120)] {
                let pools = [open, sealed, open].map(|pages| PoolSpec { pages, policy: Policy::Lru }).to_vec();
                let index = match size {
                    "scarce" => IndexKind::Flat,
                    _ if name == "one" && size == "small" => IndexKind::None,
                    _ => IndexKind::Tree,
                };
                let spec = Spec { pools, groups: groups.clone(), index, deferred: size == "small", ..Spec::default() };
                grid.push((format!("P{page_tokens} sealed {name} {size}"), spec));
            }
        }
    }
    let random = |n: u64| {
        let mut rng = Rng::new(3_000 + n);
        let mut spec = guided::spec(&mut rng);
        guided::with_seals(&mut rng, &mut spec);
        spec.has_seals().then(|| (format!("random sealed {n}"), spec))
    };
    grid.extend((0..).filter_map(random).take(RANDOM_SEALS));
    grid
}

fn group_of(group: u16, page_tokens: u32) -> GroupSpec {
    let full = GroupSpec { page_tokens, pool: group, ..GroupSpec::FULL };
    match group {
        0 => full,
        1 => GroupSpec { kind: GroupKind::Window { window: 2 * page_tokens + 3, sinks: page_tokens / 2 + 1 }, ..full },
        _ => GroupSpec { page_tokens: page_tokens * 2, ..full },
    }
}

fn soak(spec: &Spec, ops: usize, seed: u64, without: Option<&str>) -> Result<u64, (Vec<Op>, Failure)> {
    let mut digest = 0;
    let mut rng = Rng::new(seed);
    for begin in (0..ops).step_by(STRETCH) {
        let mut program = Vec::new();
        let fail = |program: &[Op], message: String| (program.to_vec(), Failure { op: program.len(), message });
        let machines = drivers::all(spec).map_err(|message| fail(&[], message))?;
        let mut harness = Harness::new(spec, machines).map_err(|message| fail(&[], message))?;
        harness.thorough_every = thorough_every(spec);
        for _ in begin..ops.min(begin + STRETCH) {
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

/// After how many ops everything is compared: seldom where that takes long.
fn thorough_every(spec: &Spec) -> u32 {
    let largest = spec.pools.iter().map(|pool| pool.pages).max().unwrap_or(0);
    if largest >= 512 || spec.groups.len() > 8 { 64 } else { 1 }
}

fn shortened(spec: &Spec, program: &[Op], message: &str) -> String {
    std::panic::set_hook(Box::new(|_| {}));
    let reason = |spec: &Spec, ops: &[Op]| {
        stream::run_caught(spec, ops, &drivers::all, thorough_every(spec)).err().map(|failure| failure.message)
    };
    let found = shrink::shorten(spec, program, &reason, MOST_RUNS);
    let _ = std::panic::take_hook();
    let (message, spec, ops) = found.unwrap_or_else(|| (message.into(), spec.clone(), program.to_vec()));
    format!("{message}\n{}", text::print_program("found", &spec, &ops))
}
