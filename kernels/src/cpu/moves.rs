//! Move tokens from slot to slot: what a compaction plan asks for.
//!
//! Invariant: the result is that of single moves in list order, each of which
//! takes the bytes of K and V of all heads. So a plan whose targets come no
//! later than their sources, ascending, is safe in place.

use super::copy::copy_tokens;
use super::element::check_array;
use super::pages::{RawPages, page_id};
use crate::error::{Error, ensure};

/// The token in one slot goes to another slot. Same layout as `kvf_kernel_move`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RowMove {
    /// Page read.
    pub src_page: u32,
    /// Slot read, below P.
    pub src_slot: u32,
    /// Page written.
    pub dst_page: u32,
    /// Slot written, below P.
    pub dst_slot: u32,
}

const _: () = assert!(size_of::<RowMove>() == 16 && align_of::<RowMove>() == 4);

impl RowMove {
    /// Both slots are in pages 1..=N.
    pub(crate) fn check(&self, page_tokens: u32, n_pages: u32) -> Result<(), Error> {
        page_id(i64::from(self.src_page), n_pages)?;
        page_id(i64::from(self.dst_page), n_pages)?;
        ensure(self.src_slot < page_tokens && self.dst_slot < page_tokens, Error::Slot)
    }

    /// Whether `next`, `n` places behind, moves the token `n` slots behind to `n` slots behind.
    fn goes_on(&self, n: u32, next: &Self) -> bool {
        let pages = next.src_page == self.src_page && next.dst_page == self.dst_page;
        pages && next.src_slot.wrapping_sub(self.src_slot) == n && next.dst_slot.wrapping_sub(self.dst_slot) == n
    }

    /// How many moves from the first of a list on are one: adjacent slots of one page to adjacent slots of another or earlier
    /// ones of the same page, where copying all at once is copying them in order.
    fn run(moves: &[Self]) -> u32 {
        let Some(first) = moves.first() else {
            return 0;
        };
        if first.src_page == first.dst_page && first.dst_slot > first.src_slot { 1 } else { Self::adjacent(moves) }
    }

    /// How many moves from the first of a list on take adjacent slots to adjacent slots.
    pub(crate) fn adjacent(moves: &[Self]) -> u32 {
        let Some(first) = moves.first() else {
            return 0;
        };
        (0u32..).zip(moves).take_while(|(n, next)| first.goes_on(*n, next)).count() as u32
    }
}

/// Move tokens, in list order.
///
/// # Errors
/// [`Error::NullPage`], [`Error::Page`], [`Error::Slot`], [`Error::Null`], [`Error::Align`], or those of [`RawPages::check`];
/// nothing has been written then.
///
/// # Safety
/// Non-NULL addresses are valid: `moves` for n reads, the pages for what the moves name. No thread writes what is read or
/// touches what is written.
pub unsafe fn move_rows_raw(pages: &RawPages, moves: *const RowMove, n: usize) -> Result<(), Error> {
    pages.check()?;
    check_array(moves, n)?;
    // SAFETY: the caller's promise.
    let mut moves = if n == 0 { &[] } else { unsafe { core::slice::from_raw_parts(moves, n) } };
    for step in moves {
        step.check(pages.geometry.page_tokens, pages.geometry.n_pages)?;
    }
    while let Some(first) = moves.first() {
        let tokens = RowMove::run(moves);
        for (base, strides) in [(pages.k, &pages.k_strides), (pages.v, &pages.v_strides)] {
            let from = strides.offset(u64::from(first.src_page), u64::from(first.src_slot), 0);
            let to = strides.offset(u64::from(first.dst_page), u64::from(first.dst_slot), 0);
            // SAFETY: a run lies inside two pages in 1..=N; if they are the same, the target is not behind the source.
            unsafe { copy_tokens(pages, base, strides, (from, to), tokens) };
        }
        moves = moves.get(tokens as usize..).unwrap_or_default();
    }
    Ok(())
}
