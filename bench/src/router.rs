//! dynamo-kv-router: a radix tree over block hashes. An index only: it has no pages, evicts nothing, and pins nothing.

use cpu_time::ThreadTime;
use dynamo_kv_router::RadixTree;
use dynamo_kv_router::protocols::{
    BlockHashOptions, ExternalSequenceBlockHash, KvCacheEvent, KvCacheEventData, KvCacheStoreData,
    KvCacheStoredBlockData, LocalBlockHash, RouterEvent, compute_block_hash_for_seq,
};
use dynamo_tokens::compute_next_sequence_hash;
use kvfolio_examples::workload::{Kind, PAGE_TOKENS, Workload};

use crate::peer::Measured;

/// The index.
pub struct Router {
    tree: RadixTree,
    events: u64,
}

impl Router {
    /// An empty index.
    pub fn new() -> Self {
        Self { tree: RadixTree::new(), events: 0 }
    }

    /// Hashes a prompt and finds how many of its blocks are known.
    pub fn find(&self, prompt: &[u32]) -> (Vec<LocalBlockHash>, usize) {
        let blocks = compute_block_hash_for_seq(prompt, PAGE_TOKENS, BlockHashOptions::default());
        let scores = self.tree.find_matches(blocks.clone(), false).scores;
        let found = scores.values().next().copied().unwrap_or(0) as usize;
        (blocks, found)
    }

    /// Finds a prompt and stores what is new of it; `None` when the index refuses.
    pub fn admit(&mut self, prompt: &[u32]) -> Option<()> {
        let (blocks, found) = self.find(prompt);
        if found == blocks.len() {
            return Some(());
        }
        let mut chain = Vec::with_capacity(blocks.len());
        for block in &blocks {
            let hash = chain.last().map_or(block.0, |&parent| compute_next_sequence_hash(parent, block.0));
            chain.push(hash);
        }
        let stored = |(&hash, &tokens): (&u64, &LocalBlockHash)| KvCacheStoredBlockData {
            block_hash: ExternalSequenceBlockHash(hash),
            tokens_hash: tokens,
            mm_extra_info: None,
        };
        let data = KvCacheStoreData {
            parent_hash: found.checked_sub(1).map(|last| ExternalSequenceBlockHash(chain[last])),
            start_position: None,
            blocks: chain.iter().zip(&blocks).skip(found).map(stored).collect(),
        };
        self.events += 1;
        let event = KvCacheEvent { event_id: self.events, data: KvCacheEventData::Stored(data), dp_rank: 0 };
        self.tree.apply_event(RouterEvent::new(0, event)).ok()
    }
}

/// Finds and stores every prompt of a workload; `None` when the index refuses one.
pub fn run(work: &Workload) -> Option<Measured> {
    let mut router = Router::new();
    let start = ThreadTime::now();
    for operation in work.operations.iter().filter(|operation| operation.kind == Kind::Admit) {
        router.admit(work.tokens_of(operation))?;
    }
    Some(Measured { seconds: start.elapsed().as_secs_f64(), hit_tokens: None })
}
