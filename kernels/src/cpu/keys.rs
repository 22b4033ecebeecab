//! What policies learn from keys alone: norms, products with a vector, the sum of unit keys.
//!
//! Invariant: products have the order of additions of attention, so they are
//! bit for bit the dot products that attention scales; sums take slots in
//! ascending order.
//!
//! Shapes: norms and dots `[Hk][slots]`, vectors and unit sums `[Hk][d]`.

use super::element::{Element, check_array, with_element};
use super::isa::{Isa, per_isa};
use super::lanes::{LANES, load, tree_sum};
use super::mask::Mask;
use super::pages::RawPages;
use super::slots::{Live, RawSlots, Word};
use super::table::RawTable;
use crate::error::{Error, ensure};

/// What is asked of the keys, by address. What is NULL is not asked for.
#[derive(Clone, Copy, Debug)]
pub struct RawKeys {
    /// Instruction set; it changes no bit.
    pub isa: Isa,
    /// Whether keys leave `unit_sums` instead of joining them.
    pub remove: bool,
    /// Slots of each row of norms and dots.
    pub slots: u32,
    /// Floats from KV head to KV head of norms and dots.
    pub head_stride: u64,
    /// `[Hk][d]`, for `dots`.
    pub vectors: *const f32,
    /// `[Hk][slots]`: length of the key of each slot.
    pub norms: *mut f32,
    /// `[Hk][slots]`: its product with the head's vector.
    pub dots: *mut f32,
    /// `[Hk][d]`: keys over their lengths are added. A key whose length is 0 or not finite adds nothing.
    pub unit_sums: *mut f32,
}

impl RawKeys {
    fn check(&self, kv_heads: u32, end: u32) -> Result<(), Error> {
        let present = |array: *const f32| usize::from(!array.is_null());
        check_array(self.vectors, present(self.dots))?;
        for array in [self.norms, self.dots, self.unit_sums] {
            check_array(array, present(array))?;
        }
        if self.norms.is_null() && self.dots.is_null() {
            return Ok(());
        }
        ensure(end <= self.slots, Error::Range)?;
        ensure(kv_heads == 1 || self.head_stride >= u64::from(self.slots), Error::Stride)?;
        let end = u64::from(kv_heads - 1).checked_mul(self.head_stride);
        let end = end.and_then(|floats| floats.checked_add(u64::from(self.slots)));
        ensure(end.is_some_and(|floats| floats <= isize::MAX as u64 / 4), Error::Stride)
    }
}

/// The live slots `begin..end` of a table row, with their pages checked.
///
/// # Safety
/// Non-NULL addresses are valid: the table for reads, and `slots` for its rows and columns.
pub(crate) unsafe fn live_slots(
    pages: &RawPages,
    table: &RawTable,
    slots: &RawSlots,
    row: u32,
    (begin, end): (u32, u32),
) -> Result<Live, Error> {
    pages.check()?;
    table.check()?;
    let page_tokens = pages.geometry.page_tokens;
    slots.check(page_tokens)?;
    ensure(begin <= end, Error::Range)?;
    let all = u64::from(table.stride) * u64::from(page_tokens);
    ensure(u64::from(end) <= all, Error::Table)?;
    // SAFETY: both were checked; the caller's promise.
    let live = unsafe { slots.row(table, i64::from(row), page_tokens, Mask::new(-1, 0, 0)) }?.between(begin, end);
    // SAFETY: the caller's promise.
    unsafe { live.check(pages) }?;
    Ok(live)
}

/// Look at the keys of the live slots `begin..end` of a table row.
///
/// Complexity: O(slots * Hk * d), once over the keys, and once more for unit sums.
///
/// # Errors
/// Any argument error; nothing has been written then.
///
/// # Safety
/// Non-NULL addresses are valid: the table for reads, `slots` for its rows and columns, the pages for reads where the table names
/// them, `vectors` for reads, the results for writes. No thread writes what is read or touches what is written.
pub unsafe fn keys_raw(
    pages: &RawPages,
    table: &RawTable,
    slots: &RawSlots,
    row: u32,
    (begin, end): (u32, u32),
    keys: &RawKeys,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let live = unsafe { live_slots(pages, table, slots, row, (begin, end)) }?;
    keys.check(pages.geometry.kv_heads, end)?;
    let isa = keys.isa.resolved();
    let word = |word: Word| {
        for head in 0..pages.geometry.kv_heads {
            // SAFETY: the page was checked, results were; the set is resolved; the caller's promise.
            with_element!(pages.geometry.dtype, E => unsafe { look::<E>(isa, pages, &word, head, keys) });
        }
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { live.words(word) }
}

per_isa! {
    /// The slots of a word, for one head.
    ///
    /// # Safety
    /// As [`keys_raw`], with checked arguments; `isa` is resolved.
    unsafe fn look[E: Element][E](pages: &RawPages, word: &Word, head: u32, keys: &RawKeys) -> () {
        look_body::<E, AVX2>(pages, word, head, keys)
    }
}

/// # Safety
/// As [`look`]; with `AVX2` the CPU has AVX2 and F16C.
#[inline(always)]
unsafe fn look_body<E: Element, const AVX2: bool>(pages: &RawPages, word: &Word, head: u32, keys: &RawKeys) {
    let d = pages.geometry.head_dim as usize;
    let of_head = |array: *mut f32| if array.is_null() { array } else { array.wrapping_add(head as usize * d) };
    let (vector, unit_sum) = (of_head(keys.vectors.cast_mut()).cast_const(), of_head(keys.unit_sums));
    let mut bits = word.bits;
    while bits != 0 {
        let slot = word.begin + bits.trailing_zeros();
        bits &= bits - 1;
        let place = slot & (pages.geometry.page_tokens - 1);
        let at = (u64::from(head) * keys.head_stride + u64::from(slot)) as usize;
        // SAFETY: page, slot and head are in range; rows have d elements; results have the slot. The caller's promise.
        unsafe {
            let key = pages.k_row(word.entry as u32, place, head).cast::<E>();
            if !keys.dots.is_null() {
                let dot = fold::<E, AVX2>(key, d, |at, n| {
                    if n < LANES { f32::load_tail(vector.add(at), n) } else { f32::load(vector.add(at)) }
                });
                keys.dots.add(at).write(dot);
            }
            if keys.norms.is_null() && unit_sum.is_null() {
                continue;
            }
            let norm = libm::sqrtf(fold::<E, AVX2>(key, d, |at, n| block::<E, AVX2>(key.add(at), n)));
            if !keys.norms.is_null() {
                keys.norms.add(at).write(norm);
            }
            if !unit_sum.is_null() && norm > 0.0 && norm.is_finite() {
                let divisor = if keys.remove { -norm } else { norm };
                for at in (0..d).step_by(LANES) {
                    let n = (d - at).min(LANES);
                    let sum = core::slice::from_raw_parts_mut(unit_sum.add(at), n);
                    for (sum, x) in sum.iter_mut().zip(block::<E, AVX2>(key.add(at), n)) {
                        *sum += x / divisor;
                    }
                }
            }
        }
    }
}

/// `n` <= [`LANES`] elements; the others are +0.
///
/// # Safety
/// `src` is valid for reads of n elements; with `AVX2` the CPU has AVX2 and F16C.
#[inline(always)]
unsafe fn block<E: Element, const AVX2: bool>(src: *const E, n: usize) -> [f32; LANES] {
    // SAFETY: the caller's promise.
    unsafe { if n < LANES { E::load_tail(src, n) } else { load::<E, AVX2>(src) } }
}

/// The product of a key with what `f(at, n)` gives for its elements `at..at + n`, added as attention does.
///
/// # Safety
/// `key` is valid for reads of d elements; with `AVX2` the CPU has AVX2 and F16C.
#[inline(always)]
unsafe fn fold<E: Element, const AVX2: bool>(key: *const E, d: usize, f: impl Fn(usize, usize) -> [f32; LANES]) -> f32 {
    let mut sums = [0.0f32; LANES];
    for at in (0..d).step_by(LANES) {
        let n = (d - at).min(LANES);
        // SAFETY: at + n <= d.
        let k = unsafe { block::<E, AVX2>(key.add(at), n) };
        for ((sum, a), b) in sums.iter_mut().zip(f(at, n)).zip(k) {
            *sum += a * b;
        }
    }
    tree_sum(&sums)
}
