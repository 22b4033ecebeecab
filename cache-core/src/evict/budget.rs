//! Budgets of layers, whose sum is exact. Integers throughout.

use core::cmp::Reverse;

use super::error::EvictError;

/// Bounds of each layer's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Least tokens, at least 1.
    pub least: u32,
    /// Most tokens.
    pub most: u32,
}

impl Bounds {
    /// At least one token.
    pub const NONE: Self = Self { least: 1, most: u32::MAX };
}

/// The same for all, and what is left over to the first ones: `total` tokens. O(layers).
///
/// # Errors
/// `Parameter` for fewer tokens than layers, or no layer.
pub fn uniform(total: u64, budgets: &mut [u32]) -> Result<(), EvictError> {
    by_weight(total, |_| 1, Bounds::NONE, budgets)
}

/// PyramidKV: `mean` tokens a layer, which fall from layer to layer in equal steps, from `2 mean - mean / beta` to
/// `mean / beta`. One layer gets them all. As [`by_weight`].
///
/// ```
/// use kvfolio::evict::{Bounds, pyramid};
///
/// let mut budgets = [0; 32];
/// pyramid(120, 20, Bounds::NONE, &mut budgets)?;
/// assert_eq!(budgets[..4], [234, 227, 219, 212]);
/// assert_eq!(budgets[28..], [28, 21, 13, 6]);
/// assert_eq!(budgets.iter().sum::<u32>(), 120 * 32);
/// # Ok::<(), kvfolio::evict::EvictError>(())
/// ```
///
/// # Errors
/// `Parameter` for no layer, a mean of 0, a beta that is not in `1..=65536`, or bounds that no budgets of that sum keep.
pub fn pyramid(mean: u32, beta: u32, bounds: Bounds, budgets: &mut [u32]) -> Result<(), EvictError> {
    let steps = (budgets.len() as u64).saturating_sub(1);
    if !(1..=65536).contains(&beta) || steps > 65536 {
        return Err(EvictError::Parameter);
    }
    let total = u64::from(mean).saturating_mul(steps.saturating_add(1));
    // The ideal budgets times beta * steps / mean.
    let fall = u64::from(beta).saturating_sub(1).saturating_mul(2);
    let first = fall.saturating_add(1).saturating_mul(steps);
    by_weight(total, |layer| first.saturating_sub(fall.saturating_mul(layer.into())), bounds, budgets)
}

/// `total` tokens in proportion to a weight below 2^40 of each layer (a user's, or a measured sensitivity), within bounds.
/// Shares are rounded down, and the rest goes to the largest remainders, of equal ones to the lower layer. Layers whose share
/// breaks a bound get the bound, and the others share what is left. Where all weights are 0, all are equal.
///
/// O(layers^2).
///
/// # Errors
/// `Parameter` for no layer, or bounds that no budgets of that sum keep; nothing is written then.
pub fn by_weight(
    total: u64,
    weight: impl Fn(u32) -> u64,
    bounds: Bounds,
    budgets: &mut [u32],
) -> Result<(), EvictError> {
    let (least, most) = (bounds.least.max(1), bounds.most);
    let layers = budgets.len() as u64;
    let possible = u64::from(least).saturating_mul(layers)..=u64::from(most).saturating_mul(layers);
    if layers == 0 || layers > 65536 || total >= 1 << 48 || !possible.contains(&total) {
        return Err(EvictError::Parameter);
    }
    let weight = |layer| weight(layer).min(1 << 40);
    budgets.fill(SHARING);
    loop {
        let shares = Shares::of(total, weight, budgets);
        // Those below are given more than their share, those above less: whichever is more in sum is settled first.
        let excess = |layer| {
            let share = shares.scaled(weight(layer));
            let clamped = share.max(shares.whole(least)).min(shares.whole(most));
            (clamped.saturating_sub(share), share.saturating_sub(clamped))
        };
        let (below, above) = sharing(budgets)
            .map(excess)
            .fold((0_u128, 0_u128), |sum, each| (sum.0.saturating_add(each.0), sum.1.saturating_add(each.1)));
        if below == 0 && above == 0 {
            shares.settle(weight, budgets);
            return Ok(());
        }
        for (layer, budget) in (0..).zip(budgets.iter_mut()).filter(|(_, budget)| **budget == SHARING) {
            let (less, more) = excess(layer);
            if less > 0 && below >= above {
                *budget = least;
            } else if more > 0 && above >= below {
                *budget = most;
            }
        }
    }
}

/// No budget yet; those that are settled are at least 1.
const SHARING: u32 = 0;

fn sharing(budgets: &[u32]) -> impl Iterator<Item = u32> {
    (0..).zip(budgets).filter(|&(_, &budget)| budget == SHARING).map(|(layer, _)| layer)
}

/// What layers without a budget share, in fractions of `sum`.
struct Shares {
    left: u128,
    sum: u128,
    are_equal: bool,
}

impl Shares {
    fn of(total: u64, weight: impl Fn(u32) -> u64, budgets: &[u32]) -> Self {
        let settled = budgets.iter().fold(0_u64, |sum, &budget| sum.saturating_add(budget.into()));
        let sum = sharing(budgets).fold(0_u128, |sum, layer| sum.saturating_add(weight(layer).into()));
        let count = sharing(budgets).fold(0_u128, |n, _| n.saturating_add(1));
        let are_equal = sum == 0;
        Self { left: total.saturating_sub(settled).into(), sum: if are_equal { count } else { sum }, are_equal }
    }

    /// The share of a weight, times `sum`. Below 2^88.
    fn scaled(&self, weight: u64) -> u128 {
        self.left.saturating_mul(if self.are_equal { 1 } else { weight.into() })
    }

    /// Tokens, times `sum`.
    fn whole(&self, tokens: u32) -> u128 {
        self.sum.saturating_mul(tokens.into())
    }

    fn settle(&self, weight: impl Fn(u32) -> u64, budgets: &mut [u32]) {
        let divided = |layer| {
            let share = self.scaled(weight(layer));
            divide(share, self.sum)
        };
        let floors = sharing(budgets).fold(0_u128, |sum, layer| sum.saturating_add(divided(layer).0.into()));
        // The last one that gets a token more: each pass finds the next.
        let order = |layer| (Reverse(divided(layer).1), layer);
        let last = (0..self.left.saturating_sub(floors))
            .fold(None, |last, _| sharing(budgets).map(order).filter(|at| last.is_none_or(|last| *at > last)).min());
        for (layer, budget) in (0..).zip(budgets.iter_mut()).filter(|(_, budget)| **budget == SHARING) {
            let more = u64::from(last.is_some_and(|last| order(layer) <= last));
            *budget = u32::try_from(divided(layer).0.saturating_add(more)).unwrap_or(u32::MAX);
        }
    }
}

/// Quotient and rest of a number below 2^88 by one up to 2^56, byte by byte: what divides 128 bits is no part of a processor,
/// but of the compiler's library.
fn divide(value: u128, by: u128) -> (u64, u64) {
    let by = u64::try_from(by).unwrap_or(u64::MAX);
    value.to_be_bytes().iter().skip(5).fold((0, 0), |(quotient, rest): (u64, u64), &byte| {
        let digits = rest << 8 | u64::from(byte);
        let digit = digits.checked_div(by).unwrap_or(0);
        (quotient << 8 | digit, digits.checked_rem(by).unwrap_or(0))
    })
}
