//! One query row: its heads, in tiles that share the reading of keys and values.
//!
//! Invariant: each head is computed alone, in the order of `lanes` and
//! `softmax`; the tile that a head falls into changes none of its bits. Where
//! the tokens come from is left to a [`Source`], and an [`Observer`] sees the weights.
//!
//! Shapes: q and out `[G][d]`, scratch `[G][tokens read, rounded up to 16]`.

use super::element::Element;
use super::isa::Isa;
use super::lanes::{LANES, Picked, Rows, TILE, add_rows, dot_rows};
use super::query::{AttentionParams, RawQueries, RawWork};
use super::softmax::{Denominator, Logit, softmax};

/// Tokens of one head.
pub(crate) enum Chunk {
    /// Elements as the pages hold them.
    Stored(Rows),
    /// The same, row by row.
    Picked(Picked),
    /// Floats that were decoded; they stay until `f` returns.
    Decoded(Rows),
}

/// Where one query row finds keys and values: runs of tokens, ascending.
pub(crate) trait Source {
    /// Call `f(first, chunk)` for each run of keys of a head, or of values; `first` counts tokens read.
    ///
    /// # Safety
    /// The source was checked, its memory is valid, and the head is below Hk.
    unsafe fn each(&self, is_k: bool, head: u32, f: impl FnMut(usize, Chunk));
}

/// The weights of adjacent heads of one group, on their way from keys to values.
pub(crate) struct Weights<'a> {
    /// First query head.
    pub(crate) head: u32,
    /// `[G][capacity]`: exp(logit - greatest) of the tokens read, then anything up to a multiple of [`LANES`].
    pub(crate) weights: &'a [f32],
    /// A multiple of [`LANES`].
    pub(crate) capacity: usize,
    /// `[G]`: what the weights are divided by.
    pub(crate) denominators: &'a [Denominator],
}

/// Who sees them. Heads come in ascending order.
pub(crate) trait Observer {
    /// # Safety
    /// The heads are in the share, and the arguments of the call were checked for this observer.
    unsafe fn see(&mut self, weights: &Weights<'_>);
}

/// Nobody.
impl Observer for () {
    #[inline(always)]
    unsafe fn see(&mut self, _: &Weights<'_>) {}
}

/// Resolved parameters of a call.
pub(crate) struct Heads<'a> {
    /// H / Hk
    pub(crate) group: u32,
    heads: usize,
    d: usize,
    logit: Logit,
    sink_logits: Option<&'a [f32]>,
    /// Resolved.
    isa: Isa,
}

impl<'a> Heads<'a> {
    /// Of parameters that passed their check.
    pub(crate) fn new(kv_heads: u32, head_dim: u32, params: &AttentionParams<'a>) -> Self {
        let scale = if params.scale == 0.0 { 1.0 / libm::sqrtf(head_dim as f32) } else { params.scale };
        Self {
            group: params.heads.checked_div(kv_heads).unwrap_or(1).max(1),
            heads: params.heads as usize,
            d: head_dim as usize,
            logit: Logit { scale, soft_cap: params.soft_cap },
            sink_logits: params.sink_logits,
            isa: params.isa.resolved(),
        }
    }

    /// All heads of the share for one query row.
    ///
    /// # Safety
    /// As [`attention_raw`](super::attention_raw); all arguments were checked, and `tokens` is what the source has.
    pub(crate) unsafe fn attend<E: Element>(
        &self,
        source: &impl Source,
        tokens: usize,
        queries: &RawQueries,
        row: u32,
        work: &RawWork,
    ) {
        // SAFETY: the caller's promise.
        unsafe { self.attend_observed::<E>(source, tokens, queries, row, work, &mut ()) }
    }

    /// The same with an observer.
    ///
    /// # Safety
    /// As [`Heads::attend`], and as [`Observer::see`] for each head of the share.
    pub(crate) unsafe fn attend_observed<E: Element>(
        &self,
        source: &impl Source,
        tokens: usize,
        queries: &RawQueries,
        row: u32,
        work: &RawWork,
        observer: &mut impl Observer,
    ) {
        // A share that reads no token may come without scratch; its address is not used then.
        let scratch = if work.scratch.is_null() { core::ptr::NonNull::dangling().as_ptr() } else { work.scratch };
        let mut head = work.heads.0;
        while head < work.heads.1 {
            let kv_head = head.checked_div(self.group).unwrap_or(0);
            let end = ((kv_head + 1) * self.group).min(work.heads.1).min(head + TILE as u32);
            let at = row as usize * self.heads + head as usize;
            // SAFETY: at + G <= n * H.
            let tile = unsafe {
                Tile {
                    q: queries.q.add(at * self.d),
                    out: queries.out.add(at * self.d),
                    lse: if queries.lse.is_null() { queries.lse } else { queries.lse.add(at) },
                    scratch,
                    head,
                    kv_head,
                }
            };
            // SAFETY: the caller's promise; the tile has `end - head` heads of one group.
            unsafe {
                match end - head {
                    1 => self.attend_tile::<E, 1>(source, tokens, &tile, observer),
                    2 => self.attend_tile::<E, 2>(source, tokens, &tile, observer),
                    3 => self.attend_tile::<E, 3>(source, tokens, &tile, observer),
                    _ => self.attend_tile::<E, 4>(source, tokens, &tile, observer),
                }
            }
            head = end;
        }
    }

    /// G heads of one query row.
    ///
    /// # Safety
    /// As [`Heads::attend`].
    unsafe fn attend_tile<E: Element, const G: usize>(
        &self,
        source: &impl Source,
        tokens: usize,
        tile: &Tile,
        observer: &mut impl Observer,
    ) {
        let d = self.d;
        let capacity = tokens.next_multiple_of(LANES);
        // SAFETY: the runs have `tokens` tokens in all, so first + tokens <= capacity.
        unsafe {
            source.each(true, tile.kv_head, |first, chunk| {
                let logits = tile.scratch.add(first);
                match chunk {
                    Chunk::Stored(rows) => dot_rows::<E, _, G>(self.isa, tile.q, d, rows, logits, capacity),
                    Chunk::Picked(rows) => dot_rows::<E, _, G>(self.isa, tile.q, d, rows, logits, capacity),
                    Chunk::Decoded(rows) => dot_rows::<f32, _, G>(self.isa, tile.q, d, rows, logits, capacity),
                }
            });
        }
        let denominators: [_; G] = core::array::from_fn(|g| {
            // SAFETY: the scratch has G * capacity floats; all below `tokens` were just written,
            // and the fill makes the others so.
            let x = unsafe {
                let x = tile.scratch.add(g * capacity);
                core::ptr::write_bytes(x.add(tokens), 0, capacity - tokens);
                core::slice::from_raw_parts_mut(x, capacity)
            };
            let sink = self.sink_logits.and_then(|s| s.get(tile.head as usize + g));
            // SAFETY: the set was resolved by `new`.
            unsafe { softmax(self.isa, x, tokens, self.logit, sink.copied()) }
        });
        // SAFETY: the scratch has G * capacity floats, all of them written; the caller's promise.
        unsafe {
            let weights = core::slice::from_raw_parts(tile.scratch, G * capacity);
            observer.see(&Weights { head: tile.head, weights, capacity, denominators: &denominators });
        }
        // SAFETY: out has G * d floats; all zero bytes are 0.0.
        unsafe { core::ptr::write_bytes(tile.out, 0, G * d) };
        // SAFETY: as for the keys.
        unsafe {
            source.each(false, tile.kv_head, |first, chunk| {
                let weights = tile.scratch.add(first);
                match chunk {
                    Chunk::Stored(rows) => add_rows::<E, _, G>(self.isa, weights, capacity, rows, d, tile.out),
                    Chunk::Picked(rows) => add_rows::<E, _, G>(self.isa, weights, capacity, rows, d, tile.out),
                    Chunk::Decoded(rows) => add_rows::<f32, _, G>(self.isa, weights, capacity, rows, d, tile.out),
                }
            });
        }
        for (g, denominator) in denominators.iter().enumerate() {
            // SAFETY: g < G; out was initialised above and lse has an element per head.
            unsafe {
                denominator.normalise(core::slice::from_raw_parts_mut(tile.out.add(g * d), d));
                if !tile.lse.is_null() {
                    tile.lse.add(g).write(denominator.log_sum_exp());
                }
            }
        }
    }
}

/// Addresses of adjacent heads of one query row.
struct Tile {
    q: *const f32,
    out: *mut f32,
    lse: *mut f32,
    scratch: *mut f32,
    /// First query head.
    head: u32,
    kv_head: u32,
}
