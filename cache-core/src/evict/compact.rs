//! Closing holes: which rows move, in an order that is safe in place.
//!
//! Two phases: the plan changes nothing; the engine moves the bytes, page by page through its table; then the commit moves
//! positions and features in the same way.

use super::error::EvictError;
use super::slots::{Slots, low_bits};
use super::stream::Stream;

/// `count` rows of bytes move from slot `from` of the row to slot `to`, which is lower. Neither range crosses a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SlotMove {
    /// First source slot.
    pub from: u32,
    /// First target slot.
    pub to: u32,
    /// Slots.
    pub count: u32,
}

/// What a compaction does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Moves.
    pub moves: u32,
    /// Slots in use afterwards.
    pub rows: u32,
    /// Columns in use afterwards.
    pub columns: u32,
    /// Columns that are no longer needed.
    pub freed: u32,
    /// First column that is written; pages from there to `columns` that others share are to be copied first. Equal to
    /// `columns` where nothing moves.
    pub first_written: u32,
}

/// Whether closing the holes is worth it: it frees a page, and at most `percent` of the slots of all columns are live. O(1).
#[must_use]
pub const fn is_sparse(slots: &Slots<'_>, percent: u32) -> bool {
    let p = slots.page_tokens as u64;
    let columns = slots.columns() as u64;
    let needed = (slots.live as u64).div_ceil(if p == 0 { 1 } else { p });
    let held = columns.saturating_mul(p).saturating_mul(percent as u64);
    needed < columns && (slots.live as u64).saturating_mul(100) <= held
}

/// Plans the moves that close all holes: writes them to `moves`, of which `live` are always enough. As [`plan_moves`].
///
/// # Errors
/// `Parameter` for a group that does not divide P; `Shape` for too few moves.
pub fn plan_compaction(slots: &Slots<'_>, group: u32, moves: &mut [SlotMove]) -> Result<Compaction, EvictError> {
    let mut room = moves.iter_mut();
    let mut is_short = false;
    let plan = plan_moves(slots, group, |each| match room.next() {
        Some(at) => *at = each,
        None => is_short = true,
    })?;
    if is_short { Err(EvictError::Shape) } else { Ok(plan) }
}

/// Tells `take` the moves that close all holes, ascending; units of `group` slots, which divides P, move as a whole where one of
/// them is live, and keep their holes. None moves to where another still has to move from. O(rows).
///
/// # Errors
/// `Parameter` for a group that does not divide P.
pub fn plan_moves(slots: &Slots<'_>, group: u32, mut take: impl FnMut(SlotMove)) -> Result<Compaction, EvictError> {
    let mut plan = Compaction { first_written: u32::MAX, ..Compaction::default() };
    let mut last: Option<SlotMove> = None;
    for step in units(slots, group)? {
        plan.rows = step.to.saturating_add(step.count);
        if step.from == step.to {
            continue;
        }
        plan.first_written = plan.first_written.min(step.to.wrapping_shr(slots.page_tokens.trailing_zeros()));
        // One move for neighbours that stay neighbours within their pages.
        let joined =
            last.map(|last| SlotMove { count: last.count.saturating_add(step.count), ..last }).filter(|joined| {
                let is_next = |at: u32, next: u32| {
                    let end = at.saturating_add(joined.count.saturating_sub(step.count));
                    end == next && end & slots.page_tokens.wrapping_sub(1) != 0
                };
                is_next(joined.from, step.from) && is_next(joined.to, step.to)
            });
        if joined.is_none()
            && let Some(done) = last
        {
            take(done);
            plan.moves = plan.moves.saturating_add(1);
        }
        last = Some(joined.unwrap_or(step));
    }
    if let Some(done) = last {
        take(done);
        plan.moves = plan.moves.saturating_add(1);
    }
    plan.columns = plan.rows.div_ceil(slots.page_tokens.max(1));
    plan.freed = slots.columns().saturating_sub(plan.columns);
    plan.first_written = plan.first_written.min(plan.columns);
    Ok(plan)
}

impl Stream<'_> {
    /// Carries out in positions and features what [`plan_compaction`] with the same group planned, once the bytes have moved.
    /// O(rows).
    ///
    /// # Errors
    /// `Parameter` as the plan; nothing has changed then.
    pub fn commit_compaction(&mut self, group: u32) -> Result<(), EvictError> {
        check_group(&self.slots(), group)?;
        let (mut from, mut to) = (0, 0);
        while let Some(step) = unit(&self.slots(), group, from, to) {
            self.relocate(step.from, step.to, step.count);
            (from, to) = (step.from.saturating_add(group), step.to.saturating_add(step.count));
        }
        self.set_rows(to);
        Ok(())
    }
}

/// Units with a live slot, where they are and where they go.
fn units<'a>(slots: &Slots<'a>, group: u32) -> Result<impl Iterator<Item = SlotMove> + use<'a>, EvictError> {
    check_group(slots, group)?;
    let (slots, mut from, mut to) = (*slots, 0, 0);
    Ok(core::iter::from_fn(move || {
        let step = unit(&slots, group, from, to)?;
        (from, to) = (step.from.saturating_add(group), step.to.saturating_add(step.count));
        Some(step)
    }))
}

fn check_group(slots: &Slots<'_>, group: u32) -> Result<(), EvictError> {
    let divides = group.is_power_of_two() && group <= slots.page_tokens;
    if divides { Ok(()) } else { Err(EvictError::Parameter) }
}

/// The first unit with a live slot from slot `from` on, to go to slot `to`.
fn unit(slots: &Slots<'_>, group: u32, from: u32, to: u32) -> Option<SlotMove> {
    let shift = slots.page_tokens.trailing_zeros();
    let mut at = from;
    while at < slots.rows {
        let offset = at & slots.page_tokens.wrapping_sub(1);
        let word = slots.valid.get(at.wrapping_shr(shift) as usize)?.wrapping_shr(offset);
        if word & low_bits(group) != 0 {
            let count = group.min(slots.rows.saturating_sub(at));
            return Some(SlotMove { from: at, to, count });
        }
        at = at.saturating_add(group);
    }
    None
}
