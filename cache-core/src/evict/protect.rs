//! What no policy may evict.

use super::error::EvictError;

/// Positions `start..end` that are never evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Pin {
    /// The first.
    pub start: u32,
    /// Behind the last.
    pub end: u32,
}

/// The protected set: pinned ranges of positions, the first `sinks` positions, and the `recent` newest ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protected<'a> {
    /// Ranges that are not empty, ascending, and do not overlap.
    pub pins: &'a [Pin],
    /// First positions of the sequence.
    pub sinks: u32,
    /// Newest positions, at least 1.
    pub recent: u32,
}

impl Protected<'_> {
    /// Nothing but the newest token.
    pub const NEWEST: Self = Self { pins: &[], sinks: 0, recent: 1 };

    /// The tokens that it takes of a budget: sinks, recent and what is pinned behind the sinks. O(pins).
    ///
    /// # Errors
    /// `Recent`, `Pins`.
    pub fn tokens(&self) -> Result<u32, EvictError> {
        if self.recent == 0 {
            return Err(EvictError::Recent);
        }
        let mut end = 0;
        let mut pinned = 0_u32;
        for pin in self.pins {
            if pin.start < end || pin.start >= pin.end {
                return Err(EvictError::Pins);
            }
            end = pin.end;
            pinned = pinned.saturating_add(pin.end.saturating_sub(pin.start.max(self.sinks)));
        }
        Ok(self.sinks.saturating_add(self.recent).saturating_add(pinned))
    }

    /// Checks it against a budget of tokens. O(pins).
    ///
    /// # Errors
    /// `Recent`, `Pins`; `Budget` where its [tokens](Self::tokens) are more than `budget`.
    pub fn check(&self, budget: u32) -> Result<(), EvictError> {
        let protected = self.tokens()?;
        if protected > budget { Err(EvictError::Budget { protected }) } else { Ok(()) }
    }

    /// Whether a position is in the set, once `seen` positions are there. O(pins).
    #[must_use]
    #[inline]
    pub fn contains(&self, position: u32, seen: u32) -> bool {
        position < self.sinks
            || position >= seen.saturating_sub(self.recent)
            || self.pins.iter().any(|pin| (pin.start..pin.end).contains(&position))
    }
}
