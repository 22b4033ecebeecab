//! What eviction costs: the attention that evicted tokens would have had.
//!
//! With evicted mass `eps`, and `o_kept` and `o_evicted` the attention outputs over either part alone, the exact output is
//! `(1 - eps) o_kept + eps o_evicted` and the output after eviction is `o_kept`: the error is `eps (o_kept - o_evicted)`.

use super::error::EvictError;
use super::slots::{Slots, place};

/// Evicted mass of one stream over time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Meter {
    /// Sum over queries and heads.
    pub mass: f64,
    /// Queries times heads.
    pub queries: u64,
}

impl Meter {
    /// Counts the mass of one query of one head.
    pub fn add(&mut self, mass: f32) {
        self.mass += f64::from(mass);
        self.queries = self.queries.saturating_add(1);
    }

    /// The mean over queries and heads; 0 where there is none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.queries == 0 { 0.0 } else { self.mass / self.queries as f64 }
    }

    /// Both together: of heads, layers or sequences.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { mass: self.mass + other.mass, queries: self.queries.saturating_add(other.queries) }
    }
}

/// The mass of what goes, from the logarithms of the sums of exponentials over what is kept and over all: in `0..=1`.
#[must_use]
pub fn mass_of_lse(kept: f32, all: f32) -> f32 {
    if kept == f32::NEG_INFINITY && all > kept {
        return 1.0;
    }
    (-libm::expm1f(kept - all)).clamp(0.0, 1.0)
}

/// The mass that a row of probabilities gives to live tokens that `keep` does not keep. O(live).
///
/// # Errors
/// `Shape` for fewer probabilities than slots, or words than columns.
pub fn mass_of_row(slots: &Slots<'_>, probabilities: &[f32], keep: &[u64]) -> Result<f32, EvictError> {
    if probabilities.len() < slots.rows as usize || keep.len() < slots.columns() as usize {
        return Err(EvictError::Shape);
    }
    let goes = |slot| {
        let (column, mask) = place(slot, slots.page_tokens);
        keep.get(column).is_some_and(|word| word & mask == 0)
    };
    let mass = slots.live().filter(|&(slot, _)| goes(slot)).filter_map(|(slot, _)| probabilities.get(slot as usize));
    Ok(mass.fold(0.0, |sum, x| sum + x))
}

/// The error that eviction makes in an output, `mass * (kept - evicted)`. O(d).
///
/// # Errors
/// `Shape` for lengths that differ.
pub fn output_error(mass: f32, kept: &[f32], evicted: &[f32], error: &mut [f32]) -> Result<(), EvictError> {
    if kept.len() != error.len() || evicted.len() != error.len() {
        return Err(EvictError::Shape);
    }
    error
        .iter_mut()
        .zip(kept.iter().zip(evicted))
        .for_each(|(error, (kept, evicted))| *error = mass * (kept - evicted));
    Ok(())
}
