//! Faults that other libraries have had. The numbers are those of a list of public reports that is not in this repository.

use kvfolio::evict::*;
use kvfolio::layout::*;

use super::support::{Owned, Rng};

/// Runs a policy without attention for `tokens` tokens, one by one.
fn run(policy: &impl Policy, page_tokens: u32, tokens: u32, budget: u32, protected: &Protected<'_>) -> Owned {
    let mut owned = Owned::new(page_tokens, (budget + 2 * page_tokens).div_ceil(page_tokens) + 1);
    for _ in 0..tokens {
        owned.with(|stream| stream.append_scored(policy, 1, Placement::Behind, |_| ())).unwrap();
        let mut keep = vec![0; owned.valid.len()];
        owned.with(|stream| stream.evict(policy, protected, budget, &mut keep)).unwrap();
        owned.with(|stream| stream.drop_dead_columns(|_| ()));
        if owned.counters.rows == owned.positions.len() as u32 {
            owned.with(|stream| stream.commit_compaction(1)).unwrap();
        }
    }
    owned
}

/// 1, 2: keys are seen at distances that are right after the cache has slid, also far beyond the window.
#[test]
fn ranks_keep_distances_after_the_window_has_slid() {
    let (budget, sinks) = (16, 4);
    let owned = run(&Oldest, 4, 5 * budget, budget, &Protected { pins: &[], sinks, recent: 1 });
    let mut given = vec![0; owned.counters.rows as usize];
    deltas(&owned.slots(), &mut given).unwrap();
    let query = PositionMode::CacheRelative.next(&owned.slots(), budget + 1).unwrap();
    assert_eq!(query, budget);
    let mut at: Vec<i64> =
        owned.slots().live().map(|(slot, p)| i64::from(p) + i64::from(given[slot as usize])).collect();
    at.sort_unstable();
    assert_eq!(at, (0..i64::from(budget)).collect::<Vec<_>>(), "each rank once");
    for (slot, position) in owned.slots().live().filter(|token| token.1 >= sinks) {
        let seen_at = i64::from(position) + i64::from(given[slot as usize]);
        assert_eq!(i64::from(query) - seen_at, i64::from(5 * budget - position), "true distance within the window");
    }
}

/// 3: rotations are from the stored key each time: deltas do not add up over steps.
#[test]
fn deltas_do_not_depend_on_earlier_deltas() {
    let mut owned = Owned::new(8, 4);
    owned.with(|stream| stream.append(20, Placement::Behind, |_| ())).unwrap();
    let of = |owned: &Owned| {
        let mut given = vec![0; 20];
        deltas(&owned.slots(), &mut given).unwrap();
        given
    };
    owned.with(|stream| stream.retain(&[0b1111_0001, 0xff, 0xff])).unwrap();
    let first = of(&owned);
    owned.with(|stream| stream.retain(&[0b1111_0001, 0xf0, 0xff])).unwrap();
    let both = of(&owned);
    let mut fresh = Owned::new(8, 4);
    fresh.with(|stream| stream.append(20, Placement::Behind, |_| ())).unwrap();
    fresh.with(|stream| stream.retain(&[0b1111_0001, 0xf0, 0xff])).unwrap();
    assert_eq!(both, of(&fresh));
    assert_eq!((first[19], both[19]), (-3, -7));
}

/// 12: a window that begins within a page reads from the page's floor on, for every length mod P.
#[test]
fn a_window_needs_the_page_that_it_begins_in() {
    for page_tokens in [1, 4, 16] {
        for tokens in 1..=3 * page_tokens + 1 {
            let window = page_tokens + 1;
            let owned = run(&Oldest, page_tokens, tokens, window, &Protected::NEWEST);
            let first = tokens.saturating_sub(window);
            assert_eq!(owned.kept(), (first..tokens).collect::<Vec<_>>());
            let floor = first / page_tokens;
            assert_eq!(owned.slots().columns(), tokens.div_ceil(page_tokens) - floor);
        }
    }
}

/// 48: eviction frees pages; it does not mask alone.
#[test]
fn memory_falls() {
    let full = run(&Oldest, 16, 1000, 1000, &Protected::NEWEST);
    let half = run(&Oldest, 16, 1000, 500, &Protected::NEWEST);
    assert_eq!(full.slots().columns(), 63);
    assert!(half.slots().columns() <= 500_u32.div_ceil(16) + 1);
}

/// 49, 50: nothing to protect protects nothing, and no newest token at all is refused.
#[test]
fn a_window_of_zero() {
    let mut owned = Owned::new(4, 2);
    owned.with(|stream| stream.append(8, Placement::Behind, |_| ())).unwrap();
    owned.scores.copy_from_slice(&[8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    let mut keep = [0; 2];
    let none = Protected { pins: &[], sinks: 0, recent: 0 };
    assert_eq!(keep_best(&owned.slots(), &owned.scores, &none, 4, &mut keep), Err(EvictError::Recent));
    keep_best(&owned.slots(), &owned.scores, &Protected::NEWEST, 4, &mut keep).unwrap();
    assert_eq!(keep, [0b0111, 0b1000]);
}

/// 51: a budget of at least one, whatever the length.
#[test]
fn the_cache_is_never_empty() {
    for tokens in 1..8 {
        for budget in 1..=8 {
            let owned = run(&Random { seed: 1, stream: 0 }, 4, tokens, budget, &Protected::NEWEST);
            assert_eq!(owned.counters.live, tokens.min(budget));
            assert!(owned.kept().contains(&(tokens - 1)));
        }
    }
}

/// 52: one layer, and steep falls, in pyramids.
#[test]
fn pyramids_do_not_underflow() {
    for layers in 1..=8 {
        for mean in [1, 2, 7, 120] {
            for beta in [1, 2, 20, 65536] {
                let mut budgets = vec![0; layers];
                pyramid(mean, beta, Bounds::NONE, &mut budgets).unwrap();
                assert_eq!(budgets.iter().sum::<u32>(), mean * layers as u32);
                assert!(budgets.iter().all(|&budget| budget >= 1) && budgets.is_sorted_by(|a, b| a >= b));
            }
        }
    }
}

/// 53: scores are f32, and equal ones have an order that is said.
#[test]
fn ties_evict_the_older() {
    let mut owned = Owned::new(8, 2);
    owned.with(|stream| stream.append(16, Placement::Behind, |_| ())).unwrap();
    owned.scores.fill(0.25);
    owned.scores[3] = 0.25 + f32::EPSILON / 4.0;
    let mut keep = [0; 2];
    owned.with(|stream| stream.evict(&External, &Protected::NEWEST, 5, &mut keep)).unwrap();
    assert_eq!(owned.kept(), [3, 12, 13, 14, 15]);
}

/// 54: nothing is written over keys that are evicted: they are masked, and what lies there is not read.
#[test]
fn there_are_no_fake_keys() {
    let mut owned = Owned::new(8, 1);
    owned.with(|stream| stream.append(8, Placement::Behind, |_| ())).unwrap();
    let positions = owned.positions.clone();
    owned.with(|stream| stream.retain(&[0b1010_1010])).unwrap();
    assert_eq!(owned.positions, positions);
    assert_eq!(owned.valid, [0b1010_1010]);
}

/// 55: heavy hitters do not freeze on the prompt: a newcomer survives as many steps as are protected, and then if it is looked
/// at.
#[test]
fn newcomers_get_their_chance() {
    let mut owned = Owned::new(4, 40);
    let protected = Protected { pins: &[], sinks: 1, recent: 4 };
    let mut looked_at = None;
    for t in 0..100_u32 {
        owned.with(|stream| stream.append_scored(&H2o::DEFAULT, 1, Placement::Behind, |_| ())).unwrap();
        let mut row = vec![0.0; owned.counters.rows as usize];
        // All look at the prompt, but from token 40 on at token 40.
        let target = if t < 40 { t.min(7) } else { 40 };
        owned.slots().live().filter(|token| token.1 == target).for_each(|(slot, _)| row[slot as usize] = 1.0);
        owned
            .with(|stream| stream.observe(&mut { H2o::DEFAULT }, &Observation::Columns { sums: &row, queries: 1 }))
            .unwrap();
        owned.with(|stream| stream.evict(&H2o::DEFAULT, &protected, 12, &mut [0; 40])).unwrap();
        assert!((t.saturating_sub(3)..=t).all(|p| owned.kept().contains(&p)), "the newest four");
        looked_at = Some(owned.kept().contains(&40));
    }
    assert_eq!(looked_at, Some(true));
}

/// 56: rows are per KV head: query heads h of H belong to KV head h / (H / Hk), and are reduced before they are ordered.
#[test]
fn query_heads_share_the_rows_of_their_kv_head() {
    // Four query heads, two KV heads; each query head looks at one token of its own.
    let attention: Vec<[f32; 8]> =
        (0..4).map(|h| core::array::from_fn(|slot| f32::from(u8::from(slot == h)))).collect();
    for kv_head in 0..2 {
        let mut owned = Owned::new(8, 1);
        owned.with(|stream| stream.append(8, Placement::Behind, |_| ())).unwrap();
        owned.scores.fill(0.0);
        let rows: Vec<f32> = attention[2 * kv_head..2 * kv_head + 2].concat();
        let seen = Observation::Probabilities { rows: &rows, heads: 2 };
        owned.with(|stream| stream.observe(&mut { H2o::DEFAULT }, &seen)).unwrap();
        owned.with(|stream| stream.evict(&H2o::DEFAULT, &Protected::NEWEST, 3, &mut [0])).unwrap();
        let first = 2 * kv_head as u32;
        assert_eq!(owned.kept(), [first, first + 1, 7]);
    }
}

/// 57: the slots that a budget prices are those that the row has.
#[test]
fn rows_are_what_the_planner_says() {
    let layout =
        PageLayout::new(&PageLayoutSpec { page_tokens: 16, ..PageLayoutSpec::new(1, 1, 64, TensorFormat::F16) });
    let layout = layout.unwrap();
    for budget in [1, 15, 16, 17, 100] {
        let mut owned = run(&Random { seed: 2, stream: 1 }, 16, 300, budget, &Protected::NEWEST);
        owned.with(|stream| stream.commit_compaction(1)).unwrap();
        let pages = kvfolio::planner::GroupMemory::full(&layout).pages(budget.into()).unwrap();
        assert_eq!(u64::from(owned.slots().columns()), pages.open);
    }
}

/// 58: re-rotation of quantised keys is refused, and so is moving tokens of a group one by one.
#[test]
fn unsound_combinations_are_refused_with_their_reason() {
    let spec = PageLayoutSpec {
        rope: RopeState::POST,
        ..PageLayoutSpec::new(1, 1, 64, TensorFormat::per_token(ElementCode::INT8, 0))
    };
    let layout = PageLayout::new(&spec).unwrap();
    let refused = check_sound(&layout, Removal::Compact, PositionMode::CacheRelative).unwrap_err();
    assert_eq!(refused, EvictError::Keys);
    assert!(refused.to_string().contains("turned"));
}

/// Counters and arrays that do not belong together are found, not believed.
#[test]
fn streams_of_other_arrays_are_refused() {
    let refused = |page_tokens, counters, columns, slots, floats, channels| {
        let (mut valid, mut positions, mut features) = (vec![0; columns], vec![0; slots], vec![0.0; floats]);
        Stream::new(page_tokens, counters, &mut valid, &mut positions, &mut features, channels).map(|_| ()).unwrap_err()
    };
    let none = Counters::default();
    for (page_tokens, columns, slots, floats) in
        [(0, 1, 0, 0), (3, 1, 3, 3), (128, 1, 128, 128), (4, 2, 7, 8), (4, 2, 8, 7)]
    {
        assert_eq!(refused(page_tokens, none, columns, slots, floats, 1), EvictError::Shape);
    }
    assert_eq!(refused(4, none, 2, 8, 8, 2), EvictError::Shape);
    assert_eq!(refused(4, Counters { seen: 9, live: 9, rows: 9 }, 2, 8, 8, 1), EvictError::Stream);
    assert_eq!(refused(4, Counters { seen: 9, live: 8, rows: 7 }, 2, 8, 8, 1), EvictError::Stream);
    assert_eq!(refused(4, Counters { seen: 3, live: 4, rows: 4 }, 2, 8, 8, 1), EvictError::Stream);
    let mut rng = Rng(13);
    let (mut valid, mut positions, mut features) = ([0b1111, 0b1001], [0, 1, 2, 3, 4, 5, 6, 7], [0.0; 8]);
    let check = |counters, valid: &mut [u64], positions: &mut [u32], features: &mut [f32]| {
        Stream::new(4, counters, valid, positions, features, 1).unwrap().check()
    };
    let good = Counters { seen: 8, live: 6, rows: 8 };
    assert_eq!(check(good, &mut valid, &mut positions, &mut features), Ok(()));
    for bad in [Counters { live: 5, ..good }, Counters { seen: 7, ..good }, Counters { rows: 7, ..good }] {
        assert_eq!(check(bad, &mut valid, &mut positions, &mut features), Err(EvictError::Stream));
    }
    positions[4] = rng.below(4);
    assert_eq!(check(good, &mut valid, &mut positions, &mut features), Err(EvictError::Stream), "a position twice");
}

/// Two holes, where the counters say that there are three: filling them must neither hang nor change anything.
#[test]
fn holes_that_are_not_there_are_not_reused() {
    let counters = Counters { seen: 8, live: 5, rows: 8 };
    let (mut valid, mut positions, mut features) = ([0b1111, 0b1001], [0, 1, 2, 3, 4, 5, 6, 7], [1.0; 8]);
    let mut stream = Stream::new(4, counters, &mut valid, &mut positions, &mut features, 1).unwrap();
    assert_eq!(stream.append(3, Placement::Reuse, |_| ()), Err(EvictError::Stream));
    assert_eq!(stream.counters(), counters);
    assert_eq!((valid, features), ([0b1111, 0b1001], [1.0; 8]));
}

/// Numbers of reasons are part of the C interface.
#[test]
fn reasons_have_numbers_and_texts() {
    let budget = EvictError::Budget { protected: 5 };
    assert_eq!((EvictError::Shape.number(), budget.number(), EvictError::Layout.number()), (1, 7, 12));
    let texts: Vec<_> = (1..=12).map(|number| EvictError::c_text_of(number).unwrap()).collect();
    assert!(texts.iter().enumerate().all(|(i, text)| !texts[..i].contains(text)));
    assert_eq!((EvictError::c_text_of(0), EvictError::c_text_of(13)), (None, None));
    assert!(budget.to_string().ends_with("protected, which are 5"));
}
