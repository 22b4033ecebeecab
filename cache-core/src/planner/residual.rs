//! Tokens that stay exact beside quantised ones.

use super::error::PlannerError;
use crate::layout::PageLayout;

/// Which tokens of a quantised group are kept exactly.
#[derive(Clone, Copy, Debug, Default)]
pub enum Residual<'a> {
    /// None: every token is quantised when it is written.
    #[default]
    None,
    /// At least the last `recent` tokens; whole pages are quantised as soon as that many are left. This is a group whose open
    /// pages come from one pool and whose sealed ones from another. What the last token reads as sealed by
    /// [`SealSchedule`](crate::SealSchedule), pages of sinks apart, is what is quantised here; with `recent` = 0, what the next one reads.
    PageAligned {
        /// Layout of exact pages.
        exact: &'a PageLayout,
        /// Fewest recent tokens that stay exact.
        recent: u32,
        /// Tokens at the start whose pages are never quantised: `sinks` of the group's configuration.
        sinks: u32,
    },
    /// As the KIVI paper has it: K is quantised R tokens at a time when R are there, V one by one as they leave the last R.
    KiviPaper {
        /// Layout of exact rows.
        exact: &'a PageLayout,
        /// R.
        recent: u32,
        /// Tokens at the start that are never quantised.
        sinks: u32,
    },
}

/// How many tokens are in which form, at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Quantised tokens of K.
    pub k_quantised: u64,
    /// Exact tokens of K.
    pub k_exact: u64,
    /// Quantised tokens of V.
    pub v_quantised: u64,
    /// Exact tokens of V.
    pub v_exact: u64,
}

impl Residual<'_> {
    /// What is in which form once `tokens` tokens are there. It depends on their number only, not on how they came;
    /// `page_tokens` is P. O(1).
    #[must_use]
    pub fn split(&self, tokens: u64, page_tokens: u32) -> Split {
        let (k, v) = match *self {
            Self::None => (tokens, tokens),
            Self::PageAligned { recent, sinks, .. } => {
                let sealed = whole(tokens.saturating_sub(recent.into()), page_tokens);
                let kept = u64::from(sinks).checked_next_multiple_of(u64::from(page_tokens.max(1))).unwrap_or(u64::MAX);
                let both = sealed.saturating_sub(kept);
                (both, both)
            }
            Self::KiviPaper { recent, sinks, .. } => {
                let rest = tokens.saturating_sub(sinks.into());
                (whole(rest, recent), rest.saturating_sub(recent.into()))
            }
        };
        Split { k_quantised: k, k_exact: tokens.saturating_sub(k), v_quantised: v, v_exact: tokens.saturating_sub(v) }
    }

    /// The exact layout, where there is one.
    #[must_use]
    pub const fn exact(&self) -> Option<&PageLayout> {
        match self {
            Self::None => None,
            Self::PageAligned { exact, .. } | Self::KiviPaper { exact, .. } => Some(*exact),
        }
    }

    /// Checks it against the quantised layout.
    pub(super) fn check(&self, layout: &PageLayout) -> Result<(), PlannerError> {
        let Some(exact) = self.exact() else { return Ok(()) };
        exact.verify().map_err(|_| PlannerError::Layout)?;
        let shape = |l: &PageLayout| (l.page_tokens, l.layers, l.kv_heads, l.k.dim, l.v.dim, l.rope_part.dim);
        if exact.is_lossy() || !layout.is_lossy() || shape(exact) != shape(layout) {
            return Err(PlannerError::Residual);
        }
        if let Self::KiviPaper { recent, .. } = *self
            && (recent.checked_rem(layout.k.block_tokens) != Some(0)
                || recent == 0
                || layout.v.block_tokens > 1
                || !layout.v.is_own())
        {
            return Err(PlannerError::Residual);
        }
        Ok(())
    }
}

/// The largest multiple of `unit` that is not above `tokens`.
fn whole(tokens: u64, unit: u32) -> u64 {
    tokens.saturating_sub(tokens.checked_rem(u64::from(unit)).unwrap_or(tokens))
}
