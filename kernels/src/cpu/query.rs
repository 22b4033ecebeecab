//! What one call of attention is asked: parameters, query rows, share of the work.
//!
//! Invariant: after the checks here every index below n, H and the scratch
//! size is inside its array; the tables and positions are checked by row.
//!
//! Shapes: q and out `[n][H][d]`, positions and table rows `[n]`, lse `[n][H]`,
//! scratch `[tile][tokens read, rounded up to 16]`.

use super::element::check_array;
use super::isa::Isa;
use super::lanes::{LANES, TILE};
use super::mask::Mask;
use super::pages::{MAX_HEADS, check_heads};
use crate::error::{Error, ensure};

/// What attention computes; the meaning of the fields is in `kvfolio_kernels.h`.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionParams<'a> {
    /// H, a multiple of Hk.
    pub heads: u32,
    /// Factor of the dot products; 0 = 1 / sqrt(d).
    pub scale: f32,
    /// c of c * tanh(x / c); 0 = none.
    pub soft_cap: f32,
    /// Tokens a query reads, its own included; 0 = no limit.
    pub window: u32,
    /// First tokens that stay readable outside the window.
    pub sink_tokens: u32,
    /// Learned logit per head `[H]` that only enlarges the denominator.
    pub sink_logits: Option<&'a [f32]>,
    /// Instruction set of the inner loops; it changes no bit of the result.
    pub isa: Isa,
}

impl AttentionParams<'_> {
    pub(crate) fn check(&self, kv_heads: u32) -> Result<(), Error> {
        ensure((1..=MAX_HEADS).contains(&self.heads), Error::Shape)?;
        ensure(self.heads.checked_rem(kv_heads) == Some(0), Error::Shape)?;
        ensure(self.scale.is_finite(), Error::Value)?;
        ensure(self.soft_cap.is_finite() && self.soft_cap >= 0.0, Error::Value)?;
        ensure(self.sink_logits.is_none_or(|s| s.len() == self.heads as usize), Error::Shape)
    }

    /// The mask of a query position.
    pub(crate) fn mask(&self, position: i32) -> Mask {
        Mask::new(position, self.window, self.sink_tokens)
    }
}

/// Query rows and results by address.
#[derive(Clone, Copy, Debug)]
pub struct RawQueries {
    /// n
    pub n: u32,
    /// `[n][H][d]`
    pub q: *const f32,
    /// `[n]` absolute position; negative = padding row.
    pub positions: *const i32,
    /// `[n]` table row; NULL = row i uses table row i.
    pub table_rows: *const i32,
    /// `[n][H][d]`
    pub out: *mut f32,
    /// `[n][H]`, or NULL.
    pub lse: *mut f32,
}

impl RawQueries {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let n = self.n as usize;
        check_array(self.q, n)?;
        check_array(self.positions, n)?;
        check_array(self.out, n)?;
        check_array(self.table_rows, if self.table_rows.is_null() { 0 } else { n })?;
        check_array(self.lse, if self.lse.is_null() { 0 } else { n })
    }

    /// # Safety
    /// The queries passed `check`, their memory is valid, and row < n.
    pub(crate) unsafe fn position(&self, row: u32) -> i32 {
        // SAFETY: the caller's promise.
        unsafe { *self.positions.add(row as usize) }
    }

    /// # Safety
    /// As [`RawQueries::position`].
    pub(crate) unsafe fn table_row(&self, row: u32) -> i64 {
        if self.table_rows.is_null() {
            return row as i64;
        }
        // SAFETY: the caller's promise.
        unsafe { *self.table_rows.add(row as usize) as i64 }
    }
}

/// The share of one call, and its scratch, by address.
#[derive(Clone, Copy, Debug)]
pub struct RawWork {
    /// First and one past the last row.
    pub rows: (u32, u32),
    /// First and one past the last query head.
    pub heads: (u32, u32),
    /// Buffer of `scratch_floats` floats.
    pub scratch: *mut f32,
    /// See [`attention_scratch`].
    pub scratch_floats: u64,
}

impl RawWork {
    pub(crate) fn check(&self, n: u32, heads: u32) -> Result<(), Error> {
        ensure(self.rows.0 <= self.rows.1 && self.rows.1 <= n, Error::Range)?;
        ensure(self.heads.0 <= self.heads.1 && self.heads.1 <= heads, Error::Range)?;
        ensure(self.scratch_floats == 0 || !self.scratch.is_null(), Error::Null)?;
        check_array(self.scratch, self.scratch_floats.min(1) as usize)
    }

    /// Whether the scratch holds the logits of a tile over `tokens` tokens.
    pub(crate) fn check_scratch(&self, group: u32, tokens: u32) -> Result<(), Error> {
        ensure(scratch_floats(group, tokens) <= self.scratch_floats, Error::Scratch)
    }
}

fn scratch_floats(group: u32, tokens: u32) -> u64 {
    (group as u64).min(TILE as u64) * (tokens as u64).next_multiple_of(LANES as u64)
}

/// Floats of scratch that are enough for positions below `max_tokens`.
///
/// # Errors
/// [`Error::Shape`], [`Error::Value`].
pub fn attention_scratch(kv_heads: u32, params: &AttentionParams<'_>, max_tokens: u32) -> Result<u64, Error> {
    check_heads(kv_heads, 1)?;
    params.check(kv_heads)?;
    let limit = params.window.saturating_add(params.sink_tokens);
    let tokens = if params.window == 0 { max_tokens } else { max_tokens.min(limit) };
    Ok(scratch_floats(params.heads.checked_div(kv_heads).unwrap_or(1), tokens))
}
