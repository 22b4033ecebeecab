//! Random groups, half of them nasty, and exact measures.

pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// In [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn gaussian(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (core::f64::consts::TAU * self.unit()).cos()
    }

    pub(crate) fn gaussians(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.gaussian() as f32).collect()
    }

    /// Any bit pattern that is finite.
    pub(crate) fn finite(&mut self) -> f32 {
        loop {
            let x = f32::from_bits(self.next() as u32);
            if x.is_finite() {
                return x;
            }
        }
    }

    /// A group: every second one Gaussian of some magnitude, the others from the list of what breaks codecs.
    pub(crate) fn fill(&mut self, x: &mut [f32]) {
        let magnitude = 10_f64.powf(self.unit() * 11.0 - 7.0);
        let kind = self.below(24);
        let (mean, width) = match kind {
            0 => (100.0, 1.0),
            1 => (0.0, 1e-41),
            2 => (65_504.0, 1e-3),
            3 => (-65_504.0, 0.0),
            4 => (self.gaussian() * magnitude, 0.0),
            5 => (magnitude * 1000.0, magnitude),
            6 => (0.0, 1e-7),
            7 => (0.0, 0.0),
            8 => (1e-3, 1e-7),
            9 => (-2_f64.powi(-24), 1e-9),
            _ => (0.0, magnitude),
        };
        for x in x.iter_mut() {
            *x = ((mean + width * self.gaussian()) as f32).clamp(-65_504.0, 65_504.0);
        }
        let at = self.below(x.len());
        match kind {
            10 => x[at] = 65_504.0,
            11 => x[at] = -1e4,
            12 => x.iter_mut().for_each(|x| *x = x.signum() * 3.5),
            13 => x[at] = -0.0,
            14 => x[at] = 1e-45,
            15 => x.iter_mut().enumerate().for_each(|(i, x)| *x = if i % 2 == 0 { 65_504.0 } else { -65_504.0 }),
            _ => {}
        }
    }
}

/// Groups per codec: 100,000, or what `KVF_GROUPS` says.
pub(crate) fn groups() -> usize {
    std::env::var("KVF_GROUPS").map_or(100_000, |n| n.parse().expect("KVF_GROUPS is a number"))
}

pub(crate) fn f16(bits: u16) -> f64 {
    half::f16::from_bits(bits).to_f64()
}

/// Greatest magnitude.
pub(crate) fn amax(x: &[f32]) -> f64 {
    x.iter().fold(0.0, |most, x| most.max(f64::from(x.abs())))
}

/// The unit in the last place of an f32 of this magnitude.
pub(crate) fn ulp(magnitude: f64) -> f64 {
    let bits = (magnitude as f32).to_bits();
    f64::from(f32::from_bits(bits + 1)) - f64::from(f32::from_bits(bits))
}

pub(crate) fn relative_l2(x: &[f32], y: &[f32]) -> f64 {
    let (mut error, mut norm) = (0.0, 0.0);
    for (&x, &y) in x.iter().zip(y) {
        error += (f64::from(x) - f64::from(y)).powi(2);
        norm += f64::from(x).powi(2);
    }
    (error / norm).sqrt()
}

#[track_caller]
pub(crate) fn assert_near(got: f64, want: f64) {
    assert!((got / want - 1.0).abs() < 0.05, "{got} is not within 5 % of {want}");
}
