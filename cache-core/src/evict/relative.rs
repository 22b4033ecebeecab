//! Positions that are ranks among what is kept, as StreamingLLM counts.

use super::error::EvictError;
use super::slots::Slots;

/// At which position queries and keys are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PositionMode {
    /// Their own. The next query's is `seen`, which must stay below what the model was made for.
    #[default]
    Absolute,
    /// The rank among live tokens. The next query's is `live`. Keys are rotated when they are read, or by [`deltas`].
    CacheRelative,
}

impl PositionMode {
    /// The position of the next query. O(1).
    ///
    /// # Errors
    /// `Position` where it is not below `max_positions`.
    pub const fn next(self, slots: &Slots<'_>, max_positions: u32) -> Result<u32, EvictError> {
        let position = match self {
            Self::Absolute => slots.seen,
            Self::CacheRelative => slots.live,
        };
        if position < max_positions { Ok(position) } else { Err(EvictError::Position) }
    }
}

/// By how much the key of each live slot, rotated to its own position, is to be rotated further: its rank among live tokens
/// less its position, never above 0. Slots without a live token get 0.
///
/// Always from the key as it was first stored: a rotation on top of a rotation adds up rounding errors, and angles that were
/// already applied. O(rows) where slots are in the order of positions, O(rows^2) at worst otherwise.
///
/// # Errors
/// `Shape` for fewer than `rows` deltas.
pub fn deltas(slots: &Slots<'_>, deltas: &mut [i32]) -> Result<(), EvictError> {
    let deltas = deltas.get_mut(..slots.rows as usize).ok_or(EvictError::Shape)?;
    deltas.fill(0);
    let ascending = slots.live().map(|(_, position)| position).is_sorted_by(|a, b| a < b);
    for ((slot, position), nth) in slots.live().zip(0_u32..) {
        let rank = if ascending {
            nth
        } else {
            slots.live().filter(|&(_, other)| other < position).fold(0_u32, |n, _| n.saturating_add(1))
        };
        if let Some(delta) = deltas.get_mut(slot as usize) {
            // Both fit: a rank is not above its position, and caches of 2^31 tokens do not exist.
            *delta = i32::try_from(position.saturating_sub(rank)).unwrap_or(i32::MAX).saturating_neg();
        }
    }
    Ok(())
}
