//! Training of the network that [`kvfolio::evict::Mlp`] evaluates: least squares by Adam, in one order, without a library for so
//! few weights, and the same on every machine.

use kvfolio::evict::{FEATURES, Mlp};
use kvfolio_examples::workload::Random;

use super::samples::Sample;

const F: usize = FEATURES as usize;
const BATCH: usize = 64;
/// Step width of the first pass; it falls to nothing over all.
const RATE: f32 = 4e-3;

/// Hidden units, passes over the samples, and what chance begins with.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) hidden: usize,
    pub(super) passes: usize,
    pub(super) seed: u64,
}

/// In `-1..1`.
fn signed(chance: &mut Random) -> f32 {
    (chance.draw() >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn shuffle<T>(items: &mut [T], chance: &mut Random) {
    for last in (1..items.len()).rev() {
        items.swap(last, (chance.draw() % (last as u64 + 1)) as usize);
    }
}

/// Weights in the order of [`Mlp`], and the root of the mean squared error of the last pass.
pub(super) fn train(samples: &[Sample], plan: Plan) -> (Vec<f32>, f32) {
    let mut chance = Random(plan.seed);
    let mut weights = initial(samples, plan.hidden, &mut chance);
    let mut order: Vec<u32> = (0..samples.len() as u32).collect();
    let mut adam = Adam::new(weights.len());
    let steps = (plan.passes * samples.len().div_ceil(BATCH)) as f32;
    let mut error = 0.0;
    for _ in 0..plan.passes {
        shuffle(&mut order, &mut chance);
        let mut squares = 0.0_f64;
        for batch in order.chunks(BATCH) {
            let mut gradient = vec![0.0; weights.len()];
            for &at in batch {
                let miss = backward(&weights, plan.hidden, &samples[at as usize], &mut gradient);
                squares += f64::from(miss * miss);
            }
            let rate = RATE * (1.0 - adam.steps as f32 / steps);
            adam.step(&mut weights[2 * F..], &gradient[2 * F..], rate, batch.len());
        }
        error = (squares / samples.len().max(1) as f64).sqrt() as f32;
    }
    (weights, error)
}

/// Means and deviations of the features; random weights of the first layer and the second; the mean target.
fn initial(samples: &[Sample], hidden: usize, chance: &mut Random) -> Vec<f32> {
    let count = samples.len().max(1) as f64;
    let mean = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let means: [f64; F] = core::array::from_fn(|i| mean(&|sample| f64::from(sample.features[i])));
    let deviations = means.iter().enumerate().map(|(i, mean_of)| {
        let variance = mean(&|sample| (f64::from(sample.features[i]) - mean_of).powi(2));
        variance.sqrt().max(1e-6) as f32
    });
    let mut weights: Vec<f32> = means.iter().map(|&x| x as f32).chain(deviations).collect();
    weights.extend((0..hidden * F).map(|_| signed(chance) * (3.0 / F as f32).sqrt()));
    weights.extend((0..hidden).map(|_| 0.0));
    weights.extend((0..hidden).map(|_| signed(chance) * (3.0 / hidden as f32).sqrt()));
    weights.push(mean(&|sample| f64::from(sample.target)) as f32);
    debug_assert_eq!(weights.len(), Mlp::len(hidden as u32));
    weights
}

/// Adds the gradient of half the squared error of one sample; gives the error.
pub(super) fn backward(weights: &[f32], hidden: usize, sample: &Sample, gradient: &mut [f32]) -> f32 {
    let (w1, b1) = (2 * F, 2 * F + hidden * F);
    let (w2, b2) = (b1 + hidden, b1 + 2 * hidden);
    let x: [f32; F] = core::array::from_fn(|i| (sample.features[i] - weights[i]) / weights[F + i]);
    let mut inner = [0.0; 32];
    let mut output = weights[b2];
    for unit in 0..hidden {
        let row = &weights[w1 + unit * F..][..F];
        inner[unit] = row.iter().zip(x).fold(weights[b1 + unit], |sum, (w, x)| sum + w * x);
        output += weights[w2 + unit] * inner[unit] * gate(inner[unit]);
    }
    let miss = output - sample.target;
    gradient[b2] += miss;
    for unit in 0..hidden {
        let x_unit = inner[unit];
        gradient[w2 + unit] += miss * x_unit * gate(x_unit);
        let slope = if x_unit.abs() < 3.0 { (2.0 * x_unit + 3.0) / 6.0 } else { gate(x_unit) };
        let back = miss * weights[w2 + unit] * slope;
        gradient[b1 + unit] += back;
        for (g, x) in gradient[w1 + unit * F..][..F].iter_mut().zip(x) {
            *g += back * x;
        }
    }
    miss
}

/// What hardswish multiplies its argument with.
fn gate(x: f32) -> f32 {
    (x + 3.0).clamp(0.0, 6.0) / 6.0
}

/// Kingma and Ba, algorithm 1.
struct Adam {
    first: Vec<f32>,
    second: Vec<f32>,
    steps: u32,
    /// `1 - beta ^ steps`, kept as powers.
    powers: [f32; 2],
}

impl Adam {
    const BETAS: [f32; 2] = [0.9, 0.999];

    fn new(weights: usize) -> Self {
        Self { first: vec![0.0; weights], second: vec![0.0; weights], steps: 0, powers: [1.0; 2] }
    }

    fn step(&mut self, weights: &mut [f32], gradient: &[f32], rate: f32, batch: usize) {
        self.steps += 1;
        let [b1, b2] = Self::BETAS;
        self.powers = [self.powers[0] * b1, self.powers[1] * b2];
        let moments = self.first.iter_mut().zip(&mut self.second);
        for ((weight, gradient), (first, second)) in weights.iter_mut().zip(gradient).zip(moments) {
            let gradient = gradient / batch as f32;
            *first = b1 * *first + (1.0 - b1) * gradient;
            *second = b2 * *second + (1.0 - b2) * gradient * gradient;
            let (mean, variance) = (*first / (1.0 - self.powers[0]), *second / (1.0 - self.powers[1]));
            *weight -= rate * mean / (variance.sqrt() + 1e-8);
        }
    }
}
