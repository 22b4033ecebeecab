//! What a layout is asked to be.

use super::codes::{Order, RopeState, Rotation};
use super::format::TensorFormat;

/// Everything that a [`PageLayout`](super::PageLayout) follows from. Zero is the default where the field says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageLayoutSpec {
    /// P, tokens per page: a power of two in `1..=256`, a multiple of G where groups lie along tokens.
    pub page_tokens: u32,
    /// Layers whose rows lie in one page: all of a group, or 1 where each layer has a tensor of its own.
    pub layers: u32,
    /// KV heads. With MLA 1.
    pub kv_heads: u32,
    /// Elements of one head of K. With MLA those of the latent part.
    pub k_dim: u32,
    /// Elements of one head of V. With MLA 0.
    pub v_dim: u32,
    /// Elements of the rope part. Without MLA 0.
    pub rope_dim: u32,
    /// Format of K; with MLA of the latent part.
    pub k: TensorFormat,
    /// Format of V; with MLA not set.
    pub v: TensorFormat,
    /// Format of the rope part, an exact one; without MLA not set.
    pub rope_part: TensorFormat,
    /// Sections, layers and pages begin at multiples of this many bytes: 16, 32, 64 or 128; 0 = 16.
    pub align: u32,
    /// What lies outermost in a section.
    pub order: Order,
    /// Whether keys (with MLA: the rope part) are stored before or after RoPE. Must be said.
    pub rope: RopeState,
    /// What rows are multiplied by before they are stored. It helps formats with few bits; with an exact format it is
    /// allowed, costs one more rounding, and makes the layout lossy.
    pub rotation: Rotation,
    /// n, rows of the rotation's blocks: a power of two that divides the head dimension.
    pub rotation_size: u32,
    /// Which parts are rotated: [`Self::ROTATE_K`], [`Self::ROTATE_V`]. With MLA the latent part is both.
    pub rotation_parts: u32,
    /// Seed of the signs before the rotation; 0 = no signs.
    pub rotation_seed: u64,
    /// [`Self::MLA`], [`Self::REROTATED`].
    pub flags: u32,
    /// Changes whenever something outside the page that its bytes depend on does: calibrated scales, learned projections.
    pub generation: u64,
}

impl PageLayoutSpec {
    /// Flag: multi-head latent attention. K is the latent part with the rope part behind it; V is the latent part.
    pub const MLA: u32 = 1;
    /// Flag: stored keys may be rotated to another position than that at which they were computed.
    pub const REROTATED: u32 = 2;
    /// K is rotated.
    pub const ROTATE_K: u32 = 1;
    /// V is rotated.
    pub const ROTATE_V: u32 = 2;

    /// Keys after RoPE and values in one format, pages of 16 tokens: what most engines hold.
    #[must_use]
    pub const fn new(layers: u32, kv_heads: u32, head_dim: u32, format: TensorFormat) -> Self {
        Self {
            page_tokens: 16,
            layers,
            kv_heads,
            k_dim: head_dim,
            v_dim: head_dim,
            rope_dim: 0,
            k: format,
            v: format,
            rope_part: TensorFormat::of(super::ElementCode::new(0)),
            align: 0,
            order: Order::HEADS,
            rope: RopeState::POST,
            rotation: Rotation::NONE,
            rotation_size: 0,
            rotation_parts: 0,
            rotation_seed: 0,
            flags: 0,
            generation: 0,
        }
    }

    /// MLA: a latent part of `latent` elements in one format and a rope part of `rope` elements in another, exact one.
    #[must_use]
    pub const fn mla(layers: u32, latent: u32, rope: u32, format: TensorFormat, rope_part: TensorFormat) -> Self {
        let unset = TensorFormat::of(super::ElementCode::new(0));
        let spec = Self::new(layers, 1, latent, format);
        Self { v_dim: 0, v: unset, rope_dim: rope, rope_part, flags: Self::MLA, ..spec }
    }
}
