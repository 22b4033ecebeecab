//! Loops over blocks whose length the compiler knows, so that it makes vectors of them also where a group is short.

/// Elements of a block: four vectors of 16 bytes, two of 32.
const LANES: usize = 16;

/// `to[i] = f(x[i])`, over the shorter of both.
#[inline(always)]
pub(super) fn each<A: Copy, B>(x: &[A], to: &mut [B], f: impl Fn(A) -> B) {
    let (blocks, rest) = x.as_chunks::<LANES>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<LANES>();
    for (x, to) in blocks.iter().zip(to_blocks) {
        for (&x, to) in x.iter().zip(to) {
            *to = f(x);
        }
    }
    for (&x, to) in rest.iter().zip(to_rest) {
        *to = f(x);
    }
}
