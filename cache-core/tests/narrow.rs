//! 16-bit ids: what they can number works to the last page and the last reference, what they cannot is refused at init, and
//! a page costs less than 8 bytes. Where an index is on, ids stay wide.
#![allow(missing_docs)]

use kvfolio::*;

/// The highest number of 16 bits.
const MOST: u32 = 65_535;
const FULL: GroupConfig = GroupConfig { page_tokens: 1, ..GroupConfig::FULL };
const BASE: Config<'static> = Config { groups: &[FULL], sequences: 4, index: IndexKind::None, ..Config::new() };

fn pool(pages: u32) -> PoolConfig {
    PoolConfig { pages, policy: Policy::Lru }
}

fn is_sound(cache: &Cache<'_>) {
    let mut scratch = vec![0; cache.check_scratch(2) as usize];
    assert_eq!(cache.check(2, &mut scratch), Ok(Ok(())));
}

#[test]
fn what_16_bits_cannot_number_is_refused() {
    let verdict = |config: &Config<'_>| StorageCounts::of(config).err();
    let refused = if cfg!(feature = "index") { None } else { Some(ConfigError::Narrow) };
    for (pools, expected) in [
        (&[pool(MOST)][..], None),
        (&[pool(MOST + 1)], refused),
        (&[pool(MOST - 7), pool(7)], None),
        (&[pool(MOST - 7), pool(8)], refused),
    ] {
        assert_eq!(verdict(&Config { pools, ..BASE }), expected, "{pools:?}");
    }
    let few = Config { pools: &[pool(8)], ..BASE };
    assert_eq!(verdict(&Config { table_chunks: MOST, ..few }), None);
    assert_eq!(verdict(&Config { table_chunks: MOST + 1, ..few }), refused);
    let crowd = Config { table_chunks: 64, sequences: MOST - 9, tickets: 4, transfers: 5, ..few };
    assert_eq!(verdict(&crowd), None);
    assert_eq!(verdict(&Config { transfers: 6, ..crowd }), refused);
}

#[test]
fn the_last_page_and_the_last_chunk_are_used() {
    let pools = [pool(MOST)];
    let config = Config { pools: &pools, ..BASE };
    let mut storage = OwnedStorage::new(&config).unwrap();
    let mut cache = Cache::new(&config, storage.lend()).unwrap();
    let chunks = cache.stats().free_chunks;
    let long = cache.open(&OpenParams::default()).unwrap();
    cache.append(long, &vec![7; MOST as usize]).unwrap();
    let mut row = vec![0; MOST as usize];
    cache.export_dense(&[long], GroupId::new(0), MOST, -1, &mut row).unwrap();
    assert!(row.iter().copied().eq(1..=MOST as i32));
    let error = cache.append(long, &[7]).unwrap_err();
    assert!(matches!(error, Error::Shortage(Shortage { outcome: Outcome::Never, .. })), "{error}");
    is_sound(&cache);
    cache.close(long, CloseMode::Keep).unwrap();
    is_sound(&cache);
    assert_eq!(cache.pool_stats(PoolId::new(0)).unwrap().free, MOST);
    assert_eq!(cache.stats().free_chunks, chunks);
}

#[test]
fn as_many_references_as_holders_are_counted() {
    let pools = [pool(3)];
    let groups = [GroupConfig { page_tokens: 4, ..GroupConfig::FULL }];
    let config = Config { pools: &pools, groups: &groups, sequences: MOST, table_chunks: MOST, ..BASE };
    let mut storage = OwnedStorage::new(&config).unwrap();
    let mut cache = Cache::new(&config, storage.lend()).unwrap();
    let first = cache.open(&OpenParams::default()).unwrap();
    cache.append(first, &[1, 2, 3]).unwrap();
    let mut children = vec![SequenceId::default(); MOST as usize - 1];
    cache.fork(first, 3, &mut children).unwrap();
    let refs = |cache: &Cache<'_>| cache.page_info(PoolId::new(0), PageId::new(1)).unwrap().refs;
    assert_eq!(refs(&cache), MOST);
    is_sound(&cache);

    // One copies, an abort brings it back.
    let before = cache.digest();
    cache.plan_begin(0).unwrap();
    cache.plan_add(children[0], 1, None).unwrap();
    assert_eq!(cache.plan_finish().unwrap().copies, 1);
    is_sound(&cache);
    cache.plan_abort().unwrap();
    assert_eq!((cache.digest(), refs(&cache)), (before, MOST));

    for child in children {
        cache.close(child, CloseMode::Discard).unwrap();
    }
    assert_eq!(refs(&cache), 1);
    is_sound(&cache);
}

#[test]
fn a_page_takes_less_than_eight_bytes() {
    let bytes = |pages: u32| {
        let pools = [pool(pages)];
        let groups = [GroupConfig::FULL];
        let config = Config { pools: &pools, groups: &groups, sequences: 64, index: IndexKind::None, ..Config::new() };
        StorageCounts::of(&config).unwrap().bytes()
    };
    // What each further page takes: record, free bits, table entry, its part of a chunk's links.
    let (low, high) = (4_095, MOST);
    let thousandths = (bytes(high) - bytes(low)) * 1_000 / u64::from(high - low);
    println!("metadata: {}.{:03} bytes per page", thousandths / 1_000, thousandths % 1_000);
    let budget = if cfg!(feature = "index") { 32_000 } else { 8_000 };
    assert!(thousandths <= budget);
}
