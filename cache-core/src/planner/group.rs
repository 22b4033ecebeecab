//! What one sequence takes in one group.

use super::error::PlannerError;
use super::residual::Residual;
use crate::config::GroupKind;
use crate::layout::{PageLayout, PartLayout};

/// Layers that keep the same tokens in pages of one layout.
#[derive(Clone, Copy, Debug)]
pub struct GroupMemory<'a> {
    /// Layout of its pages; of sealed pages where there is a residual.
    pub layout: &'a PageLayout,
    /// Which tokens its layers still read.
    pub kind: GroupKind,
    /// Most tokens added at a time, at least 1.
    pub chunk: u32,
    /// Whether a window group keeps its pages as a fixed ring.
    pub ring: bool,
    /// Which tokens are exact beside quantised ones.
    pub residual: Residual<'a>,
}

/// Pages of one sequence in one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCount {
    /// Pages of the group's pool: with a residual exact ones.
    pub open: u64,
    /// Pages of its pool of sealed pages: 0 without a residual.
    pub sealed: u64,
}

impl<'a> GroupMemory<'a> {
    /// A full group without residual, one token at a time.
    #[must_use]
    pub const fn full(layout: &'a PageLayout) -> Self {
        Self { layout, kind: GroupKind::Full, chunk: 1, ring: false, residual: Residual::None }
    }

    /// The same layers with a window of `window` tokens, the query's own included, and `sinks` tokens at the start.
    #[must_use]
    pub const fn window(self, window: u32, sinks: u32) -> Self {
        Self { kind: GroupKind::Window { window, sinks }, ..self }
    }

    /// Checks what the other calls rely on. O(1).
    ///
    /// # Errors
    /// `Layout`, `Window`, `Chunk`, `Residual`.
    pub fn check(&self) -> Result<(), PlannerError> {
        self.layout.verify().map_err(|_| PlannerError::Layout)?;
        let windowed = !matches!(self.kind, GroupKind::Full);
        if matches!(self.kind, GroupKind::Window { window: 0, .. }) || (self.ring && !windowed) {
            return Err(PlannerError::Window);
        }
        if self.chunk == 0 {
            return Err(PlannerError::Chunk);
        }
        if windowed && self.residual.exact().is_some() {
            return Err(PlannerError::Residual);
        }
        self.residual.check(self.layout)
    }

    /// Rows that a sequence of `tokens` tokens needs: all of them, or those of its sinks and `window + chunk - 1` more,
    /// which are there while a chunk is computed. O(1).
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn rows(&self, tokens: u64) -> Result<u64, PlannerError> {
        self.check()?;
        Ok(match self.kind {
            GroupKind::Full => tokens,
            GroupKind::Window { sinks, .. } => tokens.min(self.span().saturating_add(sinks.into())),
        })
    }

    /// Bytes of these rows, each in its form, padding apart. Where groups lie along tokens, a group that has begun counts
    /// whole. O(1).
    ///
    /// # Errors
    /// As [`Self::check`]; `Overflow`.
    pub fn row_bytes(&self, tokens: u64) -> Result<u64, PlannerError> {
        let rows = self.rows(tokens)?;
        let Some(exact) = self.residual.exact() else {
            let layout = self.layout;
            return sum([&layout.k, &layout.v, &layout.rope_part].map(|part| bytes_of(layout, part, rows)));
        };
        let split = self.residual.split(rows, self.layout.page_tokens);
        sum([
            bytes_of(self.layout, &self.layout.k, split.k_quantised),
            bytes_of(self.layout, &self.layout.v, split.v_quantised),
            bytes_of(self.layout, &self.layout.rope_part, split.k_quantised),
            bytes_of(exact, &exact.k, split.k_exact),
            bytes_of(exact, &exact.v, split.v_exact),
            bytes_of(exact, &exact.rope_part, split.k_exact),
        ])
    }

    /// Most pages that a sequence holds at once while it grows to `tokens` tokens in chunks. O(1).
    ///
    /// # Errors
    /// As [`Self::check`]; `NoPages`, `Overflow`.
    pub fn pages(&self, tokens: u64) -> Result<PageCount, PlannerError> {
        self.check()?;
        let p = u64::from(self.layout.page_tokens);
        let all = ceil(tokens, p);
        let open = match (self.kind, self.residual) {
            (GroupKind::Full, Residual::None) => all,
            (GroupKind::Full, Residual::PageAligned { recent, sinks, .. }) => {
                // Pages are sealed in the step after the one that filled them: recent + P - 1 tokens may be open when a chunk
                // comes, and are until another has come.
                let chunks = u64::from(self.chunk).saturating_mul(2);
                let most = u64::from(recent).saturating_add(p).saturating_sub(1).saturating_add(chunks);
                let split = self.residual.split(tokens, self.layout.page_tokens);
                let kept = ceil(u64::from(sinks), p);
                let open = all.min(ceil(most, p).saturating_add(kept));
                return Ok(PageCount { open, sealed: split.k_quantised.checked_div(p).unwrap_or(0) });
            }
            (GroupKind::Full, Residual::KiviPaper { .. }) => return Err(PlannerError::NoPages),
            (GroupKind::Window { sinks, .. }, _) => self.window_pages(all, ceil(u64::from(sinks), p), p),
        };
        Ok(PageCount { open, sealed: 0 })
    }

    /// Bytes of these pages. O(1).
    ///
    /// # Errors
    /// As [`Self::pages`].
    pub fn page_bytes(&self, tokens: u64) -> Result<u64, PlannerError> {
        let pages = self.pages(tokens)?;
        let (open, sealed) = self.layouts();
        let open = pages.open.checked_mul(open.page_bytes).ok_or(PlannerError::Overflow)?;
        let sealed = pages.sealed.checked_mul(sealed.page_bytes).ok_or(PlannerError::Overflow)?;
        open.checked_add(sealed).ok_or(PlannerError::Overflow)
    }

    /// Bytes that are there once, outside pages: the scales of its layouts. O(1).
    ///
    /// # Errors
    /// `Overflow`.
    pub fn static_bytes(&self) -> Result<u64, PlannerError> {
        sum([Some(self.layout), self.residual.exact()]
            .map(|layout| Some(layout.map_or(0, PageLayout::static_scale_bytes))))
    }

    /// Layouts of open and of sealed pages.
    const fn layouts(&self) -> (&PageLayout, &PageLayout) {
        match self.residual.exact() {
            Some(exact) => (exact, self.layout),
            None => (self.layout, self.layout),
        }
    }

    /// Tokens that a window and a chunk span.
    fn span(&self) -> u64 {
        let GroupKind::Window { window, .. } = self.kind else { return 0 };
        u64::from(window).saturating_add(self.chunk.into()).saturating_sub(1)
    }

    /// n tokens at the worst place lie in `ceil((n - 1) / P) + 1` pages. A ring has one column more than n tokens fill, from
    /// its first token on.
    fn window_pages(&self, all: u64, sinks: u64, p: u64) -> u64 {
        let span = self.span();
        if self.ring {
            let ring = ceil(span, p).saturating_add(1).saturating_add(sinks);
            return if all == 0 { 0 } else { ring };
        }
        all.min(ceil(span.saturating_sub(1), p).saturating_add(1).saturating_add(sinks))
    }
}

/// Bytes of one part for so many tokens, in all layers and heads.
fn bytes_of(layout: &PageLayout, part: &PartLayout, tokens: u64) -> Option<u64> {
    if !part.is_own() {
        return Some(0);
    }
    let group =
        u64::from(part.group_bytes).checked_add(part.scale_bytes.into())?.checked_add(part.zero_bytes.into())?;
    let block = u64::from(part.groups).checked_mul(group)?;
    let rows = u64::from(layout.layers).checked_mul(layout.kv_heads.into())?;
    ceil(tokens, u64::from(part.block_tokens)).checked_mul(block)?.checked_mul(rows)
}

fn sum<const N: usize>(terms: [Option<u64>; N]) -> Result<u64, PlannerError> {
    let total = terms.into_iter().try_fold(0_u64, |sum, term| sum.checked_add(term?));
    total.ok_or(PlannerError::Overflow)
}

/// How many units hold so many tokens. Units of none, which no checked layout has, hold nothing.
pub(super) fn ceil(tokens: u64, unit: u64) -> u64 {
    let whole = tokens.checked_div(unit).unwrap_or(0);
    whole.saturating_add(u64::from(tokens.checked_rem(unit).is_some_and(|rest| rest > 0)))
}
