//! A workload driven through the Rust API, and what it cost.

use cpu_time::ThreadTime;
use kvfolio::{
    Accept, Cache, CloseMode, Config, Error, GroupConfig, IndexKind, OpenParams, OwnedStorage, PoolConfig, Prompt,
    SequenceId, StorageCounts,
};

use crate::workload::{Kind, Operation, Workload};

/// Most sequences in one plan.
const BATCH: usize = 256;

/// What a workload cost.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// CPU time of the thread.
    pub seconds: f64,
    /// Tokens of prompts that were in the cache.
    pub hit_tokens: u64,
    /// Pages evicted.
    pub evicted_pages: u64,
    /// Bytes of metadata per page, tokens included.
    pub bytes_per_page: f64,
    /// The cache's digest at the end.
    pub digest: u64,
}

/// Runs a workload from an empty cache on.
///
/// # Errors
/// What the cache answered to an operation that it refused.
pub fn run(work: &Workload) -> Result<Outcome, Error> {
    let pools = [PoolConfig { pages: work.pages, ..PoolConfig::default() }];
    let groups = [GroupConfig::FULL];
    let alive = work.most_alive();
    let config = Config {
        pools: &pools,
        groups: &groups,
        sequences: alive,
        tickets: 1,
        plan_sequences: BATCH as u32,
        plan_tokens: if work.cached { BATCH as u32 * 16 } else { 1 },
        plan_copies: BATCH as u32,
        table_chunks: work.table_chunks(),
        index: if work.cached { IndexKind::Tree } else { IndexKind::None },
        ..Config::new()
    };
    let counts = StorageCounts::of(&config).map_err(|_| Error::Argument)?;
    let mut storage = OwnedStorage::new(&config).map_err(|_| Error::Argument)?;
    let mut cache = Cache::new(&config, storage.lend()).map_err(|_| Error::Argument)?;
    let mut sequences = vec![SequenceId::default(); work.requests as usize];
    let start = ThreadTime::now();
    operate(&mut cache, work, &mut sequences)?;
    let seconds = start.elapsed().as_secs_f64();
    let counters = cache.stats().counters;
    Ok(Outcome {
        seconds,
        hit_tokens: counters.hit_tokens,
        evicted_pages: counters.evicted_pages,
        bytes_per_page: counts.bytes() as f64 / f64::from(work.pages),
        digest: cache.digest(),
    })
}

/// The operations alone, without making a cache or its digest.
#[inline(never)] // instruction counters toggle on it
fn operate(cache: &mut Cache<'_>, work: &Workload, sequences: &mut [SequenceId]) -> Result<(), Error> {
    let mut accepts = [Accept::default(); BATCH];
    let mut rest = work.operations.as_slice();
    while let Some((operation, behind)) = rest.split_first() {
        match operation.kind {
            Kind::Admit => sequences[operation.request as usize] = admit(cache, work, operation)?,
            Kind::Release => cache.close(sequences[operation.request as usize], CloseMode::Keep)?,
            Kind::Grow => {
                let next = |next: &&Operation| next.kind == Kind::Grow;
                let count = rest.iter().take(BATCH).take_while(next).count();
                match &rest[..count] {
                    [_] => {
                        cache.append(sequences[operation.request as usize], work.tokens_of(operation))?;
                    }
                    step => grow(cache, work, step, sequences, &mut accepts)?,
                }
                rest = &rest[count..];
                continue;
            }
        }
        rest = behind;
    }
    Ok(())
}

fn admit(cache: &mut Cache<'_>, work: &Workload, operation: &Operation) -> Result<SequenceId, Error> {
    if !work.cached {
        let sequence = cache.open(&OpenParams::default())?;
        cache.plan_begin(0)?;
        cache.plan_add(sequence, operation.count, None)?;
        cache.plan_finish()?;
        cache.plan_commit(&[Accept::all(operation.count)])?;
        return Ok(sequence);
    }
    let tokens = work.tokens_of(operation);
    let prompt = Prompt { tokens, ..Prompt::default() };
    let (ticket, hit) = cache.match_prefix(&prompt, operation.count - 1, None)?;
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
) -> Result<(), Error> {
    cache.plan_begin(0)?;
    for (operation, accept) in step.iter().zip(accepts.iter_mut()) {
        cache.plan_add(sequences[operation.request as usize], operation.count, Some(work.tokens_of(operation)))?;
        *accept = Accept::all(operation.count);
    }
    cache.plan_finish()?;
    cache.plan_commit(&accepts[..step.len()])
}
