//! Which tokens stay: pure functions of slots, scores and the protected set.

use super::error::EvictError;
use super::order::key;
use super::protect::Protected;
use super::slots::{Slots, place};

/// Keeps the `budget` best tokens: the others of the lowest (score, position) go, what is protected stays. Writes a word per
/// column to `keep`, in the form of [`Slots::valid`], and gives the number of bits. Scores are one per slot.
///
/// One pass over the candidates if few go, 17 at most.
///
/// # Errors
/// `Recent`, `Pins`, `Budget` of [`Protected::check`]; `Shape` where `scores` or `keep` are too short. Nothing is written then.
pub fn keep_best(
    slots: &Slots<'_>,
    scores: &[f32],
    protected: &Protected<'_>,
    budget: u32,
    keep: &mut [u64],
) -> Result<u32, EvictError> {
    keep_best_by(slots, of_slots(slots, scores)?, protected, budget, keep)
}

/// The same with scores that a function gives for slot and position.
///
/// # Errors
/// As [`keep_best`].
pub fn keep_best_by(
    slots: &Slots<'_>,
    score: impl Fn(u32, u32) -> f32 + Copy,
    protected: &Protected<'_>,
    budget: u32,
    keep: &mut [u64],
) -> Result<u32, EvictError> {
    protected.check(budget)?;
    let candidates = Candidates { slots, score, protected };
    let surplus = slots.live.saturating_sub(budget);
    if surplus as usize <= FEW {
        let lowest = candidates.few_lowest(surplus as usize);
        return retain(slots, keep, |go| lowest.into_iter().take(surplus as usize).for_each(|(_, slot)| go(slot)));
    }
    let last = candidates.lowest(surplus);
    retain(slots, keep, |go| candidates.up_to(last, go))
}

/// Keeps what is protected and every token whose score is `threshold` or more; NaN goes. The rest as [`keep_best`]. With
/// `recent` as the delay, a decision that was made when a token came is carried out when it leaves the newest ones. O(live).
///
/// # Errors
/// `Recent`, `Pins`, `Shape` as [`keep_best`]; `Parameter` for a threshold that is NaN.
pub fn keep_above(
    slots: &Slots<'_>,
    scores: &[f32],
    protected: &Protected<'_>,
    threshold: f32,
    keep: &mut [u64],
) -> Result<u32, EvictError> {
    protected.check(u32::MAX)?;
    if threshold.is_nan() {
        return Err(EvictError::Parameter);
    }
    let candidates = Candidates { slots, score: of_slots(slots, scores)?, protected };
    retain(slots, keep, |go| candidates.up_to(key(threshold, 0).saturating_sub(1), go))
}

/// Adds to `keep` what `other` keeps: one set for all heads or layers that share a table. Gives the number of bits. O(columns).
///
/// # Errors
/// `Shape` for lengths that differ.
pub fn keep_union(keep: &mut [u64], other: &[u64]) -> Result<u32, EvictError> {
    if keep.len() != other.len() {
        return Err(EvictError::Shape);
    }
    keep.iter_mut().zip(other).for_each(|(word, other)| *word |= other);
    Ok(keep.iter().fold(0, |sum, word| sum.saturating_add(word.count_ones())))
}

/// Scores by slot.
fn of_slots<'a>(slots: &Slots<'_>, scores: &'a [f32]) -> Result<impl Fn(u32, u32) -> f32 + Copy + use<'a>, EvictError> {
    let scores = scores.get(..slots.rows as usize).ok_or(EvictError::Shape)?;
    Ok(move |slot: u32, _| scores.get(slot as usize).copied().unwrap_or(f32::NAN))
}

/// How many tokens at most go in the usual case: those of a step.
const FEW: usize = 4;

/// Live tokens that are not protected.
struct Candidates<'a, S> {
    slots: &'a Slots<'a>,
    /// Of slot and position.
    score: S,
    protected: &'a Protected<'a>,
}

impl<S: Fn(u32, u32) -> f32> Candidates<'_, S> {
    /// Calls `each` with key and slot.
    #[inline]
    fn for_each(&self, mut each: impl FnMut(u64, u32)) {
        let seen = self.slots.seen;
        self.slots.for_each(|slot, position| {
            if !self.protected.contains(position, seen) {
                each(key((self.score)(slot, position), position), slot);
            }
        });
    }

    /// The `n` lowest, ascending, of which there are as many; behind them what has no meaning.
    fn few_lowest(&self, n: usize) -> [(u64, u32); FEW] {
        let mut lowest = [(u64::MAX, u32::MAX); FEW];
        let mut bound = if n == 0 { 0 } else { u64::MAX };
        self.for_each(|key, slot| {
            if key < bound {
                let mut next = (key, slot);
                for at in lowest.iter_mut().take(n) {
                    if next.0 < at.0 {
                        core::mem::swap(at, &mut next);
                    }
                    bound = at.0;
                }
            }
        });
        lowest
    }

    /// Calls `each` with the slots of keys up to `last`.
    fn up_to(&self, last: u64, each: &mut dyn FnMut(u32)) {
        self.for_each(|key, slot| {
            if key <= last {
                each(slot);
            }
        });
    }

    /// The `n`-th lowest key.
    fn lowest(&self, n: u32) -> u64 {
        // Four bits at a time from the top: in which sixteenth of what is left the wanted one lies.
        let (mut prefix, mut wanted) = (0_u64, n);
        for shift in (0..64_u32).step_by(4).rev() {
            let mut counts = [0_u32; 16];
            let above = u64::MAX.checked_shl(shift.saturating_add(4)).unwrap_or(0);
            self.for_each(|key, _| {
                let digit = key.wrapping_shr(shift) & 15;
                if key & above == prefix
                    && let Some(count) = counts.get_mut(digit as usize)
                {
                    *count = count.saturating_add(1);
                }
            });
            for (digit, count) in (0_u64..).zip(counts) {
                if wanted <= count {
                    prefix |= digit << shift;
                    break;
                }
                wanted = wanted.saturating_sub(count);
            }
        }
        prefix
    }
}

/// What is valid, without the slots that `gone` tells.
fn retain(slots: &Slots<'_>, keep: &mut [u64], gone: impl FnOnce(&mut dyn FnMut(u32))) -> Result<u32, EvictError> {
    let columns = slots.columns() as usize;
    let (kept, valid) = keep.get_mut(..columns).zip(slots.valid.get(..columns)).ok_or(EvictError::Shape)?;
    kept.copy_from_slice(valid);
    gone(&mut |slot| {
        let (column, mask) = place(slot, slots.page_tokens);
        if let Some(word) = kept.get_mut(column) {
            *word &= !mask;
        }
    });
    Ok(kept.iter().fold(0, |sum, word| sum.saturating_add(word.count_ones())))
}
