//! The two inner loops of attention, over rows of one head.
//!
//! Invariant: the order of additions is fixed. A dot product has 16 partial
//! sums, lane i taking the elements i, i + 16, ...; they are added as a tree.
//! The weighted sum of values has one accumulator per element and takes the
//! tokens in ascending order. No multiply is fused with an add.
//!
//! Shapes: a tile is G = 1..=4 adjacent query heads of one key/value head:
//! q and out `[G][d]`, logits and weights `[G][capacity]`.

use core::mem::MaybeUninit;

use super::element::Element;
use super::isa::{Isa, per_isa};

/// Partial sums of a dot product.
pub(crate) const LANES: usize = 16;
/// Most heads of a tile: what fits in 16 vector registers of 4 floats.
pub(crate) const TILE: usize = 4;

/// Rows of one head, K or V, in the order in which they are taken.
pub(crate) trait RowSet: Copy {
    /// How many.
    fn tokens(&self) -> usize;

    /// Address of a row.
    ///
    /// # Safety
    /// `token` is below [`RowSet::tokens`], and the rows are valid memory.
    unsafe fn row<E: Element>(&self, token: usize) -> *const E;
}

/// Rows of consecutive tokens.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) base: *const u8,
    /// Bytes from a token to the next.
    pub(crate) stride: u64,
    pub(crate) tokens: usize,
}

impl RowSet for Rows {
    #[inline(always)]
    fn tokens(&self) -> usize {
        self.tokens
    }

    #[inline(always)]
    unsafe fn row<E: Element>(&self, token: usize) -> *const E {
        // SAFETY: the caller's promise.
        unsafe { self.base.add((token as u64 * self.stride) as usize).cast::<E>() }
    }
}

/// Rows anywhere.
#[derive(Clone, Copy)]
pub(crate) struct Picked {
    /// `[tokens]`, in use until the function that got it returns.
    pub(crate) rows: *const *const u8,
    pub(crate) tokens: usize,
}

impl RowSet for Picked {
    #[inline(always)]
    fn tokens(&self) -> usize {
        self.tokens
    }

    #[inline(always)]
    unsafe fn row<E: Element>(&self, token: usize) -> *const E {
        // SAFETY: the caller's promise.
        unsafe { (*self.rows.add(token)).cast::<E>() }
    }
}

/// Read one block of [`LANES`] elements.
///
/// # Safety
/// As [`Element::load`]; with `AVX2` the CPU has AVX2 and F16C.
#[inline(always)]
pub(crate) unsafe fn load<E: Element, const AVX2: bool>(src: *const E) -> [f32; LANES] {
    // SAFETY: the caller's promise.
    unsafe { if AVX2 { E::load_avx2(src) } else { E::load(src) } }
}

/// Add 16 partial sums: halves, quarters, eighths, the last two.
#[inline(always)]
pub(crate) fn tree_sum(s: &[f32; LANES]) -> f32 {
    let mut a = [0.0f32; 8];
    for i in 0..8 {
        a[i] = s[i] + s[i + 8];
    }
    let b = [a[0] + a[4], a[1] + a[5], a[2] + a[6], a[3] + a[7]];
    (b[0] + b[2]) + (b[1] + b[3])
}

/// Dot products of G queries with each row: `logits[g][token]`.
///
/// # Safety
/// `q` is valid for G * d floats, `rows` for rows of d elements of type E, and `logits` for
/// writes of `rows.tokens` floats at each multiple of `capacity` below G * capacity. `isa` is resolved.
#[inline(always)]
pub(crate) unsafe fn dot_rows<E: Element, R: RowSet, const G: usize>(
    isa: Isa,
    q: *const f32,
    d: usize,
    rows: R,
    logits: *mut f32,
    capacity: usize,
) {
    // Two loops: a compiler keeps the sums in vector registers only where there is no tail.
    // SAFETY: the caller's promise.
    unsafe {
        if d.is_multiple_of(LANES) {
            dot_rows_for::<E, R, G, false>(isa, q, d, rows, logits, capacity);
        } else {
            dot_rows_for::<E, R, G, true>(isa, q, d, rows, logits, capacity);
        }
    }
}

per_isa! {
    /// # Safety
    /// As [`dot_rows_body`]; `isa` is resolved.
    unsafe fn dot_rows_for[E: Element, R: RowSet, const G: usize, const TAIL: bool][E, R, G, TAIL](
        q: *const f32,
        d: usize,
        rows: R,
        logits: *mut f32,
        capacity: usize,
    ) -> () {
        dot_rows_body::<E, R, G, TAIL, AVX2>(q, d, rows, logits, capacity)
    }
}

/// [`dot_rows`] for d that is (`TAIL` = false) or is not a multiple of [`LANES`].
///
/// # Safety
/// As [`dot_rows`]; with `AVX2` the CPU has AVX2 and F16C.
#[inline(always)]
unsafe fn dot_rows_body<E: Element, R: RowSet, const G: usize, const TAIL: bool, const AVX2: bool>(
    q: *const f32,
    d: usize,
    rows: R,
    logits: *mut f32,
    capacity: usize,
) {
    let blocks = d / LANES;
    let tail = d % LANES;
    // The sums go through memory, indexed by token: a compiler that sees them being added up
    // right away splits them into scalars and makes slow code of the loop above.
    let mut partial = [const { MaybeUninit::<[[f32; LANES]; G]>::uninit() }; LANES];
    for first in (0..rows.tokens()).step_by(LANES) {
        let tokens = (rows.tokens() - first).min(LANES);
        for (token, partial) in partial.iter_mut().enumerate().take(tokens) {
            let mut sums = [[0.0f32; LANES]; G];
            // SAFETY: first + token < rows.tokens().
            let row = unsafe { rows.row::<E>(first + token) };
            for block in 0..blocks {
                let at = block * LANES;
                // SAFETY: at + LANES <= d.
                let k = unsafe { load::<E, AVX2>(row.add(at)) };
                for (g, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: g < G and at + LANES <= d.
                    add_products(sum, &unsafe { f32::load(q.add(g * d + at)) }, &k);
                }
            }
            if TAIL {
                let at = blocks * LANES;
                // SAFETY: at + tail = d.
                let k = unsafe { E::load_tail(row.add(at), tail) };
                for (g, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: g < G and at + tail = d.
                    add_products(sum, &unsafe { f32::load_tail(q.add(g * d + at), tail) }, &k);
                }
            }
            partial.write(sums);
        }
        for (token, partial) in partial.iter().enumerate().take(tokens) {
            // SAFETY: written above for all tokens below `tokens`.
            for (g, sum) in unsafe { partial.assume_init_ref() }.iter().enumerate() {
                // SAFETY: g < G and first + token < rows.tokens().
                unsafe { logits.add(g * capacity + first + token).write(tree_sum(sum)) };
            }
        }
    }
}

#[inline(always)]
fn add_products(sum: &mut [f32; LANES], a: &[f32; LANES], b: &[f32; LANES]) {
    for lane in 0..LANES {
        sum[lane] += a[lane] * b[lane];
    }
}

per_isa! {
    /// Add the weighted rows to G outputs: `out[g] += weights[g][token] * row(token)`.
    ///
    /// # Safety
    /// `out` is valid for G * d floats, `rows` for rows of d elements of type E, and `weights` for
    /// reads of `rows.tokens` floats at each multiple of `capacity` below G * capacity. `isa` is resolved.
    pub(crate) unsafe fn add_rows[E: Element, R: RowSet, const G: usize][E, R, G](
        weights: *const f32,
        capacity: usize,
        rows: R,
        d: usize,
        out: *mut f32,
    ) -> () {
        add_rows_body::<E, R, G, AVX2>(weights, capacity, rows, d, out)
    }
}

/// # Safety
/// As [`add_rows`]; with `AVX2` the CPU has AVX2 and F16C.
#[inline(always)]
unsafe fn add_rows_body<E: Element, R: RowSet, const G: usize, const AVX2: bool>(
    weights: *const f32,
    capacity: usize,
    rows: R,
    d: usize,
    out: *mut f32,
) {
    let blocks = d / LANES;
    let tail = d % LANES;
    for block in 0..blocks {
        let at = block * LANES;
        let mut sums = [[0.0f32; LANES]; G];
        for (g, sum) in sums.iter_mut().enumerate() {
            // SAFETY: g < G and at + LANES <= d.
            *sum = unsafe { f32::load(out.add(g * d + at)) };
        }
        for token in 0..rows.tokens() {
            // SAFETY: token < rows.tokens() and at + LANES <= d.
            let v = unsafe { load::<E, AVX2>(rows.row::<E>(token).add(at)) };
            for (g, sum) in sums.iter_mut().enumerate() {
                // SAFETY: g < G and token < rows.tokens().
                let w = unsafe { *weights.add(g * capacity + token) };
                for lane in 0..LANES {
                    sum[lane] += w * v[lane];
                }
            }
        }
        for (g, sum) in sums.iter().enumerate() {
            // SAFETY: g < G and at + LANES <= d.
            unsafe { out.add(g * d + at).cast::<[f32; LANES]>().write(*sum) };
        }
    }
    for at in d - tail..d {
        for g in 0..G {
            // SAFETY: g < G and at < d.
            let out = unsafe { &mut *out.add(g * d + at) };
            for token in 0..rows.tokens() {
                // SAFETY: token < rows.tokens(), at < d, g < G.
                let (v, w) = unsafe { ((*rows.row::<E>(token).add(at)).to_f32(), *weights.add(g * capacity + token)) };
                *out += w * v;
            }
        }
    }
}
