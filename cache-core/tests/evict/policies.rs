//! What each policy scores, against sums written out and values from the literature.

use kvfolio::evict::*;

use super::support::{Owned, Rng};

fn filled(page_tokens: u32, tokens: u32) -> Owned {
    let mut owned = Owned::new(page_tokens, tokens.div_ceil(page_tokens).max(1));
    owned.with(|stream| stream.append(tokens, Placement::Behind, |_| ())).unwrap();
    owned
}

/// Cumulative attention favours what came first: under equal attention token j of 1,000 has the sum of 1/t over t >= j.
#[test]
fn equal_attention_and_the_advantage_of_age() {
    let run = |mut policy: H2o| {
        let mut owned = Owned::new(64, 16);
        for t in 0..1000_u32 {
            owned.with(|stream| stream.append_scored(&policy, 1, Placement::Behind, |_| ())).unwrap();
            let row = vec![1.0 / (t + 1) as f32; t as usize + 1];
            let seen = Observation::Probabilities { rows: &row, heads: 1 };
            owned.with(|stream| stream.observe(&mut policy, &seen)).unwrap();
        }
        [0, 99, 499, 899].map(|j: u32| policy.ordered(owned.scores[j as usize], j, 1000))
    };
    let plain = run(H2o::DEFAULT);
    for (score, published) in plain.iter().zip([7.485, 2.308, 0.695, 0.106]) {
        assert!((score - published).abs() < 6e-4, "{plain:?}");
    }
    let unbiased = run(H2o { unbiased: true, ..H2o::DEFAULT });
    assert!(unbiased.iter().all(|score| (score - 1.0).abs() < 1e-5), "{unbiased:?}");
    let decayed = run(H2o { decay: 0.9, ..H2o::DEFAULT });
    assert!(decayed[0] < 0.02 && decayed[0] == decayed[1], "old attention is forgotten: {decayed:?}");
}

#[test]
fn heavy_hitters_are_sums_over_queries_and_heads() {
    let mut rng = Rng(7);
    for heads in [1, 3, 4] {
        for reduce in [Reduce::Mean, Reduce::Max, Reduce::Sum] {
            for (diagonal, decay) in [(true, 1.0), (false, 1.0), (true, 0.5), (false, 0.75)] {
                let policy = H2o { reduce, decay, diagonal, unbiased: false };
                let (tokens, slots) = (13, 13_usize);
                let mut attention = vec![0.0; 13 * heads as usize * slots];
                for (row, values) in attention.chunks_mut(slots).enumerate() {
                    let query = row / heads as usize;
                    values[..=query].fill_with(|| rng.unit());
                }
                let mut expected = vec![0.0_f32; slots];
                for query in 0..13 {
                    for slot in 0..=query {
                        let of = |h: usize| attention[(query * heads as usize + h) * slots + slot];
                        let all = (0..heads as usize).map(of);
                        let one = match reduce {
                            Reduce::Sum => all.fold(0.0, |sum, x| sum + x),
                            Reduce::Mean => all.fold(0.0, |sum, x| sum + x) / heads as f32,
                            Reduce::Max => all.fold(0.0, f32::max),
                        };
                        let own = if slot == query && !diagonal { 0.0 } else { one };
                        expected[slot] = expected[slot] * decay + own;
                    }
                }
                // In one chunk of 13, one by one, and in threes: the same bits. Holes never come into it.
                for chunk in [13, 1, 3] {
                    let mut owned = Owned::new(4, 4);
                    let mut policy = policy;
                    let mut done = 0;
                    while done < tokens {
                        let n = chunk.min(tokens - done);
                        owned.with(|stream| stream.append_scored(&policy, n, Placement::Behind, |_| ())).unwrap();
                        let rows: Vec<f32> = attention
                            [(done * heads) as usize * slots..((done + n) * heads) as usize * slots]
                            .chunks(slots)
                            .flat_map(|row| row[..(done + n) as usize].to_vec())
                            .collect();
                        let seen = Observation::Probabilities { rows: &rows, heads };
                        owned.with(|stream| stream.observe(&mut policy, &seen)).unwrap();
                        done += n;
                    }
                    assert_eq!(owned.scores[..slots], expected, "{policy:?} {heads} {chunk}");
                }
            }
        }
    }
}

#[test]
fn logits_and_column_sums_say_the_same_as_probabilities() {
    let mut rng = Rng(8);
    let owned = filled(8, 20);
    let logits: Vec<f32> = (0..2 * 20).map(|_| rng.unit() * 8.0 - 4.0).collect();
    let lse: Vec<f32> = logits.chunks(20).map(|row| row.iter().map(|x| x.exp()).sum::<f32>().ln()).collect();
    let rows: Vec<f32> =
        logits.chunks(20).zip(&lse).flat_map(|(row, lse)| row.iter().map(move |x| (x - lse).exp())).collect();
    let sums: Vec<f32> = (0..20).map(|slot| (rows[slot] + rows[20 + slot]) / 2.0).collect();
    let scores = |policy: &mut dyn FnMut(&Slots<'_>, &Observation<'_>, &mut [f32])| {
        [
            Observation::Probabilities { rows: &rows, heads: 2 },
            Observation::Logits { rows: &logits, lse: &lse, heads: 2 },
            Observation::Columns { sums: &sums, queries: 1 },
        ]
        .map(|seen| {
            let mut scores = vec![0.0; 20];
            policy(&owned.slots(), &seen, &mut scores);
            scores
        })
    };
    let close = |all: [Vec<f32>; 3]| {
        let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(near(&all[0], &all[1]) && near(&all[0], &all[2]) && near(&all[0], &sums), "{all:?}");
    };
    close(scores(&mut |slots, seen, scores| { H2o::DEFAULT }.observe(slots, seen, scores).unwrap()));
    close(scores(&mut |slots, seen, scores| Tova.observe(slots, seen, scores).unwrap()));
}

#[test]
fn tova_has_only_the_last_query_and_the_mean_over_all_heads() {
    let owned = filled(4, 3);
    let rows = [9.0, 0.0, 0.0, 9.0, 0.0, 0.0, /* last */ 0.5, 0.25, 0.25, 0.1, 0.6, 0.3];
    let mut scores = [7.0; 4];
    Tova.observe(&owned.slots(), &Observation::Probabilities { rows: &rows, heads: 2 }, &mut scores).unwrap();
    assert_eq!(scores, [(0.5 + 0.1) / 2.0, (0.25 + 0.6) / 2.0, (0.25 + 0.3) / 2.0, 7.0]);
}

#[test]
fn snapkv_pools_over_neighbours() {
    let owned = filled(4, 8);
    let sums = [1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 4.0];
    let mut scores = [0.0; 8];
    snapkv_scores(&owned.slots(), &sums, Pool::Average, 5, &mut scores).unwrap();
    assert_eq!(scores, [0.2, 0.6, 0.6, 0.4, 0.4, 1.2, 0.8, 0.8]);
    snapkv_scores(&owned.slots(), &sums, Pool::Max, 5, &mut scores).unwrap();
    assert_eq!(scores, [1.0, 2.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0]);
    snapkv_scores(&owned.slots(), &sums, Pool::Average, 1, &mut scores).unwrap();
    assert_eq!(scores, sums);
    for kernel in [0, 4, 65] {
        let refused = snapkv_scores(&owned.slots(), &sums, Pool::Max, kernel, &mut scores);
        assert_eq!(refused, Err(EvictError::Parameter));
    }
    // A hole is no neighbour.
    let mut owned = filled(4, 8);
    owned.with(|stream| stream.retain(&[0b1001, 0b1111])).unwrap();
    snapkv_scores(&owned.slots(), &sums, Pool::Max, 3, &mut scores).unwrap();
    assert_eq!([scores[0], scores[3], scores[4], scores[7]], [2.0, 2.0, 2.0, 4.0]);
}

#[test]
fn chance_depends_on_the_position_alone() {
    let policy = Random { seed: 3, stream: 17 };
    let kept = |chunks: &[u32], budget| {
        let mut owned = Owned::new(16, 8);
        for &n in chunks {
            owned.with(|stream| stream.append_scored(&policy, n, Placement::Behind, |_| ())).unwrap();
            let mut keep = [0; 8];
            owned.with(|stream| stream.evict(&policy, &Protected::NEWEST, budget, &mut keep)).unwrap();
        }
        owned.kept()
    };
    let at_once = kept(&[100], 20);
    assert_eq!(kept(&[1; 100], 20), at_once);
    assert_eq!(kept(&[30, 1, 50, 19], 20), at_once);
    assert_ne!(at_once, (80..100).collect::<Vec<u32>>());
    let other = |seed, stream| (0..50).map(|p| Random { seed, stream }.newcomer(p)).collect::<Vec<f32>>();
    assert_ne!(other(3, 17), other(4, 17));
    assert_ne!(other(3, 17), other(3, 18));
    // Drawn without replacement: every position is kept about as often.
    let mut counts = [0; 40];
    for seed in 0..4_000 {
        let mut order: Vec<u32> = (0..40).collect();
        order.sort_by_key(|&p| rank(Random { seed, stream: 0 }.newcomer(p)));
        order[30..].iter().for_each(|&p| counts[p as usize] += 1);
    }
    assert!(counts.iter().all(|count| (870..1130).contains(count)), "{counts:?}");
}

#[test]
fn keys_alone() {
    let owned = filled(4, 3);
    let keys = [[3.0, 4.0], [6.0, 8.0], [-4.0, 3.0]];
    let mut sum = [0.0; 2];
    let mut running = KeySum { sum: &mut sum };
    keys.iter().for_each(|key| running.add(key).unwrap());
    let norm = running.norm();
    assert!((running.sum[0] - 0.4).abs() < 1e-6 && (running.sum[1] - 2.2).abs() < 1e-6);
    let dots: Vec<f32> = keys.iter().map(|key| key[0] * running.sum[0] + key[1] * running.sum[1]).collect();
    let mut scores = [0.0; 3];
    keydiff_scores(&owned.slots(), &dots, &[5.0, 10.0, 5.0], norm, &mut scores).unwrap();
    assert!((scores[0] - scores[1]).abs() < 1e-6, "length does not matter");
    assert!(scores[2] > scores[0], "the one that differs stays");
    keydiff_scores(&owned.slots(), &dots, &[0.0; 3], norm, &mut scores).unwrap();
    assert_eq!(scores, [0.0; 3]);
    knorm_scores(&owned.slots(), &[5.0, 10.0, 5.0], &mut scores).unwrap();
    assert_eq!(scores, [-5.0, -10.0, -5.0]);
    running.remove(&keys[2]).unwrap();
    assert!((running.sum[0] - 1.2).abs() < 1e-6 && (running.sum[1] - 1.6).abs() < 1e-6);
    running.add(&[0.0, 0.0]).unwrap();
    assert_eq!(running.add(&[1.0]), Err(EvictError::Shape));
    assert_eq!(knorm_scores(&owned.slots(), &[1.0; 2], &mut scores), Err(EvictError::Shape));
}

#[test]
fn the_network_is_two_layers_over_checked_weights() {
    let mut rng = Rng(9);
    let hidden = 5;
    let mut weights: Vec<f32> = (0..Mlp::len(hidden)).map(|_| rng.unit() - 0.5).collect();
    weights[8..16].iter_mut().for_each(|x| *x = x.abs() + 0.1);
    let mlp = Mlp::new(Mlp::VERSION, FEATURES, hidden, &weights).unwrap();
    let x: [f32; 8] = core::array::from_fn(|_| rng.unit() * 4.0 - 2.0);
    let mut expected = f64::from(weights[Mlp::len(hidden) - 1]);
    for unit in 0..5 {
        let mut z = f64::from(weights[16 + 40 + unit]);
        for i in 0..8 {
            z += f64::from(weights[16 + unit * 8 + i]) * f64::from(x[i] - weights[i]) / f64::from(weights[8 + i]);
        }
        expected += f64::from(weights[16 + 45 + unit]) * z * (z + 3.0).clamp(0.0, 6.0) / 6.0;
    }
    assert!((f64::from(mlp.score(x)) - expected).abs() < 1e-4);

    let owned = filled(4, 6);
    let arrays: Vec<Vec<f32>> = (0..4).map(|_| (0..6).map(|_| rng.unit()).collect()).collect();
    let inputs = FeatureInputs { sum: &arrays[0], last: &arrays[1], key_norms: &arrays[2], value_norms: &arrays[3] };
    let mut scores = [0.0; 6];
    learned_scores(&owned.slots(), &mlp, &inputs, &mut scores).unwrap();
    let third =
        [3.0_f32.ln_1p(), arrays[0][2], arrays[0][2] / 4.0, arrays[1][2], arrays[2][2], arrays[3][2], 2.0 / 6.0, 0.0];
    assert!((scores[2] - mlp.score(third)).abs() < 1e-6);

    let refused =
        |version, features, hidden, weights: &[f32]| Mlp::new(version, features, hidden, weights).unwrap_err();
    assert_eq!(refused(2, FEATURES, hidden, &weights), EvictError::Parameter);
    assert_eq!(refused(1, 7, hidden, &weights), EvictError::Parameter);
    assert_eq!(refused(1, FEATURES, 33, &weights), EvictError::Parameter);
    assert_eq!(refused(1, FEATURES, 6, &weights), EvictError::Shape);
    for (at, bad) in [(3, f32::NAN), (9, 0.0), (9, -1.0), (50, f32::INFINITY)] {
        let mut weights = weights.clone();
        weights[at] = bad;
        assert_eq!(refused(1, FEATURES, hidden, &weights), EvictError::Parameter);
    }
}

#[test]
fn quest_chooses_pages_and_evicts_none() {
    let bounds = [1.0, 9.0, f32::NAN, 5.0, 5.0, 2.0, 0.0];
    let mut chosen = [7; 7];
    assert_eq!(quest_columns(&bounds, 4, 1, &mut chosen), Ok(4));
    assert_eq!(chosen, [1, 1, 0, 0, 1, 0, 1], "the later of equal bounds; the first and the last always");
    assert_eq!(quest_columns(&bounds, 9, 1, &mut chosen), Ok(7));
    assert_eq!(chosen, [1; 7]);
    assert_eq!(quest_columns(&bounds, 2, 2, &mut chosen), Err(EvictError::Budget { protected: 3 }));
    assert_eq!(quest_columns(&bounds, 4, 1, &mut chosen[..6]), Err(EvictError::Shape));
    assert_eq!(quest_columns(&[], 1, 0, &mut []), Ok(0));
    let mut rng = Rng(10);
    for _ in 0..500 {
        let n = 1 + rng.below(30);
        let bounds: Vec<f32> = (0..n).map(|_| rng.score()).collect();
        let (dense, count) = (rng.below(3), 3 + rng.below(20));
        let mut chosen = vec![0; n as usize];
        let given = quest_columns(&bounds, count, dense, &mut chosen).unwrap();
        assert_eq!(given, n.min(count));
        let mut free: Vec<u64> = (dense..n - 1).map(|c| key(bounds[c as usize], c)).collect();
        free.sort_unstable();
        let out: Vec<u32> = free.iter().take((n - given) as usize).map(|&key| key as u32).collect();
        (0..n).for_each(|c| assert_eq!(chosen[c as usize] == 0, out.contains(&c)));
    }
}

#[test]
fn the_meter_and_the_error_identity() {
    let mut rng = Rng(11);
    for _ in 0..200 {
        let n = 2 + rng.below(40) as usize;
        let mut owned = filled(8, n as u32);
        let logits: Vec<f64> = (0..n).map(|_| f64::from(rng.unit()) * 6.0 - 3.0).collect();
        let values: Vec<f64> = (0..n).map(|_| f64::from(rng.unit())).collect();
        let keep: Vec<bool> = (0..n).map(|i| i == 0 || rng.below(2) == 0).collect();
        let sum = |part: &dyn Fn(usize) -> bool| (0..n).filter(|&i| part(i)).map(|i| logits[i].exp()).sum::<f64>();
        let out = |part: &dyn Fn(usize) -> bool| {
            (0..n).filter(|&i| part(i)).map(|i| logits[i].exp() * values[i]).sum::<f64>() / sum(part)
        };
        let (all, kept, gone) = (|_| true, |i: usize| keep[i], |i: usize| !keep[i]);
        let mass = sum(&gone) / sum(&all);
        let by_lse = mass_of_lse(sum(&kept).ln() as f32, sum(&all).ln() as f32);
        assert!((f64::from(by_lse) - mass).abs() < 1e-5);
        let row: Vec<f32> = logits.iter().map(|x| (x.exp() / sum(&all)) as f32).collect();
        let mut words = vec![0; n.div_ceil(8)];
        (0..n).filter(|&i| keep[i]).for_each(|i| words[i / 8] |= 1 << (i % 8));
        let by_row = mass_of_row(&owned.slots(), &row, &words).unwrap();
        assert!((f64::from(by_row) - mass).abs() < 1e-5);
        if mass > 0.0 {
            let mut error = [0.0];
            output_error(by_row, &[out(&kept) as f32], &[out(&gone) as f32], &mut error).unwrap();
            assert!((f64::from(error[0]) - (out(&kept) - out(&all))).abs() < 1e-5);
        }
        owned.with(|stream| stream.retain(&words)).unwrap();
        assert_eq!(mass_of_row(&owned.slots(), &row, &words), Ok(0.0), "what is gone already is not counted");
    }
    assert_eq!(mass_of_lse(f32::NEG_INFINITY, 1.0), 1.0);
    assert_eq!(mass_of_lse(1.0, 1.0), 0.0);
    let mut meter = Meter::default();
    assert_eq!(meter.mean(), 0.0);
    meter.add(0.5);
    meter.add(0.25);
    assert_eq!(meter.plus(meter).mean(), 0.375);
    assert_eq!(output_error(0.1, &[1.0], &[1.0, 2.0], &mut [0.0]), Err(EvictError::Shape));
}

#[test]
fn observations_of_another_shape_are_refused() {
    let owned = filled(4, 6);
    let mut scores = [1.0; 8];
    let mut refused = |policy: &mut dyn Policy, seen| {
        assert_eq!(policy.observe(&owned.slots(), &seen, &mut scores), Err(EvictError::Observation), "{seen:?}");
        assert_eq!(scores, [1.0; 8]);
    };
    let row = [0.0; 48];
    let (short, lse) = (&row[..7], [0.0; 2]);
    let mut h2o = H2o::DEFAULT;
    refused(&mut h2o, Observation::Probabilities { rows: short, heads: 1 });
    refused(&mut h2o, Observation::Probabilities { rows: &row[..6], heads: 0 });
    refused(&mut h2o, Observation::Probabilities { rows: &row[..42], heads: 1 }); // seven queries of six tokens
    refused(&mut h2o, Observation::Logits { rows: &row[..6], lse: &lse, heads: 1 });
    refused(&mut h2o, Observation::Columns { sums: &row[..5], queries: 1 });
    refused(&mut h2o, Observation::Scores(&row[..6]));
    let mut decayed = H2o { decay: 0.5, ..H2o::DEFAULT };
    refused(&mut decayed, Observation::Columns { sums: &row[..6], queries: 2 });
    refused(&mut Tova, Observation::Columns { sums: &row[..6], queries: 2 });
    refused(&mut External, Observation::Scores(&row[..5]));
    for wrong in
        [H2o { decay: 1.5, ..H2o::DEFAULT }, H2o { decay: f32::NAN, ..H2o::DEFAULT }, H2o { unbiased: true, ..decayed }]
    {
        assert_eq!(wrong.check(), Err(EvictError::Parameter));
    }
}
