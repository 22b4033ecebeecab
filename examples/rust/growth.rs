//! `kvf-growth LEAVES`: fills the index with so many leaves and evicts 16 pages, one page per call.
//!
//! Under an instruction counter that toggles on `evict_measured` it shows what an evicted page costs at that size;
//! `scripts/growth.sh` compares sizes. All leaves have one parent, so this counts siblings as well.

use core::{error::Error, hint::black_box};
use std::env;

use kvfolio::{Cache, CloseMode, Config, GroupConfig, OpenParams, OwnedStorage, PoolConfig, PoolId};

const EVICTIONS: u32 = 16;

fn main() -> Result<(), Box<dyn Error>> {
    let leaves: u32 = env::args().nth(1).ok_or("usage: kvf-growth LEAVES")?.parse()?;
    let pools = [PoolConfig { pages: leaves, ..PoolConfig::default() }];
    let groups = [GroupConfig { page_tokens: 4, ..GroupConfig::FULL }];
    let config = Config { pools: &pools, groups: &groups, sequences: 4, table_chunks: 16, ..Config::new() };
    let mut storage = OwnedStorage::new(&config)?;
    let mut cache = Cache::new(&config, storage.lend())?;
    for leaf in 0..leaves {
        let sequence = cache.open(&OpenParams::default())?;
        cache.append(sequence, &[leaf, leaf / 2, leaf / 3, 7])?;
        cache.close(sequence, CloseMode::Keep)?;
    }
    assert_eq!(cache.pool_stats(PoolId::new(0))?.cached, leaves);
    let freed = evict_measured(&mut cache)?;
    println!("{freed} pages evicted of {leaves}");
    Ok(())
}

#[inline(never)] // the instruction counter toggles on it
fn evict_measured(cache: &mut Cache<'_>) -> Result<u32, kvfolio::Error> {
    let mut freed = 0;
    for _ in 0..EVICTIONS {
        freed += black_box(&mut *cache).evict(PoolId::new(0), 1)?;
    }
    Ok(freed)
}
