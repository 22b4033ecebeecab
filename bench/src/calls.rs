//! What single calls cost through the Rust interface. `bench/calls.c` does the same through the C interface.

use core::hint::black_box;

use cpu_time::ThreadTime;
use kvfolio::{
    Accept, Cache, CloseMode, Error, GroupId, IndexKind, OpenParams, OwnedStorage, PoolConfig, RowDelta, RowQuery,
    SequenceId,
};

use crate::ours::{BATCH, config};

const PROMPT: usize = 512;
const ROUNDS: u32 = 24;
const STEPS: u32 = 32;
const REPEATS: u32 = 64;

/// Nanoseconds: one `sequence_info`; one token appended in a plan of 256; the changed rows of 256, of which a sixteenth or
/// all changed. Best of many rounds.
pub fn rust() -> Result<[f64; 4], Error> {
    let pools = [PoolConfig { pages: 65_536, ..PoolConfig::default() }];
    let config = config(&pools, IndexKind::Tree);
    let mut storage = OwnedStorage::new(&config).map_err(|_| Error::Argument)?;
    let mut cache = Cache::new(&config, storage.lend()).map_err(|_| Error::Argument)?;
    let mut best = [f64::INFINITY; 4];
    for _ in 0..ROUNDS {
        let uneven = open_all(&mut cache, 1)?;
        let info = info_ns(&cache, &uneven)?;
        let append = append_ns(&mut cache, &uneven)?;
        let some = changed_ns(&mut cache, &uneven)?;
        close_all(&mut cache, &uneven)?;
        let even = open_all(&mut cache, 0)?;
        let all = changed_ns(&mut cache, &even)?;
        close_all(&mut cache, &even)?;
        for (known, now) in best.iter_mut().zip([info, append, some, all]) {
            *known = known.min(now);
        }
    }
    Ok(best)
}

/// 256 sequences; each has `uneven` tokens more than the one before it.
fn open_all(cache: &mut Cache<'_>, uneven: usize) -> Result<Vec<SequenceId>, Error> {
    let mut sequences = Vec::with_capacity(BATCH);
    for at in 0..BATCH {
        let sequence = cache.open(&OpenParams::default())?;
        let tokens: Vec<u32> = (0..PROMPT + uneven * at).map(|k| (at * 1_000 + k) as u32).collect();
        cache.append(sequence, &tokens)?;
        sequences.push(sequence);
    }
    Ok(sequences)
}

fn close_all(cache: &mut Cache<'_>, sequences: &[SequenceId]) -> Result<(), Error> {
    sequences.iter().try_for_each(|&sequence| cache.close(sequence, CloseMode::Keep))
}

fn step(cache: &mut Cache<'_>, sequences: &[SequenceId]) -> Result<(), Error> {
    cache.plan_begin(0)?;
    for &sequence in sequences {
        cache.plan_add(sequence, 1, Some(&[7]))?;
    }
    cache.plan_finish()?;
    cache.plan_commit(&[Accept::all(1); BATCH])
}

fn info_ns(cache: &Cache<'_>, sequences: &[SequenceId]) -> Result<f64, Error> {
    let start = ThreadTime::now();
    for _ in 0..REPEATS {
        for &sequence in sequences {
            black_box(black_box(cache).sequence_info(sequence)?);
        }
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(REPEATS) / BATCH as f64)
}

fn append_ns(cache: &mut Cache<'_>, sequences: &[SequenceId]) -> Result<f64, Error> {
    let start = ThreadTime::now();
    for _ in 0..STEPS {
        step(cache, sequences)?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(STEPS) / BATCH as f64)
}

/// One step, and then its changed rows again and again.
fn changed_ns(cache: &mut Cache<'_>, sequences: &[SequenceId]) -> Result<f64, Error> {
    let mut queries: Vec<RowQuery> = sequences.iter().map(|&sequence| RowQuery { sequence, since: 0 }).collect();
    let (mut rows, mut entries) = (vec![RowDelta::default(); BATCH], vec![0; BATCH * 64]);
    let group = GroupId::new(0);
    let shown = cache.export_changed(&queries, group, &mut rows, &mut entries)?.version;
    queries.iter_mut().for_each(|query| query.since = shown);
    step(cache, sequences)?;
    let start = ThreadTime::now();
    for _ in 0..REPEATS {
        black_box(black_box(&*cache).export_changed(black_box(&queries), group, &mut rows, &mut entries)?);
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(REPEATS))
}
