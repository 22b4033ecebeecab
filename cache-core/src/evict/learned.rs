//! A learned policy: a small network over features of a token, with weights of the caller.

use super::error::EvictError;
use super::slots::Slots;

/// Features of a token, in this order: `ln(1 + age)`; attention received, summed, and per query that saw it; attention of the
/// last query; `|k|`; `|v|`; rank among live tokens over their number; 1 for the first position.
pub const FEATURES: u32 = 8;

/// What the features are made of: one array per kind, one f32 per slot.
#[derive(Clone, Copy, Debug)]
pub struct FeatureInputs<'a> {
    /// Attention received, summed over all queries.
    pub sum: &'a [f32],
    /// Attention of the last query.
    pub last: &'a [f32],
    /// Lengths of keys.
    pub key_norms: &'a [f32],
    /// Lengths of values.
    pub value_norms: &'a [f32],
}

/// Two layers: `w2 . hardswish(W1 x + b1) + b2`, with x normalised by a mean and a deviation of each feature.
///
/// Weights lie in one slice: means `[F]`, deviations `[F]`, W1 `[H][F]`, b1 `[H]`, w2 `[H]`, b2. Sums run in this order, and
/// the activation is made of products and bounds only: the bits are the same everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Mlp<'a> {
    hidden: u32,
    means: &'a [f32],
    deviations: &'a [f32],
    w1: &'a [f32],
    b1: &'a [f32],
    w2: &'a [f32],
    b2: f32,
}

impl<'a> Mlp<'a> {
    /// The version of features and layout that this library knows.
    pub const VERSION: u32 = 1;

    /// Floats of weights for a number of hidden units.
    #[must_use]
    pub const fn len(hidden: u32) -> usize {
        let f = FEATURES as usize;
        f.saturating_add(2).saturating_mul(hidden as usize).saturating_add(f.saturating_mul(2)).saturating_add(1)
    }

    /// Checks and takes weights: `hidden` in `1..=32`.
    ///
    /// # Errors
    /// `Parameter` for another version or number of features, weights that are not finite, or a deviation that is not above
    /// 0; `Shape` for another number of weights.
    pub fn new(version: u32, features: u32, hidden: u32, weights: &'a [f32]) -> Result<Self, EvictError> {
        if version != Self::VERSION || features != FEATURES || !(1..=32).contains(&hidden) {
            return Err(EvictError::Parameter);
        }
        if weights.len() != Self::len(hidden) {
            return Err(EvictError::Shape);
        }
        let mut rest = weights;
        let mut take = |n: u32| {
            let (part, after) = rest.split_at_checked(n as usize).ok_or(EvictError::Shape)?;
            rest = after;
            Ok(part)
        };
        let (means, deviations) = (take(FEATURES)?, take(FEATURES)?);
        let (w1, b1, w2) = (take(hidden.saturating_mul(FEATURES))?, take(hidden)?, take(hidden)?);
        let b2 = rest.first().copied().ok_or(EvictError::Shape)?;
        if weights.iter().any(|x| !x.is_finite()) || deviations.iter().any(|&x| x <= 0.0) {
            return Err(EvictError::Parameter);
        }
        Ok(Self { hidden, means, deviations, w1, b1, w2, b2 })
    }

    /// Hidden units.
    #[must_use]
    pub const fn hidden(&self) -> u32 {
        self.hidden
    }

    /// The score of one token. O(F * H).
    #[must_use]
    pub fn score(&self, features: [f32; FEATURES as usize]) -> f32 {
        let [score] = self.scores(features.map(|x| [x]));
        score
    }

    /// The scores of `N` tokens side by side, so that a compiler can use wide registers; each is summed in the same order.
    fn scores<const N: usize>(&self, mut features: [[f32; N]; FEATURES as usize]) -> [f32; N] {
        for ((x, mean), deviation) in features.iter_mut().zip(self.means).zip(self.deviations) {
            *x = x.map(|x| (x - mean) / deviation);
        }
        let units = self.w1.chunks_exact(FEATURES as usize).zip(self.b1).zip(self.w2);
        units.fold([self.b2; N], |mut sums, ((row, bias), w2)| {
            let mut inner = [*bias; N];
            for (w, x) in row.iter().zip(&features) {
                inner.iter_mut().zip(x).for_each(|(inner, x)| *inner += w * x);
            }
            sums.iter_mut().zip(inner).for_each(|(sum, x)| *sum += w2 * (x * (x + 3.0).clamp(0.0, 6.0) / 6.0));
            sums
        })
    }
}

/// The features of a token of `slots`.
#[must_use]
pub fn features(slots: &Slots<'_>, inputs: &FeatureInputs<'_>, slot: u32, position: u32, rank: u32) -> [f32; 8] {
    let of = |array: &[f32]| array.get(slot as usize).copied().unwrap_or(0.0);
    let queries = slots.seen.saturating_sub(position).max(1);
    [
        libm::log1pf(queries.saturating_sub(1) as f32),
        of(inputs.sum),
        of(inputs.sum) / queries as f32,
        of(inputs.last),
        of(inputs.key_norms),
        of(inputs.value_norms),
        rank as f32 / slots.live.max(1) as f32,
        f32::from(u8::from(position == 0)),
    ]
}

/// Tokens that are scored side by side.
const LANES: usize = 8;

/// Scores of all live tokens. The rank of a token is its place in slot order. O(live * F * H).
///
/// # Errors
/// `Shape` for arrays shorter than the rows; nothing is written then.
pub fn learned_scores(
    slots: &Slots<'_>,
    mlp: &Mlp<'_>,
    inputs: &FeatureInputs<'_>,
    scores: &mut [f32],
) -> Result<(), EvictError> {
    let rows = slots.rows as usize;
    let arrays = [inputs.sum, inputs.last, inputs.key_norms, inputs.value_norms];
    if scores.len() < rows || arrays.iter().any(|array| array.len() < rows) {
        return Err(EvictError::Shape);
    }
    let mut tokens = slots.live().zip(0_u32..);
    loop {
        let mut block = [[0.0; LANES]; FEATURES as usize];
        let mut places = [u32::MAX; LANES];
        let mut count = 0_usize;
        for (place, ((slot, position), rank)) in places.iter_mut().zip(tokens.by_ref()) {
            *place = slot;
            for (lanes, x) in block.iter_mut().zip(features(slots, inputs, slot, position, rank)) {
                if let Some(lane) = lanes.get_mut(count) {
                    *lane = x;
                }
            }
            count = count.saturating_add(1);
        }
        for (slot, score) in places.into_iter().zip(mlp.scores(block)).take(count) {
            if let Some(at) = scores.get_mut(slot as usize) {
                *at = score;
            }
        }
        if count < LANES {
            return Ok(());
        }
    }
}
