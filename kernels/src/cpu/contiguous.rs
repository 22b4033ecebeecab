//! Attention over keys and values without pages: the reference path.
//!
//! Invariant: bit for bit the result of the paged form with the same tokens.
//!
//! Shapes: k and v `[T][Hk][d]`, one sequence; the rest as in `attention`.

use super::element::{Dtype, is_aligned, with_element};
use super::lanes::Rows;
use super::mask::Mask;
use super::pages::check_heads;
use super::query::{AttentionParams, RawQueries, RawWork};
use super::tile::{Chunk, Heads, Source};
use crate::error::{Error, ensure};

/// Keys and values of one sequence by address.
#[derive(Clone, Copy, Debug)]
pub struct RawContiguous {
    /// Element type.
    pub dtype: Dtype,
    /// T
    pub tokens: u32,
    /// Hk
    pub kv_heads: u32,
    /// d
    pub head_dim: u32,
    /// `[T][Hk][d]`
    pub k: *const u8,
    /// `[T][Hk][d]`
    pub v: *const u8,
}

impl RawContiguous {
    /// Bytes of K, and of V.
    pub(crate) fn extent(&self) -> Result<u64, Error> {
        check_heads(self.kv_heads, self.head_dim)?;
        let token = self.kv_heads as u64 * self.head_dim as u64 * self.dtype.bytes();
        let extent = token.checked_mul(self.tokens as u64).ok_or(Error::Stride)?;
        ensure(extent <= isize::MAX as u64, Error::Stride)?;
        Ok(extent)
    }

    fn check(&self) -> Result<(), Error> {
        ensure(!self.k.is_null() && !self.v.is_null(), Error::Null)?;
        self.extent()?;
        let bytes = self.dtype.bytes();
        ensure(is_aligned(self.k, bytes) && is_aligned(self.v, bytes), Error::Align)
    }
}

/// Attention over one contiguous sequence.
///
/// # Errors
/// Any argument error; nothing has been written then.
///
/// # Safety
/// As [`attention_raw`](super::attention_raw), for K and V of T tokens.
pub unsafe fn attention_contiguous_raw(
    kv: &RawContiguous,
    params: &AttentionParams<'_>,
    queries: &RawQueries,
    work: &RawWork,
) -> Result<(), Error> {
    kv.check()?;
    params.check(kv.kv_heads)?;
    queries.check()?;
    work.check(queries.n, params.heads)?;
    let heads = Heads::new(kv.kv_heads, kv.head_dim, params);
    for row in work.rows.0..work.rows.1 {
        // SAFETY: row < n; the caller's promise.
        let mask = params.mask(unsafe { queries.position(row) });
        ensure(mask.end <= kv.tokens, Error::Range)?;
        work.check_scratch(heads.group, mask.tokens())?;
    }
    for row in work.rows.0..work.rows.1 {
        // SAFETY: row < n; the caller's promise.
        let mask = params.mask(unsafe { queries.position(row) });
        let run = ContiguousRow { kv, mask };
        // SAFETY: all of it was checked, the scratch for this number of tokens; the caller's promise.
        with_element!(kv.dtype, E => unsafe {
            heads.attend::<E>(&run, mask.tokens() as usize, queries, row, work)
        });
    }
    Ok(())
}

/// A query row over one sequence, whose mask is below T: the sink tokens, then the window.
struct ContiguousRow<'a> {
    kv: &'a RawContiguous,
    mask: Mask,
}

impl Source for ContiguousRow<'_> {
    #[inline(always)]
    unsafe fn each(&self, is_k: bool, head: u32, mut f: impl FnMut(usize, Chunk)) {
        let base = if is_k { self.kv.k } else { self.kv.v };
        let row = self.kv.head_dim as u64 * self.kv.dtype.bytes();
        let stride = row * self.kv.kv_heads as u64;
        let mut first = 0;
        for (begin, end) in [(0, self.mask.sinks_end), (self.mask.window_begin, self.mask.end)] {
            let tokens = (end - begin) as usize;
            let offset = begin as u64 * stride + head as u64 * row;
            // SAFETY: inside the extent that `check` limits to isize::MAX.
            let base = unsafe { base.add(offset as usize) };
            f(first, Chunk::Stored(Rows { base, stride, tokens }));
            first += tokens;
        }
    }
}
