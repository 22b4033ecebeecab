//! Softmax of one head's logits, in place.
//!
//! Invariant: the denominator has 16 partial sums, lane i taking the tokens
//! read i-th, (i + 16)-th, ..., added as a tree; a sink logit is added last.
//! Token numbers here count tokens read, so dropped pages do not matter.

use super::exp::exp_neg;
use super::isa::per_isa;
use super::lanes::{LANES, tree_sum};

/// What turns dot products into logits.
#[derive(Clone, Copy)]
pub(crate) struct Logit {
    pub(crate) scale: f32,
    /// 0 = none
    pub(crate) soft_cap: f32,
}

/// Greatest logit and sum of exp(logit - greatest), sink included.
#[derive(Clone, Copy)]
pub(crate) struct Denominator {
    greatest: f32,
    sum: f32,
}

impl Denominator {
    /// Natural log of the sum of exponentials; -infinity if there is none.
    pub(crate) fn log_sum_exp(&self) -> f32 {
        if self.sum == 0.0 { f32::NEG_INFINITY } else { self.greatest + libm::logf(self.sum) }
    }

    /// What exp(logit - greatest) is divided by for a probability; 0 if there is none.
    pub(crate) fn sum(&self) -> f32 {
        self.sum
    }

    /// Divide a weighted sum by the denominator; 0 if nothing was read.
    pub(crate) fn normalise(&self, out: &mut [f32]) {
        if self.sum != 0.0 {
            for x in out {
                *x /= self.sum;
            }
        }
    }
}

per_isa! {
    /// Replace the first `n` dot products by exp(logit - greatest) and the others by 0.
    ///
    /// The length of `x` is `n` rounded up to a multiple of [`LANES`].
    ///
    /// # Safety
    /// `isa` is resolved.
    pub(crate) unsafe fn softmax(x: &mut [f32], n: usize, logit: Logit, sink: Option<f32>) -> Denominator {
        softmax_body(x, n, logit, sink)
    }
}

#[inline(always)]
fn softmax_body(x: &mut [f32], n: usize, logit: Logit, sink: Option<f32>) -> Denominator {
    let Some((live, padding)) = x.split_at_mut_checked(n) else {
        return Denominator { greatest: f32::NEG_INFINITY, sum: 0.0 };
    };
    for x in live.iter_mut() {
        *x *= logit.scale;
    }
    if logit.soft_cap != 0.0 {
        for x in live {
            *x = logit.soft_cap * libm::tanhf(*x / logit.soft_cap);
        }
    }
    padding.fill(f32::NEG_INFINITY);

    let (blocks, _) = x.as_chunks_mut::<LANES>();
    // A NaN is never greater; it reaches the sum instead.
    let greater = |a: f32, b: f32| if b > a { b } else { a };
    let mut maxima = [f32::NEG_INFINITY; LANES];
    for block in blocks.iter() {
        for (max, x) in maxima.iter_mut().zip(block) {
            *max = greater(*max, *x);
        }
    }
    let greatest = maxima.into_iter().fold(sink.unwrap_or(f32::NEG_INFINITY), greater);

    let mut sums = [0.0f32; LANES];
    for block in blocks {
        for (sum, x) in sums.iter_mut().zip(block) {
            *x = exp_neg(*x - greatest);
            *sum += *x;
        }
    }
    let sum = tree_sum(&sums) + sink.map_or(0.0, |sink| exp_neg(sink - greatest));
    Denominator { greatest, sum }
}
