//! Page tables of a batch, and the runs of resident tokens in one row.
//!
//! Invariant: an entry is looked at iff a token of its column is asked for.

use super::mask::Mask;
use crate::error::{Error, ensure};

/// Page tables `[rows][stride]`, page ids, 0 = no page.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    entries: &'a [i32],
    stride: usize,
}

impl<'a> Table<'a> {
    /// A table of `entries.len() / stride` rows.
    ///
    /// # Errors
    /// [`Error::Shape`] if the stride is 0 or the length is no multiple of it.
    pub fn new(entries: &'a [i32], stride: usize) -> Result<Self, Error> {
        ensure(stride > 0 && entries.len().checked_rem(stride) == Some(0), Error::Shape)?;
        let fits = entries.len() / stride <= u32::MAX as usize && stride <= u32::MAX as usize;
        ensure(fits, Error::Shape)?;
        Ok(Self { entries, stride })
    }

    /// The same by address.
    pub fn raw(&self) -> RawTable {
        let rows = self.entries.len().checked_div(self.stride).unwrap_or(0);
        RawTable { entries: self.entries.as_ptr(), rows: rows as u32, stride: self.stride as u32 }
    }
}

/// Page tables by address.
#[derive(Clone, Copy, Debug)]
pub struct RawTable {
    /// `[rows][stride]`
    pub entries: *const i32,
    /// Rows.
    pub rows: u32,
    /// Entries from one row to the next.
    pub stride: u32,
}

impl RawTable {
    pub(crate) fn check(&self) -> Result<(), Error> {
        ensure(self.rows > 0 && self.stride > 0, Error::Shape)?;
        super::element::check_array(self.entries, 1)
    }

    /// One row, of which tokens below `tokens` will be asked for.
    ///
    /// # Safety
    /// The table passed `check` and its memory is valid.
    pub(crate) unsafe fn row(&self, row: i64, tokens: u64, page_tokens: u32) -> Result<Row, Error> {
        ensure(row >= 0 && row < self.rows as i64, Error::Table)?;
        let shift = page_tokens.trailing_zeros();
        ensure(tokens <= (self.stride as u64) << shift, Error::Table)?;
        let at = row as u64 * self.stride as u64;
        // SAFETY: row < rows, so this is inside the array of the caller's promise.
        let entries = unsafe { self.entries.add(at as usize) };
        Ok(Row { entries, shift })
    }
}

/// One row of a table.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    entries: *const i32,
    /// log2 P
    shift: u32,
}

/// Consecutive tokens inside one page.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// Entry of the table, as it stands there.
    pub(crate) entry: i32,
    /// Its column.
    pub(crate) column: u32,
    /// First slot in the page.
    pub(crate) slot: u32,
    /// Tokens, 1..=P.
    pub(crate) tokens: u32,
}

impl Row {
    /// The entry of a column, as it stands there.
    ///
    /// # Safety
    /// A token of the column is below the `tokens` that [`RawTable::row`] was asked for, and the table is valid memory.
    #[inline(always)]
    pub(crate) unsafe fn entry(self, column: u32) -> i32 {
        // SAFETY: the column is below the stride; the caller's promise.
        unsafe { *self.entries.add(column as usize) }
    }

    /// The runs of tokens `begin..end`, ascending, one per page.
    ///
    /// # Safety
    /// `end` is at most the `tokens` that [`RawTable::row`] was asked for, and the memory of the
    /// table stays valid for as long as the iterator is used.
    #[inline(always)]
    pub(crate) unsafe fn runs(self, begin: u32, end: u32) -> impl Iterator<Item = Run> {
        let page_tokens = 1u32 << self.shift;
        let mut at = begin;
        core::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let slot = at & (page_tokens - 1);
            let tokens = (page_tokens - slot).min(end - at);
            let column = at >> self.shift;
            // SAFETY: the token is below `end`.
            let entry = unsafe { self.entry(column) };
            at += tokens;
            Some(Run { entry, column, slot, tokens })
        })
    }

    /// The runs that a mask lets a query read, ascending, without pages that are not there.
    ///
    /// # Safety
    /// As [`Row::runs`] for all tokens of the mask.
    #[inline(always)]
    pub(crate) unsafe fn readable(self, mask: Mask) -> impl Iterator<Item = Run> {
        // SAFETY: the caller's promise.
        let sinks = unsafe { self.runs(0, mask.sinks_end) };
        // SAFETY: the caller's promise.
        let window = unsafe { self.runs(mask.window_begin, mask.end) };
        sinks.chain(window).filter(|run| run.entry != 0)
    }

    /// Check with `page` the ids that `readable` gives; the number of tokens in them.
    ///
    /// # Safety
    /// As [`Row::readable`].
    #[inline(always)]
    pub(crate) unsafe fn check(self, mask: Mask, page: impl Fn(&Run) -> Result<u32, Error>) -> Result<u32, Error> {
        let mut tokens = 0u32;
        // SAFETY: the caller's promise.
        for run in unsafe { self.readable(mask) } {
            page(&run)?;
            tokens += run.tokens;
        }
        Ok(tokens)
    }
}
