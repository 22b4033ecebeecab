//! What an engine can tell about attention, reduced to one number per slot.

use super::error::EvictError;

/// How the query heads that share a KV head are made one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduce {
    /// Their mean.
    #[default]
    Mean,
    /// The greatest.
    Max,
    /// Their sum.
    Sum,
}

/// Attention of one step, as the engine has it. Rows are as long as the slots of the row, in slot order; what is not live or
/// not visible to a query must hold probability 0, or a logit of minus infinity.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// Probabilities `[queries][heads][slots]`: `heads` query heads of this KV head. Query head h of H belongs to KV head
    /// `h / (H / Hk)`.
    Probabilities {
        /// The rows.
        rows: &'a [f32],
        /// Query heads.
        heads: u32,
    },
    /// Logits of the same shape, and the logarithm of the sum of exponentials of each row `[queries][heads]`, with which the
    /// engine's softmax divides.
    Logits {
        /// The rows.
        rows: &'a [f32],
        /// Per row.
        lse: &'a [f32],
        /// Query heads.
        heads: u32,
    },
    /// Probabilities `[slots]`, reduced over heads and summed over `queries` queries by a kernel.
    Columns {
        /// The sums.
        sums: &'a [f32],
        /// Queries that they are of.
        queries: u32,
    },
    /// Scores `[slots]` that some other part of the program has made.
    Scores(&'a [f32]),
}

/// An observation whose shape was checked.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    rows: &'a [f32],
    lse: Option<&'a [f32]>,
    heads: usize,
    slots: usize,
}

impl<'a> Rows<'a> {
    /// The rows of an observation of queries over `slots` slots.
    pub(super) fn of(observation: &Observation<'a>, slots: u32) -> Result<Self, EvictError> {
        let (rows, lse, heads) = match *observation {
            Observation::Probabilities { rows, heads } => (rows, None, heads),
            Observation::Logits { rows, lse, heads } => (rows, Some(lse), heads),
            _ => return Err(EvictError::Observation),
        };
        let (heads, slots) = (heads as usize, slots as usize);
        let per_query = heads.checked_mul(slots).filter(|&n| n > 0).ok_or(EvictError::Observation)?;
        let fits = rows.len().checked_rem(per_query) == Some(0);
        let fits_lse = lse.is_none_or(|lse| lse.len().checked_mul(slots) == Some(rows.len()));
        if !fits || !fits_lse {
            return Err(EvictError::Observation);
        }
        Ok(Self { rows, lse, heads, slots })
    }

    /// Queries.
    pub(super) fn queries(&self) -> usize {
        self.rows.len().checked_div(self.heads.saturating_mul(self.slots)).unwrap_or(0)
    }

    /// The probability that a query gives a slot, reduced over heads.
    pub(super) fn at(&self, query: usize, slot: usize, reduce: Reduce) -> f32 {
        let first = query.saturating_mul(self.heads);
        let one = |head: usize| {
            let row = first.saturating_add(head);
            let x = self.rows.get(row.saturating_mul(self.slots).saturating_add(slot)).copied().unwrap_or(0.0);
            match self.lse {
                None => x,
                Some(lse) => libm::expf(x - lse.get(row).copied().unwrap_or(0.0)),
            }
        };
        let heads = 0..self.heads;
        match reduce {
            Reduce::Sum => heads.fold(0.0, |sum, head| sum + one(head)),
            Reduce::Mean => heads.fold(0.0, |sum, head| sum + one(head)) / self.heads as f32,
            Reduce::Max => heads.fold(0.0, |most: f32, head| most.max(one(head))),
        }
    }
}
