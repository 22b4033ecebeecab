//! The total order of candidates: score, then position.

/// Where a score stands: a number that grows with it. NaN is lowest, -0 equals +0.
///
/// ```
/// use kvfolio::evict::rank;
///
/// let ascending = [f32::NAN, f32::NEG_INFINITY, -1.5, -0.0, 1e-45, 2.0, f32::INFINITY];
/// assert!(ascending.is_sorted_by(|a, b| rank(*a) < rank(*b)));
/// assert_eq!(rank(-0.0), rank(0.0));
/// ```
#[must_use]
#[inline]
pub const fn rank(score: f32) -> u32 {
    if score.is_nan() {
        return 0;
    }
    let bits = if score == 0.0 { 0 } else { score.to_bits() };
    // Negative numbers fall as their bits grow.
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// Score and position in one number, different for each token of a stream: the lowest is evicted first, of equal scores the
/// older one.
#[must_use]
#[inline]
pub const fn key(score: f32, position: u32) -> u64 {
    (rank(score) as u64) << 32 | position as u64
}
