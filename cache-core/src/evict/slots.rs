//! A stream's slots, read-only: which hold live tokens, and of which positions.

use super::error::EvictError;
use super::stream::Counters;

/// Slots of one stream in the order of its row of pages: slot `s` is offset `s mod P` of column `s / P`.
#[derive(Clone, Copy, Debug)]
pub struct Slots<'a> {
    /// P, a power of two in `1..=64`.
    pub page_tokens: u32,
    /// Position of the token that comes next.
    pub seen: u32,
    /// Tokens that are kept.
    pub live: u32,
    /// Slots in use: live ones and holes.
    pub rows: u32,
    /// A word per column; bit `o` says that offset `o` holds a live token. Bits from `rows` on are 0.
    pub valid: &'a [u64],
    /// The position of each slot. What is not live has no meaning.
    pub positions: &'a [u32],
}

impl<'a> Slots<'a> {
    /// The slots that `counters` and the arrays of a [`Stream`](super::Stream) describe. O(1): [`Self::check`] looks at the
    /// arrays.
    ///
    /// # Errors
    /// `Shape`, `Stream`.
    pub fn new(
        page_tokens: u32,
        counters: Counters,
        valid: &'a [u64],
        positions: &'a [u32],
    ) -> Result<Self, EvictError> {
        let slots = u32::try_from(valid.len()).ok().and_then(|columns| columns.checked_mul(page_tokens));
        let slots = slots.filter(|_| page_tokens.is_power_of_two() && page_tokens <= 64).ok_or(EvictError::Shape)?;
        if positions.len() != slots as usize {
            return Err(EvictError::Shape);
        }
        let Counters { seen, live, rows } = counters;
        if rows > slots || live > rows || live > seen {
            return Err(EvictError::Stream);
        }
        Ok(Self { page_tokens, seen, live, rows, valid, positions })
    }

    /// Checks the invariants of a stream. O(rows^2) for positions out of order, O(rows) otherwise.
    ///
    /// # Errors
    /// `Stream`.
    pub fn check(&self) -> Result<(), EvictError> {
        let beyond = (0_u32..).zip(self.valid).any(|(column, word)| word & !self.used_bits(column) != 0);
        let live = self.live().fold(0_u32, |n, _| n.saturating_add(1));
        let ascending = self.live().map(|(_, position)| position).is_sorted_by(|a, b| a < b);
        let differ = || {
            let mut rest = self.live();
            while let Some((_, position)) = rest.next() {
                if rest.clone().any(|(_, other)| other == position) {
                    return false;
                }
            }
            true
        };
        let in_range = self.live().all(|(_, position)| position < self.seen);
        if beyond || live != self.live || !in_range || !(ascending || differ()) {
            Err(EvictError::Stream)
        } else {
            Ok(())
        }
    }

    /// Which offsets of a column are in use.
    pub(super) fn used_bits(&self, column: u32) -> u64 {
        let first = column.saturating_mul(self.page_tokens);
        low_bits(self.rows.saturating_sub(first).min(self.page_tokens))
    }

    /// Columns in use.
    #[must_use]
    pub const fn columns(&self) -> u32 {
        self.rows.div_ceil(if self.page_tokens == 0 { 1 } else { self.page_tokens })
    }

    /// Slots and positions of live tokens, by slot. O(columns + live).
    pub fn live(&self) -> impl Iterator<Item = (u32, u32)> + Clone + use<'a> {
        let (p, positions) = (self.page_tokens, self.positions);
        (0_u32..).zip(self.valid.iter().copied().take(self.columns() as usize)).flat_map(move |(column, word)| {
            let first = column.saturating_mul(p);
            bits(word).filter_map(move |bit| {
                let slot = first.saturating_add(bit);
                positions.get(slot as usize).map(|&position| (slot, position))
            })
        })
    }

    /// Calls `each` with slot and position of each live token, by slot: as [`Self::live`], but fast where pages are full.
    #[inline]
    pub(super) fn for_each(&self, mut each: impl FnMut(u32, u32)) {
        let full = low_bits(self.page_tokens);
        let columns = self.valid.iter().zip(self.positions.chunks_exact(self.page_tokens.max(1) as usize));
        let mut first = 0_u32;
        for (&word, positions) in columns.take(self.columns() as usize) {
            if word == full {
                (first..).zip(positions).for_each(|(slot, &position)| each(slot, position));
            } else {
                for bit in bits(word) {
                    if let Some(&position) = positions.get(bit as usize) {
                        each(first.saturating_add(bit), position);
                    }
                }
            }
            first = first.saturating_add(self.page_tokens);
        }
    }

    /// Whether a slot holds a live token.
    #[must_use]
    pub fn is_live(&self, slot: u32) -> bool {
        let (column, mask) = place(slot, self.page_tokens);
        slot < self.rows && self.valid.get(column).is_some_and(|word| word & mask != 0)
    }
}

/// Column of a slot, and its bit there.
#[inline]
pub(super) const fn place(slot: u32, page_tokens: u32) -> (usize, u64) {
    let shift = page_tokens.trailing_zeros();
    (slot.wrapping_shr(shift) as usize, 1_u64.wrapping_shl(slot & page_tokens.wrapping_sub(1)))
}

/// Numbers of the bits that are set, ascending.
#[inline]
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = u32> + Clone {
    core::iter::from_fn(move || {
        (word != 0).then(|| {
            let bit = word.trailing_zeros();
            word &= word.wrapping_sub(1);
            bit
        })
    })
}

/// The lowest `n` bits.
#[inline]
pub(super) const fn low_bits(n: u32) -> u64 {
    if n >= 64 { u64::MAX } else { 1_u64.wrapping_shl(n).wrapping_sub(1) }
}
