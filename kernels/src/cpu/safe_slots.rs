//! Rows with holes, over slices.
//!
//! Invariant: as in `safe`; every array has the length that the table's rows and columns give.

use super::moves::{RowMove, move_rows_raw};
use super::query::AttentionParams;
use super::safe::{Pages, PagesMut, Queries, whole};
use super::scores::{RawScores, Reduce};
use super::slot_attention::attention_slots_raw;
use super::slots::RawSlots;
use super::table::{RawTable, Table};
use crate::error::{Error, ensure};

/// Which slots of each table row are live, and where their tokens stand. The default: all, slot s at position s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slots<'a> {
    /// `[rows][stride]`: bit o of column c is slot c * P + o, set if its token is live. P is at most 64.
    pub valid: Option<&'a [u64]>,
    /// `[rows][stride * P]` positions, distinct in a row; negative = no token.
    pub positions: Option<&'a [i32]>,
    /// `[rows]` position of slot 0, without `positions`: slot s is at first + s.
    pub first: Option<&'a [i32]>,
    /// `[rows]` slots in use; what lies behind is not looked at.
    pub used: Option<&'a [u32]>,
}

impl Slots<'_> {
    fn raw(&self, table: &RawTable, page_tokens: u32) -> Result<RawSlots, Error> {
        let rows = table.rows as usize;
        let columns = rows.saturating_mul(table.stride as usize);
        let slots = columns.saturating_mul(page_tokens as usize);
        Ok(RawSlots {
            valid: address(self.valid, columns)?,
            positions: address(self.positions, slots)?,
            first: address(self.first, rows)?,
            used: address(self.used, rows)?,
        })
    }
}

fn address<T>(slice: Option<&[T]>, n: usize) -> Result<*const T, Error> {
    ensure(slice.is_none_or(|slice| slice.len() == n), Error::Shape)?;
    Ok(slice.map_or(core::ptr::null(), <[T]>::as_ptr))
}

/// Where the scores of a call go.
#[derive(Debug, Default)]
pub struct Scores<'a> {
    /// Of the heads of a group, for `sums`.
    pub reduce: Reduce,
    /// Whether `sums` of the queries' table rows are set to 0 first.
    pub store: bool,
    /// Whether the slot at a query's own position is left out of `sums`.
    pub without_own: bool,
    /// Slots of each row: more than any slot that is read.
    pub slots: u32,
    /// `[table rows][Hk][slots]`
    pub sums: Option<&'a mut [f32]>,
    /// `[n][H][slots]`
    pub probabilities: Option<&'a mut [f32]>,
}

impl Scores<'_> {
    fn raw(&mut self, table: &RawTable, kv_heads: u32, rows: u32, heads: u32) -> Result<RawScores, Error> {
        let head_stride = u64::from(self.slots);
        let row_stride = head_stride * u64::from(kv_heads);
        let address = |slice: &mut Option<&mut [f32]>, floats: Option<u64>| match slice {
            Some(slice) => {
                ensure(floats == Some(slice.len() as u64), Error::Shape)?;
                Ok(slice.as_mut_ptr())
            }
            None => Ok(core::ptr::null_mut()),
        };
        Ok(RawScores {
            reduce: self.reduce,
            store: self.store,
            without_own: self.without_own,
            slots: self.slots,
            row_stride,
            head_stride,
            sums: address(&mut self.sums, row_stride.checked_mul(u64::from(table.rows)))?,
            probabilities: address(
                &mut self.probabilities,
                (u64::from(rows) * u64::from(heads)).checked_mul(head_stride),
            )?,
        })
    }
}

/// Causal attention over the live slots of table rows: out `[n][H][d]`, lse `[n][H]`.
///
/// For the scratch see [`attention_slots_scratch`](super::attention_slots_scratch). To split the work, use
/// [`attention_slots_raw`].
///
/// # Errors
/// Any argument error; nothing has been written then.
#[allow(clippy::too_many_arguments)] // those of `attention`, slots and scores
pub fn attention_slots(
    pages: &Pages<'_>,
    table: &Table<'_>,
    slots: &Slots<'_>,
    params: &AttentionParams<'_>,
    queries: &Queries<'_>,
    out: &mut [f32],
    lse: Option<&mut [f32]>,
    scores: Option<&mut Scores<'_>>,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let geometry = &pages.raw.geometry;
    let raw = queries.raw(params.heads, geometry.head_dim, out, lse)?;
    let table = table.raw();
    let slots = slots.raw(&table, geometry.page_tokens)?;
    let scores = match scores {
        Some(scores) => Some(scores.raw(&table, geometry.kv_heads, raw.n, params.heads)?),
        None => None,
    };
    let work = whole(raw.n, params.heads, scratch);
    // SAFETY: the views are inside their slices, the lengths were checked, outputs are exclusive.
    unsafe { attention_slots_raw(&pages.raw, &table, &slots, params, &raw, scores.as_ref(), &work) }
}

/// Move tokens from slot to slot, in list order.
///
/// # Errors
/// [`Error::NullPage`], [`Error::Page`], [`Error::Slot`]; nothing has been written then.
pub fn move_rows(pages: &mut PagesMut<'_>, moves: &[RowMove]) -> Result<(), Error> {
    // SAFETY: the view is exclusive and inside its slices.
    unsafe { move_rows_raw(&pages.raw, moves.as_ptr(), moves.len()) }
}
