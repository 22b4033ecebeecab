//! The state of one stream: which slots of a row hold which tokens.

use super::error::EvictError;
use super::slots::{Slots, bits, place};

/// The three counters of a stream, never mixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Position of the token that comes next. Only appending and truncating change it.
    pub seen: u32,
    /// Tokens that are kept.
    pub live: u32,
    /// Slots in use, live ones and holes.
    pub rows: u32,
}

/// Where appended tokens go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Behind the last slot: slots stay in the order of positions.
    #[default]
    Behind,
    /// To dead slots first, lowest first: no growth while tokens go as fast as they come. Masks must then go by position.
    Reuse,
}

/// Tokens of one (sequence, layer, KV head), or of whatever else has a table of its own, over arrays of the caller.
///
/// Invariant: live slots lie below `rows` and have positions below `seen` that differ; bits from `rows` on are 0; `live` is
/// the number of bits. Evicting never changes the position of what stays.
///
/// `features` has `channels` arrays of one f32 per slot, the first of which is the score; all move with their tokens.
#[derive(Debug)]
pub struct Stream<'a> {
    page_tokens: u32,
    counters: Counters,
    valid: &'a mut [u64],
    positions: &'a mut [u32],
    features: &'a mut [f32],
    capacity: u32,
}

impl<'a> Stream<'a> {
    /// A stream in the state that `counters` and the arrays describe, which are those of an earlier one or 0: `valid` has a
    /// word per column, `positions` P numbers per column, `features` `channels` times as many. O(1): [`Self::check`] looks
    /// at the arrays.
    ///
    /// # Errors
    /// `Shape`, `Stream`.
    pub fn new(
        page_tokens: u32,
        counters: Counters,
        valid: &'a mut [u64],
        positions: &'a mut [u32],
        features: &'a mut [f32],
        channels: u32,
    ) -> Result<Self, EvictError> {
        Slots::new(page_tokens, counters, valid, positions)?;
        let slots = u32::try_from(positions.len()).map_err(|_| EvictError::Shape)?;
        if features.len() as u64 != u64::from(slots).saturating_mul(channels.into()) {
            return Err(EvictError::Shape);
        }
        Ok(Self { page_tokens, counters, valid, positions, features, capacity: slots })
    }

    /// Seen, live, rows.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Slots that the arrays have.
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The slots, read-only.
    #[must_use]
    pub const fn slots(&self) -> Slots<'_> {
        let Counters { seen, live, rows } = self.counters;
        Slots { page_tokens: self.page_tokens, seen, live, rows, valid: self.valid, positions: self.positions }
    }

    /// The array of one channel, as long as the capacity; empty if there is none such.
    #[must_use]
    pub fn channel(&self, channel: u32) -> &[f32] {
        self.features.chunks_exact(self.positions.len().max(1)).nth(channel as usize).unwrap_or_default()
    }

    /// The slots and the array of one channel, to be written.
    pub fn channel_mut(&mut self, channel: u32) -> (Slots<'_>, &mut [f32]) {
        let Counters { seen, live, rows } = self.counters;
        let slots =
            Slots { page_tokens: self.page_tokens, seen, live, rows, valid: self.valid, positions: self.positions };
        let array = self.features.chunks_exact_mut(self.positions.len().max(1)).nth(channel as usize);
        (slots, array.unwrap_or_default())
    }

    /// Takes up `count` tokens, whose features are 0; `place` is told the slot of each, in order. O(columns + count).
    ///
    /// # Errors
    /// `Full`, `Position`; `Stream` where holes are to be reused and are not as many as the counters say. Nothing has changed
    /// then.
    pub fn append(&mut self, count: u32, placement: Placement, mut place: impl FnMut(u32)) -> Result<(), EvictError> {
        self.append_with(count, placement, &mut |_, slot| place(slot))
    }

    pub(super) fn append_with(
        &mut self,
        count: u32,
        placement: Placement,
        place: &mut impl FnMut(&mut Self, u32),
    ) -> Result<(), EvictError> {
        let seen = self.counters.seen.checked_add(count).ok_or(EvictError::Position)?;
        let holes = match placement {
            Placement::Behind => 0,
            Placement::Reuse => self.counters.rows.saturating_sub(self.counters.live).min(count),
        };
        let rows = self.counters.rows.saturating_add(count.saturating_sub(holes));
        if rows > self.capacity() {
            return Err(EvictError::Full);
        }
        if holes > 0 && holes > self.holes() {
            return Err(EvictError::Stream);
        }
        let first = self.counters.seen;
        let mut next = first;
        let mut column = 0;
        while next < first.saturating_add(holes) {
            match self.first_hole(column) {
                Some(slot) => {
                    self.set(slot, next);
                    place(self, slot);
                    next = next.saturating_add(1);
                }
                None => column = column.saturating_add(1),
            }
        }
        for slot in self.counters.rows..rows {
            self.set(slot, next);
            place(self, slot);
            next = next.saturating_add(1);
        }
        self.counters = Counters { seen, live: self.counters.live.saturating_add(count), rows };
        Ok(())
    }

    /// Makes holes of what `keep` does not keep; bits without a live token have no effect. O(columns).
    ///
    /// # Errors
    /// `Shape` for fewer words than columns; nothing has changed then.
    pub fn retain(&mut self, keep: &[u64]) -> Result<(), EvictError> {
        let columns = self.slots().columns() as usize;
        let (valid, keep) = self.valid.get_mut(..columns).zip(keep.get(..columns)).ok_or(EvictError::Shape)?;
        valid.iter_mut().zip(keep).for_each(|(word, keep)| *word &= keep);
        self.counters.live = valid.iter().fold(0, |sum, word| sum.saturating_add(word.count_ones()));
        Ok(())
    }

    /// Takes back all tokens from a position on. Evicted ones do not come back. O(rows).
    ///
    /// # Errors
    /// `Position` for one that was not seen; nothing has changed then.
    pub fn truncate(&mut self, len: u32) -> Result<(), EvictError> {
        if len > self.counters.seen {
            return Err(EvictError::Position);
        }
        let mut rows = 0;
        for slot in 0..self.counters.rows {
            if self.positions.get(slot as usize).is_some_and(|&position| position >= len) {
                self.put_bit(slot, false);
            } else {
                rows = slot.saturating_add(1);
            }
        }
        let live = self.valid.iter().fold(0, |sum: u32, word| sum.saturating_add(word.count_ones()));
        self.counters = Counters { seen: len, live, rows };
        Ok(())
    }

    /// Takes columns without a live token out of the row, and moves those behind them up: no byte of a page moves, only the
    /// row gets shorter. `column` is told the number that each had before, ascending; their pages can be freed. O(rows).
    pub fn drop_dead_columns(&mut self, mut column: impl FnMut(u32)) {
        let (p, columns) = (self.page_tokens, self.slots().columns());
        let (mut to, mut rows) = (0_u32, 0);
        for from in 0..columns {
            if self.valid.get(from as usize).is_none_or(|&word| word == 0) {
                column(from);
                continue;
            }
            let (at, target) = (from.saturating_mul(p), to.saturating_mul(p));
            let used = self.counters.rows.saturating_sub(at).min(p);
            shift(self.valid, from, to, 1);
            self.shift(at, target, used);
            rows = target.saturating_add(used);
            to = to.saturating_add(1);
        }
        self.valid.iter_mut().take(columns as usize).skip(to as usize).for_each(|word| *word = 0);
        self.counters.rows = rows;
    }

    /// Checks the invariants. O(rows^2) for positions out of order, O(rows) otherwise.
    ///
    /// # Errors
    /// `Stream`.
    pub fn check(&self) -> Result<(), EvictError> {
        self.slots().check()
    }

    /// A live token of a position at a slot.
    fn set(&mut self, slot: u32, position: u32) {
        self.put_bit(slot, true);
        if let Some(at) = self.positions.get_mut(slot as usize) {
            *at = position;
        }
        let capacity = self.positions.len().max(1);
        let features = self.features.chunks_exact_mut(capacity).filter_map(|channel| channel.get_mut(slot as usize));
        features.for_each(|feature| *feature = 0.0);
    }

    /// Slots in use that hold no live token, counted.
    fn holes(&self) -> u32 {
        let slots = self.slots();
        let words = (0..slots.columns()).zip(slots.valid);
        words.fold(0, |sum, (column, word)| sum.saturating_add((slots.used_bits(column) & !word).count_ones()))
    }

    /// The lowest slot of a column that is in use and holds no live token.
    fn first_hole(&self, column: u32) -> Option<u32> {
        let bit = bits(self.slots().used_bits(column) & !self.valid.get(column as usize)?).next()?;
        Some(column.saturating_mul(self.page_tokens).saturating_add(bit))
    }

    /// Moves what `count` slots hold down to others.
    pub(super) fn relocate(&mut self, from: u32, to: u32, count: u32) {
        let live = (0..count).fold(0_u64, |bits, i| {
            let slot = from.saturating_add(i);
            let is_live = self.slots().is_live(slot);
            self.put_bit(slot, false);
            bits | u64::from(is_live).wrapping_shl(i)
        });
        bits(live).for_each(|i| self.put_bit(to.saturating_add(i), true));
        self.shift(from, to, count);
    }

    pub(super) const fn set_rows(&mut self, rows: u32) {
        self.counters.rows = rows;
    }

    fn put_bit(&mut self, slot: u32, is_live: bool) {
        let (column, mask) = place(slot, self.page_tokens);
        if let Some(word) = self.valid.get_mut(column) {
            *word = if is_live { *word | mask } else { *word & !mask };
        }
    }

    /// Moves positions and features.
    fn shift(&mut self, from: u32, to: u32, count: u32) {
        shift(self.positions, from, to, count);
        let capacity = self.positions.len().max(1);
        self.features.chunks_exact_mut(capacity).for_each(|channel| shift(channel, from, to, count));
    }
}

/// Copies `count` items down.
fn shift<T: Copy>(array: &mut [T], from: u32, to: u32, count: u32) {
    let (end, gap) = (from.saturating_add(count) as usize, from.saturating_sub(to) as usize);
    if let Some(part) = array.get_mut(to as usize..end)
        && gap > 0
        && gap <= part.len()
    {
        part.copy_within(gap.., 0);
    }
}
