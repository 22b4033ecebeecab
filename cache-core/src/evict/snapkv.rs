//! SnapKV: what the last queries of a prompt look at, smoothed over neighbours.

use super::error::EvictError;
use super::slots::Slots;

/// How neighbours are made one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pool {
    /// Their sum over the kernel's size; beyond the ends there is 0, so that the first and last tokens weigh less.
    #[default]
    Average,
    /// The greatest of those that exist.
    Max,
}

/// Scores of a prompt's tokens from the probabilities that the last W queries gave them, summed over the queries and reduced
/// over heads (`sums`, one per slot; what is not live counts 0). `kernel`, an odd number, is over live tokens in slot order,
/// not over holes. The window itself is to be protected: `recent` = W. O(live * kernel).
///
/// # Errors
/// `Parameter` for an even kernel, or one above 63; `Shape`, nothing is written then.
pub fn snapkv_scores(
    slots: &Slots<'_>,
    sums: &[f32],
    pool: Pool,
    kernel: u32,
    scores: &mut [f32],
) -> Result<(), EvictError> {
    if kernel.is_multiple_of(2) || kernel > 63 {
        return Err(EvictError::Parameter);
    }
    let rows = slots.rows as usize;
    let (sums, scores) = sums.get(..rows).zip(scores.get_mut(..rows)).ok_or(EvictError::Shape)?;
    let half = kernel as usize / 2;
    let sum_of = |slot: u32| sums.get(slot as usize).copied().unwrap_or(0.0);
    // The first neighbour of the token at hand, and how many tokens lie between.
    let mut behind = slots.live();
    let mut gap = 0;
    for (slot, _) in slots.live() {
        if gap > half {
            let _ = behind.next();
            gap = half;
        }
        let around = behind.clone().take(gap.saturating_add(half).saturating_add(1)).map(|(slot, _)| sum_of(slot));
        let pooled = match pool {
            Pool::Average => around.fold(0.0, |sum, x| sum + x) / kernel as f32,
            Pool::Max => around.fold(f32::NEG_INFINITY, f32::max),
        };
        if let Some(score) = scores.get_mut(slot as usize) {
            *score = pooled;
        }
        gap = gap.saturating_add(1);
    }
    Ok(())
}
