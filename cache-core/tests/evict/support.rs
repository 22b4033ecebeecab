//! Random numbers, streams that own their arrays, and the plain list that they are held against.

use kvfolio::evict::*;

pub(crate) struct Rng(pub u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) ^ (self.0 >> 11)
    }

    pub(crate) fn below(&mut self, n: u32) -> u32 {
        (self.next() % u64::from(n.max(1))) as u32
    }

    /// In 0..1, with 20 bits.
    pub(crate) fn unit(&mut self) -> f32 {
        self.below(1 << 20) as f32 / (1 << 20) as f32
    }

    /// Often equal to another, seldom not a number.
    pub(crate) fn score(&mut self) -> f32 {
        match self.below(12) {
            0 => f32::NAN,
            1 => -0.0,
            2 => 0.0,
            3 => f32::INFINITY,
            4 => f32::NEG_INFINITY,
            5 => 1e-45,
            n => n as f32 - self.below(3) as f32,
        }
    }
}

/// The arrays of a stream with one channel.
pub(crate) struct Owned {
    pub(crate) page_tokens: u32,
    pub(crate) counters: Counters,
    pub(crate) valid: Vec<u64>,
    pub(crate) positions: Vec<u32>,
    pub(crate) scores: Vec<f32>,
}

impl Owned {
    pub(crate) fn new(page_tokens: u32, columns: u32) -> Self {
        let slots = (page_tokens * columns) as usize;
        Self {
            page_tokens,
            counters: Counters::default(),
            valid: vec![0; columns as usize],
            positions: vec![u32::MAX; slots],
            scores: vec![f32::NAN; slots],
        }
    }

    /// Does something to the stream and looks whether it holds together afterwards.
    pub(crate) fn with<T>(&mut self, f: impl FnOnce(&mut Stream<'_>) -> T) -> T {
        let (valid, positions, scores) = (&mut self.valid, &mut self.positions, &mut self.scores);
        let mut stream = Stream::new(self.page_tokens, self.counters, valid, positions, scores, 1).unwrap();
        let result = f(&mut stream);
        stream.check().unwrap();
        self.counters = stream.counters();
        result
    }

    pub(crate) fn slots(&self) -> Slots<'_> {
        Slots {
            page_tokens: self.page_tokens,
            seen: self.counters.seen,
            live: self.counters.live,
            rows: self.counters.rows,
            valid: &self.valid,
            positions: &self.positions,
        }
    }

    /// Live positions, ascending.
    pub(crate) fn kept(&self) -> Vec<u32> {
        let mut kept: Vec<u32> = self.slots().live().map(|(_, position)| position).collect();
        kept.sort_unstable();
        kept
    }
}

/// The same as a list of (position, score), with no pages.
#[derive(Clone, Default)]
pub(crate) struct Naive {
    pub(crate) seen: u32,
    pub(crate) tokens: Vec<(u32, f32)>,
}

impl Naive {
    pub(crate) fn append(&mut self, score: f32) {
        self.tokens.push((self.seen, score));
        self.seen += 1;
    }

    /// Sorts candidates the way that the rule says, in words rather than bits.
    pub(crate) fn evict(&mut self, protected: &Protected<'_>, budget: u32, ordered: impl Fn(f32, u32) -> f32) {
        let seen = self.seen;
        let is_free = |position: u32| {
            position >= protected.sinks
                && position + protected.recent < seen
                && !protected.pins.iter().any(|pin| (pin.start..pin.end).contains(&position))
        };
        let mut free: Vec<(f32, u32)> =
            self.tokens.iter().filter(|token| is_free(token.0)).map(|&(p, s)| (ordered(s, p), p)).collect();
        free.sort_by(|a, b| {
            let nan = b.0.is_nan().cmp(&a.0.is_nan());
            nan.then(a.0.partial_cmp(&b.0).unwrap_or(core::cmp::Ordering::Equal)).then(a.1.cmp(&b.1))
        });
        let surplus = self.tokens.len().saturating_sub(budget as usize);
        let gone: Vec<u32> = free.iter().take(surplus).map(|token| token.1).collect();
        self.tokens.retain(|token| !gone.contains(&token.0));
    }

    pub(crate) fn kept(&self) -> Vec<u32> {
        self.tokens.iter().map(|token| token.0).collect()
    }
}
