//! Workloads W1, W4 and W5: deterministic request streams that show what a step costs.
//!
//! A workload is a list of operations over an arena of tokens; the same generator gives the same bytes everywhere, which its
//! digest proves. The file form (`.kvw`, little-endian `u32` words) is read by other managers' runners as well.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const MAGIC: u32 = 0x3157_564B;
/// Tokens per page in all workloads.
pub const PAGE_TOKENS: u32 = 16;

/// What one operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A prompt arrives: match, take pages, publish every full page.
    Admit = 1,
    /// Tokens are appended.
    Grow = 2,
    /// The request ends; its published pages stay cached.
    Release = 3,
}

/// One operation of a request on `tokens[offset..offset + count]` of the arena.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// What it does.
    pub kind: Kind,
    /// Which request.
    pub request: u32,
    /// First token in the arena.
    pub offset: u32,
    /// Number of tokens.
    pub count: u32,
}

/// A list of operations and the tokens that they name.
pub struct Workload {
    /// W1, W4 or W5.
    pub name: &'static str,
    /// Pages of the pool.
    pub pages: u32,
    /// Requests in all.
    pub requests: u32,
    /// The operations in order.
    pub operations: Vec<Operation>,
    /// The tokens.
    pub tokens: Vec<u32>,
    /// What [`Workload::digest`] must give.
    pub expected: u64,
}

impl Workload {
    fn new(name: &'static str, pages: u32, requests: u32, expected: u64) -> Self {
        Self { name, pages, requests, operations: Vec::new(), tokens: Vec::new(), expected }
    }

    /// Steady decode: 256 requests of 256 to 767 tokens, then 2,000 steps of one token each.
    #[must_use]
    pub fn w1() -> Self {
        let mut work = Self::new("W1", 65_536, 256, 0x86aa_189c_4f79_7b5b);
        let mut random = Random(1);
        let lengths: Vec<u64> = (0..256).map(|_| 256 + random.below(512)).collect();
        for (request, &length) in (0..).zip(&lengths) {
            work.put(Kind::Admit, request, segment(1, 0, request), 0..length);
        }
        for step in 0..2_000 {
            for (request, &length) in (0..).zip(&lengths) {
                work.put(Kind::Grow, request, segment(1, 0, request), length + step..length + step + 1);
            }
        }
        (0..256).for_each(|request| work.release(request));
        work
    }

    /// Long prompts: 200 of 32,768 tokens, 90 % of each shared with one of four documents.
    #[must_use]
    pub fn w4() -> Self {
        let mut work = Self::new("W4", 65_536, 200, 0xd884_8a28_bf7f_785f);
        let mut random = Random(4);
        for request in 0..200 {
            let document = random.below(4);
            work.put(Kind::Admit, request, segment(4, 1, document), 0..29_488);
            work.extend(segment(4, 2, request), 0..3_280);
            if request >= 3 {
                work.release(request - 3);
            }
        }
        (197..200).for_each(|request| work.release(request));
        work
    }

    /// Eviction storm: 4,000 requests with one-off tails into a pool of 8,192 pages.
    #[must_use]
    pub fn w5() -> Self {
        let mut work = Self::new("W5", 8_192, 4_000, 0x8902_9958_d5bd_235a);
        let mut random = Random(5);
        for request in 0..4_000 {
            let head = random.below(64);
            let tail = 1_024 + random.below(1_025);
            work.put(Kind::Admit, request, segment(5, 1, head), 0..512);
            work.extend(segment(5, 2, request), 0..tail);
            work.release(request);
        }
        work
    }

    fn put(&mut self, kind: Kind, request: u64, segment: u64, range: core::ops::Range<u64>) {
        let offset = self.tokens.len() as u32;
        self.operations.push(Operation { kind, request: request as u32, offset, count: 0 });
        self.extend(segment, range);
    }

    /// Adds tokens to the last operation.
    fn extend(&mut self, segment: u64, range: core::ops::Range<u64>) {
        let base = segment.wrapping_mul(0xD134_2543_DE82_EF95);
        self.tokens.extend(range.clone().map(|i| (mix(base.wrapping_add((i + 1).wrapping_mul(GOLDEN))) >> 47) as u32));
        if let Some(last) = self.operations.last_mut() {
            last.count += (range.end - range.start) as u32;
        }
    }

    fn release(&mut self, request: u64) {
        self.operations.push(Operation { kind: Kind::Release, request: request as u32, offset: 0, count: 0 });
    }

    /// The tokens of an operation.
    #[must_use]
    pub fn tokens_of(&self, operation: &Operation) -> &[u32] {
        &self.tokens[operation.offset as usize..][..operation.count as usize]
    }

    fn operation_words(&self) -> impl Iterator<Item = u32> + '_ {
        self.operations.iter().flat_map(|o| [o.kind as u32, o.request, o.offset, o.count])
    }

    /// A digest of operations and tokens.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let fold = |start: u64, words: &mut dyn Iterator<Item = u32>| {
            (start..).zip(words).fold(0_u64, |sum, (i, word)| {
                sum.wrapping_add(mix(i.wrapping_mul(GOLDEN).wrapping_add(u64::from(word))))
            })
        };
        let operations = fold(0, &mut self.operation_words());
        operations.wrapping_add(fold(1 << 40, &mut self.tokens.iter().copied()))
    }

    /// The file form.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let counts = [self.requests, self.operations.len() as u32, self.tokens.len() as u32];
        let header = [MAGIC, 1, PAGE_TOKENS, self.pages, 1].into_iter().chain(counts);
        header.chain(self.operation_words()).chain(self.tokens.iter().copied()).flat_map(u32::to_le_bytes).collect()
    }
}

fn segment(workload: u64, kind: u64, index: u64) -> u64 {
    workload << 56 | kind << 48 | index
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        ((mix(self.0) >> 32) * n) >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generators_give_the_published_digests() {
        for work in [Workload::w1(), Workload::w4(), Workload::w5()] {
            assert_eq!(work.digest(), work.expected, "{}", work.name);
        }
    }
}
