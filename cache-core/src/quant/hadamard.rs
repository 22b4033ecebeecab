//! Rotation by a Hadamard matrix, which spreads an outlier over its block, so that groups have no more range than they need.
//!
//! `x' = H D x` on each block of n elements of a row: `D` is a diagonal of signs, or nothing; `H` is Sylvester's matrix over
//! `sqrt n`. H is its own inverse, so queries rotated alike give the same logits as before, and an attention output over
//! rotated values is rotated back. Keys are rotated after their position encoding, with which `H` does not commute.
//!
//! Bits: butterflies of distance 1, 2, 4, ...; then one multiplication by f32(1 / sqrt n).

use super::error::QuantError;
use super::slices::pieces_mut;

/// Which rotation rows have had. Equal values are equal rotations: data under another one is not comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Rotation {
    /// Elements of a block, a power of two; 0 = not rotated.
    pub block: u32,
    /// Whether signs drawn from `seed` come first: 0 or 1.
    pub signed: u32,
    /// Seed of the signs; 0 without them.
    pub seed: u64,
}

impl Rotation {
    /// Not rotated.
    pub const NONE: Self = Self { block: 0, signed: 0, seed: 0 };

    /// Blocks of the largest power of two that divides the row of `dim` elements and is not above `cap`: 96 gives 32.
    ///
    /// # Errors
    /// `Group` for a row or cap of 0.
    pub const fn of(dim: u32, cap: u32) -> Result<Self, QuantError> {
        let (1.., Some(cap)) = (dim, cap.checked_ilog2()) else { return Err(QuantError::Group) };
        let log = if dim.trailing_zeros() < cap { dim.trailing_zeros() } else { cap };
        Ok(Self { block: 1_u32.wrapping_shl(log), signed: 0, seed: 0 })
    }

    /// The same with signs in front, different ones for each layer and head.
    pub const fn with_signs(self, seed: u64) -> Self {
        Self { signed: 1, seed, ..self }
    }

    /// Rotates rows of `dim` elements, all of one layer and head, in place. Non-finite values spread over their block.
    /// O(x log block).
    ///
    /// # Errors
    /// `Length` for rows that are not whole; `Group` where the blocks do not fit the row.
    pub fn apply(self, x: &mut [f32], dim: usize, layer: u32, head: u32) -> Result<(), QuantError> {
        let Some(block) = self.block_in(x.len(), dim)? else { return Ok(()) };
        for row in pieces_mut(x, dim) {
            self.flip(row, layer, head);
            pieces_mut(row, block).for_each(transform);
        }
        Ok(())
    }

    /// Undoes [`apply`](Self::apply), but for rounding: 4 units in the last place of the block's norm per doubling.
    ///
    /// # Errors
    /// As there.
    pub fn revert(self, x: &mut [f32], dim: usize, layer: u32, head: u32) -> Result<(), QuantError> {
        let Some(block) = self.block_in(x.len(), dim)? else { return Ok(()) };
        for row in pieces_mut(x, dim) {
            pieces_mut(row, block).for_each(transform);
            self.flip(row, layer, head);
        }
        Ok(())
    }

    /// Whether these rows can be rotated so; `None`: there is nothing to do.
    fn block_in(self, len: usize, dim: usize) -> Result<Option<usize>, QuantError> {
        let block = self.block as usize;
        if len.checked_rem(dim) != Some(0) {
            return Err(QuantError::Length);
        }
        if block == 0 {
            return Ok(None);
        }
        if !block.is_power_of_two() || dim.checked_rem(block) != Some(0) || self.signed > 1 {
            return Err(QuantError::Group);
        }
        Ok(Some(block))
    }

    /// Multiplies a row by its signs: bit i of the stream, lowest first, set = minus.
    fn flip(self, row: &mut [f32], layer: u32, head: u32) {
        if self.signed == 0 {
            return;
        }
        let mut stream = SplitMix64(self.seed ^ mix(u64::from(layer) << 32 | u64::from(head)));
        for word in row.chunks_mut(64) {
            let mut signs = stream.next();
            for x in word {
                *x = f32::from_bits(x.to_bits() ^ u32::from(signs & 1 == 1) << 31);
                signs >>= 1;
            }
        }
    }
}

/// Steele, Lea and Flood's generator.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

/// Its output function; 0 gives 0.
fn mix(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// `H x` for one block, in place.
fn transform(block: &mut [f32]) {
    // Distances within eight elements in one go.
    let (eights, _) = block.as_chunks_mut();
    eights.iter_mut().for_each(transform_eight);
    let mut distance = if eights.is_empty() { 1 } else { 8_usize };
    while distance < block.len() {
        for pair in pieces_mut(block, distance.wrapping_mul(2)) {
            let Some((low, high)) = pair.split_at_mut_checked(distance) else { continue };
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        distance = distance.wrapping_mul(2);
    }
    let norm = one_over_root(block.len().trailing_zeros());
    block.iter_mut().for_each(|x| *x *= norm);
}

#[inline(always)]
fn transform_eight(x: &mut [f32; 8]) {
    let [a, b, c, d, e, f, g, h] = *x;
    let [a, b, c, d, e, f, g, h] = [a + b, a - b, c + d, c - d, e + f, e - f, g + h, g - h];
    let [a, b, c, d, e, f, g, h] = [a + c, b + d, a - c, b - d, e + g, f + h, e - g, f - h];
    *x = [a + e, b + f, c + g, d + h, a - e, b - f, c - g, d - h];
}

/// f32(1 / sqrt(2^log)).
fn one_over_root(log: u32) -> f32 {
    let power = f32::from_bits(127_u32.saturating_sub(log >> 1) << 23);
    if log & 1 == 0 { power } else { power * core::f32::consts::FRAC_1_SQRT_2 }
}
