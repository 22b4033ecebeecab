//! Loops over slices: pieces without a panic, which cutting by 0 would be, and blocks that become vectors.

/// Slices of `n` elements, one after the other; what is left is not given. None for an `n` of 0.
#[inline(always)]
pub(super) fn pieces<T>(mut rest: &[T], n: usize) -> impl Iterator<Item = &[T]> {
    core::iter::from_fn(move || {
        let (piece, after) = rest.split_at_checked(n).filter(|_| n > 0)?;
        rest = after;
        Some(piece)
    })
}

/// The same, to be written.
#[inline(always)]
pub(super) fn pieces_mut<T>(mut rest: &mut [T], n: usize) -> impl Iterator<Item = &mut [T]> {
    core::iter::from_fn(move || {
        let (piece, after) = core::mem::take(&mut rest).split_at_mut_checked(n).filter(|_| n > 0)?;
        rest = after;
        Some(piece)
    })
}

/// `to[i] = f(x[i])`, over the shorter of both. Blocks of 16: four vectors of 16 bytes, two of 32, also where a group is short.
#[cfg(feature = "quant")]
#[inline(always)]
pub(super) fn each<A: Copy, B>(x: &[A], to: &mut [B], f: impl Fn(A) -> B) {
    let (blocks, rest) = x.as_chunks::<16>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<16>();
    for (x, to) in blocks.iter().zip(to_blocks) {
        for (&x, to) in x.iter().zip(to) {
            *to = f(x);
        }
    }
    for (&x, to) in rest.iter().zip(to_rest) {
        *to = f(x);
    }
}

/// `to[i] = x[i stride]`, or the default beyond the end.
#[cfg(feature = "quant")]
#[inline(always)]
pub(super) fn gather<T: Copy + Default>(x: &[T], stride: usize, to: &mut [T]) {
    let mut at = 0_usize;
    for to in to {
        *to = x.get(at).copied().unwrap_or_default();
        at = at.wrapping_add(stride);
    }
}

/// `to[i stride] = x[i]`, up to the end.
#[cfg(feature = "quant")]
#[inline(always)]
pub(super) fn scatter<T: Copy>(x: &[T], to: &mut [T], stride: usize) {
    let mut at = 0_usize;
    for &x in x {
        if let Some(to) = to.get_mut(at) {
            *to = x;
        }
        at = at.wrapping_add(stride);
    }
}
