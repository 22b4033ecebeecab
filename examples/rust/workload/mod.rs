//! Workloads W1 to W6: deterministic request streams that show what a step costs.
//!
//! A workload is a list of operations over an arena of tokens; the same generator gives the same bytes everywhere, which its
//! digest proves. The file form (`.kvw`, little-endian `u32` words) is read by other managers' runners as well.

mod synthetic;
mod trace;

pub use trace::{Request, Trace};

use std::io;

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
    /// W1 to W6, or the name of a trace.
    pub name: &'static str,
    /// Pages of the pool.
    pub pages: u32,
    /// Requests in all.
    pub requests: u32,
    /// The operations in order.
    pub operations: Vec<Operation>,
    /// The tokens.
    pub tokens: Vec<u32>,
    /// Whether prompts have tokens and prefixes are cached.
    pub cached: bool,
    /// What [`Workload::digest`] must give; 0 = not published.
    pub expected: u64,
}

impl Workload {
    fn new(name: &'static str, pages: u32, requests: u32, expected: u64) -> Self {
        Self { name, pages, requests, operations: Vec::new(), tokens: Vec::new(), cached: true, expected }
    }

    /// The workloads that have a specification.
    pub const NAMES: [&'static str; 6] = ["W1", "W2", "W3", "W4", "W5", "W6"];

    /// Makes a workload; `None` where its trace is not there.
    ///
    /// # Errors
    /// An unknown name, a trace that cannot be read, or a generator whose digest is wrong.
    pub fn named(name: &str) -> io::Result<Option<Self>> {
        let work = match name {
            "W1" => Self::w1(),
            "W2" => Self::w2(),
            "W3" => Self::w3(),
            "W4" => Self::w4(),
            "W5" => Self::w5(),
            "W6" => match Trace::find(Trace::CONVERSATIONS)? {
                Some(trace) => Self::w6(&trace),
                None => return Ok(None),
            },
            _ => return Err(io::Error::other(format!("{name}: not a workload"))),
        };
        if work.digest() != work.expected {
            return Err(io::Error::other(format!("{name}: the generator is wrong")));
        }
        Ok(Some(work))
    }

    /// Table chunks that suffice for all that is alive at once, a partly filled chunk each.
    #[must_use]
    pub fn table_chunks(&self) -> u32 {
        let mut needs = vec![0_u32; self.requests as usize];
        for operation in &self.operations {
            needs[operation.request as usize] += operation.count;
        }
        let chunks_of = |tokens: u32| tokens.div_ceil(PAGE_TOKENS * 32) + 1;
        let (mut now, mut most) = (0, 0);
        for operation in &self.operations {
            let need = chunks_of(needs[operation.request as usize]);
            match operation.kind {
                Kind::Admit => now += need,
                Kind::Grow => {}
                Kind::Release => now -= need,
            }
            most = most.max(now);
        }
        most
    }

    fn put(&mut self, kind: Kind, request: u64, segment: u64, range: core::ops::Range<u64>) {
        let offset = self.tokens.len() as u32;
        self.operations.push(Operation { kind, request: request as u32, offset, count: 0 });
        self.extend(segment, range);
    }

    /// Adds tokens to the last operation.
    fn extend(&mut self, segment: u64, range: core::ops::Range<u64>) {
        self.tokens.extend(tokens(segment, range.clone()));
        if let Some(last) = self.operations.last_mut() {
            last.count += (range.end - range.start) as u32;
        }
    }

    fn put_tokens(&mut self, kind: Kind, request: u64, tokens: &[u32]) {
        let (offset, count) = (self.tokens.len() as u32, tokens.len() as u32);
        self.operations.push(Operation { kind, request: request as u32, offset, count });
        self.tokens.extend_from_slice(tokens);
    }

    /// A request gets its reply and ends.
    fn finish(&mut self, request: u64, reply: &[u32]) {
        self.put_tokens(Kind::Grow, request, reply);
        self.release(request);
    }

    fn release(&mut self, request: u64) {
        self.operations.push(Operation { kind: Kind::Release, request: request as u32, offset: 0, count: 0 });
    }

    /// The tokens of an operation; none where the workload has no tokens.
    #[must_use]
    pub fn tokens_of(&self, operation: &Operation) -> &[u32] {
        if !self.cached {
            return &[];
        }
        &self.tokens[operation.offset as usize..][..operation.count as usize]
    }

    /// Most requests alive at once.
    #[must_use]
    pub fn most_alive(&self) -> u32 {
        let (mut alive, mut most) = (0_u32, 0_u32);
        for operation in &self.operations {
            match operation.kind {
                Kind::Admit => alive += 1,
                Kind::Grow => {}
                Kind::Release => alive -= 1,
            }
            most = most.max(alive);
        }
        most
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
        let header = [MAGIC, 1, PAGE_TOKENS, self.pages, u32::from(self.cached)].into_iter().chain(counts);
        header.chain(self.operation_words()).chain(self.tokens.iter().copied()).flat_map(u32::to_le_bytes).collect()
    }
}

fn segment(workload: u64, kind: u64, index: u64) -> u64 {
    workload << 56 | kind << 48 | index
}

/// Tokens of a segment: ids of 17 bits.
fn tokens(segment: u64, range: core::ops::Range<u64>) -> Vec<u32> {
    let base = segment.wrapping_mul(0xD134_2543_DE82_EF95);
    range.map(|i| (mix(base.wrapping_add((i + 1).wrapping_mul(GOLDEN))) >> 47) as u32).collect()
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// SplitMix64: numbers that are the same everywhere.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((self.draw() >> 32) * n) >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generators_give_the_published_digests() {
        for work in [Workload::w1(), Workload::w2(), Workload::w3(), Workload::w4(), Workload::w5()] {
            assert_eq!(work.digest(), work.expected, "{}", work.name);
        }
    }
}
