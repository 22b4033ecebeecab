//! The structs and constants of the header.
//!
//! Order matters: a constant stands before the struct that it belongs to. Sizes and offsets are asserted below, and again
//! in C by `tests/c/layout.c`.

use core::mem::offset_of;

use kvfolio::{
    CloseMode, Direction, EventKind, IndexKind, MediaSpan, Move, PageState, Policy, PublishMode, Resource, RowDelta,
    RowQuery, WindowKeep,
};

use crate::io::{KVF_IO_LOAD, KVF_IO_STORE};
use crate::ptr::Versioned;
use crate::retain::{KVF_MOVE_COLD, KVF_MOVE_HOT};

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
    /// Window groups: tokens at the start that are never dropped.
    pub sinks: u32,
    /// KVF_WINDOW_*
    pub window_keep: u32,
    /// KVF_GROUP_CONTIGUOUS or 0
    pub flags: u32,
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
    /// Chunks of 32 table entries, over all sequences and groups. 0 = enough for every page to be in two tables.
    pub table_chunks: u32,
    /// Sequences in one plan at most. 0 = sequences.
    pub plan_sequences: u32,
    /// Tokens that one plan may carry at most. 0 = 64 per sequence of a plan, at least 4,096.
    pub plan_tokens: u32,
    /// Copies in one plan at most. 0 = one per sequence and group of a plan.
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
    /// KVF_NEVER: the most tokens that could be added. Else 0.
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

/// Tokens of one sequence, for calls with many. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_plan_item {
    /// The sequence.
    pub seq: kvf_seq,
    /// [count], or NULL where the ids are not known yet.
    pub tokens: *const kvf_token,
    /// Tokens to add, at least 1, drafts included.
    pub count: u32,
    /// 0
    pub reserved: u32,
}

/// What became of one sequence's tokens. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_accept {
    /// Tokens that now belong to the sequence, 0 to the count that was added.
    pub accepted: u32,
    /// How many of these are final. The others count, are never published, and are settled by kvf_seq_verify or
    /// kvf_seq_truncate.
    pub verified: u32,
    /// [accepted], ids of the accepted tokens where the plan was given none; else NULL.
    pub tokens: *const kvf_token,
}

/// What the engine must do before the step's writes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_plan_report {
    /// sizeof(kvf_plan_report), set by the caller
    pub struct_size: u32,
    /// Sequences in the plan.
    pub sequences: u32,
    /// Tokens in the plan: elements that kvf_table_slots writes.
    pub tokens: u32,
    /// Copies to run before any write: elements that kvf_plan_copies writes.
    pub copies: u32,
    /// Pages to scrub before any copy: elements that kvf_plan_scrubs writes.
    pub scrubs: u32,
    /// Pages evicted to make room.
    pub evicted: u32,
}

/// One page to be copied before it is written. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_page_copy {
    /// The group whose pool has the pages.
    pub group: u32,
    /// Read this page,
    pub source: u32,
    /// write this one,
    pub target: u32,
    /// for its first so many tokens.
    pub tokens: u32,
}

/// One page whose old content belongs to somebody else. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_page_ref {
    /// Its pool.
    pub pool: u32,
    /// Its id.
    pub page: u32,
}

/// One row of the caller's table. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_row_query {
    /// Its occupant.
    pub seq: kvf_seq,
    /// Version that the row shows. 0 = nothing of this sequence.
    pub since: u64,
}

/// A row that changed. Its entries are the next `count` elements of the entry buffer. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_row_delta {
    /// Index of the query.
    pub row: u32,
    /// First entry that may differ.
    pub start: u32,
    /// Entries written. What the row showed behind them is void.
    pub count: u32,
}

/// What kvf_table_changed wrote.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_delta_report {
    /// sizeof(kvf_delta_report), set by the caller
    pub struct_size: u32,
    /// Rows that changed.
    pub rows: u32,
    /// Entries of these rows.
    pub entries: u32,
    /// 0
    pub reserved: u32,
    /// Version that all rows show once the deltas are applied.
    pub version: u64,
}

/// How a window's pages lie in the ring that kvf_table_ring wrote.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_ring_report {
    /// sizeof(kvf_ring_report), set by the caller
    pub struct_size: u32,
    /// Columns with sink pages, at the start of the row.
    pub sinks: u32,
    /// First page of the sequence that the ring shows. Page i is in column sinks + i % ring.
    pub first: u32,
    /// One past the last page.
    pub end: u32,
}

/// A page entered the index.
pub const KVF_EVENT_STORED: u32 = 0;
/// A page left it.
pub const KVF_EVENT_REMOVED: u32 = 1;
/// Everything of a namespace left it.
pub const KVF_EVENT_CLEARED: u32 = 2;

/// One change of the index. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_event {
    /// Number of this event, from 1 on without gaps.
    pub number: u64,
    /// Exported key of the page: a chained hash of tokens and spans. For routers; the cache itself compares tokens.
    pub key: u64,
    /// Key of the page before it. 0 = it is the first.
    pub parent_key: u64,
    /// The page, within its group's pool.
    pub page: u32,
    /// Slot of its namespace: the lower half of the handle.
    pub namespace_slot: u32,
    /// Its group.
    pub group: u32,
    /// KVF_EVENT_*
    pub kind: u32,
}

/// The whole cache now. From `events` on the numbers only grow, but for `waiting_events`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_stats {
    /// sizeof(kvf_stats), set by the caller
    pub struct_size: u32,
    /// Live sequences.
    pub sequences: u32,
    /// Live tickets.
    pub tickets: u32,
    /// Transfers under way.
    pub transfers: u32,
    /// Free chunks of table entries.
    pub free_chunks: u32,
    /// Free media span entries.
    pub free_key_parts: u32,
    /// Pages in the index, of the group that carries it.
    pub indexed_pages: u32,
    /// 0
    pub reserved: u32,
    /// Events made so far.
    pub events: u64,
    /// Events waiting to be read.
    pub waiting_events: u64,
    /// Tokens asked for in matches.
    pub queried_tokens: u64,
    /// Of these, tokens found.
    pub hit_tokens: u64,
    /// Tokens committed.
    pub committed_tokens: u64,
    /// Pages that entered the index.
    pub published_pages: u64,
    /// Pages computed a second time while another copy was published.
    pub duplicate_pages: u64,
    /// Cached pages evicted.
    pub evicted_pages: u64,
    /// Pages copied before a write.
    pub copied_pages: u64,
    /// Plans finished.
    pub plans: u64,
    /// The latest tick that the cache was told.
    pub tick: kvf_tick,
}

/// One pool now: pages = used + cached + free_pages.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_pool_stats {
    /// sizeof(kvf_pool_stats), set by the caller
    pub struct_size: u32,
    /// Pages in all.
    pub pages: u32,
    /// With references.
    pub used: u32,
    /// Without, but indexed: what eviction can give.
    pub cached: u32,
    /// Neither.
    pub free_pages: u32,
    /// Of the used ones, those that only transfers keep.
    pub pending: u32,
    /// Most pages used at once so far.
    pub peak_used: u32,
    /// used / pages in thousandths.
    pub utilisation: u32,
}

/// Not allocated.
pub const KVF_PAGE_FREE: u32 = 0;
/// Without references, in the index.
pub const KVF_PAGE_CACHED: u32 = 1;
/// With references.
pub const KVF_PAGE_USED: u32 = 2;

/// One page now.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_page_info {
    /// sizeof(kvf_page_info), set by the caller
    pub struct_size: u32,
    /// KVF_PAGE_*
    pub state: u32,
    /// 1 = it is in the index, else 0.
    pub indexed: u32,
    /// Table entries, ticket and transfer pins, and holds that refer to it.
    pub refs: u32,
}

/// The first violated rule that kvf_cache_check found.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_violation {
    /// sizeof(kvf_violation), set by the caller
    pub struct_size: u32,
    /// 0 = none. Else a rule: 1 counters, 2 page state, 3 eviction order, 4 references, 5 tree, 6 lookup, 7 pages of other
    /// groups, 8 table rows, 9 cursors, 10 pending pages, 11 leases, 12 metadata.
    pub rule: u32,
    /// Where: a pool, page, or sequence, as the rule says.
    pub index: u32,
}

/// Marks structs as such and asserts their layout: size, and offsets of all fields, where pointers have 64 bits.
macro_rules! layout {
    ($($name:ident $required:ident $size:literal { $($field:ident $offset:literal),* };)*) => {$(
        // SAFETY: repr(C), begins with struct_size, and has only integers and raw pointers.
        unsafe impl Versioned for $name {
            const REQUIRED: usize = offset_of!($name, $required);
        }
        layout!(@ $name $size { struct_size 0, $($field $offset),* });
    )*};
    (@ $name:ident $size:literal { $($field:ident $offset:literal),* }) => {
        #[cfg(target_pointer_width = "64")]
        const _: () = {
            assert!(size_of::<$name>() == $size);
            $(assert!(offset_of!($name, $field) == $offset);)*
        };
    };
}

layout! {
    kvf_pool_config policy 12 { pages 4, policy 8 };
    kvf_group_config sealed_pool 36 {
        kind 4, page_tokens 8, pool 12, sealed_pool 16, window 20, sinks 24, window_keep 28, flags 32
    };
    kvf_config tickets 112 {
        abi_version 4, pools 8, groups 16, n_pools 24, n_groups 28, sequences 32, tickets 36, transfers 40, namespaces 44,
        table_chunks 48, plan_sequences 52, plan_tokens 56, plan_copies 60, key_parts 64, events 68, leases 72, quotas 76,
        classes 80, index 84, index_nodes 88, publish 92, flags 96, reserved 100, seed 104
    };
    kvf_namespace_key tenant 72 { reserved 4, tenant 8, model 40, adapter 48, adapter_generation 56, format 64 };
    kvf_shortage group 32 { resource 4, group 8, need 12, have 16, reclaimable 20, pending 24, most 28 };
    kvf_open_params eviction_class 40 { eviction_class 4, ns 8, user 16, spans 24, n_spans 32, reserved 36 };
    kvf_seq_info written 48 {
        published 4, verified 8, len 12, written 16, known 20, ns 24, version 32, user 40
    };
    kvf_prompt spans 40 { n_tokens 4, tokens 8, spans 16, n_spans 24, reserved 28, ns 32 };
    kvf_plan_report scrubs 24 { sequences 4, tokens 8, copies 12, scrubs 16, evicted 20 };
    kvf_delta_report reserved 24 { rows 4, entries 8, reserved 12, version 16 };
    kvf_ring_report end 16 { sinks 4, first 8, end 12 };
    kvf_stats tickets 120 {
        sequences 4, tickets 8, transfers 12, free_chunks 16, free_key_parts 20, indexed_pages 24, reserved 28, events 32,
        waiting_events 40, queried_tokens 48, hit_tokens 56, committed_tokens 64, published_pages 72, duplicate_pages 80,
        evicted_pages 88, copied_pages 96, plans 104, tick 112
    };
    kvf_pool_stats pending 32 { pages 4, used 8, cached 12, free_pages 16, pending 20, peak_used 24, utilisation 28 };
    kvf_page_info indexed 16 { state 4, indexed 8, refs 12 };
    kvf_violation index 12 { rule 4, index 8 };
}
layout!(@ kvf_media_span 40 { start 0, length 4, digest 8 });
layout!(@ kvf_plan_item 24 { seq 0, tokens 8, count 16, reserved 20 });
layout!(@ kvf_accept 16 { accepted 0, verified 4, tokens 8 });
layout!(@ kvf_page_copy 16 { group 0, source 4, target 8, tokens 12 });
layout!(@ kvf_page_ref 8 { pool 0, page 4 });
layout!(@ kvf_row_query 16 { seq 0, since 8 });
layout!(@ kvf_row_delta 12 { row 0, start 4, count 8 });
layout!(@ kvf_event 40 { number 0, key 8, parent_key 16, page 24, namespace_slot 28, group 32, kind 36 });

/// Asserts that a record is the core's type bit for bit, so that buffers of it can be lent to the core.
macro_rules! same_layout {
    ($($name:ident = $core:ident { $($field:ident = $core_field:ident),* };)*) => {$(
        const _: () = {
            assert!(size_of::<$name>() == size_of::<$core>() && align_of::<$name>() == align_of::<$core>());
            $(assert!(offset_of!($name, $field) == offset_of!($core, $core_field));)*
        };
    )*};
}

same_layout! {
    kvf_media_span = MediaSpan { start = start, length = length, digest = digest };
    kvf_row_query = RowQuery { seq = sequence, since = since };
    kvf_row_delta = RowDelta { row = row, start = start, count = count };
}

/// Asserts that the constants are the core's numbers.
macro_rules! same_numbers {
    ($($name:ident = $core:path;)*) => { const _: () = { $(assert!($name == $core as u32);)* }; };
}

same_numbers! {
    KVF_POLICY_LRU = Policy::Lru;
    KVF_POLICY_FIFO = Policy::Fifo;
    KVF_POLICY_LFU = Policy::Lfu;
    KVF_WINDOW_CACHED = WindowKeep::Cached;
    KVF_WINDOW_EXACT = WindowKeep::Exact;
    KVF_INDEX_TREE = IndexKind::Tree;
    KVF_INDEX_FLAT = IndexKind::Flat;
    KVF_INDEX_NONE = IndexKind::None;
    KVF_PUBLISH_IMMEDIATE = PublishMode::Immediate;
    KVF_PUBLISH_DEFERRED = PublishMode::Deferred;
    KVF_RESOURCE_PAGES = Resource::Pages;
    KVF_RESOURCE_TABLE_CHUNKS = Resource::TableChunks;
    KVF_RESOURCE_SEQUENCES = Resource::Sequences;
    KVF_RESOURCE_TICKETS = Resource::Tickets;
    KVF_RESOURCE_TRANSFERS = Resource::Transfers;
    KVF_RESOURCE_NAMESPACES = Resource::Namespaces;
    KVF_RESOURCE_PLAN_SEQUENCES = Resource::PlanSequences;
    KVF_RESOURCE_PLAN_TOKENS = Resource::PlanTokens;
    KVF_RESOURCE_PLAN_COPIES = Resource::PlanCopies;
    KVF_RESOURCE_KEY_PARTS = Resource::KeyParts;
    KVF_RESOURCE_LEASES = Resource::Leases;
    KVF_RESOURCE_QUOTAS = Resource::Quotas;
    KVF_RESOURCE_QUOTA = Resource::Quota;
    KVF_CLOSE_KEEP = CloseMode::Keep;
    KVF_CLOSE_DISCARD = CloseMode::Discard;
    KVF_MOVE_COLD = Move::Cold;
    KVF_MOVE_HOT = Move::Hot;
    KVF_IO_STORE = Direction::Store;
    KVF_IO_LOAD = Direction::Load;
    KVF_EVENT_STORED = EventKind::Stored;
    KVF_EVENT_REMOVED = EventKind::Removed;
    KVF_EVENT_CLEARED = EventKind::Cleared;
    KVF_PAGE_FREE = PageState::Free;
    KVF_PAGE_CACHED = PageState::Cached;
    KVF_PAGE_USED = PageState::Used;
}
