//! The structs of the header about plans, tables, events and statistics: items, records and reports.

use crate::types::{kvf_seq, kvf_tick, kvf_token};

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
    /// [accepted], ids of the accepted tokens, where kvf_plan_add was given none or other ones; else NULL.
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

/// What more tokens of a sequence would take in one group. Record.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct kvf_group_need {
    /// Pages needed, the copy of a shared last page included.
    pub need: u32,
    /// Free pages of the group's pool that are not promised.
    pub have: u32,
    /// Pages that eviction would add.
    pub reclaimable: u32,
    /// Pages that transfers under way will add.
    pub pending: u32,
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
    /// 1 = the target is a page of the group's sealed pool: the copy changes the page's form. Else 0.
    pub seals: u32,
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
