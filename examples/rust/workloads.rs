//! `kvf-workloads [W1|W4|W5]... [--write DIR]`: runs workloads, all without a name, and prints what they cost.
//!
//! With a folder it also writes the workloads there as `.kvw` files; with `KVF_FLOOR` naming a program that takes
//! `floor FILE` and prints `total_cpu_s=SECONDS`, it runs that beside itself and prints the ratio.

use core::error::Error;
use std::{env, fs, path::Path, process::Command};

use cpu_time::ThreadTime;
use kvfolio::{
    Accept, Cache, CloseMode, Config, GroupConfig, OpenParams, OwnedStorage, PoolConfig, Prompt, SequenceId,
    StorageCounts,
};
use kvfolio_examples::workload::{Kind, Operation, Workload};

/// A workload and how to make it.
type Named = (&'static str, fn() -> Workload);

struct Outcome {
    seconds: f64,
    hit_tokens: u64,
    evicted_pages: u64,
    /// Bytes of metadata per page, tokens included.
    bytes_per_page: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut folder, mut names) = (None, Vec::new());
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--write" => folder = Some(arguments.next().ok_or("--write needs a folder")?),
            "W1" | "W4" | "W5" => names.push(argument),
            _ => {
                return Err(
                    format!("{argument}: not a workload; usage: kvf-workloads [W1|W4|W5]... [--write DIR]").into()
                );
            }
        }
    }
    let runs: u32 = env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(5);
    println!(
        "{:<4}{:>12}{:>14}{:>12}{:>10}{:>12}{:>10}",
        "", "cpu s", "hit tokens", "evicted", "B/page", "floor s", "ratio"
    );
    let all: [Named; 3] = [("W1", Workload::w1), ("W4", Workload::w4), ("W5", Workload::w5)];
    for (_, make) in all.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|wanted| wanted == name)) {
        let work = make();
        assert_eq!(work.digest(), work.expected, "{}: the generator is wrong", work.name);
        let mut best: Option<Outcome> = None;
        for _ in 0..runs {
            let outcome = run(&work)?;
            if best.as_ref().is_none_or(|best| outcome.seconds < best.seconds) {
                best = Some(outcome);
            }
        }
        let Some(best) = best else { continue };
        print!(
            "{:<4}{:>12.5}{:>14}{:>12}{:>10.1}",
            work.name, best.seconds, best.hit_tokens, best.evicted_pages, best.bytes_per_page
        );
        match floor(&work, folder.as_deref())? {
            Some(seconds) => println!("{seconds:>12.5}{:>10.2}", best.seconds / seconds),
            None => println!("{:>12}{:>10}", "-", "-"),
        }
    }
    Ok(())
}

#[inline(never)] // profilers toggle on it
fn run(work: &Workload) -> Result<Outcome, kvfolio::Error> {
    let pools = [PoolConfig { pages: work.pages, ..PoolConfig::default() }];
    let groups = [GroupConfig::FULL];
    let config = Config {
        pools: &pools,
        groups: &groups,
        sequences: 256,
        tickets: 1,
        plan_tokens: 65_536,
        table_chunks: 2 * work.pages / 32 + 512,
        ..Config::new()
    };
    let counts = StorageCounts::of(&config)?;
    let mut storage = OwnedStorage::new(&config)?;
    let mut cache = Cache::new(&config, storage.lend())?;
    let mut sequences = vec![SequenceId::default(); work.requests as usize];
    let mut accepts = [Accept::default(); 256];
    let start = ThreadTime::now();
    let mut rest = work.operations.as_slice();
    while let Some((operation, behind)) = rest.split_first() {
        match operation.kind {
            Kind::Admit => sequences[operation.request as usize] = admit(&mut cache, work.tokens_of(operation))?,
            Kind::Release => cache.close(sequences[operation.request as usize], CloseMode::Keep)?,
            Kind::Grow => {
                let count = rest.iter().take(256).take_while(|next| next.kind == Kind::Grow).count();
                grow(&mut cache, work, &rest[..count], &sequences, &mut accepts)?;
                rest = &rest[count..];
                continue;
            }
        }
        rest = behind;
    }
    let seconds = start.elapsed().as_secs_f64();
    let counters = cache.stats().counters;
    Ok(Outcome {
        seconds,
        hit_tokens: counters.hit_tokens,
        evicted_pages: counters.evicted_pages,
        bytes_per_page: counts.bytes() as f64 / f64::from(work.pages),
    })
}

fn admit(cache: &mut Cache<'_>, tokens: &[u32]) -> Result<SequenceId, kvfolio::Error> {
    let prompt = Prompt { tokens, ..Prompt::default() };
    let (ticket, hit) = cache.match_prefix(&prompt, tokens.len() as u32 - 1, None)?;
    let sequence = cache.open_ticket(ticket, &OpenParams::default())?;
    cache.append(sequence, &tokens[hit.tokens as usize..])?;
    Ok(sequence)
}

/// One step: a plan over all requests that grow.
fn grow(
    cache: &mut Cache<'_>,
    work: &Workload,
    step: &[Operation],
    sequences: &[SequenceId],
    accepts: &mut [Accept<'_>],
) -> Result<(), kvfolio::Error> {
    cache.plan_begin(0)?;
    for (operation, accept) in step.iter().zip(accepts.iter_mut()) {
        cache.plan_add(sequences[operation.request as usize], operation.count, Some(work.tokens_of(operation)))?;
        *accept = Accept::all(operation.count);
    }
    cache.plan_finish()?;
    cache.plan_commit(&accepts[..step.len()])
}

fn floor(work: &Workload, folder: Option<&str>) -> Result<Option<f64>, Box<dyn Error>> {
    let Some(folder) = folder else { return Ok(None) };
    let file = Path::new(folder).join(format!("{}.kvw", work.name));
    fs::write(&file, work.to_bytes())?;
    let Some(program) = env::var_os("KVF_FLOOR") else { return Ok(None) };
    let output = Command::new(program).arg("floor").arg(&file).output()?;
    let text = String::from_utf8(output.stdout)?;
    let seconds = text.split("total_cpu_s=").nth(1).and_then(|rest| rest.split_whitespace().next());
    Ok(Some(seconds.ok_or("the floor printed no total_cpu_s")?.parse()?))
}
