//! The seeded counter generator behind every random stream.
//!
//! Value i of seed s is a pure function of (s, i), so a failing stream is named by its seed alone.

/// SplitMix64 over a counter.
#[derive(Clone, Debug)]
pub struct Rng {
    seed: u64,
    counter: u64,
}

/// One round of SplitMix64's output function.
pub const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Rng {
    /// The stream of one seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed: mix(seed), counter: 0 }
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(1);
        mix(self.seed ^ self.counter.wrapping_mul(0xD129_42F2_4E38_9D1B))
    }

    /// A number below `bound` (0 when `bound` is 0).
    pub const fn below(&mut self, bound: u64) -> u64 {
        match self.next().checked_rem(bound) {
            Some(value) => value,
            None => 0,
        }
    }

    /// `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }
}
