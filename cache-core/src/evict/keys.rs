//! Policies that look at keys alone, so that any attention kernel will do.

use super::error::EvictError;
use super::slots::Slots;

/// Knorm: tokens with short keys are kept, `-|k|`. Norms are one per slot. O(live).
///
/// # Errors
/// `Shape`; nothing is written then.
pub fn knorm_scores(slots: &Slots<'_>, norms: &[f32], scores: &mut [f32]) -> Result<(), EvictError> {
    let rows = slots.rows as usize;
    let (norms, scores) = norms.get(..rows).zip(scores.get_mut(..rows)).ok_or(EvictError::Shape)?;
    scores.iter_mut().zip(norms).for_each(|(score, norm)| *score = -norm);
    Ok(())
}

/// KeyDiff: tokens whose keys differ from the others are kept, `-cos(k, mean of k / |k|)`. `dots` are products of each key
/// with the [sum](KeySum) of unit keys, whose norm is `sum_norm`; a mean and a sum have the same direction. A key or a sum of
/// length 0 has no direction, and cosine 0. O(live).
///
/// # Errors
/// `Shape`; nothing is written then.
pub fn keydiff_scores(
    slots: &Slots<'_>,
    dots: &[f32],
    norms: &[f32],
    sum_norm: f32,
    scores: &mut [f32],
) -> Result<(), EvictError> {
    let rows = slots.rows as usize;
    let (dots, norms) = dots.get(..rows).zip(norms.get(..rows)).ok_or(EvictError::Shape)?;
    let scores = scores.get_mut(..rows).ok_or(EvictError::Shape)?;
    for ((score, dot), norm) in scores.iter_mut().zip(dots).zip(norms) {
        let length = norm * sum_norm;
        *score = if length > 0.0 { -(dot / length) } else { 0.0 };
    }
    Ok(())
}

/// The running sum of unit keys of a stream, over d floats of the caller. What is evicted is taken out again.
#[derive(Debug)]
pub struct KeySum<'a> {
    /// The sum.
    pub sum: &'a mut [f32],
}

impl KeySum<'_> {
    /// Adds a key's direction. O(d).
    ///
    /// # Errors
    /// `Shape` for a key of another length.
    pub fn add(&mut self, key: &[f32]) -> Result<(), EvictError> {
        self.change(key, 1.0)
    }

    /// Takes a key's direction out. O(d).
    ///
    /// # Errors
    /// `Shape` for a key of another length.
    pub fn remove(&mut self, key: &[f32]) -> Result<(), EvictError> {
        self.change(key, -1.0)
    }

    /// Its length. O(d).
    #[must_use]
    pub fn norm(&self) -> f32 {
        norm(self.sum)
    }

    fn change(&mut self, key: &[f32], sign: f32) -> Result<(), EvictError> {
        if key.len() != self.sum.len() {
            return Err(EvictError::Shape);
        }
        let length = norm(key);
        if length > 0.0 {
            self.sum.iter_mut().zip(key).for_each(|(sum, x)| *sum += sign * (x / length));
        }
        Ok(())
    }
}

/// The length of a vector. O(d).
#[must_use]
pub fn norm(x: &[f32]) -> f32 {
    libm::sqrtf(x.iter().fold(0.0, |sum, x| sum + x * x))
}
