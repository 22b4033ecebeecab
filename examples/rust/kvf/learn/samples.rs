//! What a network learns from: features of tokens, and the attention that they went on to receive.

use kvfolio::evict::{EvictError, FEATURES, Protected, Stream, features};

use super::recording::Recording;
use super::replay::{self, Policy, Scores};

/// Queries over which future attention is taken.
const AHEAD: usize = 128;
/// Every so many queries the tokens of a head are looked at.
const STEP: usize = 8;
/// Where a logarithm of attention ends.
const LEAST: f32 = 1e-6;

/// Features of one token, and what is to be predicted: ln of the mean attention that the next queries pay it.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub(super) features: [f32; FEATURES as usize],
    pub(super) target: f32,
}

/// Samples of all heads of a layer: as features are with nothing evicted, and as they are under H2O within budgets of a half and
/// a quarter, since what is evicted changes what the rest receives.
pub(super) fn of_layer(recording: &Recording, layer: usize) -> Result<Vec<Sample>, EvictError> {
    let mut samples = Vec::new();
    let Recording { tokens, group, .. } = *recording;
    for head in (0..recording.kv_heads).map(|head| recording.head(layer, head)) {
        let sums = Sums::of(tokens, (0..tokens).map(|t| head.row(t).collect::<Vec<f32>>()));
        for part in [1, 2, 4] {
            let budget = (tokens / part) as u32;
            let protected = Protected { pins: &[], sinks: 0, recent: (budget / 2).max(1) };
            let look = |t: usize, stream: &Stream<'_>| {
                if !t.is_multiple_of(STEP) || t + AHEAD >= tokens || t < STEP {
                    return;
                }
                let (slots, inputs) = (stream.slots(), replay::inputs(stream));
                for ((slot, position), rank) in slots.live().zip(0..) {
                    let future = sums.of_token(position as usize, t, t + AHEAD) / (AHEAD * group) as f32;
                    let target = libm::logf(future.max(LEAST));
                    samples.push(Sample { features: features(&slots, &inputs, slot, position, rank), target });
                }
            };
            replay::replay(&head, &Policy { budget, scores: Scores::H2o, protected }, look)?;
        }
    }
    Ok(samples)
}

/// Attention that a token has received up to each query: `[position][query - position]`.
struct Sums {
    columns: Vec<Vec<f32>>,
}

impl Sums {
    fn of(tokens: usize, rows: impl Iterator<Item = Vec<f32>>) -> Self {
        let mut columns: Vec<Vec<f32>> = (0..tokens).map(|position| Vec::with_capacity(tokens - position)).collect();
        for row in rows {
            for (column, mass) in columns.iter_mut().zip(row) {
                column.push(column.last().copied().unwrap_or(0.0) + mass);
            }
        }
        Self { columns }
    }

    /// By the queries behind `from`, up to `to`.
    fn of_token(&self, position: usize, from: usize, to: usize) -> f32 {
        let column = &self.columns[position];
        column[to - position] - column[from - position]
    }
}
