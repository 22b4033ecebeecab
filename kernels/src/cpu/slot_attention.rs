//! Attention of query rows over listed slots, with scores.
//!
//! Invariant: bit for bit the attention over a packed row of the same tokens
//! in the same order; everything is checked before the first output is written.
//!
//! Scratch of a row of n slots that are read, with c = n rounded up to 16:
//!
//! ```text
//!   list [c] of two words    logits [tile][c]    reduced scores [c]
//! ```

use super::element::with_element;
use super::lanes::{LANES, TILE};
use super::mask::Mask;
use super::pages::{RawPages, check_heads};
use super::query::{AttentionParams, RawQueries, RawWork};
use super::scores::{RawScores, Scorer};
use super::slots::{ListedRow, Live, RawSlots, Token};
use super::table::RawTable;
use super::tile::Heads;
use crate::error::{Error, ensure};

/// Where logits and reduced scores begin, and the end.
fn scratch_floats(group: u32, tokens: u32) -> (u64, u64, u64) {
    let capacity = u64::from(tokens).next_multiple_of(LANES as u64);
    let reduced = (2 + u64::from(group).min(TILE as u64)) * capacity;
    (2 * capacity, reduced, reduced + capacity)
}

/// Floats of scratch that are enough for rows with at most `max_slots` slots that a query reads.
///
/// # Errors
/// [`Error::Shape`], [`Error::Value`].
pub fn attention_slots_scratch(kv_heads: u32, params: &AttentionParams<'_>, max_slots: u32) -> Result<u64, Error> {
    check_heads(kv_heads, 1)?;
    params.check(kv_heads)?;
    Ok(scratch_floats(params.heads.checked_div(kv_heads).unwrap_or(1), max_slots).2)
}

/// Attention over the live slots of table rows, and their scores.
///
/// Complexity: O(rows * heads * slots read * d); the slots of the rows are looked at twice.
///
/// # Errors
/// Any argument error; nothing has been written then.
///
/// # Safety
/// As [`attention_raw`](super::attention_raw); `slots` is valid for reads of the table's rows and columns, `scores` for
/// writes. `sums` is written only in table rows and KV heads of the share, `probabilities` only in its rows and heads.
pub unsafe fn attention_slots_raw(
    pages: &RawPages,
    table: &RawTable,
    slots: &RawSlots,
    params: &AttentionParams<'_>,
    queries: &RawQueries,
    scores: Option<&RawScores>,
    work: &RawWork,
) -> Result<(), Error> {
    let geometry = &pages.geometry;
    pages.check()?;
    table.check()?;
    slots.check(geometry.page_tokens)?;
    params.check(geometry.kv_heads)?;
    queries.check()?;
    work.check(queries.n, params.heads)?;
    let heads = Heads::new(geometry.kv_heads, geometry.head_dim, params);
    if let Some(scores) = scores {
        scores.check(table, geometry.kv_heads, heads.group, queries, work)?;
    }
    let call = Call { pages, table, slots, params, queries };
    for row in work.rows.0..work.rows.1 {
        // SAFETY: row < n; the caller's promise.
        let tokens = match unsafe { call.row(row) }? {
            // SAFETY: the caller's promise.
            Some((live, _)) => unsafe {
                let (tokens, end) = live.check(pages)?;
                ensure(scores.is_none_or(|scores| end <= scores.slots), Error::Range)?;
                tokens
            },
            None => 0,
        };
        ensure(scratch_floats(heads.group, tokens).2 <= work.scratch_floats, Error::Scratch)?;
    }
    if let Some(scores) = scores.filter(|scores| scores.store && !scores.sums.is_null()) {
        let mut cleared = None;
        for row in work.rows.0..work.rows.1 {
            // SAFETY: as above.
            if let Some((_, table_row)) = unsafe { call.row(row) }?
                && cleared.replace(table_row) != Some(table_row)
            {
                // SAFETY: the scores and the row were checked; the caller's promise.
                unsafe { scores.clear(table_row, heads.group, work.heads) };
            }
        }
    }
    for row in work.rows.0..work.rows.1 {
        // SAFETY: all of it was checked; the caller's promise.
        unsafe { call.attend(&heads, scores, row, work) }?;
    }
    Ok(())
}

/// What all rows of a call share.
struct Call<'a> {
    pages: &'a RawPages,
    table: &'a RawTable,
    slots: &'a RawSlots,
    params: &'a AttentionParams<'a>,
    queries: &'a RawQueries,
}

impl Call<'_> {
    /// The slots that a query row reads, and its table row; `None` for padding, which needs no table row.
    ///
    /// # Safety
    /// As [`attention_slots_raw`]; the arguments passed their checks and row < n.
    unsafe fn row(&self, row: u32) -> Result<Option<(Live, u32)>, Error> {
        // SAFETY: the caller's promise.
        let mask: Mask = self.params.mask(unsafe { self.queries.position(row) });
        if mask.end == 0 {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        let index = unsafe { self.queries.table_row(row) };
        // SAFETY: the caller's promise.
        let live = unsafe { self.slots.row(self.table, index, self.pages.geometry.page_tokens, mask) }?;
        Ok(Some((live, index as u32)))
    }

    /// One query row.
    ///
    /// # Safety
    /// As [`Call::row`], and the row passed [`Live::check`].
    unsafe fn attend(
        &self,
        heads: &Heads<'_>,
        scores: Option<&RawScores>,
        row: u32,
        work: &RawWork,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let found = unsafe { self.row(row) }?;
        let live = found.as_ref().map(|found| &found.0);
        let list = work.scratch.cast::<Token>();
        // SAFETY: the scratch was found to be long enough; a token is two words, aligned as a float.
        let n = live.map_or(0, |live| unsafe { live.list(list) });
        // SAFETY: as many were written; the logits and what follows lie behind them.
        let tokens = if n == 0 { &[] } else { unsafe { core::slice::from_raw_parts(list, n) } };
        let (logits, reduced, _) = scratch_floats(heads.group, n as u32);
        let at = |floats: u64| work.scratch.wrapping_add(floats as usize);
        let rest = RawWork { scratch: at(logits), ..*work };
        let source = ListedRow { pages: self.pages, tokens };
        let Some(scores) = scores else {
            // SAFETY: all of it was checked, the scratch for this number of tokens; the caller's promise.
            with_element!(self.pages.geometry.dtype, E => unsafe {
                heads.attend::<E>(&source, n, self.queries, row, &rest)
            });
            return Ok(());
        };
        let mut scorer = Scorer {
            scores,
            tokens,
            // SAFETY: the caller's promise.
            own: live.and_then(|live| unsafe { live.own(tokens) }),
            table_row: found.as_ref().map_or(0, |found| found.1),
            first_row: u64::from(row) * u64::from(self.params.heads),
            group: heads.group,
            reduced: at(reduced),
            isa: self.params.isa.resolved(),
        };
        // SAFETY: as above; the reduced scores have a float for each token.
        with_element!(self.pages.geometry.dtype, E => unsafe {
            heads.attend_observed::<E>(&source, n, self.queries, row, &rest, &mut scorer)
        });
        Ok(())
    }
}
