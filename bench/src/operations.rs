//! Single operations, side by side: contestants take turns, and the best sample of each counts.

use core::error::Error;

use cpu_time::ThreadTime;
use kvfolio::{Cache, Config, IndexKind, OwnedStorage, PoolConfig, StorageCounts};
use kvfolio_examples::workload::{Kind, PAGE_TOKENS, Workload};

use crate::budget::Verdict;
use crate::c_program::Programs;
use crate::calls;
use crate::floor::Floor;
use crate::kvbm::Kvbm;
use crate::ours::{BATCH, Kvfolio, config};
use crate::peer::Peer;
use crate::router::Router;

/// Nanoseconds of one contestant: match and admit a long prompt, append a token in a step and alone, allocate and free a
/// page, evict and insert a page.
type Costs = [f64; 6];

/// For an operation: which column it is held against, most of that, what it aims at, and how many times faster than
/// kvbm-logical it must be.
const BUDGETS: [(usize, usize, f64, f64, f64); 5] = [
    (0, 1, 0.4, 0.2, 8.0),
    (1, 1, 0.5, 0.3, 15.0),
    (2, 1, 1.0, 0.6, 4.0),
    (4, 1, 1.0, 0.5, 5.0),
    (5, 2, 0.7, 0.4, 25.0),
];
const PAGES: u32 = 65_536;
const PAGE: u64 = PAGE_TOKENS as u64;
const NAMES: [&str; 6] = [
    "match 32,768 tokens, 90 % hit, us",
    "admit the same in full, us",
    "append a token, steps of 256, ns",
    "append a token, call by call, ns",
    "allocate and free a page, ns",
    "evict and insert a page, ns",
];

/// The prompts that are measured.
struct Prompts {
    long: Workload,
    decode: Workload,
    storm: Workload,
}

fn admissions(work: &Workload) -> impl Iterator<Item = &[u32]> {
    work.operations.iter().filter(|operation| operation.kind == Kind::Admit).map(|operation| work.tokens_of(operation))
}

/// Seconds of CPU time that something takes, and what it gives.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = ThreadTime::now();
    let given = work();
    (start.elapsed().as_secs_f64(), given)
}

/// Finds prompts of W4, eight at a time, and admits the next eight, after twenty have left all documents behind.
fn long(peer: &mut impl Peer, work: &Workload, costs: &mut Costs) -> Option<()> {
    let prompts: Vec<&[u32]> = admissions(work).collect();
    let (first, rest) = prompts.split_at(20);
    for prompt in first {
        let request = peer.admit(prompt)?;
        peer.release(request);
    }
    for sixteen in rest.chunks_exact(16) {
        let (found, admitted) = sixteen.split_at(8);
        let (seconds, pins) = timed(|| found.iter().map(|prompt| peer.find(prompt)).collect::<Option<Vec<_>>>());
        costs[0] = costs[0].min(seconds / 8.0 * 1e6);
        pins?.into_iter().for_each(|pin| peer.unpin(pin));
        let (seconds, requests) =
            timed(|| admitted.iter().map(|prompt| peer.admit(prompt)).collect::<Option<Vec<_>>>());
        costs[1] = costs[1].min(seconds / 8.0 * 1e6);
        requests?.into_iter().for_each(|request| peer.release(request));
    }
    Some(())
}

/// Appends to the 256 requests of W1: 64 steps as steps, then 64 call by call.
fn append(peer: &mut impl Peer, work: &Workload, costs: &mut Costs) -> Option<()> {
    const STEPS: usize = 64;
    let mut requests = admissions(work).map(|prompt| peer.admit(prompt)).collect::<Option<Vec<_>>>()?;
    let tokens: Vec<u32> = (0..BATCH as u32).collect();
    for _ in 0..8 {
        let (seconds, done) = timed(|| (0..STEPS).try_for_each(|_| peer.step(&mut requests, &tokens)));
        done?;
        costs[2] = costs[2].min(seconds / (STEPS * BATCH) as f64 * 1e9);
        let (seconds, done) = timed(|| {
            (0..STEPS).try_for_each(|_| requests.iter_mut().try_for_each(|request| peer.grow(request, &tokens[..1])))
        });
        done?;
        costs[3] = costs[3].min(seconds / (STEPS * BATCH) as f64 * 1e9);
    }
    requests.into_iter().for_each(|request| peer.release(request));
    Some(())
}

/// Reserves and releases 128 requests of 46 pages, the mean of W2.
fn reserve(peer: &mut impl Peer, costs: &mut Costs) -> Option<()> {
    for _ in 0..32 {
        let (seconds, done) = timed(|| {
            let requests = (0..128).map(|_| peer.reserve(46 * PAGE_TOKENS)).collect::<Option<Vec<_>>>()?;
            requests.into_iter().for_each(|request| peer.release(request));
            Some(())
        });
        done?;
        costs[4] = costs[4].min(seconds / (128.0 * 46.0) * 1e9);
    }
    Some(())
}

/// Admits and releases prompts of W5, fifty at a time, once they have filled the pool.
fn storm(peer: &mut impl Peer, work: &Workload, costs: &mut Costs) -> Option<()> {
    let prompts: Vec<&[u32]> = admissions(work).collect();
    for (round, fifty) in prompts.chunks_exact(50).enumerate() {
        let hits = peer.hit_tokens();
        let (seconds, done) = timed(|| {
            fifty.iter().try_for_each(|prompt| {
                let request = peer.admit(prompt)?;
                peer.release(request);
                Some(())
            })
        });
        done?;
        let pages: u64 = fifty.iter().map(|prompt| (prompt.len() as u64).div_ceil(PAGE)).sum();
        let new = pages - (peer.hit_tokens() - hits) / PAGE;
        if round >= 4 {
            costs[5] = costs[5].min(seconds / new as f64 * 1e9);
        }
    }
    Some(())
}

/// The router finds and stores what `long` matches and admits.
fn long_in_router(work: &Workload, costs: &mut Costs) -> Option<()> {
    let mut router = Router::new();
    let prompts: Vec<&[u32]> = admissions(work).collect();
    let (first, rest) = prompts.split_at(20);
    first.iter().try_for_each(|prompt| router.admit(prompt))?;
    for sixteen in rest.chunks_exact(16) {
        let (found, admitted) = sixteen.split_at(8);
        let (seconds, _) = timed(|| found.iter().map(|prompt| router.find(prompt).1).sum::<usize>());
        costs[0] = costs[0].min(seconds / 8.0 * 1e6);
        let (seconds, done) = timed(|| admitted.iter().try_for_each(|prompt| router.admit(prompt)));
        done?;
        costs[1] = costs[1].min(seconds / 8.0 * 1e6);
    }
    Some(())
}

/// What is measured on one fresh manager.
#[derive(Clone, Copy)]
enum Part {
    Long,
    Append,
    Reserve,
    Storm,
}

impl Part {
    fn on(self, peer: &mut impl Peer, prompts: &Prompts, costs: &mut Costs) -> Option<()> {
        match self {
            Self::Long => long(peer, &prompts.long, costs),
            Self::Append => append(peer, &prompts.decode, costs),
            Self::Reserve => reserve(peer, costs),
            Self::Storm => storm(peer, &prompts.storm, costs),
        }
    }

    /// One turn of every contestant, in the order of the table.
    fn turn(self, prompts: &Prompts, costs: &mut [Costs; 5]) -> Option<()> {
        let pages = if matches!(self, Self::Storm) { 8_192 } else { PAGES };
        let index = if matches!(self, Self::Reserve) { IndexKind::None } else { IndexKind::Tree };
        let pools = [PoolConfig { pages, ..PoolConfig::default() }];
        let config = config(&pools, index);
        let mut storage = OwnedStorage::new(&config).ok()?;
        let [ours, floor, verifying, kvbm, router] = costs;
        self.on(&mut Kvfolio(Cache::new(&config, storage.lend()).ok()?), prompts, ours)?;
        self.on(&mut Floor::<false>::new(pages), prompts, floor)?;
        self.on(&mut Floor::<true>::new(pages), prompts, verifying)?;
        self.on(&mut Kvbm::new(pages)?, prompts, kvbm)?;
        if matches!(self, Self::Long) {
            long_in_router(&prompts.long, router)?;
        }
        Some(())
    }
}

/// Measures all operations and prints them.
///
/// # Errors
/// An operation that a contestant refused, or a C program that failed.
pub fn run(programs: &Programs, runs: u32) -> Result<(), Box<dyn Error>> {
    let prompts = Prompts { long: Workload::w4(), decode: Workload::w1(), storm: Workload::w5() };
    let mut costs = [[f64::INFINITY; NAMES.len()]; 5];
    for _ in 0..runs {
        for part in [Part::Long, Part::Append, Part::Reserve, Part::Storm] {
            part.turn(&prompts, &mut costs).ok_or("a contestant refused an operation")?;
        }
    }
    println!(
        "\n{:<36}{:>10}{:>10}{:>12}{:>10}{:>12}",
        "operation", "kvfolio", "floor", "verifying", "kvbm", "kv-router"
    );
    for (at, name) in NAMES.iter().enumerate() {
        let cell = |row: &Costs| if row[at].is_finite() { format!("{:.1}", row[at]) } else { "-".to_owned() };
        let [ours, floor, verifying, kvbm, router] = costs.each_ref().map(cell);
        println!("{name:<36}{ours:>10}{floor:>10}{verifying:>12}{kvbm:>10}{router:>12}");
    }
    for (at, against, must, aim, kvbm) in BUDGETS {
        let ratio = Verdict { is: costs[0][at] / costs[against][at], must, aim };
        let times = costs[3][at] / costs[0][at];
        let met = if times >= kvbm { "must met" } else { "MISSED" };
        println!("{}: of the floor {ratio}; {times:.1} x kvbm (must {kvbm}): {met}", NAMES[at]);
    }
    calls(programs, runs)?;
    metadata()
}

/// Single calls through both interfaces, in turn.
fn calls(programs: &Programs, runs: u32) -> Result<(), Box<dyn Error>> {
    let mut best = [[f64::INFINITY; 4]; 2];
    for _ in 0..runs {
        let rust = calls::rust().map_err(|error| format!("kvfolio: {error}"))?;
        let c: [f64; 4] = programs.calls()?.try_into().map_err(|_| "calls: not four numbers")?;
        for (best, now) in best.iter_mut().zip([rust, c]) {
            best.iter_mut().zip(now).for_each(|(known, now)| *known = known.min(now));
        }
    }
    let [rust, c] = best;
    println!("\n{:<44}{:>10}{:>10}", "single calls, ns", "Rust", "C");
    let names =
        ["information on a sequence", "batch of 256 appended, per sequence", "16 changed rows of 256", "256 of 256"];
    for ((name, rust), c) in names.iter().zip(rust).zip(c) {
        println!("{name:<44}{rust:>10.1}{c:>10.1}");
    }
    println!("C call over the Rust call, ns: {}", Verdict { is: c[0] - rust[0], must: 5.0, aim: 2.0 });
    println!("export of changed rows, 256 of 256, us: {}", Verdict { is: rust[3] / 1e3, must: 10.0, aim: 4.0 });
    Ok(())
}

/// Bytes that each page adds to a cache with basic options, tables for one sequence per page included.
fn metadata() -> Result<(), Box<dyn Error>> {
    let of = |pages: u32| -> Result<[u64; 3], Box<dyn Error>> {
        let pools = [PoolConfig { pages, ..PoolConfig::default() }];
        let counts = StorageCounts::of(&Config { table_chunks: pages / 16, ..config(&pools, IndexKind::Tree) })?;
        let once = StorageCounts::of(&Config { table_chunks: pages / 32, ..config(&pools, IndexKind::Tree) })?;
        let tokens = counts.tokens as u64 * 4;
        Ok([once.bytes() - tokens, counts.bytes() - tokens, counts.bytes()])
    };
    let (small, large) = (of(PAGES / 2)?, of(PAGES)?);
    let [once, twice, all] = core::array::from_fn(|i| (large[i] - small[i]) as f64 / f64::from(PAGES / 2));
    println!(
        "\nbytes of metadata per page: {once:.2} with a table entry each, {twice:.2} with two, {all:.2} with tokens"
    );
    println!("tokens excluded: {}", Verdict { is: twice, must: 32.0, aim: 24.0 });
    println!("tokens included: {}", Verdict { is: all, must: 96.0, aim: 88.0 });
    Ok(())
}
