//! Rows whose slots may be holes, or out of the order of positions.
//!
//! Invariant: a slot is read iff it is below the row's number of slots, its bit
//! is set, its table entry is not 0, and its position is in the query's mask.
//! The live slots are listed first, ascending; what follows sees the list
//! only, so that holes and packed rows give the same bits.
//!
//! ```text
//!   slots      0 1 2 3 | 4 5 6 7 | 8 9 ..      P = 4, slot s is in column s / P
//!   bits       1 . 1 1 | . . . . | 1 .         a hole is any bit not set
//!   list       0   2 3 |         | 8           entries of columns without a bit are not looked at
//! ```

use super::lanes::{LANES, Picked, Rows};
use super::mask::Mask;
use super::pages::RawPages;
use super::table::{RawTable, Row};
use super::tile::{Chunk, Source};
use crate::error::{Error, ensure};

/// Most slots of a row.
const MAX_SLOTS: u64 = i32::MAX as u64;
/// Most rows that are handed on one by one: rows a page apart fall into few sets of a cache, and more would displace each other.
const PICKED: usize = 16;
/// Fewer rows are not worth a call of their own.
const SHORT: usize = 8;

/// Which slots of each table row hold live tokens, and at which positions, by address. All may be NULL.
#[derive(Clone, Copy, Debug)]
pub struct RawSlots {
    /// `[rows][stride]`: bit o of column c is slot c * P + o, set if its token is live. NULL = all are; needs P <= 64.
    pub valid: *const u64,
    /// `[rows][stride * P]` position of each slot's token; negative = no token. Distinct in a row.
    pub positions: *const i32,
    /// `[rows]` position of slot 0 where `positions` is NULL: slot s is at first + s. NULL = 0.
    pub first: *const i32,
    /// `[rows]` slots in use; what lies behind is not looked at. NULL = stride * P.
    pub used: *const u32,
}

impl RawSlots {
    /// Slot s is position s, and all are live.
    pub const PLAIN: Self = Self {
        valid: core::ptr::null(),
        positions: core::ptr::null(),
        first: core::ptr::null(),
        used: core::ptr::null(),
    };

    pub(crate) fn check(&self, page_tokens: u32) -> Result<(), Error> {
        ensure(self.valid.is_null() || page_tokens <= u64::BITS, Error::PageTokens)?;
        let aligned = self.valid.is_aligned() && self.positions.is_aligned();
        ensure(aligned && self.first.is_aligned() && self.used.is_aligned(), Error::Align)
    }

    /// One row of a table, for the mask of a query.
    ///
    /// # Safety
    /// Both passed their checks, and non-NULL addresses are valid for the table's rows and columns.
    pub(crate) unsafe fn row(&self, table: &RawTable, index: i64, page_tokens: u32, mask: Mask) -> Result<Live, Error> {
        ensure(index >= 0 && index < i64::from(table.rows), Error::Table)?;
        let (row, columns) = (index as usize, table.stride as usize);
        let all = u64::from(table.stride) * u64::from(page_tokens);
        let used = if self.used.is_null() {
            all
        } else {
            // SAFETY: row < rows; the caller's promise.
            u64::from(unsafe { *self.used.add(row) })
        };
        ensure(all <= MAX_SLOTS, Error::Shape)?;
        // SAFETY: the caller's promise.
        let entries = unsafe { table.row(index, used, page_tokens) }?;
        let first = if self.first.is_null() || !self.positions.is_null() {
            0
        } else {
            // SAFETY: row < rows; the caller's promise.
            u32::try_from(unsafe { *self.first.add(row) }).map_err(|_| Error::Range)?
        };
        // Without positions the query's own slot, and so those before it, must be there.
        let in_use = !self.positions.is_null() || u64::from(mask.end.saturating_sub(first)) <= used;
        ensure(in_use, Error::Table)?;
        let at = |n: usize| row.wrapping_mul(columns).wrapping_mul(n);
        Ok(Live {
            entries,
            valid: if self.valid.is_null() { self.valid } else { self.valid.wrapping_add(at(1)) },
            positions: if self.positions.is_null() {
                self.positions
            } else {
                self.positions.wrapping_add(at(page_tokens as usize))
            },
            first,
            from: 0,
            used: used as u32,
            shift: page_tokens.trailing_zeros(),
            mask,
        })
    }
}

/// Slots `begin..begin + 64` or fewer of one page, of which those in `bits` are read.
pub(crate) struct Word {
    pub(crate) entry: i32,
    pub(crate) begin: u32,
    pub(crate) bits: u64,
}

/// The slots of one table row that a query reads.
#[derive(Clone, Copy)]
pub(crate) struct Live {
    entries: Row,
    /// Of the row, or NULL.
    valid: *const u64,
    /// Of the row, or NULL.
    positions: *const i32,
    first: u32,
    /// Slots before it are left out.
    from: u32,
    used: u32,
    /// log2 P
    shift: u32,
    mask: Mask,
}

/// A slot that is read, and its page.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Token {
    pub(crate) page: u32,
    pub(crate) slot: u32,
}

/// Bits `0..n`.
fn low_bits(n: u32) -> u64 {
    if n >= u64::BITS { u64::MAX } else { (1 << n) - 1 }
}

impl Live {
    /// The live slots `begin..end`, whatever their positions.
    pub(crate) fn between(self, begin: u32, end: u32) -> Self {
        let used = self.used.min(end);
        let positions = if self.positions.is_null() { used } else { 1 << 31 };
        Self { first: 0, from: begin, used, mask: Mask { sinks_end: 0, window_begin: 0, end: positions }, ..self }
    }

    /// Calls `f` for each word with a slot that is read, ascending.
    ///
    /// # Safety
    /// The memory of the row is valid.
    #[inline(always)]
    pub(crate) unsafe fn words(&self, mut f: impl FnMut(Word) -> Result<(), Error>) -> Result<(), Error> {
        let Mask { sinks_end, window_begin, end } = self.mask;
        let slots = 1u32 << self.shift.min(u64::BITS.trailing_zeros());
        // Slots by position, where that is known.
        let slot_of = |position: u32| position.saturating_sub(self.first);
        let ranges = if self.positions.is_null() {
            [(0, slot_of(sinks_end)), (slot_of(window_begin), slot_of(end))]
        } else {
            [(0, 0), (0, self.used)]
        };
        let mut next = self.from - self.from % slots;
        for (from, to) in ranges {
            // The word in which one range ends may be that in which the other begins: it is taken once, for both.
            let mut begin = next.max(from - from % slots);
            while begin < to {
                // SAFETY: begin is below the slots in use.
                let bits = unsafe { self.read(begin, slots, &ranges) };
                if bits != 0 {
                    // SAFETY: as above.
                    let entry = unsafe { self.entries.entry(begin >> self.shift) };
                    if entry != 0 {
                        f(Word { entry, begin, bits })?;
                    }
                }
                begin += slots;
            }
            next = next.max(begin);
        }
        Ok(())
    }

    /// Which of `n` slots from `begin` on are read.
    ///
    /// # Safety
    /// As [`Live::words`]; `begin` is below the slots in use.
    #[inline(always)]
    unsafe fn read(&self, begin: u32, n: u32, ranges: &[(u32, u32); 2]) -> u64 {
        let n = n.min(self.used - begin);
        let valid = if self.valid.is_null() {
            u64::MAX
        } else {
            // SAFETY: with bits a word is a column; the caller's promise.
            unsafe { *self.valid.add((begin >> self.shift) as usize) }
        };
        let valid = valid & low_bits(n) & !low_bits(self.from.saturating_sub(begin));
        if valid == 0 {
            return 0;
        }
        if self.positions.is_null() {
            let below = |slot: u32| low_bits(slot.saturating_sub(begin));
            return ranges.iter().fold(0, |bits, (from, to)| bits | (below(*to) & !below(*from))) & valid;
        }
        let Mask { sinks_end, window_begin, end } = self.mask;
        // SAFETY: begin + n is at most the slots in use; the caller's promise.
        let positions = unsafe { core::slice::from_raw_parts(self.positions.add(begin as usize), n as usize) };
        // A negative position becomes a large one, which is in neither range.
        let reads = |position: u32| (position < sinks_end) | (position.wrapping_sub(window_begin) < end - window_begin);
        let (blocks, rest) = positions.as_chunks::<LANES>();
        let mut bits = 0u64;
        for (i, position) in rest.iter().enumerate() {
            bits |= u64::from(reads(*position as u32)) << i;
        }
        for block in blocks.iter().rev() {
            let mut lanes = [0u32; LANES];
            for ((i, lane), position) in lanes.iter_mut().enumerate().zip(block) {
                *lane = u32::from(reads(*position as u32)) << i;
            }
            bits = bits << LANES | u64::from(lanes.iter().fold(0, |all, lane| all | lane));
        }
        bits & valid
    }

    /// Checks the pages of the slots that are read; how many there are, and one past the last.
    ///
    /// # Safety
    /// As [`Live::words`].
    pub(crate) unsafe fn check(&self, pages: &RawPages) -> Result<(u32, u32), Error> {
        let (mut tokens, mut end) = (0, 0);
        // SAFETY: the caller's promise.
        unsafe {
            self.words(|word| {
                pages.page(i64::from(word.entry))?;
                tokens += word.bits.count_ones();
                end = word.begin + (u64::BITS - word.bits.leading_zeros());
                Ok(())
            })
        }?;
        Ok((tokens, end))
    }

    /// Writes the slots that are read, ascending; how many there are.
    ///
    /// # Safety
    /// As [`Live::words`]; `list` is valid for writes of as many tokens as [`Live::check`] found.
    pub(crate) unsafe fn list(&self, list: *mut Token) -> usize {
        let mut n = 0;
        let write = |word: Word| {
            let Word { entry, begin, mut bits } = word;
            while bits != 0 {
                let token = Token { page: entry as u32, slot: begin + bits.trailing_zeros() };
                // SAFETY: the bits are those that `check` counted.
                unsafe { list.add(n).write(token) };
                n += 1;
                bits &= bits - 1;
            }
            Ok(())
        };
        // SAFETY: the caller's promise; `write` never fails.
        let _ = unsafe { self.words(write) };
        n
    }

    /// Which of the listed slots is at the query's own position.
    ///
    /// # Safety
    /// As [`Live::words`]; the list is that of [`Live::list`].
    pub(crate) unsafe fn own(&self, list: &[Token]) -> Option<usize> {
        // The mask ends behind it.
        let position = |token: &Token| match self.positions.is_null() {
            true => self.first + token.slot,
            // SAFETY: slots of the list are below those in use.
            false => unsafe { *self.positions.add(token.slot as usize) as u32 },
        };
        list.iter().rposition(|token| position(token) + 1 == self.mask.end)
    }
}

/// A query row over listed slots, whose pages are in 1..=N.
pub(crate) struct ListedRow<'a> {
    pub(crate) pages: &'a RawPages,
    pub(crate) tokens: &'a [Token],
}

impl ListedRow<'_> {
    /// Tokens from one of the list on to the end of its page, or of the list, if there is no hole among them; otherwise 0.
    #[inline(always)]
    fn run(&self, at: usize, token: &Token) -> usize {
        let page_tokens = self.pages.geometry.page_tokens;
        let run = ((page_tokens - (token.slot & (page_tokens - 1))) as usize).min(self.tokens.len() - at);
        let last = self.tokens.get(at + run - 1).map_or(token.slot, |last| last.slot);
        if (last - token.slot) as usize == run - 1 { run } else { 0 }
    }
}

impl Source for ListedRow<'_> {
    #[inline(always)]
    unsafe fn each(&self, is_k: bool, head: u32, mut f: impl FnMut(usize, Chunk)) {
        let page_tokens = self.pages.geometry.page_tokens;
        let mut rows = [core::ptr::null(); PICKED];
        let (mut page, mut base, mut stride) = (0, core::ptr::null_mut(), 0);
        let mut first = 0;
        while let Some(token) = self.tokens.get(first) {
            let run = self.run(first, token);
            if run >= SHORT {
                let slot = token.slot & (page_tokens - 1);
                // SAFETY: the page was checked; slot and head are in range.
                let (base, stride) = unsafe { self.pages.row(is_k, token.page, slot, head) };
                f(first, Chunk::Stored(Rows { base, stride, tokens: run }));
                first += run;
                continue;
            }
            let mut n = 0;
            for (row, token) in rows.iter_mut().zip(self.tokens.iter().skip(first)) {
                if token.page != page {
                    if n >= SHORT && self.run(first + n, token) >= SHORT {
                        break;
                    }
                    page = token.page;
                    // SAFETY: the page was checked; slot 0 and the head are in range.
                    (base, stride) = unsafe { self.pages.row(is_k, page, 0, head) };
                }
                let slot = token.slot & (page_tokens - 1);
                // SAFETY: a slot of the page that `base` is in; page 0 is in no list.
                *row = unsafe { base.add((u64::from(slot) * stride) as usize) }.cast_const();
                n += 1;
            }
            f(first, Chunk::Picked(Picked { rows: rows.as_ptr(), tokens: n }));
            first += n;
        }
    }
}
