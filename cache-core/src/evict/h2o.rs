//! Heavy hitters: attention that a token has received, summed over time; and the last query's attention alone.

use super::error::EvictError;
use super::observe::{Observation, Reduce, Rows};
use super::policy::Policy;
use super::slots::Slots;

/// H2O: `S <- decay * S + A` for each query, with A the probability that it gives the token, reduced over the query heads of
/// the KV head. What came first has been seen by the most queries; `unbiased` takes that advantage away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct H2o {
    /// How query heads are made one.
    pub reduce: Reduce,
    /// In `0..=1`, applied once per query; 1 forgets nothing.
    pub decay: f32,
    /// Whether a token's own query counts for it.
    pub diagonal: bool,
    /// Weighs each query by the tokens that it chose among, and orders by the mean over the queries that saw the token: equal
    /// attention then gives equal scores, whatever the age. Without decay only.
    pub unbiased: bool,
}

impl H2o {
    /// As the reference implementation: nothing forgotten, the diagonal in; query heads by their mean.
    pub const DEFAULT: Self = Self { reduce: Reduce::Mean, decay: 1.0, diagonal: true, unbiased: false };

    /// Checks the parameters.
    ///
    /// # Errors
    /// `Parameter` for a decay out of range, or one below 1 beside `unbiased`.
    pub fn check(&self) -> Result<(), EvictError> {
        let in_range = (0.0..=1.0).contains(&self.decay);
        if in_range && !(self.unbiased && self.decay < 1.0) { Ok(()) } else { Err(EvictError::Parameter) }
    }
}

impl Default for H2o {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Policy for H2o {
    /// Takes probabilities, logits, and column sums; these only of one query where there is decay, weights or no diagonal.
    fn observe(
        &mut self,
        slots: &Slots<'_>,
        observation: &Observation<'_>,
        scores: &mut [f32],
    ) -> Result<(), EvictError> {
        self.check()?;
        let needs_rows = self.decay < 1.0 || self.unbiased || !self.diagonal;
        if scores.len() < slots.rows as usize {
            return Err(EvictError::Observation);
        }
        let newest = slots.seen.saturating_sub(1);
        if let Observation::Columns { sums, queries } = *observation {
            if sums.len() < slots.rows as usize || (needs_rows && queries > 1) {
                return Err(EvictError::Observation);
            }
            let weight = if self.unbiased { slots.live as f32 } else { 1.0 };
            for (slot, position) in slots.live() {
                let is_own = queries == 1 && position == newest;
                self.add(scores, slot, if is_own && !self.diagonal { 0.0 } else { weight }, sums.get(slot as usize));
            }
            return Ok(());
        }
        let rows = Rows::of(observation, slots.rows)?;
        let queries = u32::try_from(rows.queries()).map_err(|_| EvictError::Observation)?;
        let first = slots.seen.checked_sub(queries).ok_or(EvictError::Observation)?;
        for (query, at) in (first..slots.seen).enumerate() {
            let later = slots.seen.saturating_sub(1).saturating_sub(at);
            let weight = if self.unbiased { slots.live.saturating_sub(later) as f32 } else { 1.0 };
            for (slot, position) in slots.live().filter(|&(_, position)| position <= at) {
                let seen = rows.at(query, slot as usize, self.reduce);
                let is_own = position == at && !self.diagonal;
                self.add(scores, slot, if is_own { 0.0 } else { weight }, Some(&seen));
            }
        }
        Ok(())
    }

    fn ordered(&self, score: f32, position: u32, seen: u32) -> f32 {
        let queries = seen.saturating_sub(position).saturating_sub(u32::from(!self.diagonal));
        if self.unbiased && queries > 0 { score / queries as f32 } else { score }
    }
}

impl H2o {
    fn add(&self, scores: &mut [f32], slot: u32, weight: f32, seen: Option<&f32>) {
        if let (Some(score), Some(&seen)) = (scores.get_mut(slot as usize), seen) {
            *score = *score * self.decay + weight * seen;
        }
    }
}

/// TOVA: the probability that the last query gives the token, by the mean over all heads of the layer; one kept set for all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tova;

impl Policy for Tova {
    /// Takes probabilities and logits, of which the last query counts, and column sums of one query.
    fn observe(
        &mut self,
        slots: &Slots<'_>,
        observation: &Observation<'_>,
        scores: &mut [f32],
    ) -> Result<(), EvictError> {
        let given = scores.get_mut(..slots.rows as usize).ok_or(EvictError::Observation)?;
        if let Observation::Columns { sums, queries: 1 } = *observation {
            let sums = sums.get(..given.len()).ok_or(EvictError::Observation)?;
            given.copy_from_slice(sums);
            return Ok(());
        }
        let rows = Rows::of(observation, slots.rows)?;
        let last = rows.queries().checked_sub(1).ok_or(EvictError::Observation)?;
        for (slot, score) in given.iter_mut().enumerate() {
            *score = rows.at(last, slot, Reduce::Mean);
        }
        Ok(())
    }
}
