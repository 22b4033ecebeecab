//! All groups of a model together, and what fits a budget.

use super::error::PlannerError;
use super::group::{GroupMemory, ceil};
use crate::config::Config;
use crate::layout::PageLayout;
use crate::storage::StorageCounts;

/// One sequence in all groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceMemory {
    /// Bytes of the pages that it holds at most.
    pub page_bytes: u64,
    /// Pages that it holds at most, over all groups, open and sealed.
    pub pages: u64,
    /// Most pages in one row of a page table, over all groups.
    pub row_pages: u64,
}

/// What fits a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// Sequences that fit at their greatest.
    pub sequences: u64,
    /// Bytes of their pages.
    pub page_bytes: u64,
    /// Bytes that are there once: scales outside pages.
    pub static_bytes: u64,
    /// Bytes that are left over.
    pub spare_bytes: u64,
}

impl SequenceMemory {
    /// Adds what the sequence takes in one more group when it has `tokens` tokens. O(1).
    ///
    /// # Errors
    /// Those of [`GroupMemory::check`], `NoPages`, `Overflow`.
    pub fn add(&mut self, group: &GroupMemory<'_>, tokens: u64) -> Result<(), PlannerError> {
        let plus = |a: u64, b: u64| a.checked_add(b).ok_or(PlannerError::Overflow);
        let count = group.pages(tokens)?;
        let pages = plus(count.open, count.sealed)?;
        // The row of a window has entries for dropped pages too, unless it is a ring.
        let entries = ceil(tokens, u64::from(group.layout.page_tokens));
        *self = Self {
            page_bytes: plus(self.page_bytes, group.page_bytes(tokens)?)?,
            pages: plus(self.pages, pages)?,
            row_pages: self.row_pages.max(if group.ring { pages } else { entries }),
        };
        Ok(())
    }
}

impl Fit {
    /// What fits `budget` bytes when a sequence takes `each` and `static_bytes` are there once. O(1).
    #[must_use]
    pub fn of(each: u64, static_bytes: u64, budget: u64) -> Self {
        let room = budget.saturating_sub(static_bytes);
        let sequences = room.checked_div(each).unwrap_or(0);
        let page_bytes = sequences.saturating_mul(each); // at most `room`
        Self { sequences, page_bytes, static_bytes, spare_bytes: room.saturating_sub(page_bytes) }
    }
}

/// Bytes of the pages of one sequence of `tokens` tokens. O(groups).
///
/// # Errors
/// `Groups`, and as [`SequenceMemory::add`].
pub fn sequence_memory(groups: &[GroupMemory<'_>], tokens: u64) -> Result<SequenceMemory, PlannerError> {
    if groups.is_empty() {
        return Err(PlannerError::Groups);
    }
    let mut total = SequenceMemory::default();
    groups.iter().try_for_each(|group| total.add(group, tokens))?;
    Ok(total)
}

/// Bytes of the rows of one sequence of `tokens` tokens, each in its form. O(groups).
///
/// # Errors
/// As [`sequence_memory`], `NoPages` apart.
pub fn row_bytes_of(groups: &[GroupMemory<'_>], tokens: u64) -> Result<u64, PlannerError> {
    if groups.is_empty() {
        return Err(PlannerError::Groups);
    }
    groups.iter().try_fold(0_u64, |sum, group| sum.checked_add(group.row_bytes(tokens)?).ok_or(PlannerError::Overflow))
}

/// How many sequences of `tokens` tokens a budget of bytes holds, none of them sharing anything. O(groups).
///
/// A budget that does not even hold what is there once fits no sequence. `tokens` = 0 counts as 1.
///
/// # Errors
/// As [`sequence_memory`].
pub fn fit(groups: &[GroupMemory<'_>], tokens: u64, budget: u64) -> Result<Fit, PlannerError> {
    let each = sequence_memory(groups, tokens.max(1))?.page_bytes;
    let once = groups
        .iter()
        .try_fold(0_u64, |sum, group| sum.checked_add(group.static_bytes()?).ok_or(PlannerError::Overflow))?;
    Ok(Fit::of(each, once, budget))
}

/// Pages of a layout that a budget of bytes holds, the NULL page not counted. O(1).
#[must_use]
pub fn pages_in(layout: &PageLayout, budget: u64) -> u64 {
    budget.checked_div(layout.page_bytes).unwrap_or(0)
}

/// Bytes from the first byte of page 1 to the last byte of page `pages`. O(1).
///
/// # Errors
/// `Overflow`.
pub fn pool_bytes(layout: &PageLayout, pages: u64) -> Result<u64, PlannerError> {
    pages.checked_mul(layout.page_bytes).ok_or(PlannerError::Overflow)
}

/// Bytes of a dense page table with one i32 per entry. O(1).
///
/// # Errors
/// `Overflow`.
pub fn table_bytes(sequences: u64, row_pages: u64) -> Result<u64, PlannerError> {
    sequences.checked_mul(row_pages).and_then(|entries| entries.checked_mul(4)).ok_or(PlannerError::Overflow)
}

impl Config<'_> {
    /// Bytes of the manager itself for this configuration: page records, tree, tables, plans, alignment between arrays apart.
    /// They are in host memory. O(pools + groups).
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn metadata_bytes(&self) -> Result<u64, PlannerError> {
        Ok(StorageCounts::of(self)?.bytes())
    }
}
