//! kvbm-logical: NVIDIA's block manager in Rust, with its least recently used backend.

use dynamo_tokens::compute_block_hash_for_tokens;
use kvbm_logical::{BlockManager, BlockRegistry, ImmutableBlock, MutableBlock, SequenceHash};

use crate::peer::Peer;

const PAGE: usize = 16;

/// The tier that its blocks belong to; there is one.
#[derive(Clone)]
pub struct Tier;

/// A running request: published blocks, blocks being filled, and the tokens of the last one.
pub struct Request {
    published: Vec<ImmutableBlock<Tier>>,
    open: Vec<MutableBlock<Tier>>,
    tail: Vec<u32>,
    hash: Option<SequenceHash>,
}

/// The manager.
pub struct Kvbm {
    manager: BlockManager<Tier>,
    hits: u64,
}

fn extend(parent: Option<SequenceHash>, tokens: &[u32]) -> SequenceHash {
    let block = compute_block_hash_for_tokens(tokens, 0);
    match parent {
        Some(parent) => parent.extend(block),
        None => SequenceHash::root(block),
    }
}

fn hashes_of(prompt: &[u32]) -> Vec<SequenceHash> {
    let mut hashes = Vec::with_capacity(prompt.len() / PAGE);
    for tokens in prompt.chunks_exact(PAGE) {
        hashes.push(extend(hashes.last().copied(), tokens));
    }
    hashes
}

impl Kvbm {
    /// A manager of so many blocks; `None` when it does not take the configuration.
    pub fn new(blocks: u32) -> Option<Self> {
        let builder = BlockManager::<Tier>::builder().block_count(blocks as usize).block_size(PAGE);
        let manager = builder.registry(BlockRegistry::new()).with_lru_backend().build().ok()?;
        Some(Self { manager, hits: 0 })
    }
}

impl Peer for Kvbm {
    type Request = Request;
    type Pin = Vec<ImmutableBlock<Tier>>;

    fn reserve(&mut self, tokens: u32) -> Option<Request> {
        let open = self.manager.allocate_blocks((tokens as usize).div_ceil(PAGE))?;
        Some(Request { published: Vec::new(), open, tail: Vec::new(), hash: None })
    }

    fn admit(&mut self, prompt: &[u32]) -> Option<Request> {
        let hashes = hashes_of(prompt);
        let mut published = self.manager.match_blocks(&hashes[..(prompt.len() - 1) / PAGE]);
        let found = published.len();
        self.hits += (found * PAGE) as u64;
        let mut full = self.manager.allocate_blocks(prompt.len().div_ceil(PAGE) - found)?;
        let open = full.split_off(hashes.len() - found);
        let mut staged = Vec::with_capacity(full.len());
        for (block, &hash) in full.into_iter().zip(&hashes[found..]) {
            staged.push(block.stage(hash, PAGE).ok()?);
        }
        published.extend(self.manager.register_blocks(staged));
        let tail = prompt[hashes.len() * PAGE..].to_vec();
        Some(Request { published, open, tail, hash: hashes.last().copied() })
    }

    fn grow(&mut self, request: &mut Request, tokens: &[u32]) -> Option<()> {
        for &token in tokens {
            if request.open.is_empty() {
                request.open = self.manager.allocate_blocks(1)?;
            }
            request.tail.push(token);
            if request.tail.len() == PAGE {
                let hash = extend(request.hash, &request.tail);
                request.tail.clear();
                request.hash = Some(hash);
                let staged = request.open.pop()?.stage(hash, PAGE).ok()?;
                request.published.push(self.manager.register_block(staged));
            }
        }
        Some(())
    }

    /// Last block first, so that a prefix outlives what is built on it.
    fn release(&mut self, mut request: Request) {
        request.open.clear();
        while request.published.pop().is_some() {}
    }

    fn find(&mut self, prompt: &[u32]) -> Option<Self::Pin> {
        Some(self.manager.match_blocks(&hashes_of(&prompt[..prompt.len() - 1])))
    }

    fn unpin(&mut self, mut pin: Self::Pin) {
        while pin.pop().is_some() {}
    }

    fn hit_tokens(&self) -> u64 {
        self.hits
    }
}
