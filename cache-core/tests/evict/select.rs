//! Kept sets against sorting.

use kvfolio::evict::*;

use super::support::{Naive, Owned, Rng};

#[test]
fn the_lowest_go_and_of_equal_ones_the_older() {
    let mut rng = Rng(1);
    for round in 0..3_000 {
        let page_tokens = 1 << rng.below(7);
        let tokens = rng.below(90);
        let mut owned = Owned::new(page_tokens, 100_u32.div_ceil(page_tokens));
        let mut naive = Naive::default();
        owned.with(|stream| stream.append(tokens, Placement::Behind, |_| ())).unwrap();
        for slot in 0..tokens {
            let score = if round % 2 == 0 { rng.score() } else { rng.unit() };
            owned.scores[slot as usize] = score;
            naive.append(score);
        }
        let start = rng.below(20);
        let pins = [Pin { start, end: start + 1 + rng.below(4) }, Pin { start: 40, end: 41 }];
        let protected =
            Protected { pins: &pins[..rng.below(3) as usize], sinks: rng.below(5), recent: 1 + rng.below(8) };
        let budget = 20 + rng.below(70);
        let kept = owned.with(|stream| {
            let mut keep = [0; 100];
            let kept = keep_best(&stream.slots(), stream.channel(0), &protected, budget, &mut keep).unwrap();
            stream.retain(&keep).unwrap();
            kept
        });
        naive.evict(&protected, budget, |score, _| score);
        assert_eq!(owned.kept(), naive.kept(), "{round}");
        assert_eq!(kept, tokens.min(budget));
    }
}

#[test]
fn a_threshold_takes_all_below_it() {
    let mut rng = Rng(2);
    for _ in 0..500 {
        let mut owned = Owned::new(4, 10);
        owned.with(|stream| stream.append(37, Placement::Behind, |_| ())).unwrap();
        owned.scores[..37].fill_with(|| rng.score());
        let protected = Protected { pins: &[Pin { start: 20, end: 22 }], sinks: 2, recent: 5 };
        let threshold = rng.below(6) as f32;
        let expected: Vec<u32> = (0..37)
            .filter(|&p| !(2..32).contains(&p) || (20..22).contains(&p) || owned.scores[p as usize] >= threshold)
            .collect();
        let mut keep = [0; 10];
        let kept = keep_above(&owned.slots(), &owned.scores, &protected, threshold, &mut keep).unwrap();
        owned.with(|stream| stream.retain(&keep)).unwrap();
        assert_eq!(owned.kept(), expected);
        assert_eq!(kept as usize, expected.len());
    }
}

#[test]
fn a_union_keeps_what_any_head_wants() {
    let mut owned = Owned::new(8, 2);
    owned.with(|stream| stream.append(16, Placement::Behind, |_| ())).unwrap();
    let scores = [[3.0, 0.0, 9.0, 0.0], [0.0, 3.0, 9.0, 0.0]].map(|row| row.repeat(4));
    let mut keep = [0; 2];
    for row in &scores {
        let mut one = [0; 2];
        keep_best(&owned.slots(), row, &Protected::NEWEST, 5, &mut one).unwrap();
        keep_union(&mut keep, &one).unwrap();
    }
    owned.with(|stream| stream.retain(&keep)).unwrap();
    assert_eq!(owned.kept(), [2, 6, 10, 14, 15]);
    assert_eq!(keep_union(&mut keep, &[0]), Err(EvictError::Shape));
}

#[test]
fn what_is_wrong_changes_nothing() {
    let mut owned = Owned::new(4, 3);
    owned.with(|stream| stream.append(9, Placement::Behind, |_| ())).unwrap();
    let scores = [1.0; 9];
    let mut keep = [7; 3];
    let mut refused = |scores: &[f32], protected: &Protected<'_>, budget| {
        let result = keep_best(&owned.slots(), scores, protected, budget, &mut keep);
        assert_eq!(keep, [7; 3]);
        result.unwrap_err()
    };
    let all = Protected { pins: &[Pin { start: 2, end: 4 }], sinks: 3, recent: 2 };
    assert_eq!(refused(&scores, &all, 5), EvictError::Budget { protected: 6 });
    assert_eq!(refused(&scores, &Protected::NEWEST, 0), EvictError::Budget { protected: 1 });
    assert_eq!(refused(&scores, &Protected { recent: 0, ..all }, 8), EvictError::Recent);
    for pins in [&[(3, 3)][..], &[(4, 3)], &[(3, 5), (4, 6)], &[(7, 8), (3, 4)]] {
        let pins: Vec<Pin> = pins.iter().map(|&(start, end)| Pin { start, end }).collect();
        assert_eq!(refused(&scores, &Protected { pins: &pins, ..all }, 8), EvictError::Pins);
    }
    assert_eq!(refused(&scores[..8], &all, 8), EvictError::Shape);
    assert_eq!(keep_best(&owned.slots(), &scores, &all, 8, &mut keep[..2]), Err(EvictError::Shape));
    assert_eq!(keep_above(&owned.slots(), &scores, &all, f32::NAN, &mut keep), Err(EvictError::Parameter));
    assert_eq!(owned.with(|stream| stream.retain(&[0, 0])), Err(EvictError::Shape));
    assert_eq!(owned.with(|stream| stream.append(4, Placement::Behind, |_| ())), Err(EvictError::Full));
    assert_eq!(owned.with(|stream| stream.truncate(10)), Err(EvictError::Position));
    assert_eq!(owned.counters, Counters { seen: 9, live: 9, rows: 9 });
}
