//! Capacities: what is used comes back, what is short says so, storage comes in three forms.
#![allow(missing_docs)]

use kvfolio::*;

const POOLS: &[PoolConfig] = &[PoolConfig { pages: 6, policy: Policy::Lru }];
const GROUPS: &[GroupConfig] = &[GroupConfig { page_tokens: 4, ..GroupConfig::FULL }];
const CONFIG: Config<'static> =
    Config { pools: POOLS, groups: GROUPS, sequences: 4, tickets: 2, key_parts: 4, events: 16, ..Config::new() };

static_cache!(struct Storage = CONFIG);

#[test]
fn metadata_is_back_at_the_baseline_after_many_rounds() {
    let mut storage = OwnedStorage::new(&CONFIG).unwrap();
    let mut cache = Cache::new(&CONFIG, storage.lend()).unwrap();
    let rounds = if cfg!(debug_assertions) { 2_000 } else { 100_000 };
    let baseline = cache.stats();
    for round in 0..rounds {
        let span = MediaSpan { start: 4, length: 2, digest: [u64::from(round); 4] };
        let sequence = cache.open(&OpenParams { spans: &[span], ..OpenParams::default() }).unwrap();
        cache.append(sequence, &[0, 1, 2, 3, round, 5, 6, 7, 8]).unwrap();
        cache.close(sequence, CloseMode::Keep).unwrap();
        let (ticket, hit) =
            cache.match_prefix(&Prompt { tokens: &[0, 1, 2, 3, 9], ..Prompt::default() }, 4, None).unwrap();
        assert_eq!(hit.tokens, 4);
        cache.drop_ticket(ticket).unwrap();
        if round % 7 == 0 {
            cache.evict(PoolId::new(0), 6).unwrap();
            let now = cache.stats();
            assert_eq!(
                (now.free_chunks, now.free_key_parts, now.indexed_pages, now.sequences, now.tickets),
                (baseline.free_chunks, baseline.free_key_parts, 0, 0, 0)
            );
        }
    }
    let mut scratch = vec![0; cache.check_scratch(2) as usize];
    assert_eq!(cache.check(2, &mut scratch), Ok(Ok(())));
}

#[test]
fn a_failed_admission_leaves_nothing_pinned() {
    let mut storage = Storage::new();
    let mut cache = storage.cache().unwrap();
    let first = cache.open(&OpenParams::default()).unwrap();
    cache.append(first, &[0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
    cache.close(first, CloseMode::Keep).unwrap();
    let tokens: Vec<u32> = (0..40).collect();
    for _ in 0..1_000 {
        let prompt = Prompt { tokens: &tokens, ..Prompt::default() };
        let (ticket, hit) = cache.match_prefix(&prompt, 39, None).unwrap();
        assert_eq!(hit.tokens, 8);
        let sequence = cache.open_ticket(ticket, &OpenParams::default()).unwrap();
        let error = cache.append(sequence, &tokens[8..]).unwrap_err();
        assert!(matches!(error, Error::Shortage(Shortage { outcome: Outcome::Never, most: 16, .. })), "{error}");
        cache.close(sequence, CloseMode::Discard).unwrap();
    }
    let pool = cache.pool_stats(PoolId::new(0)).unwrap();
    assert_eq!((pool.used, pool.cached, pool.free, pool.utilisation()), (0, 2, 4, 0));
}

#[test]
fn every_bad_field_of_a_configuration_is_named() {
    let good = CONFIG;
    let errors = [
        (Config { pools: &[], ..good }, ConfigError::Pools),
        (Config { pools: &[PoolConfig { pages: 0, policy: Policy::Lru }], ..good }, ConfigError::Pools),
        (Config { pools: &[PoolConfig { pages: MAX_PAGES + 1, policy: Policy::Lru }], ..good }, ConfigError::Pools),
        (Config { groups: &[], ..good }, ConfigError::Groups),
        (Config { groups: &[GroupConfig { page_tokens: 3, ..GroupConfig::FULL }], ..good }, ConfigError::PageTokens),
        (Config { groups: &[GroupConfig { page_tokens: 512, ..GroupConfig::FULL }], ..good }, ConfigError::PageTokens),
        (Config { groups: &[GroupConfig { pool: 1, ..GroupConfig::FULL }], ..good }, ConfigError::GroupPool),
        (Config { groups: &[GroupConfig { sealed_pool: 1, ..GroupConfig::FULL }], ..good }, ConfigError::GroupPool),
        (Config { groups: &[GroupConfig { sinks: 1, ..GroupConfig::FULL }], ..good }, ConfigError::GroupPool),
        (
            Config {
                groups: &[GroupConfig { kind: GroupKind::Window { window: 0, sinks: 0 }, ..GroupConfig::FULL }],
                ..good
            },
            ConfigError::Window,
        ),
        (Config { sequences: 0, ..good }, ConfigError::Sequences),
        (Config { sequences: MAX_HANDLES + 1, ..good }, ConfigError::Sequences),
        (Config { tickets: MAX_HANDLES + 1, ..good }, ConfigError::Handles),
        (Config { quotas: 65, namespaces: 100, ..good }, ConfigError::Quotas),
        (Config { quotas: 2, ..good }, ConfigError::Quotas),
        (Config { classes: 64, ..good }, ConfigError::Classes),
        (
            Config {
                groups: &[GroupConfig { kind: GroupKind::Window { window: 8, sinks: 0 }, ..GroupConfig::FULL }],
                ..good
            },
            ConfigError::IndexNodes,
        ),
        (Config { key_parts: u32::MAX, ..good }, ConfigError::TooLarge),
    ];
    for (config, error) in errors {
        assert_eq!(StorageCounts::of(&config), Err(error), "{error}");
    }
    let mut small = OwnedStorage::new(&good).unwrap();
    let larger = Config { sequences: 5, ..good };
    assert_eq!(Cache::new(&larger, small.lend()).err(), Some(ConfigError::Storage));
}

#[test]
fn keys_list_parents_first_and_continue_with_events() {
    let mut storage = Storage::new();
    let mut cache = storage.cache().unwrap();
    for tail in 0..2 {
        let sequence = cache.open(&OpenParams::default()).unwrap();
        cache.append(sequence, &[0, 1, 2, 3, tail, 5, 6, 7]).unwrap();
        cache.close(sequence, CloseMode::Keep).unwrap();
    }
    let (mut scratch, mut keys) = (vec![0; 8], vec![Event::default(); 8]);
    let (count, last) = cache.export_keys(&mut scratch, &mut keys).unwrap();
    assert_eq!((count, last), (3, 3));
    let mut seen = vec![0];
    for key in &keys[..3] {
        assert!(seen.contains(&key.parent_key));
        seen.push(key.key);
    }
    let mut events = vec![Event::default(); 8];
    let (made, lost) = cache.read_events(&mut events);
    assert_eq!((made, lost), (3, 0));
    let mut stored: Vec<u64> = events[..3].iter().map(|event| event.key).collect();
    stored.sort_unstable();
    seen.remove(0);
    seen.sort_unstable();
    assert_eq!(stored, seen);
}

#[cfg(feature = "spin")]
#[test]
fn a_shared_cache_serves_two_threads() {
    let mut storage = OwnedStorage::new(&CONFIG).unwrap();
    let shared = Shared::new(Cache::new(&CONFIG, storage.lend()).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let shared = &shared;
            scope.spawn(move || {
                for round in 0..500 {
                    let sequence = shared.with(|cache| cache.open(&OpenParams::default())).unwrap();
                    shared.with(|cache| cache.append(sequence, &[thread, round, 2, 3, 4])).unwrap();
                    shared.with(|cache| cache.close(sequence, CloseMode::Keep)).unwrap();
                }
            });
        }
    });
    let cache = shared.into_inner();
    assert_eq!(cache.stats().counters.committed_tokens, 5_000);
    assert_eq!(cache.stats().sequences, 0);
}
