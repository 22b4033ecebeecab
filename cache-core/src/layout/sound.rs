//! Which combinations are unsound, apart from those that one format alone shows.

use super::codes::{Axis, Order, RopeState, Rotation};
use super::error::LayoutError;
use super::spec::PageLayoutSpec;

impl PageLayoutSpec {
    /// Whether K and V are one latent part.
    #[must_use]
    pub const fn is_mla(&self) -> bool {
        self.flags & Self::MLA != 0
    }

    pub(super) fn check(&self) -> Result<(), LayoutError> {
        if !self.page_tokens.is_power_of_two() || self.page_tokens > 256 {
            return Err(LayoutError::PageTokens);
        }
        if self.layers == 0 {
            return Err(LayoutError::Layers);
        }
        if self.kv_heads == 0 {
            return Err(LayoutError::Heads);
        }
        if !matches!(self.align, 0 | 16 | 32 | 64 | 128) {
            return Err(LayoutError::Align);
        }
        if self.flags & !(Self::MLA | Self::REROTATED) != 0 {
            return Err(LayoutError::Flags);
        }
        self.check_parts()?;
        self.check_order()?;
        self.check_rope()?;
        self.check_rotation()
    }

    /// Which parts there are.
    fn check_parts(&self) -> Result<(), LayoutError> {
        if self.k_dim == 0 {
            return Err(LayoutError::HeadDim);
        }
        if !self.is_mla() {
            if self.rope_dim != 0 || !self.rope_part.is_unset() {
                return Err(LayoutError::RopePart);
            }
            return if self.v_dim == 0 { Err(LayoutError::HeadDim) } else { Ok(()) };
        }
        if self.kv_heads != 1 {
            return Err(LayoutError::MlaHeads);
        }
        if self.v_dim != 0 || !self.v.is_unset() {
            return Err(LayoutError::MlaValue);
        }
        if (self.rope_dim == 0) != self.rope_part.is_unset() {
            return Err(LayoutError::RopePart);
        }
        if self.rope_dim != 0 && !self.rope_part.is_exact() {
            return Err(LayoutError::MlaRope);
        }
        Ok(())
    }

    fn check_order(&self) -> Result<(), LayoutError> {
        let along_tokens = self.k.axis == Axis::CHANNEL || self.v.axis == Axis::CHANNEL;
        if !self.order.is_known() || (self.order == Order::TOKENS && along_tokens) {
            return Err(LayoutError::Order);
        }
        Ok(())
    }

    /// A quantised key after RoPE would have to be decoded, rotated and encoded anew, a loss with every slide. The rope part of
    /// MLA is exact, so it may be rotated.
    fn check_rope(&self) -> Result<(), LayoutError> {
        if !self.rope.is_known() {
            return Err(LayoutError::Rope);
        }
        if self.turns_keys() && !self.k.is_exact() {
            return Err(LayoutError::Rerotate);
        }
        Ok(())
    }

    /// Whether K itself, after RoPE, may be rotated to another position.
    fn turns_keys(&self) -> bool {
        self.flags & Self::REROTATED != 0 && self.rope == RopeState::POST && !self.is_mla()
    }

    /// RoPE and a rotation of keys do not commute: it must come after RoPE, and RoPE cannot be applied again after it. The
    /// latent part of MLA has no RoPE.
    fn check_rotation(&self) -> Result<(), LayoutError> {
        if self.rotation == Rotation::NONE {
            let fields = u64::from(self.rotation_size | self.rotation_parts) | self.rotation_seed;
            return if fields == 0 { Ok(()) } else { Err(LayoutError::Rotation) };
        }
        let parts = self.rotation_parts;
        let both = Self::ROTATE_K | Self::ROTATE_V;
        let possible = if self.is_mla() { parts == both } else { parts != 0 && parts & !both == 0 };
        let n = self.rotation_size;
        if !self.rotation.is_known() || !possible || !n.is_power_of_two() || n < 2 {
            return Err(LayoutError::Rotation);
        }
        let divides = |part, dim: u32| parts & part == 0 || dim.checked_rem(n) == Some(0);
        if !divides(Self::ROTATE_K, self.k_dim) || !(self.is_mla() || divides(Self::ROTATE_V, self.v_dim)) {
            return Err(LayoutError::RotationDim);
        }
        let keys = parts & Self::ROTATE_K != 0 && !self.is_mla();
        if keys && (self.rope == RopeState::PRE || self.turns_keys()) {
            return Err(LayoutError::RotationRope);
        }
        Ok(())
    }
}
