//! The element types of [`crate::CacheStorage`]: plain integers, valid when all bytes are zero.

pub use crate::events::Event;
pub use crate::group::Group;
pub use crate::index::{KeyPart, Sibling};
pub use crate::namespace::NamespaceSlot;
pub use crate::pages::{List, PageRecord, Pool};
pub use crate::plan::{PlanCopy, PlanEntry};
pub use crate::quota::QuotaCell;
pub use crate::retain::Lease;
pub use crate::sequence::Sequence;
pub use crate::table::{ChunkLink, Row};
pub use crate::width::Id;

/// A type whose zero value is known at compile time.
pub trait Zero: Copy {
    /// All bytes zero.
    const ZERO: Self;
}

macro_rules! zero_numbers {
    ($($type:ty)*) => { $(impl Zero for $type { const ZERO: Self = 0; })* };
}
zero_numbers!(u8 u16 u32 u64);

impl<T: Zero, const N: usize> Zero for [T; N] {
    const ZERO: Self = [T::ZERO; N];
}

/// Implements [`Zero`] field by field.
macro_rules! zero {
    ($type:ty { $($field:ident),* }) => {
        impl $crate::records::Zero for $type {
            const ZERO: Self = Self { $($field: $crate::records::Zero::ZERO,)* };
        }
    };
}
pub(crate) use zero;
