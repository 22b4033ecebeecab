//! What the planner says against what a real cache takes: pages held, bytes of the pool, bytes of the manager.
#![allow(missing_docs)]

use kvfolio::layout::*;
use kvfolio::planner::*;
use kvfolio::*;

fn layout(page_tokens: u32, format: TensorFormat) -> PageLayout {
    PageLayout::new(&PageLayoutSpec { page_tokens, ..PageLayoutSpec::new(2, 2, 64, format) }).unwrap()
}

/// Most pages that a sequence used at once while it grew by steps of `step` tokens.
fn peak(group: &GroupConfig, tokens: u32, first: u32, step: u32) -> u32 {
    let pools = [PoolConfig { pages: 400, ..PoolConfig::default() }];
    let groups = [*group];
    let config = Config { pools: &pools, groups: &groups, sequences: 1, index: IndexKind::None, ..Config::new() };
    let mut storage = OwnedStorage::new(&config).unwrap();
    let mut cache = Cache::new(&config, storage.lend()).unwrap();
    let sequence = cache.open(&OpenParams::default()).unwrap();
    let (mut len, mut next) = (0, first);
    while len < tokens {
        let count = next.min(tokens - len);
        cache.append(sequence, &vec![7; count as usize]).unwrap();
        (len, next) = (len + count, step);
    }
    cache.pool_stats(PoolId::new(0)).unwrap().peak_used
}

#[test]
fn ledger_57_pages_are_those_that_a_cache_holds() {
    let windows = [(1, 0), (2, 0), (4, 0), (5, 3), (6, 0), (9, 4), (13, 5)];
    for page_tokens in [1_u16, 4, 8] {
        let layout = layout(page_tokens.into(), TensorFormat::F16);
        for chunk in [1, 3, 4, 9] {
            let kinds = windows.map(|(window, sinks)| GroupKind::Window { window, sinks });
            for kind in kinds.into_iter().chain([GroupKind::Full]) {
                let config = GroupConfig { kind, page_tokens, ..GroupConfig::FULL };
                let group = GroupMemory { kind, chunk, ..GroupMemory::full(&layout) };
                for tokens in (1..3 * u32::from(page_tokens) + 2).chain([40, 57]) {
                    // Every place at which steps can begin within a page.
                    let said = group.pages(tokens.into()).unwrap().open;
                    let mixed = (1..=chunk).flat_map(|step| (1..=chunk).map(move |first| (first, step)));
                    let single = (1..tokens).map(|at| staged(&config, at, tokens, chunk)).max().unwrap_or(0);
                    let most = mixed.map(|(first, step)| peak(&config, tokens, first, step)).max().unwrap().max(single);
                    assert_eq!(u64::from(most), said, "{config:?} {chunk} {tokens}");
                }
            }
        }
    }
}

/// The same where single tokens come up to `at`, and then one chunk.
fn staged(group: &GroupConfig, at: u32, tokens: u32, chunk: u32) -> u32 {
    let pools = [PoolConfig { pages: 400, ..PoolConfig::default() }];
    let groups = [*group];
    let config = Config { pools: &pools, groups: &groups, sequences: 1, index: IndexKind::None, ..Config::new() };
    let mut storage = OwnedStorage::new(&config).unwrap();
    let mut cache = Cache::new(&config, storage.lend()).unwrap();
    let sequence = cache.open(&OpenParams::default()).unwrap();
    for _ in 0..at {
        cache.append(sequence, &[7]).unwrap();
    }
    cache.append(sequence, &vec![7; chunk.min(tokens - at) as usize]).unwrap();
    cache.pool_stats(PoolId::new(0)).unwrap().peak_used
}

#[test]
fn a_ring_takes_what_the_planner_says_from_its_first_token_on() {
    for (window, sinks, ring_tokens) in [(6, 3, 5), (8, 0, 1), (9, 4, 8), (1, 0, 1)] {
        let kind = GroupKind::Window { window, sinks };
        let config = GroupConfig { kind, page_tokens: 4, ring_tokens, ..GroupConfig::FULL };
        let layout = layout(4, TensorFormat::BF16);
        let group = GroupMemory { kind, chunk: ring_tokens, ring: true, ..GroupMemory::full(&layout) };
        for tokens in [1, 4, 50] {
            assert_eq!(u64::from(peak(&config, tokens, 1, ring_tokens)), group.pages(tokens.into()).unwrap().open);
        }
        assert_eq!(group.pages(0), Ok(PageCount::default()));
    }
}

/// The memory that lies between the first byte of page 1 and the last of page N is all that rows touch, in every format.
#[test]
fn bytes_of_a_pool_are_those_between_its_first_and_last_page() {
    let formats = ElementCode::ALL.iter().map(|&element| match element {
        ElementCode::INT8 | ElementCode::INT4 | ElementCode::INT2 | ElementCode::INT8_SYMMETRIC => {
            TensorFormat::per_channel(element, 16)
        }
        ElementCode::FP8_E4M3FN | ElementCode::FP8_E4M3FNUZ | ElementCode::FP8_E5M2 => {
            TensorFormat::fp8(element, ScaleMode::TOKEN_HEAD)
        }
        _ => TensorFormat::of(element),
    });
    for format in formats {
        let layout = layout(32, format);
        let pools = [PoolConfig { pages: 40, ..PoolConfig::default() }];
        let groups = [GroupConfig { page_tokens: 32, ..GroupConfig::FULL }];
        let config = Config { pools: &pools, groups: &groups, sequences: 4, ..Config::new() };
        let mut storage = OwnedStorage::new(&config).unwrap();
        let mut cache = Cache::new(&config, storage.lend()).unwrap();
        let sequence = cache.open(&OpenParams::default()).unwrap();
        cache.append(sequence, &vec![7; 32 * 40]).unwrap();
        let mut table = [0; 40];
        cache.export_dense(&[sequence], GroupId::new(0), 40, -1, &mut table).unwrap();
        let (mut first, mut end, mut owned) = (u64::MAX, 0, 0);
        for page in table {
            let start = layout.page_offset(PageId::new(page as u32)).unwrap();
            first = first.min(start);
            end = end.max(start + layout.page_bytes);
            owned += layout.sections().map(|section| section.bytes).sum::<u64>();
            for tensor in [Tensor::K, Tensor::V] {
                let row = layout.offset(PageId::new(page as u32), 1, tensor, 1, 31).unwrap();
                assert!(row.codes.max(row.scales).max(row.zeros) < end);
            }
        }
        let pages = pool_bytes(&layout, 40).unwrap();
        assert_eq!((first, end - first), (layout.page_bytes, pages), "{format:?}");
        assert_eq!(owned + 40 * layout.padding_bytes(), pages, "{format:?}");
        assert_eq!(GroupMemory::full(&layout).page_bytes(32 * 40), Ok(pages));
    }
}

/// Open pages of one pool, sealed ones of another: what the planner says for them is enough, and no less would be.
#[test]
fn a_residual_takes_what_the_planner_says() {
    let (exact, quantised) = (layout(4, TensorFormat::F16), layout(4, TensorFormat::per_token(ElementCode::INT4, 32)));
    let all =
        [(0, 0, 1), (3, 0, 1), (8, 0, 1), (5, 0, 6), (7, 0, 9), (1, 0, 4), (0, 1, 1), (3, 4, 1), (5, 6, 6), (9, 40, 4)];
    for (recent, sinks, chunk) in all {
        let residual = Residual::PageAligned { exact: &exact, recent, sinks };
        let memory = GroupMemory { residual, chunk, ..GroupMemory::full(&quantised) };
        for tokens in [1, 5, 30, 64, 91] {
            let count = memory.pages(tokens.into()).unwrap();
            let at_rest =
                |len: u32, most| (sinks.div_ceil(4) + (residual.split(len.into(), 4).k_quantised / 4) as u32, most);
            let grow =
                |step: &dyn Fn(u32, u32) -> (u32, u32), first| open_pages(step, &count, sinks, (first, chunk), tokens);
            let most = (1..=chunk).map(|first| grow(&at_rest, first)).max().unwrap();
            assert!(most <= count.open);
            assert!(tokens < 91 || most == count.open, "{recent} {sinks} {chunk} {tokens}");
            // An engine whose results do not depend on chunks cuts them, and seals no later.
            let schedule = SealSchedule { page_tokens: 4, recent };
            let cut = |len, most| (schedule.sealed_at(len), schedule.run(len, most));
            (1..=chunk).for_each(|first| assert!(grow(&cut, first) <= most));
        }
    }
}

/// Most open pages that a sequence uses at once in pools of just the size that is said; its first step adds `steps.0` tokens, the
/// others `steps.1`.
/// `step` gives, for a length and the tokens that are to come, how many pages are sealed first and how many tokens do come.
fn open_pages(
    step: &dyn Fn(u32, u32) -> (u32, u32),
    count: &PageCount,
    sinks: u32,
    steps: (u32, u32),
    tokens: u32,
) -> u64 {
    let pool = |pages: u64| PoolConfig { pages: pages.max(1) as u32, ..PoolConfig::default() };
    let pools = [pool(count.open), pool(count.sealed)];
    let groups = [GroupConfig { page_tokens: 4, sealed_pool: 2, sinks, ..GroupConfig::FULL }];
    let config = Config {
        pools: &pools,
        groups: &groups,
        sequences: 1,
        plan_copies: 64,
        index: IndexKind::None,
        ..Config::new()
    };
    let mut storage = OwnedStorage::new(&config).unwrap();
    let mut cache = Cache::new(&config, storage.lend()).unwrap();
    let sequence = cache.open(&OpenParams::default()).unwrap();
    let (group, mut len, mut next) = (GroupId::new(0), 0, steps.0);
    while len < tokens {
        let (upto, count) = step(len, next.min(tokens - len));
        cache.plan_begin(0).unwrap();
        cache.plan_add(sequence, count, None).unwrap();
        if upto > cache.sealed_columns(sequence, group).unwrap().end {
            cache.plan_seal(sequence, group, upto).unwrap();
        }
        cache.plan_finish().unwrap();
        cache.plan_commit(&[Accept::all(count)]).unwrap();
        (len, next) = (len + count, steps.1);
    }
    let peak = |pool| u64::from(cache.pool_stats(PoolId::new(pool)).unwrap().peak_used);
    assert!(peak(1) <= count.sealed);
    peak(0)
}

#[test]
fn metadata_is_what_the_storage_takes() {
    let pools = [PoolConfig { pages: 1000, ..PoolConfig::default() }];
    let groups = [GroupConfig::FULL];
    let config = Config { pools: &pools, groups: &groups, sequences: 8, tickets: 8, ..Config::new() };
    let bytes = config.metadata_bytes().unwrap();
    assert_eq!(bytes, StorageCounts::of(&config).unwrap().bytes());
    // The tokens of a page alone take 64 bytes.
    let fewer = [PoolConfig { pages: 500, ..PoolConfig::default() }];
    let half = Config { pools: &fewer, ..config }.metadata_bytes().unwrap();
    assert!((64..128).contains(&((bytes - half) / 500)));
    let wrong = Config { sequences: 0, ..config };
    assert_eq!(wrong.metadata_bytes(), Err(PlannerError::Config(ConfigError::Sequences)));
}
