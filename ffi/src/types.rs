//! Handles, and the structs of the header that programs fill in: configuration, parameters.
//!
//! Order matters, here and in `reports`: a constant stands before the struct that it belongs to. Sizes and offsets are
//! asserted in `layout`, and again in C by `tests/c/layout.c`.

pub use crate::reports::*;

/// One token of the model's vocabulary.
pub type kvf_token = u32;
/// Logical time, chosen by the caller. It must not go back.
pub type kvf_tick = u64;
/// A sequence: the tokens of one request. Never 0.
pub type kvf_seq = u64;
/// A pinned match result. Never 0.
pub type kvf_ticket = u64;
/// A namespace: what must be equal before tokens are compared. 0 = the default one.
pub type kvf_namespace = u64;
/// A transfer of pages that is under way. Never 0.
pub type kvf_transfer = u64;
/// A promise to keep a prefix above all others until a tick. Never 0.
pub type kvf_lease = u64;

/// The least recently used page goes first.
pub const KVF_POLICY_LRU: u32 = 0;
/// The page published first goes first, however often it was used since.
pub const KVF_POLICY_FIFO: u32 = 1;
/// The least often used goes first, in powers of two; within one power the least recently used.
pub const KVF_POLICY_LFU: u32 = 2;

/// Pages of one size in bytes. Ids are 1..pages.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_pool_config {
    /// sizeof(kvf_pool_config)
    pub struct_size: u32,
    /// Number of pages, 1 to 2^24.
    pub pages: u32,
    /// Which cached page is evicted first: KVF_POLICY_*.
    pub policy: u32,
}

/// Every query reads all tokens before it.
pub const KVF_GROUP_FULL: u32 = 0;
/// The query at position q reads token j if q - j < window or j < sinks.
pub const KVF_GROUP_WINDOW: u32 = 1;
/// A published page that leaves its window stays cached, so that longer hits stay possible.
pub const KVF_WINDOW_CACHED: u32 = 0;
/// It is withdrawn from the index when nothing else refers to it.
pub const KVF_WINDOW_EXACT: u32 = 1;
/// Flag: new pages of one call should have consecutive ids where a run is free. Evicts nothing for it.
pub const KVF_GROUP_CONTIGUOUS: u32 = 1;

/// A group: layers that share one page table.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_group_config {
    /// sizeof(kvf_group_config)
    pub struct_size: u32,
    /// KVF_GROUP_FULL or KVF_GROUP_WINDOW
    pub kind: u32,
    /// P, tokens per page: a power of two, 1 to 256. 0 = 16.
    pub page_tokens: u32,
    /// Index of the pool that its pages come from.
    pub pool: u32,
    /// Index + 1 of the pool that sealed pages come from. 0 = its rows never span two pools.
    pub sealed_pool: u32,
    /// Window groups: tokens that a query reads, its own included; at least 1.
    pub window: u32,
    /// Tokens at the start that a window group never drops, or whose pages a full group with a sealed pool never seals. Else 0.
    pub sinks: u32,
    /// KVF_WINDOW_*
    pub window_keep: u32,
    /// KVF_GROUP_CONTIGUOUS or 0
    pub flags: u32,
    /// Window groups: most tokens of one kvf_plan_add where a sequence keeps its pages as a fixed ring, from its first token
    /// until it is closed or empty. They are never published, so nothing matches then. 0 = pages come and go.
    pub ring_tokens: u32,
}

/// Radix tree: any pool size.
pub const KVF_INDEX_TREE: u32 = 0;
/// A scan of all pages per step: no memory, for pools up to about a thousand pages.
pub const KVF_INDEX_FLAT: u32 = 1;
/// Nothing is published.
pub const KVF_INDEX_NONE: u32 = 2;
/// Committed pages enter the index in kvf_plan_commit.
pub const KVF_PUBLISH_IMMEDIATE: u32 = 0;
/// They enter it in calls to kvf_prefix_publish, a slice at a time.
pub const KVF_PUBLISH_DEFERRED: u32 = 1;
/// Flag: a match may end inside a page.
pub const KVF_CONFIG_PARTIAL_TAIL: u32 = 1;
/// Flag: pages that change their namespace are listed for scrubbing.
pub const KVF_CONFIG_SCRUB: u32 = 2;

/// Everything that is fixed at init. It is copied: the struct and its arrays are not needed afterwards.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_config {
    /// sizeof(kvf_config)
    pub struct_size: u32,
    /// KVF_ABI_VERSION
    pub abi_version: u32,
    /// [n_pools]
    pub pools: *const kvf_pool_config,
    /// [n_groups]. The first full group carries the index.
    pub groups: *const kvf_group_config,
    /// 1 to 64
    pub n_pools: u32,
    /// 1 to 1,024
    pub n_groups: u32,
    /// Live sequences at most, 1 to 2^20.
    pub sequences: u32,
    /// Live tickets at most. 0 = none, so kvf_prefix_match always answers KVF_RETRY.
    pub tickets: u32,
    /// Transfers under way at most. 0 = none.
    pub transfers: u32,
    /// Namespaces at most, the default one included. 0 = 1.
    pub namespaces: u32,
    /// Chunks of 32 table entries, over all sequences and groups. 0 = enough for every page to be in two tables,
    /// or in one without an index, and two more for each table.
    pub table_chunks: u32,
    /// Sequences in one plan at most. 0 = sequences.
    pub plan_sequences: u32,
    /// Tokens that one plan may carry at most. 0 = 64 per sequence of a plan, at least 4,096.
    pub plan_tokens: u32,
    /// Copies in one plan at most, a seal's pages and one more among them. 0 = one per sequence and group of a plan, and
    /// all pages of its fixed rings.
    pub plan_copies: u32,
    /// Media spans stored, over all sequences and indexed pages. 0 = none.
    pub key_parts: u32,
    /// Events kept until they are read. 0 = none are made.
    pub events: u32,
    /// Leases at most. 0 = none.
    pub leases: u32,
    /// Namespaces with a quota at most, 0 to 64.
    pub quotas: u32,
    /// Eviction classes, 1 to 63. 0 = 1.
    pub classes: u32,
    /// How published pages are found: KVF_INDEX_*.
    pub index: u32,
    /// Nodes of the index where no group is full; unused otherwise.
    pub index_nodes: u32,
    /// KVF_PUBLISH_*
    pub publish: u32,
    /// KVF_CONFIG_PARTIAL_TAIL | KVF_CONFIG_SCRUB
    pub flags: u32,
    /// 0
    pub reserved: u32,
    /// Seed of the hash that selects candidates and makes exported keys. Keep it secret in a shared service.
    pub seed: u64,
}

/// The parts of a namespace's identity. All bits are compared.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_namespace_key {
    /// sizeof(kvf_namespace_key)
    pub struct_size: u32,
    /// 0
    pub reserved: u32,
    /// Tenant or salt. Hash longer ones with a cryptographic hash first.
    pub tenant: [u64; 4],
    /// Model, as the caller numbers them.
    pub model: u64,
    /// Adapter (LoRA). 0 = none.
    pub adapter: u64,
    /// Changes whenever the adapter's weights do.
    pub adapter_generation: u64,
    /// Precision and scale epoch of the pages.
    pub format: u64,
}

/// Pages of a group's pool.
pub const KVF_RESOURCE_PAGES: u32 = 0;
/// Chunks of table entries.
pub const KVF_RESOURCE_TABLE_CHUNKS: u32 = 1;
/// Sequences.
pub const KVF_RESOURCE_SEQUENCES: u32 = 2;
/// Tickets.
pub const KVF_RESOURCE_TICKETS: u32 = 3;
/// Transfers.
pub const KVF_RESOURCE_TRANSFERS: u32 = 4;
/// Namespaces.
pub const KVF_RESOURCE_NAMESPACES: u32 = 5;
/// Sequences in one plan.
pub const KVF_RESOURCE_PLAN_SEQUENCES: u32 = 6;
/// Tokens carried by one plan.
pub const KVF_RESOURCE_PLAN_TOKENS: u32 = 7;
/// Copies in one plan.
pub const KVF_RESOURCE_PLAN_COPIES: u32 = 8;
/// Media spans.
pub const KVF_RESOURCE_KEY_PARTS: u32 = 9;
/// Leases.
pub const KVF_RESOURCE_LEASES: u32 = 10;
/// Namespaces with a quota.
pub const KVF_RESOURCE_QUOTAS: u32 = 11;
/// The quota of the namespace.
pub const KVF_RESOURCE_QUOTA: u32 = 12;

/// What is short. Written by calls that take one, when they answer with a status from 300 to 399 and the pointer is not NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_shortage {
    /// sizeof(kvf_shortage), set by the caller
    pub struct_size: u32,
    /// KVF_RESOURCE_*
    pub resource: u32,
    /// Lowest group whose pages are short. 0 for other resources.
    pub group: u32,
    /// How many are needed.
    pub need: u32,
    /// How many are free.
    pub have: u32,
    /// How many more eviction would give.
    pub reclaimable: u32,
    /// How many more transfers under way will give.
    pub pending: u32,
    /// KVF_NEVER: the most tokens that could be added, or entries that could be sealed. Else 0.
    pub most: u32,
}

/// Publish all final full pages first. They stay cached.
pub const KVF_CLOSE_KEEP: u32 = 0;
/// Publish nothing. Pages that only this sequence published and nobody uses leave the index.
pub const KVF_CLOSE_DISCARD: u32 = 1;

/// What a new sequence begins with.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_open_params {
    /// sizeof(kvf_open_params)
    pub struct_size: u32,
    /// Eviction class of the pages that it publishes.
    pub eviction_class: u32,
    /// Where its pages are published. 0 = the default namespace. Unused with a ticket.
    pub ns: kvf_namespace,
    /// The caller's own word, given back by kvf_seq_info_read.
    pub user: u64,
    /// [n_spans], media spans of the whole prompt, ascending, not overlapping.
    pub spans: *const kvf_media_span,
    /// Number of spans.
    pub n_spans: u32,
    /// 0
    pub reserved: u32,
}

/// One sequence now. published <= verified <= len <= written.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_seq_info {
    /// sizeof(kvf_seq_info), set by the caller
    pub struct_size: u32,
    /// Tokens in the index.
    pub published: u32,
    /// Tokens known to be final.
    pub verified: u32,
    /// Tokens of the sequence.
    pub len: u32,
    /// Tokens with slots, those of the finished plan included.
    pub written: u32,
    /// Tokens whose ids are known.
    pub known: u32,
    /// Its namespace.
    pub ns: kvf_namespace,
    /// Version of its last table change.
    pub version: u64,
    /// The caller's own word.
    pub user: u64,
}

/// A run of tokens that stands for an image, a sound or the like. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_media_span {
    /// First token, counted from the start of the sequence.
    pub start: u32,
    /// Number of tokens, at least 1.
    pub length: u32,
    /// Digest of the content, at full width.
    pub digest: [u64; 4],
}

/// What is asked of the index.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_prompt {
    /// sizeof(kvf_prompt)
    pub struct_size: u32,
    /// Number of tokens.
    pub n_tokens: u32,
    /// [n_tokens]
    pub tokens: *const kvf_token,
    /// [n_spans], media spans of the prompt, ascending, not overlapping.
    pub spans: *const kvf_media_span,
    /// Number of spans.
    pub n_spans: u32,
    /// 0
    pub reserved: u32,
    /// Whose prefixes may answer. 0 = the default namespace.
    pub ns: kvf_namespace,
}
