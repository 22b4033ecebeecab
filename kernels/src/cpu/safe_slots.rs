//! Rows with holes, over slices.
//!
//! Invariant: as in `safe`; every array has the length that the table's rows and columns give.

use super::bounds::{RawBounds, key_extremes_raw, page_bounds_raw};
use super::isa::Isa;
use super::keys::{RawKeys, keys_raw};
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

/// What is asked of keys; what is `None` is not asked for.
#[derive(Debug, Default)]
pub struct Keys<'a> {
    /// Instruction set; it changes no bit.
    pub isa: Isa,
    /// Whether keys leave `unit_sums` instead of joining them.
    pub remove: bool,
    /// Slots of each row of norms and dots: at least the end of the range.
    pub slots: u32,
    /// `[Hk][slots]`: length of the key of each slot.
    pub norms: Option<&'a mut [f32]>,
    /// Vectors `[Hk][d]`, and `[Hk][slots]`: the product of the key of each slot with its head's.
    pub dots: Option<(&'a [f32], &'a mut [f32])>,
    /// `[Hk][d]`: keys over their lengths are added. A key whose length is 0 or not finite adds nothing.
    pub unit_sums: Option<&'a mut [f32]>,
}

/// Look at the keys of the live slots `begin..end` of a table row; what belongs to other slots is left alone.
///
/// # Errors
/// Any argument error; nothing has been written then.
pub fn keys(
    pages: &Pages<'_>,
    table: &Table<'_>,
    slots: &Slots<'_>,
    row: u32,
    range: (u32, u32),
    keys: &mut Keys<'_>,
) -> Result<(), Error> {
    let geometry = &pages.raw.geometry;
    let table = table.raw();
    let slots = slots.raw(&table, geometry.page_tokens)?;
    let vector = geometry.floats(1);
    let scores = (geometry.kv_heads as usize).saturating_mul(keys.slots as usize);
    let address = |slice: Option<&mut [f32]>, n: usize| match slice {
        Some(slice) => ensure(slice.len() == n, Error::Shape).map(|()| slice.as_mut_ptr()),
        None => Ok(core::ptr::null_mut()),
    };
    let (vectors, dots) = match &mut keys.dots {
        Some((vectors, dots)) => {
            ensure(vectors.len() == vector, Error::Shape)?;
            (vectors.as_ptr(), Some(&mut **dots))
        }
        None => (core::ptr::null(), None),
    };
    let raw = RawKeys {
        isa: keys.isa,
        remove: keys.remove,
        slots: keys.slots,
        head_stride: u64::from(keys.slots),
        vectors,
        norms: address(keys.norms.as_deref_mut(), scores)?,
        dots: address(dots, scores)?,
        unit_sums: address(keys.unit_sums.as_deref_mut(), vector)?,
    };
    // SAFETY: the views are inside their slices, the lengths were checked, results are exclusive.
    unsafe { keys_raw(&pages.raw, &table, &slots, row, range, &raw) }
}

/// Extremes by channel of the keys of live slots, `[columns of the table][Hk][d]`, for columns `begin..end` of a table row. A
/// column without a live slot gets +infinity and -infinity, a channel with a NaN gets NaN.
///
/// # Errors
/// Any argument error; nothing has been written then.
#[allow(clippy::too_many_arguments)] // as `key_extremes_raw`
pub fn key_extremes(
    pages: &Pages<'_>,
    table: &Table<'_>,
    slots: &Slots<'_>,
    row: u32,
    range: (u32, u32),
    isa: Isa,
    least: &mut [f32],
    greatest: &mut [f32],
) -> Result<(), Error> {
    let geometry = &pages.raw.geometry;
    let table = table.raw();
    let slots = slots.raw(&table, geometry.page_tokens)?;
    let floats = geometry.floats(table.stride as usize);
    ensure(least.len() == floats && greatest.len() == floats, Error::Shape)?;
    let (least, greatest) = (least.as_mut_ptr(), greatest.as_mut_ptr());
    // SAFETY: the views are inside their slices, the lengths were checked, results are exclusive.
    unsafe { key_extremes_raw(&pages.raw, &table, &slots, row, range, isa, least, greatest) }
}

/// What dot products of queries `[n][H][d]` with keys of pages cannot exceed, `[n][H][columns]`, from extremes
/// `[columns][Hk][d]`; see [`page_bounds_raw`].
///
/// # Errors
/// [`Error::Shape`]; nothing has been written then.
pub fn page_bounds(
    isa: Isa,
    (heads, kv_heads, head_dim): (u32, u32, u32),
    q: &[f32],
    (least, greatest): (&[f32], &[f32]),
    out: &mut [f32],
) -> Result<(), Error> {
    let rows = |floats: usize, heads: u32| {
        let row = (heads as usize).saturating_mul(head_dim as usize);
        ensure(floats.checked_rem(row) == Some(0), Error::Shape)?;
        u32::try_from(floats.checked_div(row).unwrap_or(0)).map_err(|_| Error::Shape)
    };
    let (n, columns) = (rows(q.len(), heads)?, rows(least.len(), kv_heads)?);
    let bounds = (n as usize).saturating_mul(heads as usize).saturating_mul(columns as usize);
    ensure(least.len() == greatest.len() && out.len() == bounds, Error::Shape)?;
    let (q, least, greatest) = (q.as_ptr(), least.as_ptr(), greatest.as_ptr());
    let raw = RawBounds { isa, n, heads, kv_heads, head_dim, columns, q, least, greatest };
    // SAFETY: the lengths were checked, the result is exclusive.
    unsafe { page_bounds_raw(&raw, out.as_mut_ptr()) }
}
