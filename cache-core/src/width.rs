//! How wide stored ids are: the arrays that grow with the pages hold [`Id`]; all else computes with `u32`.
//!
//! With feature `narrow`, and without `index`, an id in storage takes 16 bits: `Limits` refuses what such ids cannot number.
//! Where both features are on, as in a build of everything, ids stay wide: features add, and only an index needs the width.

#[cfg(all(feature = "narrow", not(feature = "index")))]
type Word = u16;
#[cfg(not(all(feature = "narrow", not(feature = "index"))))]
type Word = u32;

/// Highest number that storage holds.
pub(crate) const MAX_ID: u64 = Word::MAX as u64;

/// A page, a chunk, or a count of references, as storage holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Id(Word);

impl crate::records::Zero for Id {
    const ZERO: Self = Self::NULL;
}

impl Id {
    pub(crate) const NULL: Self = Self(0);

    /// No number is above [`MAX_ID`]: init refuses what could make one.
    #[inline]
    #[allow(clippy::unnecessary_fallible_conversions)] // it fails where ids are narrow
    pub(crate) fn new(number: u32) -> Self {
        Self(Word::try_from(number).unwrap_or(Word::MAX))
    }

    #[inline]
    #[allow(clippy::useless_conversion)] // it widens where ids are narrow
    pub(crate) fn get(self) -> u32 {
        u32::from(self.0)
    }

    #[inline]
    pub(crate) fn is_null(self) -> bool {
        self == Self::NULL
    }
}
