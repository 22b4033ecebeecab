//! Compaction, carried out on a simulated row, and dead columns.

use kvfolio::evict::*;

use super::support::{Owned, Rng};

/// A stream with random holes, and what its pages hold: the position at each slot.
fn holes(rng: &mut Rng) -> (Owned, Vec<u32>) {
    let page_tokens = 1 << rng.below(7);
    let tokens = rng.below(200);
    let mut owned = Owned::new(page_tokens, 210_u32.div_ceil(page_tokens));
    owned.with(|stream| stream.append(tokens, Placement::Behind, |_| ())).unwrap();
    owned.scores.iter_mut().zip(&owned.positions).for_each(|(score, &position)| *score = position as f32);
    let part = rng.below(5);
    let keep: Vec<u64> =
        (0..210).map(|_| (0..part).fold(u64::MAX, |word, _| word & (rng.next() << 31 ^ rng.next()))).collect();
    owned.with(|stream| stream.retain(&keep)).unwrap();
    let bytes = owned.positions.clone();
    (owned, bytes)
}

/// Each live slot holds its own token and its own score.
fn assert_holds(owned: &Owned, bytes: &[u32]) {
    for (slot, position) in owned.slots().live() {
        assert_eq!(bytes[slot as usize], position);
        assert_eq!(owned.scores[slot as usize], position as f32);
    }
}

#[test]
fn moves_are_safe_in_place_and_close_all_holes() {
    let mut rng = Rng(3);
    for _ in 0..2_000 {
        let (mut owned, mut bytes) = holes(&mut rng);
        let p = owned.page_tokens;
        let group = 1 << rng.below(p.trailing_zeros() + 1);
        let (kept, before) = (owned.kept(), owned.counters);
        let mut moves = vec![SlotMove::default(); before.live as usize];
        let plan = plan_compaction(&owned.slots(), group, &mut moves).unwrap();
        assert_eq!((owned.counters, owned.kept()), (before, kept.clone()), "a plan changes nothing");
        let mut last = 0;
        for step in &moves[..plan.moves as usize] {
            assert!(step.to < step.from && step.to >= last && step.count > 0);
            assert!(step.from / p == (step.from + step.count - 1) / p, "within a page");
            assert!(step.to / p == (step.to + step.count - 1) / p, "within a page");
            assert!(step.to / p >= plan.first_written && step.to / p < plan.columns);
            assert!(group == 1 || (step.from % group == 0 && step.to % group == 0), "whole groups");
            bytes.copy_within(step.from as usize..(step.from + step.count) as usize, step.to as usize);
            last = step.to + step.count;
        }
        let columns = owned.slots().columns();
        owned.with(|stream| stream.commit_compaction(group)).unwrap();
        assert_eq!(owned.kept(), kept);
        assert_eq!((owned.counters.rows, owned.slots().columns()), (plan.rows, plan.columns));
        assert_eq!(plan.freed, columns - plan.columns);
        if group == 1 {
            assert_eq!(plan.rows, before.live, "no hole is left");
        } else {
            let units = plan.rows.div_ceil(group);
            assert!(
                (0..units).all(|unit| (0..group).any(|i| owned.slots().is_live(unit * group + i))),
                "no dead group"
            );
        }
        assert_holds(&owned, &bytes);
        let again = plan_compaction(&owned.slots(), group, &mut moves).unwrap();
        assert_eq!((again.moves, again.freed, again.first_written), (0, 0, again.columns));
    }
}

#[test]
fn columns_without_a_live_token_leave_the_row_and_nothing_moves() {
    let mut rng = Rng(4);
    for _ in 0..2_000 {
        let (mut owned, bytes) = holes(&mut rng);
        let p = owned.page_tokens as usize;
        let kept = owned.kept();
        let mut pages: Vec<&[u32]> = bytes.chunks(p).take(owned.slots().columns() as usize).collect();
        let mut dropped = Vec::new();
        owned.with(|stream| stream.drop_dead_columns(|column| dropped.push(column)));
        assert!(dropped.is_sorted());
        for &column in dropped.iter().rev() {
            pages.remove(column as usize);
        }
        assert_eq!(pages.len() as u32, owned.slots().columns());
        assert_holds(&owned, &pages.concat());
        assert_eq!(owned.kept(), kept);
        assert!(owned.valid[..pages.len()].iter().all(|&word| word != 0));
    }
}

#[test]
fn compaction_starts_when_a_page_can_be_had() {
    let mut owned = Owned::new(4, 5);
    owned.with(|stream| stream.append(17, Placement::Behind, |_| ())).unwrap();
    assert!(!is_sparse(&owned.slots(), 100), "nothing to gain");
    owned.with(|stream| stream.retain(&[0b1111, 0b0011, 0b0001, 0b0000, 0b0001])).unwrap();
    assert!(is_sparse(&owned.slots(), 50), "8 of 20 slots, 2 of 5 pages");
    assert!(!is_sparse(&owned.slots(), 39));
    let mut moves = [SlotMove::default(); 8];
    let plan = plan_compaction(&owned.slots(), 1, &mut moves).unwrap();
    assert_eq!(moves[..2], [SlotMove { from: 8, to: 6, count: 1 }, SlotMove { from: 16, to: 7, count: 1 }]);
    assert_eq!(plan, Compaction { moves: 2, rows: 8, columns: 2, freed: 3, first_written: 1 });
    assert_eq!(plan_compaction(&owned.slots(), 1, &mut moves[..1]), Err(EvictError::Shape));
    assert_eq!(plan_compaction(&owned.slots(), 3, &mut moves), Err(EvictError::Parameter));
    assert_eq!(plan_compaction(&owned.slots(), 8, &mut moves), Err(EvictError::Parameter));
    assert_eq!(owned.with(|stream| stream.commit_compaction(8)), Err(EvictError::Parameter));
}

#[test]
fn deltas_are_ranks_less_positions() {
    let mut owned = Owned::new(4, 3);
    owned.with(|stream| stream.append(10, Placement::Behind, |_| ())).unwrap();
    owned.with(|stream| stream.retain(&[0b1001, 0b0110, 0b0011])).unwrap(); // 0 3 5 6 8 9
    let mut given = [9; 12];
    deltas(&owned.slots(), &mut given).unwrap();
    assert_eq!(given, [0, 0, 0, -2, 0, -3, -3, 0, -4, -4, 9, 9]);
    assert_eq!(deltas(&owned.slots(), &mut given[..9]), Err(EvictError::Shape));
    assert_eq!(PositionMode::Absolute.next(&owned.slots(), 11), Ok(10));
    assert_eq!(PositionMode::Absolute.next(&owned.slots(), 10), Err(EvictError::Position));
    assert_eq!(PositionMode::CacheRelative.next(&owned.slots(), 10), Ok(6));
    // Slots out of order: ranks go by position.
    owned.with(|stream| stream.append(2, Placement::Reuse, |_| ())).unwrap();
    deltas(&owned.slots(), &mut given).unwrap();
    assert_eq!(given, [0, -4, -4, -2, 0, -3, -3, 0, -4, -4, 9, 9]);
}
