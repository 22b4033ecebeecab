//! Move quantised tokens from slot to slot.
//!
//! Invariant: codes, scales and zeros move together, as bytes; where groups lie along tokens, whole groups.

use kvfolio::layout::{PartLayout, RowAddress, Tensor};

use super::view::RawQuant;
use crate::cpu::{RowMove, check_array};
use crate::error::{Error, ensure};

/// Move tokens, in list order. Where groups lie along tokens, each G moves in the list take the G tokens of one group, in order,
/// to the places of another.
///
/// # Errors
/// [`Error::NullPage`], [`Error::Page`], [`Error::Slot`], [`Error::Tokens`] for a part of a group, or those of the view; nothing has
/// been written then.
///
/// # Safety
/// Non-NULL addresses are valid: scales for reads, `moves` for n reads, the pages named for reads and writes. No thread touches
/// them.
pub unsafe fn move_quant_rows_raw(pages: &RawQuant<'_>, moves: *const RowMove, n: usize) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let quant = unsafe { pages.checked() }?;
    check_array(moves, n)?;
    // SAFETY: the caller's promise.
    let moves = if n == 0 { &[] } else { unsafe { core::slice::from_raw_parts(moves, n) } };
    for step in moves {
        step.check(quant.page_tokens, quant.n_pages)?;
    }
    let block = quant.block_tokens();
    for group in moves.chunks(block.max(1) as usize) {
        let begins = |slot: u32| slot.is_multiple_of(block);
        let is_whole = block == 1
            || group.first().is_some_and(|first| begins(first.src_slot) && begins(first.dst_slot))
                && RowMove::adjacent(group) == block;
        ensure(is_whole, Error::Tokens)?;
    }
    for tensor in [Tensor::K, Tensor::V] {
        let part = pages.layout.part(tensor);
        for head in 0..quant.heads {
            // The first move of each block stands for all.
            for step in moves.iter().step_by(part.block_tokens.max(1) as usize) {
                let row = |slot| pages.layout.row(pages.layer, tensor, head, slot).map_err(|_| Error::Layout);
                let (from, to) = (row(step.src_slot)?, row(step.dst_slot)?);
                // SAFETY: ids and slots were checked, and blocks lie inside their pages; the caller's promise.
                unsafe { copy_block(pages, part, (step.src_page, &from), (step.dst_page, &to)) };
            }
        }
    }
    Ok(())
}

/// The codes, scales and zeros of one block.
///
/// # Safety
/// Both are blocks of the part in pages 1..=N; the memory is valid.
unsafe fn copy_block(pages: &RawQuant<'_>, part: &PartLayout, from: (u32, &RowAddress), to: (u32, &RowAddress)) {
    let at =
        |page: u32, offset: u64| pages.base.wrapping_add((u64::from(page) * pages.layout.page_bytes + offset) as usize);
    let sections = [
        (from.1.codes, to.1.codes, part.group_bytes),
        (from.1.scales, to.1.scales, part.scale_bytes),
        (from.1.zeros, to.1.zeros, part.zero_bytes),
    ];
    for (source, target, bytes) in sections {
        let bytes = part.groups as usize * bytes as usize;
        // SAFETY: the caller's promise; sections that are not there have no bytes.
        unsafe { core::ptr::copy(at(from.0, source), at(to.0, target), bytes) };
    }
}
