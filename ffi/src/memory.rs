//! Memory planner
//!
//! How many bytes a model's cache takes, before anything is allocated. A model is a list of groups: layers with one layout
//! that keep the same tokens. Row bytes are what a formula on paper gives; page bytes are what must be there, and are
//! exactly the bytes from the first to the last page of that many. Memory of the manager itself, which is on the host, is
//! told by kvf_cache_required_size.

use kvfolio::GroupKind;
use kvfolio::layout::PageLayout;
use kvfolio::planner::{Fit, GroupMemory, PlannerError, Residual, SequenceMemory};

use crate::formats::*;
use crate::page_layout::read;
use crate::ptr::{self, Inputs};
use crate::status::{KVF_ERR_ARGUMENT, KVF_ERR_LAYOUT, KVF_ERR_RANGE, KVF_ERR_UNSUPPORTED, Status, answer, kvf_status};
use crate::types::{KVF_GROUP_FULL, KVF_GROUP_WINDOW};

/// Says what one sequence of `tokens` tokens takes in all groups, and how many such sequences `budget` bytes hold.
/// Sequences share nothing. `n` and `tokens` are at least 1. KVF_ERR_LAYOUT for a layout that kvf_layout_check refuses,
/// KVF_ERR_ARGUMENT for a window, ring or residual that makes no sense, KVF_ERR_RANGE if a number needs more than 64 bits.
/// O(groups).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_memory_estimate(
    groups: *const kvf_memory_group,
    n: usize,
    tokens: u64,
    budget: u64,
    report: *mut kvf_memory_report,
) -> kvf_status {
    let estimate = || {
        // SAFETY: rule (a).
        let (groups, report) = unsafe { (ptr::inputs(groups, n)?, ptr::output(report)?) };
        let mut total = Total::default();
        for index in 0..groups.count {
            // SAFETY: rule (a).
            unsafe { one(&groups, index, tokens, &mut total) }?;
        }
        report.set(&total.report(budget)?);
        Ok(())
    };
    answer(estimate())
}

/// Sums over groups.
#[derive(Default)]
struct Total {
    sequence: SequenceMemory,
    row_bytes: u64,
    static_bytes: u64,
}

impl Total {
    fn add(&mut self, group: &GroupMemory<'_>, tokens: u64) -> Result<(), PlannerError> {
        let sum = |a: u64, b: u64| a.checked_add(b).ok_or(PlannerError::Overflow);
        self.sequence.add(group, tokens)?;
        self.row_bytes = sum(self.row_bytes, group.row_bytes(tokens)?)?;
        self.static_bytes = sum(self.static_bytes, group.static_bytes()?)?;
        Ok(())
    }

    fn report(&self, budget: u64) -> Result<kvf_memory_report, Status> {
        let SequenceMemory { page_bytes, pages, row_pages } = self.sequence;
        if page_bytes == 0 {
            return Err(Status(KVF_ERR_ARGUMENT));
        }
        let fit = Fit::of(page_bytes, self.static_bytes, budget);
        Ok(kvf_memory_report {
            struct_size: 0,
            reserved: 0,
            row_bytes: self.row_bytes,
            page_bytes,
            pages,
            row_pages,
            sequences: fit.sequences,
            static_bytes: fit.static_bytes,
            spare_bytes: fit.spare_bytes,
        })
    }
}

/// Reads one group and adds it.
///
/// # Safety
/// Rule (a).
unsafe fn one(groups: &Inputs<kvf_memory_group>, index: usize, tokens: u64, total: &mut Total) -> Result<(), Status> {
    let given = groups.get(index)?;
    if given.reserved != 0 || given.ring > 1 {
        return Err(Status(KVF_ERR_UNSUPPORTED));
    }
    // SAFETY: rule (a).
    let layout = unsafe { read(given.layout) }?;
    // SAFETY: rule (a).
    let exact = if given.exact.is_null() { None } else { Some(unsafe { read(given.exact) }?) };
    let group = group_of(&given, &layout, exact.as_ref())?;
    total.add(&group, tokens).map_err(|error| {
        Status(match error {
            PlannerError::Layout => KVF_ERR_LAYOUT,
            PlannerError::Overflow => KVF_ERR_RANGE,
            _ => KVF_ERR_ARGUMENT,
        })
    })
}

fn group_of<'a>(
    given: &kvf_memory_group,
    layout: &'a PageLayout,
    exact: Option<&'a PageLayout>,
) -> Result<GroupMemory<'a>, Status> {
    let kind = match given.kind {
        KVF_GROUP_FULL => GroupKind::Full,
        KVF_GROUP_WINDOW => GroupKind::Window { window: given.window, sinks: given.sinks },
        _ => return Err(Status(KVF_ERR_UNSUPPORTED)),
    };
    let residual = match exact {
        Some(exact) => Residual::PageAligned { exact, recent: given.recent, sinks: given.sinks },
        None => Residual::None,
    };
    Ok(GroupMemory { layout, kind, chunk: given.chunk.max(1), ring: given.ring != 0, residual })
}
