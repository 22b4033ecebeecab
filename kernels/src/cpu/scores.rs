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
use super::softmax::Denominator;
use super::table::RawTable;
use super::tile::Observer;
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
    /// What the heads of the group so far come to: as long as the list.
    pub(crate) reduced: *mut f32,
    /// Resolved.
    pub(crate) isa: Isa,
}

impl Observer for Scorer<'_> {
    unsafe fn weights(&mut self, head: u32, weights: &[f32], denominator: &Denominator) {
        let (scores, sum) = (self.scores, denominator.sum());
        let slots = scores.slots as usize;
        if !scores.probabilities.is_null() {
            let at = (self.first_row + u64::from(head)) * slots as u64;
            // SAFETY: the row of this query and head, inside the extent that `check` limits; it is made initialised.
            unsafe {
                let row = scores.probabilities.add(at as usize);
                core::ptr::write_bytes(row, 0, slots);
                store(self.isa, self.tokens, weights, sum, core::slice::from_raw_parts_mut(row, slots));
            }
        }
        if scores.sums.is_null() || self.tokens.is_empty() {
            return;
        }
        let kv_head = head.checked_div(self.group).unwrap_or(0);
        let member = head - kv_head * self.group;
        // SAFETY: as long as the list; the first head of each group, which a share has too, writes it whole.
        let reduced = unsafe {
            if member == 0 {
                core::ptr::write_bytes(self.reduced, 0, weights.len());
            }
            core::slice::from_raw_parts_mut(self.reduced, weights.len())
        };
        // SAFETY: the set is resolved.
        unsafe {
            match scores.reduce {
                Reduce::Max => raise(self.isa, reduced, weights, sum),
                _ => accumulate(self.isa, reduced, weights, sum),
            }
        }
        if member + 1 < self.group {
            return;
        }
        if let Some(own) = self.own.filter(|_| scores.without_own).and_then(|own| reduced.get_mut(own)) {
            *own = 0.0;
        }
        let divisor = if scores.reduce == Reduce::Mean { self.group as f32 } else { 1.0 };
        // SAFETY: the sums of this row and head; every slot of the list is below `slots`. The set is resolved.
        unsafe {
            let sums = core::slice::from_raw_parts_mut(scores.sums(self.table_row, kv_head), slots);
            add(self.isa, self.tokens, reduced, divisor, sums);
        }
    }
}

per_isa! {
    /// # Safety
    /// `isa` is resolved.
    unsafe fn accumulate(reduced: &mut [f32], weights: &[f32], sum: f32) -> () {
        each(reduced, weights, |to, weight| *to += weight / sum)
    }
}

per_isa! {
    /// # Safety
    /// `isa` is resolved.
    unsafe fn raise(reduced: &mut [f32], weights: &[f32], sum: f32) -> () {
        each(reduced, weights, |to, weight| {
            let x = weight / sum;
            // A NaN stays.
            *to = if x <= *to || to.is_nan() { *to } else { x };
        })
    }
}

per_isa! {
    /// # Safety
    /// `isa` is resolved.
    unsafe fn store(tokens: &[Token], weights: &[f32], sum: f32, row: &mut [f32]) -> () {
        place(tokens, weights, row, |to, weight| *to = weight / sum)
    }
}

per_isa! {
    /// # Safety
    /// `isa` is resolved.
    unsafe fn add(tokens: &[Token], reduced: &[f32], divisor: f32, sums: &mut [f32]) -> () {
        place(tokens, reduced, sums, |to, x| *to += x / divisor)
    }
}

#[inline(always)]
fn each(to: &mut [f32], from: &[f32], f: impl Fn(&mut f32, f32)) {
    for (to, from) in to.iter_mut().zip(from) {
        f(to, *from);
    }
}

/// Each value to the slot of its token. Slots ascend; blocks of adjacent ones, the rule, become vectors.
#[inline(always)]
fn place(tokens: &[Token], values: &[f32], to: &mut [f32], f: impl Fn(&mut f32, f32) + Copy) {
    for (tokens, values) in tokens.chunks(LANES).zip(values.chunks(LANES)) {
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            continue;
        };
        let (first, last) = (first.slot as usize, last.slot as usize);
        if last - first + 1 == tokens.len() {
            if let Some(to) = to.get_mut(first..=last) {
                each(to, values, f);
            }
        } else {
            for (token, value) in tokens.iter().zip(values) {
                if let Some(to) = to.get_mut(token.slot as usize) {
                    f(to, *value);
                }
            }
        }
    }
}
