//! Write new keys and values to their slots.
//!
//! Invariant: all slots are checked before the first byte is written.
//!
//! Shapes: k and v `[n][Hk][d]` f32, slots `[n]`; slot = page * P + offset, -1 = do not write.

use super::element::{Element, check_array, store_row, with_element};
use super::pages::{RawPages, slot_place};
use crate::error::{Error, ensure};

/// Append `n` rows. If a slot occurs twice the later row stays.
///
/// # Errors
/// [`Error::Null`], [`Error::Align`], [`Error::Slot`], or those of [`RawPages::check`].
///
/// # Safety
/// Non-NULL addresses are valid: `k`, `v` for reads of n * Hk * d floats, `slots` for n reads, and
/// the pages for writes where a slot names them. No thread touches what is written.
pub unsafe fn append_raw(
    pages: &RawPages,
    k: *const f32,
    v: *const f32,
    slots: *const i64,
    n: usize,
) -> Result<(), Error> {
    pages.check()?;
    check_array(k, n)?;
    check_array(v, n)?;
    check_array(slots, n)?;
    for row in 0..n {
        // SAFETY: row < n; the caller's promise.
        let slot = unsafe { *slots.add(row) };
        ensure(slot == -1 || place(pages, slot).is_some(), Error::Slot)?;
    }
    // SAFETY: all slots are -1 or in pages 1..=N; the caller's promise.
    with_element!(pages.geometry.dtype, E => unsafe { write::<E>(pages, k, v, slots, n) });
    Ok(())
}

#[inline(always)]
fn place(pages: &RawPages, slot: i64) -> Option<(u32, u32)> {
    slot_place(slot, pages.geometry.page_tokens, pages.geometry.n_pages)
}

/// # Safety
/// As [`append_raw`], with checked arguments.
unsafe fn write<E: Element>(pages: &RawPages, k: *const f32, v: *const f32, slots: *const i64, n: usize) {
    let d = pages.geometry.head_dim as usize;
    let heads = pages.geometry.kv_heads;
    for row in 0..n {
        // SAFETY: row < n.
        let Some((page, offset)) = place(pages, unsafe { *slots.add(row) }) else {
            continue;
        };
        for head in 0..heads {
            let at = (row * heads as usize + head as usize) * d;
            // SAFETY: page, offset and head are in range; at + d <= n * Hk * d.
            unsafe {
                store_row(k.add(at), pages.k_row(page, offset, head).cast::<E>(), d);
                store_row(v.add(at), pages.v_row(page, offset, head).cast::<E>(), d);
            }
        }
    }
}
