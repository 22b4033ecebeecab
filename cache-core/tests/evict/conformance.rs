//! What every policy has to keep: counters, pins, the newest token, budgets, all lengths, all offsets in pages, chunks, holes,
//! reused slots and compaction; step by step against the plain list.

use kvfolio::evict::*;

use super::support::{Naive, Owned, Rng};

/// How tokens of this test attend: row of query t, a probability per position.
fn attention(stream: u64, t: u32) -> Vec<f32> {
    let mut rng = Rng(u64::from(t) * 1_000 + stream);
    let raw: Vec<f32> = (0..=t).map(|_| rng.unit() * rng.unit() + 1e-3).collect();
    let sum: f32 = raw.iter().sum();
    raw.iter().map(|x| x / sum).collect()
}

/// One policy over a stream of pages and over the plain list.
struct Case<P> {
    policy: P,
    takes_attention: bool,
}

fn run<P: Policy + Clone>(
    case: &Case<P>,
    page_tokens: u32,
    budget: u32,
    tokens: u32,
    removal: Removal,
    protected: &Protected<'_>,
) {
    let Case { policy, takes_attention } = case;
    let mut policy = policy.clone();
    let capacity = match removal {
        Removal::Hole => tokens + page_tokens,
        _ => (budget + 1).next_multiple_of(page_tokens) + page_tokens,
    };
    let mut owned = Owned::new(page_tokens, capacity.div_ceil(page_tokens).max(1));
    let mut naive = Naive::default();
    // What the pages hold: the position that was written to each slot.
    let mut bytes = vec![u32::MAX; owned.positions.len()];
    for t in 0..tokens {
        let placement = if removal == Removal::Replace { Placement::Reuse } else { Placement::Behind };
        let mut slot = u32::MAX;
        owned.with(|stream| stream.append_scored(&policy, 1, placement, |given| slot = given)).unwrap();
        bytes[slot as usize] = t;
        naive.append(policy.newcomer(t));

        if *takes_attention {
            let row = attention(budget.into(), t);
            let mut by_slot = vec![0.0; owned.counters.rows as usize];
            owned.slots().live().for_each(|(slot, position)| by_slot[slot as usize] = row[position as usize]);
            let seen = Observation::Probabilities { rows: &by_slot, heads: 1 };
            owned.with(|stream| stream.observe(&mut policy, &seen)).unwrap();
            // The list in the order of positions, as if it were a cache without pages.
            let mut line = Owned::new(64, naive.seen.div_ceil(64));
            line.with(|stream| stream.append(naive.seen, Placement::Behind, |_| ())).unwrap();
            let mut keep = vec![0; line.valid.len()];
            naive.tokens.iter().for_each(|token| keep[token.0 as usize / 64] |= 1 << (token.0 % 64));
            line.with(|stream| stream.retain(&keep)).unwrap();
            naive.tokens.iter().for_each(|token| line.scores[token.0 as usize] = token.1);
            line.with(|stream| {
                stream.observe(&mut policy.clone(), &Observation::Probabilities { rows: &row, heads: 1 })
            })
            .unwrap();
            (0..naive.tokens.len()).for_each(|i| naive.tokens[i].1 = line.scores[naive.tokens[i].0 as usize]);
        }

        let mut keep = vec![0; owned.valid.len()];
        let gone = owned.with(|stream| stream.evict(&policy, protected, budget, &mut keep)).unwrap();
        naive.evict(protected, budget, |score, position| policy.ordered(score, position, t + 1));
        assert_eq!(owned.kept(), naive.kept(), "P {page_tokens}, budget {budget}, token {t}, {removal:?}");
        assert_eq!(gone, u32::from(t >= budget));

        match removal {
            Removal::Hole => {}
            Removal::Replace => assert!(owned.counters.rows <= budget + 1),
            Removal::Compact => {
                let mut dropped = Vec::new();
                owned.with(|stream| stream.drop_dead_columns(|column| dropped.push(column)));
                for column in dropped.into_iter().rev() {
                    let first = (column * page_tokens) as usize;
                    bytes.drain(first..first + page_tokens as usize);
                }
                bytes.resize(owned.positions.len(), u32::MAX);
                if owned.slots().rows + 1 > owned.positions.len() as u32 || is_sparse(&owned.slots(), 60) {
                    let mut moves = vec![SlotMove::default(); owned.counters.live as usize];
                    let plan = plan_compaction(&owned.slots(), 1, &mut moves).unwrap();
                    for step in &moves[..plan.moves as usize] {
                        bytes.copy_within(step.from as usize..(step.from + step.count) as usize, step.to as usize);
                    }
                    owned.with(|stream| stream.commit_compaction(1)).unwrap();
                    assert_eq!(owned.slots().columns(), owned.counters.live.div_ceil(page_tokens));
                }
            }
        }
        let counters = owned.counters;
        assert_eq!((counters.seen, counters.live), (t + 1, naive.tokens.len() as u32));
        assert!(counters.live <= counters.rows && counters.live == (t + 1).min(budget));
        owned.slots().live().for_each(|(slot, position)| assert_eq!(bytes[slot as usize], position));
        let is_there = |position: u32| owned.kept().contains(&position);
        assert!((t + 1 - protected.recent.min(t + 1)..=t).all(is_there), "the newest stay");
        assert!((0..protected.sinks.min(t + 1)).all(is_there), "sinks stay");
        assert!(
            protected.pins.iter().flat_map(|pin| pin.start..pin.end).filter(|&pin| pin <= t).all(is_there),
            "pins stay"
        );
    }
}

fn suite<P: Policy + Clone>(policy: P, takes_attention: bool) {
    let case = Case { policy, takes_attention };
    for page_tokens in [1, 2, 4, 16, 64] {
        for removal in [Removal::Hole, Removal::Replace, Removal::Compact] {
            for budget in 1..=8 {
                for tokens in [0, 1, budget - 1, budget, budget + 1, 40] {
                    run(&case, page_tokens, budget, tokens, removal, &Protected::NEWEST);
                }
                if budget >= 6 {
                    let protected =
                        Protected { pins: &[Pin { start: 1, end: 2 }, Pin { start: 5, end: 6 }], sinks: 1, recent: 2 };
                    run(&case, page_tokens, budget, 40, removal, &protected);
                }
            }
            // Every offset in a page at the end.
            for tokens in 64..=64 + page_tokens.min(17) {
                run(
                    &case,
                    page_tokens,
                    21,
                    tokens,
                    removal,
                    &Protected { pins: &[Pin { start: 30, end: 33 }], sinks: 4, recent: 5 },
                );
            }
        }
    }
}

#[test]
fn oldest() {
    suite(Oldest, false);
}

#[test]
fn random() {
    suite(Random { seed: 5, stream: 9 }, false);
}

#[test]
fn heavy_hitters() {
    suite(H2o::DEFAULT, true);
    suite(H2o { decay: 0.75, diagonal: false, ..H2o::DEFAULT }, true);
    suite(H2o { unbiased: true, ..H2o::DEFAULT }, true);
}

#[test]
fn tova() {
    suite(Tova, true);
}

/// A user's own: the sum of squares of attention.
#[derive(Clone)]
struct Squares;

impl Policy for Squares {
    fn observe(&mut self, slots: &Slots<'_>, seen: &Observation<'_>, scores: &mut [f32]) -> Result<(), EvictError> {
        let &Observation::Probabilities { rows, .. } = seen else { return Err(EvictError::Observation) };
        slots.live().for_each(|(slot, _)| scores[slot as usize] += rows[slot as usize] * rows[slot as usize]);
        Ok(())
    }
}

#[test]
fn a_policy_of_the_user() {
    suite(Squares, true);
}

/// Scores that a caller writes, with ties and NaN.
#[derive(Clone)]
struct Given;

impl Policy for Given {
    fn newcomer(&self, position: u32) -> f32 {
        Rng(position.into()).score()
    }
}

#[test]
fn scores_of_the_caller() {
    suite(Given, false);
}

/// Heads are streams of their own: in another order they keep the same.
#[test]
fn heads_do_not_know_each_other() {
    let kept = |order: [u64; 3]| {
        let mut heads: Vec<(u64, Owned)> = order.iter().map(|&head| (head, Owned::new(8, 10))).collect();
        for t in 0..70 {
            for (head, owned) in &mut heads {
                owned.with(|stream| stream.append_scored(&H2o::DEFAULT, 1, Placement::Behind, |_| ())).unwrap();
                let row = attention(*head, t);
                let seen = Observation::Columns { sums: &row, queries: 1 };
                owned.with(|stream| stream.observe(&mut { H2o::DEFAULT }, &seen)).unwrap();
                let mut keep = [0; 10];
                owned.with(|stream| stream.evict(&H2o::DEFAULT, &Protected::NEWEST, 20, &mut keep)).unwrap();
            }
        }
        heads.sort_by_key(|head| head.0);
        heads.iter().map(|head| head.1.kept()).collect::<Vec<_>>()
    };
    assert_eq!(kept([0, 1, 2]), kept([2, 0, 1]));
}

#[test]
fn what_is_taken_back_does_not_return() {
    let mut rng = Rng(12);
    for _ in 0..1_000 {
        let page_tokens = 1 << rng.below(5);
        let mut owned = Owned::new(page_tokens, 80_u32.div_ceil(page_tokens));
        let mut seen = 0;
        let mut kept: Vec<u32> = Vec::new();
        for _ in 0..12 {
            let n = rng.below(6);
            let placement = if rng.below(2) == 0 { Placement::Behind } else { Placement::Reuse };
            owned.with(|stream| stream.append(n, placement, |_| ())).unwrap();
            kept.extend(seen..seen + n);
            seen += n;
            if rng.below(2) == 0 {
                let keep: Vec<u64> = owned.valid.iter().map(|_| rng.next() | rng.next()).collect();
                let stays = |slot: u32| keep[(slot / page_tokens) as usize] >> (slot % page_tokens) & 1 == 1;
                let gone: Vec<u32> = owned.slots().live().filter(|&(slot, _)| !stays(slot)).map(|(_, p)| p).collect();
                owned.with(|stream| stream.retain(&keep)).unwrap();
                kept.retain(|p| !gone.contains(p));
            }
            if rng.below(3) == 0 {
                let len = rng.below(seen + 1);
                owned.with(|stream| stream.truncate(len)).unwrap();
                kept.retain(|&p| p < len);
                seen = len;
            }
            assert_eq!((owned.kept(), owned.counters.seen), (kept.clone(), seen));
        }
    }
}
