//! Budgets of the heads of a layer by what their tokens score, as Ada-KV gives them. The sum is exact.

use super::error::EvictError;
use super::order::key;
use super::protect::Protected;
use super::slots::Slots;

/// One head: its slots, and a score for each.
pub type Head<'a> = (Slots<'a>, &'a [f32]);

/// `mean` tokens a head on average. Each head has at least `floor`, and the rest goes to the tokens with the highest scores
/// of all heads behind those: a head's budget is what it then keeps. Of equal scores the newer token is in, then that of the
/// lower head. The budgets sum up to `mean` times the heads, or to all live tokens where these are fewer.
///
/// 65 passes over the tokens: for the end of a prompt, not for each step.
///
/// # Errors
/// `Recent`, `Pins`, `Budget` where `floor` is less than what is protected; `Parameter` for a floor above the mean; `Shape`
/// for as many heads as there are no budgets, or scores that are too short. Nothing is written then.
pub fn by_head_scores(
    mean: u32,
    floor: u32,
    protected: &Protected<'_>,
    heads: &[Head<'_>],
    budgets: &mut [u32],
) -> Result<(), EvictError> {
    by_scores_of(mean, floor, protected, heads.iter().copied(), budgets)
}

/// The same for heads that an iterator gives, each time anew.
///
/// # Errors
/// As [`by_head_scores`].
pub fn by_scores_of<'a>(
    mean: u32,
    floor: u32,
    protected: &Protected<'_>,
    heads: impl Iterator<Item = Head<'a>> + Clone,
    budgets: &mut [u32],
) -> Result<(), EvictError> {
    protected.check(floor)?;
    if floor > mean {
        return Err(EvictError::Parameter);
    }
    let is_short = |(slots, scores): Head<'_>| scores.len() < slots.rows as usize;
    if heads.clone().count() != budgets.len() || heads.clone().any(is_short) {
        return Err(EvictError::Shape);
    }
    let total = u64::from(mean).saturating_mul(budgets.len() as u64);
    let kept = |head: &Head<'_>, bound| kept_from(head, protected, bound).max(floor.min(head.0.live));
    let sum = |bound| heads.clone().fold(0_u64, |sum, head| sum.saturating_add(kept(&head, bound).into()));
    // The highest key such that keeping all from there on is too much.
    let mut bound = 0;
    if sum(bound) <= total {
        budgets.iter_mut().zip(heads.clone()).for_each(|(budget, (slots, _))| *budget = slots.live);
        return Ok(());
    }
    for bit in (0..64).rev() {
        let higher = bound | 1_u64 << bit;
        if sum(higher) > total {
            bound = higher;
        }
    }
    let above = bound.saturating_add(1);
    let mut left = total.saturating_sub(sum(above));
    for (budget, head) in budgets.iter_mut().zip(heads.clone()) {
        *budget = kept(&head, above);
        if left > 0 && kept(&head, bound) > *budget {
            *budget = budget.saturating_add(1);
            left = left.saturating_sub(1);
        }
    }
    Ok(())
}

/// Tokens that are protected or have at least some key.
fn kept_from((slots, scores): &Head<'_>, protected: &Protected<'_>, bound: u64) -> u32 {
    let is_kept = |slot: u32, position| {
        protected.contains(position, slots.seen)
            || scores.get(slot as usize).is_some_and(|&score| key(score, position) >= bound)
    };
    slots.live().filter(|&(slot, position)| is_kept(slot, position)).fold(0_u32, |n, _| n.saturating_add(1))
}
