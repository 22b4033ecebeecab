//! Probabilities of attention, by slot: summed over the queries of a row, or query by query.
//!
//! Invariant: a score is a function of the weights alone. A probability is a
//! weight over the denominator that divides the output, a learned sink
//! included; heads of a group are reduced in ascending order, then queries are
//! added in ascending order.
//!
//! Shapes: sums `[table rows][Hk][slots]`, probabilities `[n][H][slots]`.

use super::element::check_array;
use super::isa::{Isa, per_isa};
use super::lanes::LANES;
use super::query::{RawQueries, RawWork};
use super::slots::Token;
use super::table::RawTable;
use super::tile::{Observer, Weights};
use crate::error::{Error, ensure};

/// What becomes of the probabilities of the H / Hk heads of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Reduce {
    /// Their mean.
    #[default]
    Mean = 0,
    /// The greatest.
    Max = 1,
    /// Their sum.
    Sum = 2,
}

impl Reduce {
    /// The one with a C number.
    pub const fn from_code(code: u32) -> Option<Self> {
        match code {
            0 => Some(Self::Mean),
            1 => Some(Self::Max),
            2 => Some(Self::Sum),
            _ => None,
        }
    }
}

/// Where scores go, by address. Slots that a query does not read add nothing to `sums` and are 0 in `probabilities`.
#[derive(Clone, Copy, Debug)]
pub struct RawScores {
    /// Of the heads of a group, for `sums`.
    pub reduce: Reduce,
    /// Whether `sums` of the share's table rows and heads are set to 0 first.
    pub store: bool,
    /// Whether the slot at the query's own position is left out of `sums`.
    pub without_own: bool,
    /// Slots of each row of `sums` and `probabilities`: more than any slot that is read.
    pub slots: u32,
    /// Floats from table row to table row of `sums`.
    pub row_stride: u64,
    /// Floats from KV head to KV head of `sums`.
    pub head_stride: u64,
    /// `[table rows][Hk][slots]`, or NULL.
    pub sums: *mut f32,
    /// `[n][H][slots]`, or NULL.
    pub probabilities: *mut f32,
}

impl RawScores {
    /// For a call over such a table; the group is H / Hk.
    pub(crate) fn check(
        &self,
        table: &RawTable,
        kv_heads: u32,
        group: u32,
        queries: &RawQueries,
        work: &RawWork,
    ) -> Result<(), Error> {
        check_array(self.sums, usize::from(!self.sums.is_null()))?;
        check_array(self.probabilities, usize::from(!self.probabilities.is_null()))?;
        let limit = isize::MAX as u64 / 4;
        let slots = u64::from(self.slots);
        let heads = u64::from(kv_heads) * u64::from(group);
        let rows = u64::from(queries.n).checked_mul(heads * slots);
        ensure(self.probabilities.is_null() || rows.is_some_and(|n| n <= limit), Error::Stride)?;
        if self.sums.is_null() {
            return Ok(());
        }
        // Only whole groups can be reduced.
        let is_whole = |head: u32| head.checked_rem(group) == Some(0);
        ensure(is_whole(work.heads.0) && is_whole(work.heads.1), Error::Range)?;
        ensure(table.rows == 1 || self.row_stride >= slots, Error::Stride)?;
        ensure(kv_heads == 1 || self.head_stride >= slots, Error::Stride)?;
        let row = u64::from(table.rows - 1).checked_mul(self.row_stride);
        let head = u64::from(kv_heads - 1).checked_mul(self.head_stride);
        let end = row.zip(head).and_then(|(row, head)| row.checked_add(head)?.checked_add(slots));
        ensure(end.is_some_and(|end| end <= limit), Error::Stride)
    }

    /// # Safety
    /// They passed their check; row and head are in range.
    unsafe fn sums(&self, table_row: u32, kv_head: u32) -> *mut f32 {
        let at = u64::from(table_row) * self.row_stride + u64::from(kv_head) * self.head_stride;
        // SAFETY: inside the extent that `check` limits.
        unsafe { self.sums.add(at as usize) }
    }

    /// Set the sums of a table row to 0, for the heads of a share.
    ///
    /// # Safety
    /// They passed their check, their memory is valid, and the row is in range.
    pub(crate) unsafe fn clear(&self, table_row: u32, group: u32, heads: (u32, u32)) {
        let kv_head = |head: u32| head.checked_div(group).unwrap_or(0);
        for kv_head in kv_head(heads.0)..kv_head(heads.1) {
            // SAFETY: the caller's promise; all zero bytes are 0.0.
            unsafe { core::ptr::write_bytes(self.sums(table_row, kv_head), 0, self.slots as usize) };
        }
    }
}

/// The scores of one query row.
pub(crate) struct Scorer<'a> {
    pub(crate) scores: &'a RawScores,
    pub(crate) tokens: &'a [Token],
    /// Which of the list is the query's own.
    pub(crate) own: Option<usize>,
    pub(crate) table_row: u32,
    /// First row of `probabilities`.
    pub(crate) first_row: u64,
    /// H / Hk
    pub(crate) group: u32,
    /// What the heads of the group so far come to: as long as the list, rounded up to [`LANES`].
    pub(crate) reduced: *mut f32,
    /// Resolved.
    pub(crate) isa: Isa,
}

impl Observer for Scorer<'_> {
    unsafe fn see(&mut self, tile: &Weights<'_>) {
        let scores = self.scores;
        let slots = scores.slots as usize;
        if !scores.probabilities.is_null() && slots > 0 {
            let at = (self.first_row + u64::from(tile.head)) * slots as u64;
            let floats = tile.denominators.len() * slots;
            // SAFETY: the rows of this query and these heads, inside the extent that `check` limits; they are made initialised.
            unsafe {
                let rows = scores.probabilities.add(at as usize);
                core::ptr::write_bytes(rows, 0, floats);
                store(self.isa, self.tokens, tile, core::slice::from_raw_parts_mut(rows, floats), slots);
            }
        }
        if scores.sums.is_null() || self.tokens.is_empty() {
            return;
        }
        let kv_head = tile.head.checked_div(self.group).unwrap_or(0);
        let begin = tile.head - kv_head * self.group;
        let is_first = begin == 0;
        let is_last = begin + tile.denominators.len() as u32 == self.group;
        // SAFETY: the scratch has a float for each of the list, rounded up; the first tile of a group, which a share has whole,
        // finds it set to 0. Sums are those of this row and head, and every slot of the list is below `slots`.
        let (reduced, sums) = unsafe {
            if is_first && !is_last {
                core::ptr::write_bytes(self.reduced, 0, tile.capacity);
            }
            let reduced = if is_first && is_last {
                &mut [][..]
            } else {
                core::slice::from_raw_parts_mut(self.reduced, tile.capacity)
            };
            (reduced, core::slice::from_raw_parts_mut(scores.sums(self.table_row, kv_head), slots))
        };
        let divisor = if scores.reduce == Reduce::Mean { self.group as f32 } else { 1.0 };
        let group = Group { tokens: self.tokens, own: self.own.filter(|_| scores.without_own), is_last, divisor };
        // SAFETY: the set is resolved.
        unsafe {
            match scores.reduce {
                Reduce::Max => reduce_max(self.isa, &group, tile, reduced, sums),
                _ => reduce_sum(self.isa, &group, tile, reduced, sums),
            }
        }
    }
}

/// How the heads of a group come together.
struct Group<'a> {
    tokens: &'a [Token],
    own: Option<usize>,
    /// Whether these heads are the last of the group.
    is_last: bool,
    divisor: f32,
}

per_isa! {
    /// # Safety
    /// `isa` is resolved.
    unsafe fn reduce_sum(group: &Group<'_>, tile: &Weights<'_>, reduced: &mut [f32], sums: &mut [f32]) -> () {
        reduce(group, tile, reduced, sums, |to, x| *to += x)
    }
}

per_isa! {
    /// # Safety
    /// `isa` is resolved.
    unsafe fn reduce_max(group: &Group<'_>, tile: &Weights<'_>, reduced: &mut [f32], sums: &mut [f32]) -> () {
        // A NaN stays.
        reduce(group, tile, reduced, sums, |to, x| *to = if x <= *to || to.is_nan() { *to } else { x })
    }
}

per_isa! {
    /// # Safety
    /// `isa` is resolved.
    unsafe fn store(tokens: &[Token], tile: &Weights<'_>, rows: &mut [f32], slots: usize) -> () {
        store_body(tokens, tile, rows, slots)
    }
}

/// Heads into `reduced`, or, if they are the last of their group, into the sums. Without `reduced` they are the first, too.
#[inline(always)]
fn reduce(
    group: &Group<'_>,
    tile: &Weights<'_>,
    reduced: &mut [f32],
    sums: &mut [f32],
    f: impl Fn(&mut f32, f32) + Copy,
) {
    let (blocks, _) = tile.weights.as_chunks::<LANES>();
    let (reduced, _) = reduced.as_chunks_mut::<LANES>();
    for (i, tokens) in group.tokens.chunks(LANES).enumerate() {
        let mut all = reduced.get(i).copied().unwrap_or_default();
        for (g, denominator) in tile.denominators.iter().enumerate() {
            if let Some(weights) = blocks.get(g * (tile.capacity / LANES) + i) {
                for (to, weight) in all.iter_mut().zip(weights) {
                    f(to, *weight / denominator.sum());
                }
            }
        }
        if !group.is_last {
            if let Some(reduced) = reduced.get_mut(i) {
                *reduced = all;
            }
            continue;
        }
        for x in &mut all {
            *x /= group.divisor;
        }
        if let Some(x) = group.own.and_then(|own| all.get_mut(own.checked_sub(i * LANES)?)) {
            *x = 0.0;
        }
        place(tokens, &all, sums, |to, x| *to += x);
    }
}

#[inline(always)]
fn store_body(tokens: &[Token], tile: &Weights<'_>, rows: &mut [f32], slots: usize) {
    let heads = tile.weights.chunks(tile.capacity.max(1)).zip(tile.denominators);
    for ((weights, denominator), row) in heads.zip(rows.chunks_mut(slots.max(1))) {
        let (blocks, _) = weights.as_chunks::<LANES>();
        for (tokens, weights) in tokens.chunks(LANES).zip(blocks) {
            place(tokens, weights, row, |to, weight| *to = weight / denominator.sum());
        }
    }
}

/// Each value to the slot of its token. Slots ascend; blocks of adjacent ones, the rule, become vectors.
#[inline(always)]
fn place(tokens: &[Token], values: &[f32; LANES], to: &mut [f32], f: impl Fn(&mut f32, f32)) {
    let slot = |token: Option<&Token>| token.map_or(0, |token| token.slot as usize);
    let (first, last) = (slot(tokens.first()), slot(tokens.last()));
    if tokens.len() == LANES && last - first == LANES - 1 {
        if let Some(to) = to.get_mut(first..).and_then(<[f32]>::first_chunk_mut::<LANES>) {
            to.iter_mut().zip(values).for_each(|(to, x)| f(to, *x));
        }
        return;
    }
    for (token, x) in tokens.iter().zip(values) {
        if let Some(to) = to.get_mut(token.slot as usize) {
            f(to, *x);
        }
    }
}
