//! `kvf-growth AXIS SIZE`: a cache that is large along one axis, and then each call 16 times.
//!
//! Under an instruction counter that toggles on the functions of `calls` it shows what each call costs at that size;
//! `scripts/growth.sh` compares sizes.

mod calls;

use core::error::Error;
use std::env;

use kvfolio::{Cache, CloseMode, Config, GroupConfig, OpenParams, OwnedStorage, PoolConfig, Prompt, SequenceId};

/// Tokens per page.
const PAGE: u32 = 4;
/// Tokens of each prompt that is looked up.
const DOCUMENT: u32 = 64 * PAGE;
/// Such prompts: what one of them takes depends on where its hash leads.
const DOCUMENTS: u32 = 16;
/// Sequences of a step.
const BATCH: usize = 64;

/// Of these, those that have the length that is asked for; the others have a page.
const LONG: u32 = 4;

/// How large the cache is.
#[derive(Clone, Copy)]
struct Size {
    /// Pages of the pool.
    pages: u32,
    /// Cached leaves.
    leaves: u32,
    /// Leaves with the same parent. Where all have, it is the root.
    siblings: u32,
    /// Live sequences besides those that are measured.
    sequences: u32,
    /// Tokens of the sequences that are measured, before they grow.
    length: u32,
}

impl Size {
    const SMALL: Self = Self { pages: 4_096, leaves: 100, siblings: 100, sequences: 64, length: 64 };

    /// What `n` means along an axis. Pools are about half full, so that an index is not faster for being empty.
    fn along(axis: &str, n: u32) -> Option<Self> {
        Some(match axis {
            "siblings" => Self { pages: 2 * n + 2_800, leaves: n, siblings: n, ..Self::SMALL },
            "leaves" => Self { pages: 2 * n + 2_800, leaves: n, siblings: 10, ..Self::SMALL },
            "pages" => Self { pages: n, leaves: n / 2, siblings: n / 2, ..Self::SMALL },
            "sequences" => Self { pages: 2 * n + 2_800, sequences: n, ..Self::SMALL },
            "length" => Self { pages: n * LONG / PAGE + 4_096, length: n, ..Self::SMALL },
            _ => return None,
        })
    }
}

/// A cache of a size, and handles to what is in it.
struct Scene<'m> {
    cache: Cache<'m>,
    /// Cached prompts, with one token more than was cached.
    documents: Vec<Vec<u32>>,
    /// A sequence that has the tokens of the first.
    reader: SequenceId,
    /// The sequences of a step, each of the length that the size says.
    step: Vec<SequenceId>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: kvf-growth siblings|leaves|pages|sequences|length N";
    let [axis, n] = env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| usage)?;
    let size = Size::along(&axis, n.parse()?).ok_or(usage)?;
    let pools = [PoolConfig { pages: size.pages, ..PoolConfig::default() }];
    let groups = [GroupConfig { page_tokens: PAGE as u16, ..GroupConfig::FULL }];
    let config = Config {
        pools: &pools,
        groups: &groups,
        sequences: size.sequences + 256,
        tickets: 4,
        transfers: 4,
        plan_sequences: BATCH as u32,
        plan_tokens: 4_096,
        ..Config::new()
    };
    let mut storage = OwnedStorage::new(&config)?;
    let mut scene = build(Cache::new(&config, storage.lend())?, size)?;
    call(&mut scene)?;
    let stats = scene.cache.stats();
    println!("{axis} {n}: {} pages indexed, {} sequences", stats.indexed_pages, stats.sequences);
    Ok(())
}

/// All calls, those that free the most last.
fn call(scene: &mut Scene<'_>) -> Result<(), kvfolio::Error> {
    calls::lookup(scene)?;
    calls::match_and_drop(scene)?;
    calls::append(scene)?;
    calls::step(scene)?;
    calls::promise(scene)?;
    calls::reserve_and_free(scene)?;
    let opened = calls::publish(scene)?;
    calls::close(scene, &opened)?;
    calls::fork_and_close(scene)?;
    calls::transfer(scene)?;
    calls::changed_rows(scene)?;
    calls::rows(scene)?;
    calls::slots_and_abort(scene)?;
    calls::read(scene)?;
    calls::truncate(scene)?;
    calls::evict(scene)
}

fn build(mut cache: Cache<'_>, size: Size) -> Result<Scene<'_>, kvfolio::Error> {
    let open = |cache: &mut Cache<'_>, tokens: &[u32]| {
        let sequence = cache.open(&OpenParams::default())?;
        cache.append(sequence, tokens)?;
        Ok::<_, kvfolio::Error>(sequence)
    };
    for leaf in 0..size.leaves {
        let (parent, tokens) = ([leaf / size.siblings, 1, 1, 1], [leaf, leaf / 2, leaf / 3, 7]);
        let tokens = if size.siblings < size.leaves { [parent, tokens].concat() } else { tokens.to_vec() };
        let prompt = Prompt { tokens: &tokens, ..Prompt::default() };
        let (ticket, hit) = cache.match_prefix(&prompt, tokens.len() as u32 - 1, None)?;
        let sequence = cache.open_ticket(ticket, &OpenParams::default())?;
        cache.append(sequence, &tokens[hit.tokens as usize..])?;
        cache.close(sequence, CloseMode::Keep)?;
    }
    for other in 0..size.sequences {
        open(&mut cache, &[other, 2, 2])?;
    }
    let document = |at: u32| (0..=DOCUMENT).map(|i| 3_000_000 + at * 1_000 + i).collect();
    let documents: Vec<Vec<u32>> = (0..DOCUMENTS).map(document).collect();
    let reader = open(&mut cache, &documents[0][..DOCUMENT as usize])?;
    for document in &documents[1..] {
        let sequence = open(&mut cache, &document[..DOCUMENT as usize])?;
        cache.close(sequence, CloseMode::Keep)?;
    }
    let mut step = Vec::with_capacity(BATCH);
    for at in 0..BATCH as u32 {
        let length = if at < LONG { size.length } else { PAGE };
        let mut tokens = (0..length).map(|i| 4_000_000 + at + i * 100);
        let sequence = open(&mut cache, &tokens.by_ref().take(PAGE as usize).collect::<Vec<_>>())?;
        let rest: Vec<u32> = tokens.collect();
        if !rest.is_empty() {
            cache.append(sequence, &rest)?;
        }
        step.push(sequence);
    }
    Ok(Scene { cache, documents, reader, step })
}
