//! Names of things: pages, sequences, tickets, groups, namespaces.
//!
//! Handles of things that come and go (`SequenceId`, `TicketId`, `TransferId`, `NamespaceId`) carry a
//! generation in their upper half, so that a handle kept too long is refused and never means something else.

use core::fmt;

/// One token of the model's vocabulary.
pub type TokenId = u32;

/// The caller's logical time. The cache has no clock; going back is an error.
pub type Tick = u64;

/// A page of one pool: `1..=pages`. Zero is the NULL page, which is never allocated, written or freed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct PageId(u32);

impl PageId {
    /// The page that stands for "dropped" or "not resident" in a table.
    pub const NULL: Self = Self(0);

    /// The page with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number within its pool.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

macro_rules! index_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[repr(transparent)]
        pub struct $name(u16);

        impl $name {
            /// The one with this index in the configuration.
            #[must_use]
            pub const fn new(index: u16) -> Self {
                Self(index)
            }

            /// Its index in the configuration.
            #[must_use]
            pub const fn get(self) -> u16 {
                self.0
            }
        }
    };
}

index_id! {
    /// A group of layers that share one page table.
    GroupId
}
index_id! {
    /// A pool of pages of one size in bytes.
    PoolId
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(u64);

        impl $name {
            /// The handle with these bits, as [`Self::to_bits`] gave them.
            #[must_use]
            pub const fn from_bits(bits: u64) -> Self {
                Self(bits)
            }

            /// The bits: generation in the upper half, index in the lower. Never zero for a live handle.
            #[must_use]
            pub const fn to_bits(self) -> u64 {
                self.0
            }

            pub(crate) const fn new(generation: u32, index: u32) -> Self {
                Self(((generation as u64) << 32) | index as u64)
            }

            #[allow(clippy::cast_possible_truncation)] // the two halves of the word
            pub(crate) const fn parts(self) -> (u32, u32) {
                ((self.0 >> 32) as u32, self.0 as u32)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (generation, index) = self.parts();
                write!(f, "{}#{index}.{generation}", stringify!($name))
            }
        }
    };
}

handle! {
    /// The tokens of one request.
    SequenceId
}
handle! {
    /// A pinned match result.
    TicketId
}
handle! {
    /// A transfer of pages that is under way.
    TransferId
}
handle! {
    /// What must be equal before tokens are compared. See [`crate::NamespaceKey`].
    NamespaceId
}
handle! {
    /// A promise to keep a prefix above all others until a tick.
    LeaseId
}
