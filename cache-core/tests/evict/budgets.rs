//! Budgets of layers and heads.

use kvfolio::evict::*;

use super::support::{Owned, Rng};

#[test]
fn the_pyramid_of_the_paper() {
    let mut budgets = [0; 32];
    pyramid(120, 20, Bounds::NONE, &mut budgets).unwrap();
    assert_eq!(budgets[..4], [234, 227, 219, 212]);
    assert_eq!(budgets[28..], [28, 21, 13, 6]);
    assert_eq!(budgets.iter().sum::<u32>(), 3840);
    let mut one = [0];
    pyramid(120, 20, Bounds::NONE, &mut one).unwrap();
    assert_eq!(one, [120]);
    pyramid(120, 1, Bounds::NONE, &mut budgets).unwrap();
    assert_eq!(budgets, [120; 32], "no fall");
    assert_eq!(pyramid(120, 0, Bounds::NONE, &mut budgets), Err(EvictError::Parameter));
    assert_eq!(pyramid(0, 20, Bounds::NONE, &mut budgets), Err(EvictError::Parameter));
    assert_eq!(pyramid(120, 20, Bounds::NONE, &mut []), Err(EvictError::Parameter));
}

/// Whole shares in proportion, with fractions kept as numbers of `sum`-ths.
fn largest_remainders(total: u64, weights: &[u64]) -> Vec<u32> {
    let sum: u64 = weights.iter().sum();
    let mut shares: Vec<(u64, u64)> = weights.iter().map(|w| (total * w / sum, total * w % sum)).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&layer| (core::cmp::Reverse(shares[layer].1), layer));
    let left = total - shares.iter().map(|share| share.0).sum::<u64>();
    order.iter().take(left as usize).for_each(|&layer| shares[layer].0 += 1);
    shares.iter().map(|share| share.0 as u32).collect()
}

#[test]
fn shares_by_weight_are_largest_remainders_within_bounds() {
    let mut rng = Rng(5);
    for _ in 0..2_000 {
        let layers = 1 + rng.below(40);
        let weights: Vec<u64> = (0..layers).map(|_| u64::from(rng.below(9))).collect();
        let total = u64::from(layers) + u64::from(rng.below(1_000));
        let mut budgets = vec![0; layers as usize];
        let all = |layer: u32| weights[layer as usize];
        by_weight(total, all, Bounds::NONE, &mut budgets).unwrap();
        assert_eq!(budgets.iter().map(|&b| u64::from(b)).sum::<u64>(), total);
        if weights.iter().all(|&w| w > 0) && total >= 9 * u64::from(layers) {
            assert_eq!(budgets, largest_remainders(total, &weights), "no bound is met");
        }
        let bounds = Bounds { least: 1 + rng.below(9), most: 10 + rng.below(40) };
        let possible = u64::from(bounds.least * layers)..=u64::from(bounds.most * layers);
        let before = budgets.clone();
        let result = by_weight(total, all, bounds, &mut budgets);
        assert_eq!(result.is_ok(), possible.contains(&total));
        if result.is_err() {
            assert_eq!(budgets, before);
            continue;
        }
        assert_eq!(budgets.iter().map(|&b| u64::from(b)).sum::<u64>(), total);
        assert!(budgets.iter().all(|b| (bounds.least..=bounds.most).contains(b)));
        for (a, b) in (0..layers as usize).flat_map(|a| (0..layers as usize).map(move |b| (a, b))) {
            assert!(weights[a] <= weights[b] || budgets[a] >= budgets[b], "more weight, more tokens");
        }
    }
    let mut budgets = [0; 3];
    uniform(11, &mut budgets).unwrap();
    assert_eq!(budgets, [4, 4, 3]);
    by_weight(9, |_| 0, Bounds::NONE, &mut budgets).unwrap();
    assert_eq!(budgets, [3, 3, 3], "no weight at all is the same weight");
    assert_eq!(uniform(2, &mut budgets), Err(EvictError::Parameter));
    by_weight(3 << 40, |_| u64::MAX, Bounds { least: 1, most: u32::MAX }, &mut budgets).unwrap_err();
}

#[test]
fn heads_share_what_is_above_their_floors_by_score() {
    let mut rng = Rng(6);
    for _ in 0..500 {
        let heads = 1 + rng.below(5);
        let owned: Vec<Owned> = (0..heads)
            .map(|_| {
                let mut owned = Owned::new(8, 8);
                let tokens = 20 + rng.below(40);
                owned.with(|stream| stream.append(tokens, Placement::Behind, |_| ())).unwrap();
                owned.scores[..tokens as usize].fill_with(|| rng.score());
                owned
            })
            .collect();
        let protected = Protected { pins: &[Pin { start: 7, end: 9 }], sinks: 2, recent: 3 };
        let floor = 7 + rng.below(4);
        let mean = floor + rng.below(45);
        let views: Vec<Head<'_>> = owned.iter().map(|owned| (owned.slots(), &owned.scores[..])).collect();
        let mut budgets = vec![0; heads as usize];
        by_head_scores(mean, floor, &protected, &views, &mut budgets).unwrap();

        // In words: every head takes its floor, then the best token of all takes the next place.
        let mut sorted: Vec<Vec<u64>> = owned
            .iter()
            .map(|owned| {
                let seen = owned.counters.seen;
                let free = (0..seen).filter(|&p| !protected.contains(p, seen));
                let mut keys: Vec<u64> = free.map(|p| key(owned.scores[p as usize], p)).collect();
                keys.sort_unstable();
                keys
            })
            .collect();
        let mut expected: Vec<u32> = owned.iter().map(|owned| floor.min(owned.counters.live)).collect();
        for (head, keys) in sorted.iter_mut().enumerate() {
            let within_floor = expected[head] - 7; // 2 + 2 + 3 are protected
            keys.truncate(keys.len() - within_floor as usize);
        }
        let total = mean * heads;
        while expected.iter().sum::<u32>() < total {
            let best = (0..heads as usize).rev().filter(|&h| !sorted[h].is_empty()).max_by_key(|&h| sorted[h].last());
            let Some(best) = best else { break };
            sorted[best].pop();
            expected[best] += 1;
        }
        assert_eq!(budgets, expected);
    }
}

#[test]
fn budgets_of_heads_refuse_what_cannot_be() {
    let mut owned = Owned::new(4, 2);
    owned.with(|stream| stream.append(8, Placement::Behind, |_| ())).unwrap();
    let scores = [0.0; 8];
    let heads = [(owned.slots(), &scores[..])];
    let mut budgets = [9];
    let mut refused = |mean, floor, heads: &[Head<'_>]| {
        let result = by_head_scores(mean, floor, &Protected { sinks: 2, ..Protected::NEWEST }, heads, &mut budgets);
        assert_eq!(budgets, [9]);
        result.unwrap_err()
    };
    assert_eq!(refused(5, 2, &heads), EvictError::Budget { protected: 3 });
    assert_eq!(refused(3, 4, &heads), EvictError::Parameter);
    assert_eq!(refused(5, 4, &[]), EvictError::Shape);
    assert_eq!(refused(5, 4, &[(owned.slots(), &scores[..7])]), EvictError::Shape);
}
