//! Format of one tensor: how elements, scales and zeros are stored, and what a choice of these must satisfy.

use super::codes::{Axis, ElementCode, ScaleMode};
use super::error::LayoutError;
use super::pod::pod;

pod! {
    /// How K, V or the rope part of MLA is stored. All bits zero = not set.
    pub struct TensorFormat: 24 {
        /// How one element is stored.
        pub element: ElementCode,
        /// Along what groups lie: integer formats only.
        pub axis: Axis,
        /// G, elements that share a scale: 16, 32, 64, 128, or 0 = the whole row where groups lie along channels. Formats
        /// with a fixed group take 0 or that. In a [`PageLayout`](super::PageLayout) it is the number that 0 stood for.
        pub group: u32,
        /// How far one scale reaches: FP8 formats only.
        pub scale: ScaleMode,
        /// [`Self::POWER_OF_TWO`], [`Self::DYNAMIC`].
        pub flags: u32,
        /// 0
        pub reserved: u32,
    }
}

/// What kind of format an element code belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Exact,
    Integer,
    Fp8,
    Fixed,
}

/// What an element code fixes.
#[derive(Clone, Copy)]
struct Traits {
    family: Family,
    bits: u32,
    /// Elements of a group, where that is fixed.
    block: u32,
    /// Bytes in front of each group's codes.
    inline: u32,
    scale: u32,
    zero: u32,
}

/// A format together with a row of d elements: what the page needs to know.
#[derive(Clone, Copy)]
pub(super) struct Resolved {
    pub(super) format: TensorFormat,
    pub(super) block_tokens: u32,
    pub(super) groups: u32,
    pub(super) group_bytes: u32,
    pub(super) scale_bytes: u32,
    pub(super) zero_bytes: u32,
    pub(super) static_scales: u32,
}

impl TensorFormat {
    /// Flag: scales are powers of two, so that decoding is exact. FP8 only.
    pub const POWER_OF_TWO: u32 = 1;
    /// Flag: scales are computed from what is stored. Needs [`ScaleMode::TOKEN_HEAD`], which always computes them: the flag
    /// says that the caller counts on it.
    pub const DYNAMIC: u32 = 2;

    /// 32-bit float.
    pub const F32: Self = Self::of(ElementCode::F32);
    /// IEEE half.
    pub const F16: Self = Self::of(ElementCode::F16);
    /// bfloat16.
    pub const BF16: Self = Self::of(ElementCode::BF16);
    /// Blocks of 32 with one f16 scale, 8.5 bits per element.
    pub const Q8_0: Self = Self::of(ElementCode::Q8_0);
    /// Blocks of 32 with one f16 scale, 4.5 bits per element.
    pub const Q4_0: Self = Self::of(ElementCode::Q4_0);
    /// Groups of 16 with one E4M3 scale, 4.5 bits per element.
    pub const NVFP4: Self = Self::of(ElementCode::NVFP4);
    /// Groups of 32 with one E8M0 scale, 4.25 bits per element.
    pub const MXFP4: Self = Self::of(ElementCode::MXFP4);

    /// A format without options.
    #[must_use]
    pub const fn of(element: ElementCode) -> Self {
        Self { element, axis: Axis::NONE, group: 0, scale: ScaleMode::NONE, flags: 0, reserved: 0 }
    }

    /// An integer format with groups of `group` channels of a token; 0 = the whole row.
    #[must_use]
    pub const fn per_token(element: ElementCode, group: u32) -> Self {
        Self { axis: Axis::TOKEN, group, ..Self::of(element) }
    }

    /// An integer format with groups of `group` tokens of a channel.
    #[must_use]
    pub const fn per_channel(element: ElementCode, group: u32) -> Self {
        Self { axis: Axis::CHANNEL, group, ..Self::of(element) }
    }

    /// An FP8 format.
    #[must_use]
    pub const fn fp8(element: ElementCode, scale: ScaleMode) -> Self {
        Self { scale, ..Self::of(element) }
    }

    /// Whether nothing is said.
    #[must_use]
    pub const fn is_unset(&self) -> bool {
        self.element.get() | self.axis.get() | self.group | self.scale.get() | self.flags | self.reserved == 0
    }

    /// Whether an element is a plain number of its own: f32, f16 or bf16.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        matches!(self.element, ElementCode::F32 | ElementCode::F16 | ElementCode::BF16)
    }

    /// Bits of one code, scales and zeros apart; 0 for an unknown format.
    #[must_use]
    pub const fn code_bits(&self) -> u32 {
        match traits(self.element) {
            Some(traits) => traits.bits,
            None => 0,
        }
    }

    /// Bytes that lie in front of the codes of each group: the scale of q8_0 and q4_0.
    #[must_use]
    pub const fn inline_bytes(&self) -> u32 {
        match traits(self.element) {
            Some(traits) => traits.inline,
            None => 0,
        }
    }

    /// Checks the format against rows of `dim` elements and pages of `page_tokens`, and fills its group in.
    pub(super) fn resolve(&self, dim: u32, heads: u32, page_tokens: u32) -> Result<Resolved, LayoutError> {
        let traits = traits(self.element).ok_or(LayoutError::Format)?;
        let known = Self::POWER_OF_TWO | Self::DYNAMIC;
        if self.reserved != 0 || self.flags & !known != 0 || !self.axis.is_known() || !self.scale.is_known() {
            return Err(LayoutError::Format);
        }
        self.check_scale(&traits)?;
        let group = self.group_of(&traits, dim)?;
        let channel = self.axis == Axis::CHANNEL;
        if channel && page_tokens.checked_rem(group) != Some(0) {
            return Err(LayoutError::GroupPage);
        }
        if !channel && dim.checked_rem(group) != Some(0) {
            return Err(LayoutError::GroupDim);
        }
        let code_bits = u64::from(group).saturating_mul(u64::from(traits.bits));
        if !code_bits.is_multiple_of(8) {
            return Err(LayoutError::HeadDim);
        }
        let code_bytes = u32::try_from(code_bits >> 3).map_err(|_| LayoutError::TooLarge)?;
        let stored = self.scale == ScaleMode::TOKEN_HEAD || traits.family != Family::Fp8;
        Ok(Resolved {
            format: Self { group: if traits.family == Family::Exact { 0 } else { self.kept(&traits, group) }, ..*self },
            block_tokens: if channel { group } else { 1 },
            groups: if channel { dim } else { dim.checked_div(group).unwrap_or(0) },
            group_bytes: code_bytes.checked_add(traits.inline).ok_or(LayoutError::TooLarge)?,
            scale_bytes: if stored { traits.scale } else { 0 },
            zero_bytes: traits.zero,
            static_scales: match (self.scale, self.element) {
                (ScaleMode::TENSOR, _) | (_, ElementCode::NVFP4) => 1,
                (ScaleMode::HEAD, _) => heads,
                _ => 0,
            },
        })
    }

    fn check_scale(&self, traits: &Traits) -> Result<(), LayoutError> {
        let fp8 = traits.family == Family::Fp8;
        if fp8 != (self.scale != ScaleMode::NONE) {
            return Err(LayoutError::ScaleMode);
        }
        if self.flags & Self::DYNAMIC != 0 && self.scale != ScaleMode::TOKEN_HEAD {
            return Err(LayoutError::DynamicScale);
        }
        if self.flags & Self::POWER_OF_TWO != 0 && !fp8 {
            return Err(LayoutError::PowerOfTwo);
        }
        if (traits.family == Family::Integer) != (self.axis != Axis::NONE) {
            return Err(LayoutError::Axis);
        }
        Ok(())
    }

    /// G with its default filled in. A row of an exact format counts as one group.
    fn group_of(&self, traits: &Traits, dim: u32) -> Result<u32, LayoutError> {
        let chosen = matches!(self.group, 16 | 32 | 64 | 128);
        let row = self.group == 0 || self.group == dim;
        let group = match traits.family {
            Family::Exact if self.group == 0 => Some(dim),
            Family::Fixed if self.group == 0 || self.group == traits.block => Some(traits.block),
            Family::Integer if self.axis == Axis::CHANNEL && chosen => Some(self.group),
            Family::Integer if self.axis == Axis::TOKEN && chosen => Some(self.group),
            Family::Integer if self.axis == Axis::TOKEN && row => Some(dim),
            Family::Fp8 if self.scale == ScaleMode::TOKEN_HEAD && chosen => Some(self.group),
            Family::Fp8 if self.scale == ScaleMode::TOKEN_HEAD && row => Some(dim),
            Family::Fp8 if self.scale != ScaleMode::TOKEN_HEAD && self.group == 0 => Some(dim),
            _ => None,
        };
        group.ok_or(LayoutError::Group)
    }

    /// The group that the layout shows: none where one scale serves the whole tensor or head.
    fn kept(&self, traits: &Traits, group: u32) -> u32 {
        let fixed = traits.family == Family::Fp8 && self.scale != ScaleMode::TOKEN_HEAD;
        if fixed { 0 } else { group }
    }
}

const fn traits(element: ElementCode) -> Option<Traits> {
    Some(match element {
        ElementCode::F32 => plain(Family::Exact, 32),
        ElementCode::F16 | ElementCode::BF16 => plain(Family::Exact, 16),
        ElementCode::INT8 => Traits { scale: 2, zero: 2, ..plain(Family::Integer, 8) },
        ElementCode::INT4 => Traits { scale: 2, zero: 2, ..plain(Family::Integer, 4) },
        ElementCode::INT2 => Traits { scale: 2, zero: 2, ..plain(Family::Integer, 2) },
        ElementCode::INT8_SYMMETRIC => Traits { scale: 2, ..plain(Family::Integer, 8) },
        ElementCode::FP8_E4M3FN | ElementCode::FP8_E4M3FNUZ | ElementCode::FP8_E5M2 => {
            Traits { scale: 4, ..plain(Family::Fp8, 8) }
        }
        ElementCode::Q8_0 => Traits { block: 32, inline: 2, ..plain(Family::Fixed, 8) },
        ElementCode::Q4_0 => Traits { block: 32, inline: 2, ..plain(Family::Fixed, 4) },
        ElementCode::NVFP4 => Traits { block: 16, scale: 1, ..plain(Family::Fixed, 4) },
        ElementCode::MXFP4 => Traits { block: 32, scale: 1, ..plain(Family::Fixed, 4) },
        _ => return None,
    })
}

const fn plain(family: Family, bits: u32) -> Traits {
    Traits { family, bits, block: 0, inline: 0, scale: 0, zero: 0 }
}
