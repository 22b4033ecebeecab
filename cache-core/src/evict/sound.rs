//! Which combinations of page layout, removal and position mode are sound.

use super::error::EvictError;
use super::relative::PositionMode;
use crate::layout::{PageLayout, PageLayoutSpec, RopeState};

/// What becomes of a slot whose token is evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Removal {
    /// A hole, masked until its page has no live token and is freed. Nothing is copied.
    #[default]
    Hole,
    /// The next token is written there. Slots are no longer in the order of positions.
    Replace,
    /// Holes are closed now and then by moves.
    Compact,
}

/// Slots that move as one under a layout: 1, or the longest groups along tokens.
#[must_use]
pub fn move_unit(layout: &PageLayout) -> u32 {
    layout.k.block_tokens.max(layout.v.block_tokens).max(1)
}

/// Whether tokens in pages of a layout can be removed in a way, and be seen at positions of a mode.
///
/// | keys and values | hole | replace | compact | absolute | cache relative |
/// |---|---|---|---|---|---|
/// | exact, or groups along channels | yes | yes | yes | yes | see keys |
/// | groups along tokens | yes | `GroupOfTokens` | whole groups, see [`move_unit`] | yes | see keys |
/// | keys before RoPE, or without RoPE | | | | yes | yes |
/// | exact keys after RoPE | | | | yes | yes, from the stored key |
/// | the same, quantised or rotated by Hadamard | | | | yes | `Keys` |
///
/// # Errors
/// Those of the table, and `Layout`. O(1).
pub fn check_sound(layout: &PageLayout, removal: Removal, mode: PositionMode) -> Result<(), EvictError> {
    layout.verify().map_err(|_| EvictError::Layout)?;
    if removal == Removal::Replace && move_unit(layout) > 1 {
        return Err(EvictError::GroupOfTokens);
    }
    if mode == PositionMode::Absolute {
        return Ok(());
    }
    // What RoPE turns of latent attention is a part of its own, always exact and never rotated.
    let is_turnable = layout.rope_part.exists()
        || layout.k.format.is_exact() && layout.rotation_parts & PageLayoutSpec::ROTATE_K == 0;
    if layout.rope != RopeState::POST || is_turnable { Ok(()) } else { Err(EvictError::Keys) }
}
