//! What a codec can refuse, and what it reports of what it did.

use core::fmt;

/// Why a codec did nothing. Indices count elements of the slice that is at fault, unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuantError {
    /// Slices whose lengths do not belong together, or a stride below the row.
    Length,
    /// A group size that the format does not have, or that does not divide the row, or that does not fill bytes.
    Group,
    /// A NaN or an infinity where values are needed.
    NonFinite {
        /// The first such element.
        index: usize,
    },
    /// A scale that is not finite and above 0, or a zero that is not finite.
    Scale {
        /// The first such group, block or scale.
        index: usize,
    },
    /// A code that the target format cannot hold exactly, or that has too many bits.
    Code {
        /// The first such code.
        index: usize,
    },
}

impl QuantError {
    /// The same, where that many groups lie before those that were looked at.
    #[cfg(feature = "quant")]
    pub(super) const fn after_groups(self, count: usize) -> Self {
        match self {
            Self::Scale { index } => Self::Scale { index: index.saturating_add(count) },
            other => other,
        }
    }
}

impl fmt::Display for QuantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("lengths do not belong together"),
            Self::Group => f.write_str("group size does not fit the format or the row"),
            Self::NonFinite { index } => write!(f, "element {index} is not finite"),
            Self::Scale { index } => write!(f, "scale or zero {index} is unusable"),
            Self::Code { index } => write!(f, "code {index} does not fit"),
        }
    }
}

impl core::error::Error for QuantError {}

/// What to do with NaN and infinities in the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum NonFinite {
    /// Refuse the call: [`QuantError::NonFinite`].
    #[default]
    Reject = 0,
    /// Replace: an infinity by the greatest or least finite value of its group, a NaN by what is nearest to 0 within them.
    /// Each is counted. FP8 has codes for NaN and keeps it.
    Sanitise = 1,
}

/// What an encoder or decoder did beyond rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Report {
    /// Groups whose parameters, or values (in [`fixed`](super::fixed)) that are beyond the format and were saturated: their
    /// errors have no bound.
    pub saturated: u32,
    /// Elements replaced under [`NonFinite::Sanitise`].
    pub replaced: u32,
}

impl Report {
    /// Nothing was saturated or replaced.
    pub const fn is_clean(self) -> bool {
        self.saturated == 0 && self.replaced == 0
    }

    #[cfg(feature = "quant")]
    pub(super) const fn saturated(is: bool) -> Self {
        Self { saturated: is as u32, replaced: 0 }
    }

    /// What both did, saturating.
    pub const fn and(self, other: Self) -> Self {
        Self {
            saturated: self.saturated.saturating_add(other.saturated),
            replaced: self.replaced.saturating_add(other.replaced),
        }
    }
}
