/*
 * kvfolio.h - KV-cache manager for LLM inference
 *
 * Link with libkvfolio.a or libkvfolio.so; no other library is needed. Made from ffi/src by
 * "cargo run -p xtask -- header": do not edit.
 *
 * kvfolio decides which pages of device memory hold the keys and values of which tokens. It finds
 * how much of a prompt is cached, gives sequences the pages for what they are about to compute, says
 * what to copy first and where each token goes, and publishes finished pages so that later prompts
 * find them. It never touches a key or a value.
 *
 * Words
 *   page      P consecutive token slots of one group; ids 1..pages of the group's pool, 0 = NULL page
 *   slot      page * P + offset
 *   group     layers that share one page table
 *   sequence  the tokens of one request
 *   ticket    a match result that pins the pages it found
 *   tick      the caller's logical time
 *   [n]       in a comment: the pointer's target has n elements
 *
 * Rules that hold for every function
 *   1. The answer is a kvf_status: KVF_OK (0) or a positive code. A call that fails changes nothing
 *      and writes nothing, except a kvf_shortage, a needed length, the field of a configuration or
 *      the reason why a layout or an eviction is refused, where the function says so.
 *   2. The library does not allocate, lock, read a clock, print, or keep a pointer to the caller's
 *      data or functions. It has no global state: caches are independent of each other.
 *   3. Functions with a "const kvf_cache *" only read: several threads may call them at the same
 *      time. A function with a "kvf_cache *" needs the cache for itself.
 *   4. The cache comes first, then inputs, then outputs. A buffer is followed by its capacity in
 *      elements. A pointer may be NULL if its count is 0, or if the function says so.
 *   5. Buffers that a call writes overlap neither each other, nor its inputs, nor the cache's memory.
 *   6. A struct begins with struct_size = sizeof(the struct), set by the caller, for outputs too.
 *      Fields of an input that a smaller struct_size leaves out count as zero, and zero means the
 *      default; fields unknown to the library must be zero. Of an output the library writes what
 *      fits. Structs called "Record" come in large arrays and have no struct_size; they never change.
 *   7. Handles (sequences, tickets, ...) are numbers. One that is out of date is refused with
 *      KVF_ERR_STALE and never means something else.
 *   8. Pointers are checked for NULL and alignment, counts for overflow, structs for their size. What
 *      cannot be checked is whether memory exists.
 *   9. The same calls give the same page ids, tables, events and digest on every machine.
 *
 * A step of an engine
 *   new request   kvf_prefix_match, kvf_seq_open_ticket
 *   each step     kvf_plan_begin, kvf_plan_add for each sequence, kvf_plan_finish, kvf_plan_copies,
 *                 kvf_table_slots, kvf_table_dense (or _csr, _ring, _changed), run the model,
 *                 kvf_plan_commit
 *   at the end    kvf_seq_close
 */
#ifndef KVFOLIO_H
#define KVFOLIO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* =================================================================================================
 * 1. Version and status
 *
 * These functions need no cache and may be called from any thread at any time.
 * ================================================================================================= */

/*
 * What a function answers: 0 = done, else a positive code. The hundreds tell the kind: 1 argument,
 * 2 state, 3 capacity (nothing is wrong, and nothing has changed), 4 transfer, 9 internal.
 */
typedef int32_t kvf_status;

#define KVF_OK                 0   /* done */
#define KVF_ERR_NULL           100 /* a required pointer is NULL */
#define KVF_ERR_ARGUMENT       101 /* a value is outside its range */
#define KVF_ERR_ALIGNMENT      102 /* a pointer is not aligned for what it points to */
#define KVF_ERR_STRUCT_SIZE    103 /* struct_size is too small, above 4096, or differs within an
                                    * array */
#define KVF_ERR_UNSUPPORTED    104 /* unknown fields are not zero, or the configuration left out
                                    * what the call needs */
#define KVF_ERR_SHORT_BUFFER   105 /* a buffer is too short; what is needed was written where the
                                    * function says so */
#define KVF_ERR_SIZE           106 /* a count of elements exceeds the address space */
#define KVF_ERR_CONFIG         107 /* the configuration is unusable; kvf_config_check names the
                                    * field */
#define KVF_ERR_MEMORY         108 /* the memory is smaller than kvf_cache_required_size says */
#define KVF_ERR_DUPLICATE      109 /* the sequence is already in the plan */
#define KVF_ERR_ABI            110 /* header and library have different versions */
#define KVF_ERR_LAYOUT         111 /* the page layout breaks a rule; kvf_layout_make says which */
#define KVF_ERR_RANGE          112 /* a result needs more than 64 bits */
#define KVF_ERR_HANDLE         200 /* not a cache that kvf_cache_init made, or one that moved or
                                    * was ended */
#define KVF_ERR_STALE          201 /* the sequence, ticket, transfer, namespace or lease is gone */
#define KVF_ERR_BUSY           202 /* the object is in use by the open plan or by a transfer */
#define KVF_ERR_PLAN_STATE     203 /* the plan is not in the state that the call needs */
#define KVF_ERR_WINDOW_LOST    204 /* a window no longer holds what this length needs: match
                                    * again */
#define KVF_ERR_TIME           205 /* the tick is lower than the last one */
#define KVF_RETRY              300 /* others must give something up first */
#define KVF_PENDING            301 /* transfers under way will give enough: wait, preempt nobody */
#define KVF_NEVER              302 /* not even an empty cache could hold it */
#define KVF_ERR_CORRUPT        900 /* an invariant is violated: the memory was overwritten, or
                                    * this is a fault of kvfolio */
#define KVF_ERR_INTERNAL       901 /* a failure that this library has no number for */

#define KVF_ABI_VERSION 1 /* Version of the interface. It changes whenever a program must be
                           * compiled anew. */

/* Version of the library: major * 65536 + minor * 256 + patch. */
uint32_t kvf_version(void);

/* Version of the library as text, such as "0.1.0". */
const char *kvf_version_string(void);

/* KVF_ABI_VERSION of the library. kvf_cache_init compares it with that of the program. */
uint32_t kvf_abi_version(void);

/* Name of a status, such as "KVF_ERR_STALE". "KVF_UNKNOWN" for other numbers. */
const char *kvf_status_name(kvf_status status);

/* 1 if the status says that something is short and nothing is wrong (300 to 399), else 0. */
uint32_t kvf_status_is_capacity(kvf_status status);

/*
 * What to call a status in a message for people, such as "the plan is not in the state that the
 * call needs".
 */
const char *kvf_status_text(kvf_status status);

/* =================================================================================================
 * 2. Configuration and memory
 *
 * A cache lives in one block of the caller's memory: ask for its size, lend a block, get a handle.
 *
 *     kvf_pool_config pool = { sizeof pool, 1024, KVF_POLICY_LRU };
 *     kvf_group_config group = { .struct_size = sizeof group, .page_tokens = 16 };
 *     kvf_config cfg = { .struct_size = sizeof cfg, .abi_version = KVF_ABI_VERSION,
 *                        .pools = &pool, .groups = &group, .n_pools = 1, .n_groups = 1,
 *                        .sequences = 64, .tickets = 64 };
 *     size_t bytes, align;
 *     kvf_cache *cache;
 *     if (kvf_cache_required_size(&cfg, &bytes, &align) != KVF_OK) ...
 *     void *mem = aligned_alloc(align, bytes);
 *     if (kvf_cache_init(mem, bytes, &cfg, &cache) != KVF_OK) ...
 *
 * In a configuration zero is the default, and the comment says what zero means.
 * ================================================================================================= */

#define KVF_POLICY_LRU 0  /* The least recently used page goes first. */
#define KVF_POLICY_FIFO 1 /* The page published first goes first, however often it was used
                           * since. */
#define KVF_POLICY_LFU 2  /* The least often used goes first, in powers of two; within one power
                           * the least recently used. */

/* Pages of one size in bytes. Ids are 1..pages. */
typedef struct kvf_pool_config {
    uint32_t struct_size; /* sizeof(kvf_pool_config) */
    uint32_t pages;       /* Number of pages, 1 to 2^24. */
    uint32_t policy;      /* Which cached page is evicted first: KVF_POLICY_*. */
} kvf_pool_config;

#define KVF_GROUP_FULL 0       /* Every query reads all tokens before it. */
#define KVF_GROUP_WINDOW 1     /* The query at position q reads token j if q - j < window or j <
                                * sinks. */
#define KVF_WINDOW_CACHED 0    /* A published page that leaves its window stays cached, so that
                                * longer hits stay possible. */
#define KVF_WINDOW_EXACT 1     /* It is withdrawn from the index when nothing else refers to it. */
#define KVF_GROUP_CONTIGUOUS 1 /* Flag: new pages of one call should have consecutive ids where a
                                * run is free. Evicts nothing for it. */

/* A group: layers that share one page table. */
typedef struct kvf_group_config {
    uint32_t struct_size; /* sizeof(kvf_group_config) */
    uint32_t kind;        /* KVF_GROUP_FULL or KVF_GROUP_WINDOW */
    uint32_t page_tokens; /* P, tokens per page: a power of two, 1 to 256. 0 = 16. */
    uint32_t pool;        /* Index of the pool that its pages come from. */
    uint32_t sealed_pool; /* Index + 1 of the pool that sealed pages come from. 0 = its rows
                           * never span two pools. */
    uint32_t window;      /* Window groups: tokens that a query reads, its own included; at least
                           * 1. */
    uint32_t sinks;       /* Tokens at the start that a window group never drops, or whose pages
                           * a full group with a sealed pool never seals. Else 0. */
    uint32_t window_keep; /* KVF_WINDOW_* */
    uint32_t flags;       /* KVF_GROUP_CONTIGUOUS or 0 */
    uint32_t ring_tokens; /* Window groups: most tokens of one kvf_plan_add where a sequence
                           * keeps its pages as a fixed ring, from its first token until it is
                           * closed or empty. They are never published, so nothing matches then.
                           * 0 = pages come and go. */
} kvf_group_config;

#define KVF_INDEX_TREE 0          /* Radix tree: any pool size. */
#define KVF_INDEX_FLAT 1          /* A scan of all pages per step: no memory, for pools up to
                                   * about a thousand pages. */
#define KVF_INDEX_NONE 2          /* Nothing is published. */
#define KVF_PUBLISH_IMMEDIATE 0   /* Committed pages enter the index in kvf_plan_commit. */
#define KVF_PUBLISH_DEFERRED 1    /* They enter it in calls to kvf_prefix_publish, a slice at a
                                   * time. */
#define KVF_CONFIG_PARTIAL_TAIL 1 /* Flag: a match may end inside a page. */
#define KVF_CONFIG_SCRUB 2        /* Flag: pages that change their namespace are listed for
                                   * scrubbing. */

/*
 * Everything that is fixed at init. It is copied: the struct and its arrays are not needed
 * afterwards.
 */
typedef struct kvf_config {
    uint32_t struct_size;           /* sizeof(kvf_config) */
    uint32_t abi_version;           /* KVF_ABI_VERSION */
    const kvf_pool_config *pools;   /* [n_pools] */
    const kvf_group_config *groups; /* [n_groups]. The first full group carries the index. */
    uint32_t n_pools;               /* 1 to 64 */
    uint32_t n_groups;              /* 1 to 1,024 */
    uint32_t sequences;             /* Live sequences at most, 1 to 2^20. */
    uint32_t tickets;               /* Live tickets at most. 0 = none, so kvf_prefix_match always
                                     * answers KVF_RETRY. */
    uint32_t transfers;             /* Transfers under way at most. 0 = none. */
    uint32_t namespaces;            /* Namespaces at most, the default one included. 0 = 1. */
    uint32_t table_chunks;          /* Chunks of 32 table entries, over all sequences and groups.
                                     * 0 = enough for every page to be in two tables, or in one
                                     * without an index, and two more for each table. */
    uint32_t plan_sequences;        /* Sequences in one plan at most. 0 = sequences. */
    uint32_t plan_tokens;           /* Tokens that one plan may carry at most. 0 = 64 per
                                     * sequence of a plan, at least 4,096. */
    uint32_t plan_copies;           /* Copies in one plan at most, a seal's pages and one more
                                     * among them. 0 = one per sequence and group of a plan, and
                                     * all pages of its fixed rings. */
    uint32_t key_parts;             /* Media spans stored, over all sequences and indexed pages.
                                     * 0 = none. */
    uint32_t events;                /* Events kept until they are read. 0 = none are made. */
    uint32_t leases;                /* Leases at most. 0 = none. */
    uint32_t quotas;                /* Namespaces with a quota at most, 0 to 64. */
    uint32_t classes;               /* Eviction classes, 1 to 63. 0 = 1. */
    uint32_t index;                 /* How published pages are found: KVF_INDEX_*. */
    uint32_t index_nodes;           /* Nodes of the index where no group is full; unused
                                     * otherwise. */
    uint32_t publish;               /* KVF_PUBLISH_* */
    uint32_t flags;                 /* KVF_CONFIG_PARTIAL_TAIL | KVF_CONFIG_SCRUB */
    uint32_t reserved;              /* 0 */
    uint64_t seed;                  /* Seed of the hash that selects candidates and makes
                                     * exported keys. Keep it secret in a shared service. */
} kvf_config;

/*
 * Says whether a configuration is usable. On KVF_ERR_CONFIG `field`, which may be NULL, gets the
 * number of what is wrong: 1 pools, 2 groups, 3 page_tokens, 4 pool of a group, 5 window, 6
 * sequences, 7 tickets, transfers, namespaces or leases, 8 quotas, 9 classes, 10 index_nodes, 11 an
 * array of more than 2^32 - 1 elements, 13 an index, or key_parts, but the library was built
 * without one, 14 more pages in all pools, table chunks, or sequences, tickets and transfers
 * together, than a library with 16-bit ids can number.
 */
kvf_status kvf_config_check(const kvf_config *cfg, uint32_t *field);

/* Bytes of memory that a cache needs, and the alignment of their address (64). */
kvf_status kvf_cache_required_size(const kvf_config *cfg, size_t *bytes, size_t *align);

/* =================================================================================================
 * 3. Cache
 *
 * The handle points into the caller's memory. The block must not be moved, copied, or changed until
 * kvf_cache_deinit, or until the cache is not used any more: there is nothing else to release.
 * ================================================================================================= */

/* A KV-cache manager inside the caller's memory. */
typedef struct kvf_cache kvf_cache;

/*
 * Makes an empty cache in `len` bytes at `mem`, which must be aligned and large enough as
 * kvf_cache_required_size says. The cache begins at `mem`. O(bytes).
 */
kvf_status kvf_cache_init(void *mem, size_t len, const kvf_config *cfg, kvf_cache **cache);

/*
 * Ends a cache: later calls with this handle answer KVF_ERR_HANDLE, and the memory is the caller's
 * again. O(1).
 */
kvf_status kvf_cache_deinit(kvf_cache *cache);

/* Logical time, chosen by the caller. It must not go back. */
typedef uint64_t kvf_tick;

/* Moves time on, as kvf_plan_begin does too. Leases and ticket deadlines below `tick` end. */
kvf_status kvf_cache_advance(kvf_cache *cache, kvf_tick tick);

/*
 * Frees up to `count` cached pages of a pool, in eviction order; `freed` gets how many. Pages
 * promised to the open plan are left.
 */
kvf_status kvf_cache_evict(kvf_cache *cache, uint32_t pool, uint32_t count, uint32_t *freed);

/* =================================================================================================
 * 4. Namespaces
 *
 * Nothing is shared between two namespaces: tenants, models, adapters and formats are kept apart by
 * them. The default one (0) has the all-zero key and is always open.
 * ================================================================================================= */

/* The parts of a namespace's identity. All bits are compared. */
typedef struct kvf_namespace_key {
    uint32_t struct_size;        /* sizeof(kvf_namespace_key) */
    uint32_t reserved;           /* 0 */
    uint64_t tenant[4];          /* Tenant or salt. Hash longer ones with a cryptographic hash
                                  * first. */
    uint64_t model;              /* Model, as the caller numbers them. */
    uint64_t adapter;            /* Adapter (LoRA). 0 = none. */
    uint64_t adapter_generation; /* Changes whenever the adapter's weights do. */
    uint64_t format;             /* Precision and scale epoch of the pages. */
} kvf_namespace_key;

/* A namespace: what must be equal before tokens are compared. 0 = the default one. */
typedef uint64_t kvf_namespace;

#define KVF_RESOURCE_PAGES 0          /* Pages of a group's pool. */
#define KVF_RESOURCE_TABLE_CHUNKS 1   /* Chunks of table entries. */
#define KVF_RESOURCE_SEQUENCES 2      /* Sequences. */
#define KVF_RESOURCE_TICKETS 3        /* Tickets. */
#define KVF_RESOURCE_TRANSFERS 4      /* Transfers. */
#define KVF_RESOURCE_NAMESPACES 5     /* Namespaces. */
#define KVF_RESOURCE_PLAN_SEQUENCES 6 /* Sequences in one plan. */
#define KVF_RESOURCE_PLAN_TOKENS 7    /* Tokens carried by one plan. */
#define KVF_RESOURCE_PLAN_COPIES 8    /* Copies in one plan. */
#define KVF_RESOURCE_KEY_PARTS 9      /* Media spans. */
#define KVF_RESOURCE_LEASES 10        /* Leases. */
#define KVF_RESOURCE_QUOTAS 11        /* Namespaces with a quota. */
#define KVF_RESOURCE_QUOTA 12         /* The quota of the namespace. */

/*
 * What is short. Written by calls that take one, when they answer with a status from 300 to 399 and
 * the pointer is not NULL.
 */
typedef struct kvf_shortage {
    uint32_t struct_size; /* sizeof(kvf_shortage), set by the caller */
    uint32_t resource;    /* KVF_RESOURCE_* */
    uint32_t group;       /* Lowest group whose pages are short. 0 for other resources. */
    uint32_t need;        /* How many are needed. */
    uint32_t have;        /* How many are free. */
    uint32_t reclaimable; /* How many more eviction would give. */
    uint32_t pending;     /* How many more transfers under way will give. */
    uint32_t most;        /* KVF_NEVER: the most tokens that could be added, or entries that
                           * could be sealed. Else 0. */
} kvf_shortage;

/* Gives the namespace with this key, opening it if needed. O(namespaces). */
kvf_status kvf_namespace_open(kvf_cache *cache, const kvf_namespace_key *key, kvf_namespace *ns,
                              kvf_shortage *shortage);

/*
 * Closes a namespace: its cached pages are freed. KVF_ERR_BUSY while it has sequences, tickets or
 * transfers, or is the default one. O(its pages).
 */
kvf_status kvf_namespace_close(kvf_cache *cache, kvf_namespace ns);

/*
 * Limits the pages of a pool that a namespace may keep, used and cached together. 0 lifts the
 * limit. Set the first one before the namespace has pages: else KVF_ERR_BUSY.
 */
kvf_status kvf_namespace_set_quota(kvf_cache *cache, kvf_namespace ns, uint32_t pool,
                                   uint32_t pages, kvf_shortage *shortage);

/*
 * Withdraws everything of a namespace from the index. Pages in use become private, cached ones
 * free, tickets stale. Sequences go on, but publish nothing any more. KVF_ERR_BUSY while a plan is
 * open. O(pages).
 */
kvf_status kvf_namespace_clear(kvf_cache *cache, kvf_namespace ns);

/* Does so for all namespaces. */
kvf_status kvf_namespace_clear_all(kvf_cache *cache);

/* =================================================================================================
 * 5. Sequences
 *
 * A sequence is the tokens of one request and their pages. A handle that was closed is refused with
 * KVF_ERR_STALE.
 * ================================================================================================= */

/* A run of tokens that stands for an image, a sound or the like. Record. */
typedef struct kvf_media_span {
    uint32_t start;     /* First token, counted from the start of the sequence. */
    uint32_t length;    /* Number of tokens, at least 1. */
    uint64_t digest[4]; /* Digest of the content, at full width. */
} kvf_media_span;

#define KVF_CLOSE_KEEP 0    /* Publish all final full pages first. They stay cached. */
#define KVF_CLOSE_DISCARD 1 /* Publish nothing. Pages that only this sequence published and
                             * nobody uses leave the index. */

/* What a new sequence begins with. */
typedef struct kvf_open_params {
    uint32_t struct_size;        /* sizeof(kvf_open_params) */
    uint32_t eviction_class;     /* Eviction class of the pages that it publishes. */
    kvf_namespace ns;            /* Where its pages are published. 0 = the default namespace.
                                  * Unused with a ticket. */
    uint64_t user;               /* The caller's own word, given back by kvf_seq_info_read. */
    const kvf_media_span *spans; /* [n_spans], media spans of the whole prompt, ascending, not
                                  * overlapping. */
    uint32_t n_spans;            /* Number of spans. */
    uint32_t reserved;           /* 0 */
} kvf_open_params;

/* A sequence: the tokens of one request. Never 0. */
typedef uint64_t kvf_seq;

/* Opens an empty sequence. `params` may be NULL: all zero. */
kvf_status kvf_seq_open(kvf_cache *cache, const kvf_open_params *params, kvf_seq *seq,
                        kvf_shortage *shortage);

/* A pinned match result. Never 0. */
typedef uint64_t kvf_ticket;

/*
 * Opens a sequence that begins with the tokens of a ticket, which is used up. On failure the ticket
 * is still good.
 */
kvf_status kvf_seq_open_ticket(kvf_cache *cache, kvf_ticket ticket, const kvf_open_params *params,
                               kvf_seq *seq, kvf_shortage *shortage);

/*
 * Ends a sequence; `mode` is KVF_CLOSE_*. While the sequence is part of an open plan the call
 * succeeds and is carried out when the plan ends. O(pages).
 */
kvf_status kvf_seq_close(kvf_cache *cache, kvf_seq seq, uint32_t mode);

/*
 * Opens `n` children, each with the first `at` tokens of the sequence: all or none. Pages are
 * shared; the first write to a shared page copies it. KVF_ERR_BUSY in an open plan,
 * KVF_ERR_WINDOW_LOST. O(children * pages).
 */
kvf_status kvf_seq_fork(kvf_cache *cache, kvf_seq seq, uint32_t at, kvf_seq *children, size_t n,
                        kvf_shortage *shortage);

/*
 * Cuts a sequence to `len` tokens. A published page that is cut keeps its old tokens in the index;
 * the next write copies it. KVF_ERR_BUSY in an open plan, KVF_ERR_WINDOW_LOST. O(pages dropped).
 */
kvf_status kvf_seq_truncate(kvf_cache *cache, kvf_seq seq, uint32_t len);

/*
 * Takes `n` full pages out of a sequence's row: `columns` are their numbers, ascending. Those
 * behind move up, no byte of a page moves, and the pages are given back at once. The sequence has P
 * tokens less for each: its length counts slots, not positions, from then on, and nothing behind
 * the first of them is published. For token eviction, where a sequence is the row of one layer and
 * KV head, in a cache of one full group. KVF_ERR_UNSUPPORTED with other groups, a sealed pool or
 * media spans, or if the first page is published; KVF_ERR_ARGUMENT for columns that do not ascend,
 * or pages that are not full of verified tokens; KVF_ERR_BUSY in an open plan or while a load into
 * the sequence runs. O(pages of the row).
 */
kvf_status kvf_seq_remove_pages(kvf_cache *cache, kvf_seq seq, const uint32_t *columns, size_t n);

/* Settles provisional tokens: those below `upto` are final, and may be published from now on. */
kvf_status kvf_seq_verify(kvf_cache *cache, kvf_seq seq, uint32_t upto);

/* Adds media spans to a sequence. They begin at or behind its length and behind its other spans. */
kvf_status kvf_seq_add_spans(kvf_cache *cache, kvf_seq seq, const kvf_media_span *spans, size_t n,
                             kvf_shortage *shortage);

/* One token of the model's vocabulary. */
typedef uint32_t kvf_token;

/* What the engine must do before the step's writes. */
typedef struct kvf_plan_report {
    uint32_t struct_size; /* sizeof(kvf_plan_report), set by the caller */
    uint32_t sequences;   /* Sequences in the plan. */
    uint32_t tokens;      /* Tokens in the plan: elements that kvf_table_slots writes. */
    uint32_t copies;      /* Copies to run before any write: elements that kvf_plan_copies
                           * writes. */
    uint32_t scrubs;      /* Pages to scrub before any copy: elements that kvf_plan_scrubs
                           * writes. */
    uint32_t evicted;     /* Pages evicted to make room. */
} kvf_plan_report;

/*
 * Appends `n` tokens in one call: a plan of one sequence, begun, added, finished and committed, all
 * tokens final. For programs without batches. Its copies are read with kvf_plan_copies and must run
 * before the tokens are written. `report` may be NULL. Fails as kvf_plan_begin and kvf_plan_add do;
 * nothing has changed then.
 */
kvf_status kvf_seq_append(kvf_cache *cache, kvf_seq seq, const kvf_token *tokens, size_t n,
                          kvf_plan_report *report, kvf_shortage *shortage);

/* Tokens of one sequence, for calls with many. Record. */
typedef struct kvf_plan_item {
    kvf_seq seq;             /* The sequence. */
    const kvf_token *tokens; /* [count], or NULL where the ids are not known yet. */
    uint32_t count;          /* Tokens to add, at least 1, drafts included. */
    uint32_t reserved;       /* 0 */
} kvf_plan_item;

/*
 * Appends the tokens of `n` sequences in one call, all or none: a plan begun, added, finished and
 * committed, all tokens final. Its copies are read with kvf_plan_copies and must run before the
 * tokens are written. `report` may be NULL. Fails as kvf_plan_begin and kvf_plan_add do; nothing
 * has changed then.
 */
kvf_status kvf_seq_append_batch(kvf_cache *cache, const kvf_plan_item *items, size_t n,
                                kvf_plan_report *report, kvf_shortage *shortage);

/* One sequence now. published <= verified <= len <= written. */
typedef struct kvf_seq_info {
    uint32_t struct_size; /* sizeof(kvf_seq_info), set by the caller */
    uint32_t published;   /* Tokens in the index. */
    uint32_t verified;    /* Tokens known to be final. */
    uint32_t len;         /* Tokens of the sequence. */
    uint32_t written;     /* Tokens with slots, those of the finished plan included. */
    uint32_t known;       /* Tokens whose ids are known. */
    kvf_namespace ns;     /* Its namespace. */
    uint64_t version;     /* Version of its last table change. */
    uint64_t user;        /* The caller's own word. */
} kvf_seq_info;

/* Reads what a sequence is now. */
kvf_status kvf_seq_info_read(const kvf_cache *cache, kvf_seq seq, kvf_seq_info *info);

/*
 * `pages` gets the length of a sequence's table row in a group: pages with slots, resident or
 * dropped.
 */
kvf_status kvf_seq_pages(const kvf_cache *cache, kvf_seq seq, uint32_t group, uint32_t *pages);

/* `tokens` gets how many leading tokens of two sequences lie in the same pages. O(pages). */
kvf_status kvf_seq_shared_tokens(const kvf_cache *cache, kvf_seq a, kvf_seq b, uint32_t *tokens);

/*
 * `share` gets how alike two sequences are to the cache, in thousandths: 1000 * shared / length of
 * the longer one, where shared is what kvf_seq_shared_tokens gives. O(pages).
 */
kvf_status kvf_seq_cache_hit(const kvf_cache *cache, kvf_seq a, kvf_seq b, uint32_t *share);

/*
 * Which columns of a sequence's row in a group are pages of the group's sealed pool: from `begin`,
 * which is the number of pages with sinks, to before `end`. The others are of the group's own pool.
 * Where none is sealed both are equal. O(1).
 */
kvf_status kvf_seq_sealed_columns(const kvf_cache *cache, kvf_seq seq, uint32_t group,
                                  uint32_t *begin, uint32_t *end);

/* =================================================================================================
 * 6. Prefix index
 *
 * A match finds the longest cached beginning of a prompt and pins it by a ticket. The ticket is
 * used up by kvf_seq_open_ticket, or given back by kvf_prefix_drop. A hit is confirmed by comparing
 * tokens, never by a hash.
 * ================================================================================================= */

#define KVF_NO_DEADLINE 18446744073709551615ull /* Deadline of a ticket that stays until it is
                                                 * opened or dropped. */

/* What is asked of the index. */
typedef struct kvf_prompt {
    uint32_t struct_size;        /* sizeof(kvf_prompt) */
    uint32_t n_tokens;           /* Number of tokens. */
    const kvf_token *tokens;     /* [n_tokens] */
    const kvf_media_span *spans; /* [n_spans], media spans of the prompt, ascending, not
                                  * overlapping. */
    uint32_t n_spans;            /* Number of spans. */
    uint32_t reserved;           /* 0 */
    kvf_namespace ns;            /* Whose prefixes may answer. 0 = the default namespace. */
} kvf_prompt;

/*
 * `tokens` gets the length of the longest prefix of the prompt that a match would give, at most
 * `limit`. Changes nothing. O(pages hit + groups).
 */
kvf_status kvf_prefix_lookup(const kvf_cache *cache, const kvf_prompt *prompt, uint32_t limit,
                             uint32_t *tokens);

/*
 * Finds the longest cached prefix of at most `limit` tokens and pins it. `limit` is usually one
 * less than the prompt, so that something is left to compute. A hit of 0 tokens gives a ticket as
 * well. The ticket is dropped once time passes `deadline`, which may be KVF_NO_DEADLINE. O(pages
 * hit + groups).
 */
kvf_status kvf_prefix_match(kvf_cache *cache, const kvf_prompt *prompt, uint32_t limit,
                            kvf_tick deadline, kvf_ticket *ticket, uint32_t *tokens,
                            kvf_shortage *shortage);

/* Gives a ticket back. A transfer that runs on it keeps its pages until it ends. */
kvf_status kvf_prefix_drop(kvf_cache *cache, kvf_ticket ticket);

/*
 * Publishes up to `budget` pages, of the sequences in the order in which they first had one to
 * publish (mode KVF_PUBLISH_DEFERRED). `published` gets how many; less than `budget` means that
 * nothing is left that fits.
 */
kvf_status kvf_prefix_publish(kvf_cache *cache, uint32_t budget, uint32_t *published);

/* =================================================================================================
 * 7. Plans
 *
 * A plan is one step of the engine over many sequences.
 *
 *             kvf_plan_add*             kvf_plan_finish              kvf_plan_commit
 *     idle --> BUILDING -----------------> FINISHED -------------------> idle
 *        ^        | kvf_plan_cancel            | kvf_plan_abort
 *        `--------+----------------------------'
 *
 * While a plan is built, only counts are promised: cancelling leaves the digest unchanged. Finish
 * evicts and assigns; it cannot fail. Then the engine scrubs, copies, and computes to the slots
 * that kvf_table_slots gives. Commit says how many tokens of each sequence were accepted; once its
 * arguments are checked it cannot fail.
 *
 * On KVF_RETRY end or preempt a sequence and ask again; on KVF_PENDING wait for transfers; on
 * KVF_NEVER split or reject.
 * ================================================================================================= */

/*
 * Begins a plan and moves time on to `tick`. KVF_ERR_PLAN_STATE when one is open, KVF_ERR_TIME when
 * `tick` is too low.
 */
kvf_status kvf_plan_begin(kvf_cache *cache, kvf_tick tick);

/*
 * Promises room for `count` more tokens of a sequence, drafts included. `tokens` are their ids, or
 * NULL where they are not known yet: then kvf_plan_commit may give them. If neither does, the
 * sequence publishes nothing from there on. A sequence can be added once: KVF_ERR_DUPLICATE.
 * O(groups).
 */
kvf_status kvf_plan_add(kvf_cache *cache, kvf_seq seq, uint32_t count, const kvf_token *tokens,
                        kvf_shortage *shortage);

/*
 * Adds `n` sequences in order, each as by kvf_plan_add. `statuses` gets one status per item: items
 * that do not fit are left out and do not stop those behind them. `n_added` gets how many were
 * added, `shortage` the first shortage. The call itself fails, without adding any, only where a
 * pointer or a reserved field is wrong.
 */
kvf_status kvf_plan_add_batch(kvf_cache *cache, const kvf_plan_item *items, size_t n,
                              kvf_status *statuses, size_t *n_added, kvf_shortage *shortage);

/* What more tokens of a sequence would take in one group. Record. */
typedef struct kvf_group_need {
    uint32_t need;        /* Pages needed, the copy of a shared last page included. */
    uint32_t have;        /* Free pages of the group's pool that are not promised. */
    uint32_t reclaimable; /* Pages that eviction would add. */
    uint32_t pending;     /* Pages that transfers under way will add. */
} kvf_group_need;

/*
 * Says what `count` more tokens of a sequence would take in each group, in the order of the
 * configuration: for schedulers, before or while a plan is built. Groups that share a pool show the
 * same pages of it: add their needs up. `n` gets the number of groups, also on
 * KVF_ERR_SHORT_BUFFER, when nothing else is written. Changes nothing. O(groups).
 */
kvf_status kvf_plan_estimate(const kvf_cache *cache, kvf_seq seq, uint32_t count,
                             kvf_group_need *needs, size_t cap, size_t *n);

/*
 * Promises that the pages below entry `upto` of a sequence's row move to the group's sealed pool in
 * this plan. The sequence is in the plan, and these pages are full of committed tokens. Their
 * copies are among those of kvf_plan_copies; after commit the old pages are free. Once per sequence
 * and group: KVF_ERR_DUPLICATE. KVF_ERR_ARGUMENT for a group without a sealed pool, or when `upto`
 * is sealed already or not full. KVF_RETRY, KVF_PENDING or KVF_NEVER where pages, the quota, or
 * copies are short, of which a seal takes one more than it has pages. O(1).
 */
kvf_status kvf_plan_seal(kvf_cache *cache, kvf_seq seq, uint32_t group, uint32_t upto,
                         kvf_shortage *shortage);

/*
 * When to seal, as a function of the position alone: the last `recent` tokens stay exact, whole
 * pages behind them are sealed. `pages` gets how many pages of a row the query at `position` reads
 * as sealed: what kvf_plan_seal is to be given in the step of that token. `run` gets how many of
 * `count` tokens from there on read the same: cut chunks there, and a prompt gives the same results
 * in chunks of any size. KVF_ERR_ARGUMENT when page_tokens is no power of two from 1 to 256. Needs
 * no cache.
 */
kvf_status kvf_plan_seal_schedule(uint32_t page_tokens, uint32_t recent, uint32_t position,
                                  uint32_t count, uint32_t *pages, uint32_t *run);

/* Gives a plan up while it is built. */
kvf_status kvf_plan_cancel(kvf_cache *cache);

/*
 * Evicts what is missing, assigns pages and copies, and writes them into the tables: from now on
 * all kvf_table_ functions show the new tokens. `report` may be NULL. O(sequences * groups +
 * pages).
 */
kvf_status kvf_plan_finish(kvf_cache *cache, kvf_plan_report *report);

/* One page to be copied before it is written. Record. */
typedef struct kvf_page_copy {
    uint32_t group;  /* The group whose pool has the pages. */
    uint32_t source; /* Read this page, */
    uint32_t target; /* write this one, */
    uint32_t tokens; /* for its first so many tokens. */
    uint32_t seals;  /* 1 = the target is a page of the group's sealed pool: the copy changes the
                      * page's form. Else 0. */
} kvf_page_copy;

/*
 * Lists the copies of the last finished plan. All must run before any write of the step. `n` gets
 * how many there are, also on KVF_ERR_SHORT_BUFFER, when nothing else is written.
 */
kvf_status kvf_plan_copies(const kvf_cache *cache, kvf_page_copy *copies, size_t cap, size_t *n);

/* One page whose old content belongs to somebody else. Record. */
typedef struct kvf_page_ref {
    uint32_t pool; /* Its pool. */
    uint32_t page; /* Its id. */
} kvf_page_ref;

/*
 * Lists the pages of the last finished plan that still hold what another namespace wrote (flag
 * KVF_CONFIG_SCRUB). Overwrite them before the copies. `n` gets how many there are, also on
 * KVF_ERR_SHORT_BUFFER, when nothing else is written.
 */
kvf_status kvf_plan_scrubs(const kvf_cache *cache, kvf_page_ref *pages, size_t cap, size_t *n);

/* What became of one sequence's tokens. Record. */
typedef struct kvf_accept {
    uint32_t accepted;       /* Tokens that now belong to the sequence, 0 to the count that was
                              * added. */
    uint32_t verified;       /* How many of these are final. The others count, are never
                              * published, and are settled by kvf_seq_verify or kvf_seq_truncate. */
    const kvf_token *tokens; /* [accepted], ids of the accepted tokens, where kvf_plan_add was
                              * given none or other ones; else NULL. */
} kvf_accept;

/*
 * Ends a finished plan. `accepts` has one element per sequence, in the order in which they were
 * added. Surplus pages go back, full final pages are published (KVF_PUBLISH_IMMEDIATE), pages that
 * left a window are dropped, and closes that waited are carried out. With a wrong argument
 * (KVF_ERR_ARGUMENT) the plan stays open and unchanged.
 */
kvf_status kvf_plan_commit(kvf_cache *cache, const kvf_accept *accepts, size_t n);

/*
 * Takes a finished plan back, when the device no longer executes it: sequences are as before
 * kvf_plan_finish. Pages that were evicted for it stay free.
 */
kvf_status kvf_plan_abort(kvf_cache *cache);

/* =================================================================================================
 * 8. Page tables and slots
 *
 * What kernels read, written into the caller's buffers, every element defined. They show committed
 * tokens and, once a plan is finished, those of the plan. Page ids are those of the group's pool; 0
 * is the NULL page, which stands for a page that was dropped. The byte offset of a page is id *
 * bytes per page, in 64 bits.
 * ================================================================================================= */

/*
 * Writes the rows of `n` sequences as a matrix out[n][stride]: page ids, and `pad` behind the last
 * page of each row. KVF_ERR_ARGUMENT when a row is longer than `stride`. `cap` is the length of
 * `out` in elements.
 */
kvf_status kvf_table_dense(const kvf_cache *cache, uint32_t group, const kvf_seq *seqs, size_t n,
                           uint32_t stride, int32_t pad, int32_t *out, size_t cap);

/*
 * Writes the rows of `n` sequences in compressed form: row i is indices[indptr[i]] to
 * indices[indptr[i + 1] - 1], and last_page_len[i] (1 to P, 0 for an empty sequence) says how many
 * tokens its last page holds. `indptr` has n + 1 elements, `last_page_len` n. `n_indices` gets how
 * many elements of `indices` are used, or on KVF_ERR_SHORT_BUFFER needed.
 */
kvf_status kvf_table_csr(const kvf_cache *cache, uint32_t group, const kvf_seq *seqs, size_t n,
                         int32_t *indptr, int32_t *last_page_len, int32_t *indices, size_t cap,
                         size_t *n_indices);

/*
 * Writes, for each token of the finished plan in the order of kvf_plan_add, its slot (page * P +
 * offset) in a group and its absolute position. Up to `cap`, the rest of `slots` becomes -1 (do not
 * write) and the rest of `positions` 0. `n` gets the number of tokens, also on
 * KVF_ERR_SHORT_BUFFER. KVF_ERR_PLAN_STATE unless a plan is finished.
 */
kvf_status kvf_table_slots(const kvf_cache *cache, uint32_t group, int64_t *slots,
                           int32_t *positions, size_t cap, size_t *n);

/* One row of the caller's table. Record. */
typedef struct kvf_row_query {
    kvf_seq seq;    /* Its occupant. */
    uint64_t since; /* Version that the row shows. 0 = nothing of this sequence. */
} kvf_row_query;

/* A row that changed. Its entries are the next `count` elements of the entry buffer. Record. */
typedef struct kvf_row_delta {
    uint32_t row;   /* Index of the query. */
    uint32_t start; /* First entry that may differ. */
    uint32_t count; /* Entries written. What the row showed behind them is void. */
} kvf_row_delta;

/* What kvf_table_changed wrote. */
typedef struct kvf_delta_report {
    uint32_t struct_size; /* sizeof(kvf_delta_report), set by the caller */
    uint32_t rows;        /* Rows that changed. */
    uint32_t entries;     /* Entries of these rows. */
    uint32_t reserved;    /* 0 */
    uint64_t version;     /* Version that all rows show once the deltas are applied. */
} kvf_delta_report;

/*
 * Writes the rows that differ from what the caller's table shows. The caller keeps, for each row,
 * the sequence in it and the version that it shows (0 when the row's occupant changed). For each
 * row that differs `rows` gets one element, and `entries` the page ids from its `start` on, one row
 * behind the other. `report` says how many, and the version that all rows show afterwards. On
 * KVF_ERR_SHORT_BUFFER `rows` and `entries` of the report both hold a length that is enough for
 * either buffer, and nothing else is written. O(queries + entries).
 */
kvf_status kvf_table_changed(const kvf_cache *cache, uint32_t group, const kvf_row_query *queries,
                             size_t n, kvf_row_delta *rows, size_t rows_cap, int32_t *entries,
                             size_t entries_cap, kvf_delta_report *report);

/*
 * `pages` gets the columns of a ring that shows a window group while up to `tokens` tokens are
 * added: ceil((window + tokens - 1) / P) + 1. KVF_ERR_ARGUMENT for a group without a window.
 */
kvf_status kvf_table_ring_pages(const kvf_cache *cache, uint32_t group, uint32_t tokens,
                                uint32_t *pages);

/* How a window's pages lie in the ring that kvf_table_ring wrote. */
typedef struct kvf_ring_report {
    uint32_t struct_size; /* sizeof(kvf_ring_report), set by the caller */
    uint32_t sinks;       /* Columns with sink pages, at the start of the row. */
    uint32_t first;       /* First page of the sequence that the ring shows. Page i is in column
                           * sinks + i % ring. */
    uint32_t end;         /* One past the last page. */
} kvf_ring_report;

/*
 * Writes a sequence's window as sink columns followed by a ring of `ring` columns; columns without
 * a page are 0. Where the group is a fixed ring, `ring` is its number of columns and the row is
 * what the sequence owns. KVF_ERR_ARGUMENT for a group without a window, when more pages are
 * resident than the ring has columns, or when a fixed ring has another number of them.
 */
kvf_status kvf_table_ring(const kvf_cache *cache, kvf_seq seq, uint32_t group, uint32_t ring,
                          int32_t *out, size_t cap, kvf_ring_report *report);

/* =================================================================================================
 * 9. Retention
 *
 * The caller's say in the eviction order. All of it is soft: a leased page still goes when nothing
 * else is left. Only tickets pin.
 * ================================================================================================= */

#define KVF_MOVE_COLD 0 /* Move to be evicted first. Pages that have children elsewhere stay. */
#define KVF_MOVE_HOT 1  /* Move to be evicted last within their class. */

/* A promise to keep a prefix above all others until a tick. Never 0. */
typedef uint64_t kvf_lease;

/*
 * Keeps the published pages of a sequence's first `upto` tokens above all others until time passes
 * `until`. KVF_ERR_ARGUMENT when none of these tokens is published or `until` has passed.
 */
kvf_status kvf_retain_lease(kvf_cache *cache, kvf_seq seq, uint32_t upto, kvf_tick until,
                            kvf_lease *lease, kvf_shortage *shortage);

/* Ends a lease early. */
kvf_status kvf_retain_end(kvf_cache *cache, kvf_lease lease);

/*
 * Puts the cached prefix of a prompt into an eviction class; lower classes are evicted first.
 * `tokens` gets the length of that prefix. KVF_ERR_ARGUMENT for a class beyond the configured ones,
 * or under KVF_POLICY_LFU. O(pages).
 */
kvf_status kvf_retain_set_class(kvf_cache *cache, const kvf_prompt *prompt,
                                uint32_t eviction_class, uint32_t *tokens);

/*
 * Moves the cached prefix of a prompt to an end of the eviction order; `to` is KVF_MOVE_*. Used
 * pages and pages that have other children behind them stay where they are. `tokens` gets the
 * length of the prefix. O(pages).
 */
kvf_status kvf_retain_move(kvf_cache *cache, const kvf_prompt *prompt, uint32_t to,
                           uint32_t *tokens);

/* =================================================================================================
 * 10. Transfers
 *
 * While something outside reads or writes pages (swap, disk, another machine), a transfer keeps
 * them: they are neither evicted nor written, even if their sequence is closed. Every begin needs
 * one end.
 * ================================================================================================= */

#define KVF_IO_STORE 0  /* Out of the pages. */
#define KVF_IO_LOAD 1   /* Into the pages. */
#define KVF_IO_OK 0     /* The content is what it should be. */
#define KVF_IO_FAILED 1 /* It is not, or nobody knows. */

/* A transfer of pages that is under way. Never 0. */
typedef uint64_t kvf_transfer;

/*
 * Begins a transfer of tokens `start` to `end` - 1 of a sequence; `direction` is KVF_IO_STORE or
 * KVF_IO_LOAD. While a load runs, nothing of the sequence is published. KVF_ERR_BUSY in an open
 * plan, KVF_ERR_WINDOW_LOST, KVF_ERR_UNSUPPORTED for an `end` inside a sealed page. O(pages).
 */
kvf_status kvf_io_begin_seq(kvf_cache *cache, kvf_seq seq, uint32_t start, uint32_t end,
                            uint32_t direction, kvf_transfer *transfer, kvf_shortage *shortage);

/* The same for the tokens of a ticket. */
kvf_status kvf_io_begin_ticket(kvf_cache *cache, kvf_ticket ticket, uint32_t start, uint32_t end,
                               uint32_t direction, kvf_transfer *transfer,
                               kvf_shortage *shortage);

/*
 * Ends a transfer; `result` is KVF_IO_OK or KVF_IO_FAILED. After a load that failed, its pages and
 * all behind them leave the index, and tickets for them are stale.
 */
kvf_status kvf_io_end(kvf_cache *cache, kvf_transfer transfer, uint32_t result);

/* =================================================================================================
 * 11. Events
 *
 * What entered and left the index, for routers. Folding all events over (group, key) gives the
 * index. The ring never blocks: when it is full the oldest event is lost and counted.
 * ================================================================================================= */

#define KVF_EVENT_STORED 0  /* A page entered the index. */
#define KVF_EVENT_REMOVED 1 /* A page left it. */
#define KVF_EVENT_CLEARED 2 /* Everything of a namespace left it. */

/* One change of the index. Record. */
typedef struct kvf_event {
    uint64_t number;         /* Number of this event, from 1 on without gaps. */
    uint64_t key;            /* Exported key of the page: a chained hash of tokens and spans. For
                              * routers; the cache itself compares tokens. */
    uint64_t parent_key;     /* Key of the page before it. 0 = it is the first. */
    uint32_t page;           /* The page, within its group's pool. */
    uint32_t namespace_slot; /* Slot of its namespace: the lower half of the handle. */
    uint32_t group;          /* Its group. */
    uint32_t kind;           /* KVF_EVENT_* */
} kvf_event;

/*
 * Moves the oldest events to `events`, at most `cap`. `n` gets how many, `lost` how many were lost
 * since the last call.
 */
kvf_status kvf_events_read(kvf_cache *cache, kvf_event *events, size_t cap, size_t *n,
                           uint64_t *lost);

/*
 * Lists everything that the index holds as KVF_EVENT_STORED records of number 0, parents before
 * children: what a reader starts from, or starts again from after lost events. `n` gets how many,
 * `last` the number of the last event made; folding the records and all later events gives the
 * index. `scratch` needs 1 + pages / 32 elements for the pages of the pool that carries the index
 * (or index_nodes), and is overwritten. On KVF_ERR_SHORT_BUFFER `n` gets the elements needed, of
 * `scratch` while that is too short, else of `events`. KVF_ERR_UNSUPPORTED where no events are
 * made. O(nodes * runs of their paths).
 */
kvf_status kvf_events_keys(const kvf_cache *cache, uint32_t *scratch, size_t scratch_cap,
                           kvf_event *events, size_t cap, size_t *n, uint64_t *last);

/* =================================================================================================
 * 12. Statistics and diagnosis
 * ================================================================================================= */

/* The whole cache now. From `events` on the numbers only grow, but for `waiting_events`. */
typedef struct kvf_stats {
    uint32_t struct_size;      /* sizeof(kvf_stats), set by the caller */
    uint32_t sequences;        /* Live sequences. */
    uint32_t tickets;          /* Live tickets. */
    uint32_t transfers;        /* Transfers under way. */
    uint32_t free_chunks;      /* Free chunks of table entries. */
    uint32_t free_key_parts;   /* Free media span entries. */
    uint32_t indexed_pages;    /* Pages in the index, of the group that carries it. */
    uint32_t reserved;         /* 0 */
    uint64_t events;           /* Events made so far. */
    uint64_t waiting_events;   /* Events waiting to be read. */
    uint64_t queried_tokens;   /* Tokens asked for in matches. */
    uint64_t hit_tokens;       /* Of these, tokens found. */
    uint64_t committed_tokens; /* Tokens committed. */
    uint64_t published_pages;  /* Pages that entered the index. */
    uint64_t duplicate_pages;  /* Pages computed a second time while another copy was published. */
    uint64_t evicted_pages;    /* Cached pages evicted. */
    uint64_t copied_pages;     /* Pages copied before a write. */
    uint64_t plans;            /* Plans finished. */
    kvf_tick tick;             /* The latest tick that the cache was told. */
} kvf_stats;

/* Reads what the whole cache is now. O(1). */
kvf_status kvf_stats_read(const kvf_cache *cache, kvf_stats *stats);

/* One pool now: pages = used + cached + free_pages. */
typedef struct kvf_pool_stats {
    uint32_t struct_size; /* sizeof(kvf_pool_stats), set by the caller */
    uint32_t pages;       /* Pages in all. */
    uint32_t used;        /* With references. */
    uint32_t cached;      /* Without, but indexed: what eviction can give. */
    uint32_t free_pages;  /* Neither. */
    uint32_t pending;     /* Of the used ones, those that only transfers keep. */
    uint32_t peak_used;   /* Most pages used at once so far. */
    uint32_t utilisation; /* used / pages in thousandths. */
} kvf_pool_stats;

/* Reads what a pool is now. O(1). */
kvf_status kvf_pool_stats_read(const kvf_cache *cache, uint32_t pool, kvf_pool_stats *stats);

#define KVF_PAGE_FREE 0   /* Not allocated. */
#define KVF_PAGE_CACHED 1 /* Without references, in the index. */
#define KVF_PAGE_USED 2   /* With references. */

/* One page now. */
typedef struct kvf_page_info {
    uint32_t struct_size; /* sizeof(kvf_page_info), set by the caller */
    uint32_t state;       /* KVF_PAGE_* */
    uint32_t indexed;     /* 1 = it is in the index, else 0. */
    uint32_t refs;        /* Table entries, ticket and transfer pins, and holds that refer to it. */
} kvf_page_info;

/* Reads what a page is now, for diagnosis. O(live table entries). */
kvf_status kvf_page_info_read(const kvf_cache *cache, uint32_t pool, uint32_t page,
                              kvf_page_info *info);

/*
 * `digest` gets 64 bits over the logical state, equal on every machine for the same calls. A call
 * that fails leaves it as it was. O(pages + table entries + tokens).
 */
kvf_status kvf_cache_digest(const kvf_cache *cache, uint64_t *digest);

/* The first violated rule that kvf_cache_check found. */
typedef struct kvf_violation {
    uint32_t struct_size; /* sizeof(kvf_violation), set by the caller */
    uint32_t rule;        /* 0 = none. Else a rule: 1 counters, 2 page state, 3 eviction order, 4
                           * references, 5 tree, 6 lookup, 7 pages of other groups, 8 table rows,
                           * 9 cursors, 10 pending pages, 11 leases, 12 metadata. */
    uint32_t index;       /* Where: a pool, page, or sequence, as the rule says. */
} kvf_violation;

/*
 * Looks for a violated invariant. Level 0: counters. Level 1: pages and lists, O(pages). Level 2:
 * references, tree and tables. Level 2 needs `scratch`, which is overwritten; `n_needed`, which may
 * be NULL, gets its length on KVF_ERR_SHORT_BUFFER. Answers KVF_OK and writes rule 0 to `violation`
 * if there is none, else KVF_ERR_CORRUPT and the first one.
 */
kvf_status kvf_cache_check(const kvf_cache *cache, uint32_t level, uint32_t *scratch, size_t cap,
                           size_t *n_needed, kvf_violation *violation);

/* =================================================================================================
 * 13. Page layout
 *
 * kvfolio hands out page numbers and never touches a page. These functions say what its bytes are:
 * state what is wanted, get every offset, and use the struct on the host and on the device. What
 * would be unsound is refused here, not found later as garbage. They need no cache and may be
 * called from any thread at any time. A library built without its feature "layout" lacks this
 * section and all behind it.
 *
 *     page    layer 0 | layer 1 | ...
 *     layer   K codes | K scales | K zeros | V codes | V scales | V zeros      MLA: latent ... | rope
 *     codes   [head][block][group], or [block][head][group] with KVF_ORDER_TOKENS
 *
 * Element (token t, channel c): with groups along channels code c % G of group c / G of block t;
 * with groups along tokens code t % G of group c of block t / G.
 * ================================================================================================= */

#define KVF_ELEMENT_F32 1            /* 32-bit float. (Numbers of elements are fixed for ever; 0
                                      * = not set.) */
#define KVF_ELEMENT_F16 2            /* IEEE half. */
#define KVF_ELEMENT_BF16 3           /* bfloat16. */
#define KVF_ELEMENT_INT8 4           /* 8-bit codes with f16 scale and zero: code * scale + zero. */
#define KVF_ELEMENT_INT4 5           /* The same with 4 bits: element 2i in the low half of byte
                                      * i. */
#define KVF_ELEMENT_INT2 6           /* The same with 2 bits: element 4i in bits 0 and 1 of byte
                                      * i. */
#define KVF_ELEMENT_INT8_SYMMETRIC 7 /* Signed 8-bit codes, -127 to 127, with f16 scale: code *
                                      * scale. */
#define KVF_ELEMENT_FP8_E4M3FN 8     /* FP8, largest 448. */
#define KVF_ELEMENT_FP8_E4M3FNUZ 9   /* FP8, largest 240: the same byte is half of what it is in
                                      * E4M3FN. */
#define KVF_ELEMENT_FP8_E5M2 10      /* FP8, largest 57,344. */
#define KVF_ELEMENT_Q8_0 11          /* Blocks of 34 bytes: f16 scale, 32 codes. */
#define KVF_ELEMENT_Q4_0 12          /* Blocks of 18 bytes: f16 scale, 32 codes; code j in the
                                      * low half of byte j, j + 16 in the high half. */
#define KVF_ELEMENT_NVFP4 13         /* E2M1 in groups of 16 with an E4M3 scale each, and one f32
                                      * per layer for K and for V. */
#define KVF_ELEMENT_MXFP4 14         /* E2M1 in groups of 32 with an E8M0 scale each. */
#define KVF_AXIS_NONE 0              /* No groups, or nothing to choose. */
#define KVF_AXIS_TOKEN 1             /* Groups of G channels of one token. A token is complete
                                      * when it is written. */
#define KVF_AXIS_CHANNEL 2           /* Groups of G tokens of one channel. They need page_tokens
                                      * >= G. */
#define KVF_SCALE_NONE 0             /* Formats other than FP8. */
#define KVF_SCALE_TENSOR 1           /* FP8: one f32 for K and one for V of each layer, fixed
                                      * before the first page, outside pages. */
#define KVF_SCALE_HEAD 2             /* FP8: one for each head of these, likewise. */
#define KVF_SCALE_TOKEN_HEAD 3       /* FP8: one f32 for each G elements of a row, in the page. */
#define KVF_FORMAT_POWER_OF_TWO 1    /* Flag: FP8 scales are powers of two. */
#define KVF_FORMAT_DYNAMIC 2         /* Flag: the scale is computed from what is stored.
                                      * KVF_SCALE_TOKEN_HEAD only. */

/* How K, V or the rope part of MLA is stored. All zero = not set. Record. */
typedef struct kvf_tensor_format {
    uint32_t element;  /* KVF_ELEMENT_* */
    uint32_t axis;     /* KVF_AXIS_*: integer formats need one, others have none. */
    uint32_t group;    /* G, elements that share a scale: 16, 32, 64, 128. 0 = the whole row (not
                        * along tokens), or the format's own. */
    uint32_t scale;    /* KVF_SCALE_*: FP8 formats need one, others have none. */
    uint32_t flags;    /* KVF_FORMAT_* */
    uint32_t reserved; /* 0 */
} kvf_tensor_format;

#define KVF_ORDER_HEADS 0       /* What lies outermost in a section: heads, so that a head of a
                                 * page is one run of bytes, */
#define KVF_ORDER_TOKENS 1      /* or tokens, so that a token of a page is one. Not with groups
                                 * along tokens. */
#define KVF_ROPE_NONE 1         /* The model has no rotary positions. */
#define KVF_ROPE_PRE 2          /* Keys are stored before RoPE. */
#define KVF_ROPE_POST 3         /* Keys are stored after RoPE. */
#define KVF_ROTATION_NONE 0     /* Rows are stored as they are. */
#define KVF_ROTATION_HADAMARD 1 /* Rows were multiplied by blocks of an orthonormal Hadamard
                                 * matrix. */
#define KVF_ROTATE_K 1          /* Flag of rotation_parts: K is rotated. */
#define KVF_ROTATE_V 2          /* Flag of rotation_parts: V is rotated. */
#define KVF_LAYOUT_MLA 1        /* Flag: multi-head latent attention. K is the latent part, the
                                 * rope part lies behind it, V is the latent part. */
#define KVF_LAYOUT_REROTATED 2  /* Flag: stored keys may be rotated to another position. Not with
                                 * quantised keys after RoPE. */
#define KVF_LAYOUT_LOSSY 256    /* Flag, of kvf_page_layout only: what is read is not what was
                                 * computed. */

/* What a page is to be. */
typedef struct kvf_page_layout_spec {
    uint32_t struct_size;        /* sizeof(kvf_page_layout_spec) */
    uint32_t page_tokens;        /* P: a power of two, 1 to 256. */
    uint32_t layers;             /* Layers in one page: all of a group, or 1 where each layer has
                                  * a tensor of its own. */
    uint32_t kv_heads;           /* KV heads. MLA: 1. */
    uint32_t k_dim;              /* Elements of a head of K. MLA: of the latent part. */
    uint32_t v_dim;              /* Elements of a head of V. MLA: 0. */
    uint32_t rope_dim;           /* MLA: elements of the rope part. Else 0. */
    uint32_t align;              /* Sections, layers and pages begin at multiples of it: 16, 32,
                                  * 64, 128. 0 = 16. */
    uint32_t order;              /* KVF_ORDER_* */
    uint32_t rope;               /* KVF_ROPE_*; 0 is refused. MLA: that of the rope part. */
    uint32_t rotation;           /* KVF_ROTATION_* */
    uint32_t rotation_size;      /* Size of the matrix: a power of two that divides the head
                                  * dimension. 0 without a rotation. */
    uint32_t rotation_parts;     /* KVF_ROTATE_K | KVF_ROTATE_V. MLA: both. */
    uint32_t flags;              /* KVF_LAYOUT_MLA | KVF_LAYOUT_REROTATED */
    uint64_t rotation_seed;      /* Seed of the signs before the rotation. 0 = no signs. */
    uint64_t generation;         /* Changes whenever something outside the page that its bytes
                                  * depend on does, such as calibrated scales. */
    kvf_tensor_format k;         /* K; MLA: the latent part. */
    kvf_tensor_format v;         /* V; MLA: not set. */
    kvf_tensor_format rope_part; /* MLA: the rope part, an exact format. Else not set. */
} kvf_page_layout_spec;

#define KVF_PART_ALIAS 1 /* Flag: the bytes are those of K. */

/*
 * Where K, V or the rope part lies within one layer of a page; offsets are from the layer's start.
 * Record. The codes of (head, token) begin at codes + head * codes_head + token / block_tokens *
 * codes_block; its scales at scales + head * params_head + token / block_tokens * params_block, and
 * zeros likewise.
 */
typedef struct kvf_part_layout {
    kvf_tensor_format format; /* Its format; the group is filled in. */
    uint32_t dim;             /* Elements of a head. 0 = there is no such part. */
    uint32_t block_tokens;    /* Tokens of a block: 1, or G with groups along tokens. */
    uint32_t groups;          /* Groups of a block: d / G, or d with groups along tokens. They
                               * follow each other. */
    uint32_t group_bytes;     /* Bytes of a group's codes; q8_0 and q4_0: with the scale in
                               * front. */
    uint32_t scale_bytes;     /* Bytes of a group's scale in its section. 0 = none there. */
    uint32_t zero_bytes;      /* Bytes of a group's zero. */
    uint32_t static_scales;   /* Scales (f32) per layer that lie outside pages. */
    uint32_t flags;           /* KVF_PART_ALIAS or 0 */
    uint64_t codes;           /* Offset of the codes. */
    uint64_t scales;          /* Offset of the scales. */
    uint64_t zeros;           /* Offset of the zeros. */
    uint64_t codes_bytes;     /* Bytes of the codes. */
    uint64_t scales_bytes;    /* Bytes of the scales. */
    uint64_t zeros_bytes;     /* Bytes of the zeros. */
    uint64_t codes_head;      /* Bytes from a head's codes to the next's. */
    uint64_t codes_block;     /* Bytes from a block's codes to the next's. */
    uint64_t params_head;     /* Bytes from a head's scales to the next's, and zeros likewise. */
    uint64_t params_block;    /* Bytes from a block's scales to the next's, and zeros likewise. */
} kvf_part_layout;

/*
 * What each byte of a page means. Plain numbers: give it to device code as it is. Layer l of page p
 * begins at p * page_bytes + l * layer_bytes.
 */
typedef struct kvf_page_layout {
    uint32_t struct_size;      /* sizeof(kvf_page_layout), set by the caller */
    uint32_t version;          /* Version of this struct: 1. */
    uint64_t id;               /* Equal exactly if all that gives bytes their meaning is. Pages
                                * of one id are never read under another. */
    uint64_t page_bytes;       /* Bytes from a page to the next. */
    uint64_t layer_bytes;      /* Bytes from a layer of a page to the next. */
    uint64_t generation;       /* As in the spec. */
    uint64_t rotation_seed;    /* As in the spec. */
    uint32_t page_tokens;      /* P */
    uint32_t layers;           /* Layers in a page. */
    uint32_t kv_heads;         /* KV heads. */
    uint32_t align;            /* Alignment of sections, layers and pages. */
    uint32_t order;            /* KVF_ORDER_* */
    uint32_t rope;             /* KVF_ROPE_* */
    uint32_t rotation;         /* KVF_ROTATION_* */
    uint32_t rotation_size;    /* As in the spec. */
    uint32_t rotation_parts;   /* As in the spec. */
    uint32_t flags;            /* KVF_LAYOUT_* */
    kvf_part_layout k;         /* K; MLA: the latent part. */
    kvf_part_layout v;         /* V; MLA: the latent part again, with KVF_PART_ALIAS. */
    kvf_part_layout rope_part; /* MLA: the rope part. */
} kvf_page_layout;

/*
 * Works a layout out. On KVF_ERR_LAYOUT `reason`, which may be NULL, gets the number of the rule
 * that the spec breaks; kvf_layout_reason_text says it in words.
 */
kvf_status kvf_layout_make(const kvf_page_layout_spec *spec, kvf_page_layout *layout,
                           uint32_t *reason);

/*
 * Checks a layout that came from elsewhere, such as a file: KVF_OK if kvf_layout_make would make it
 * so, else KVF_ERR_LAYOUT.
 */
kvf_status kvf_layout_check(const kvf_page_layout *layout);

/* What a page takes. */
typedef struct kvf_layout_sizes {
    uint32_t struct_size;        /* sizeof(kvf_layout_sizes), set by the caller */
    uint32_t lossy;              /* 1 = what is read is not what was computed. Else 0. */
    uint64_t page_bytes;         /* Bytes of a page. */
    uint64_t padding_bytes;      /* Of these, bytes that only align others. */
    uint64_t token_bytes;        /* Bytes of one token without padding = token_bytes /
                                  * token_divisor, in lowest terms. */
    uint64_t token_divisor;      /* Nearly always 1. */
    uint64_t token_elements;     /* Elements of one token, all layers and heads. */
    uint64_t static_scale_bytes; /* Bytes of the scales outside pages, once for the whole pool. */
} kvf_layout_sizes;

/*
 * Says what a page takes. Like kvf_layout_row it expects a layout that kvf_layout_make has made or
 * kvf_layout_check passed.
 */
kvf_status kvf_layout_measure(const kvf_page_layout *layout, kvf_layout_sizes *sizes);

#define KVF_TENSOR_K 0    /* K; MLA: the latent part. */
#define KVF_TENSOR_V 1    /* V; MLA: the latent part. */
#define KVF_TENSOR_ROPE 2 /* MLA: the rope part. */

/* Where a row lies, in bytes from page 0. Record. */
typedef struct kvf_row_address {
    uint64_t codes;  /* Codes of its block. */
    uint64_t scales; /* Scales of its block, one per group. 0 = none in the page. */
    uint64_t zeros;  /* Zeros of its block. 0 = none. */
} kvf_row_address;

/*
 * Says where the row of one token of a page and one head lies. `tensor` is KVF_TENSOR_*. O(1).
 * KVF_ERR_ARGUMENT for the NULL page, for a layer, head or token that is not there, and for a part
 * that the layout lacks.
 */
kvf_status kvf_layout_row(const kvf_page_layout *layout, uint32_t page, uint32_t layer,
                          uint32_t tensor, uint32_t head, uint32_t token,
                          kvf_row_address *address);

/*
 * The rule with the number that kvf_layout_make gave, in words. "unknown reason" for other numbers.
 */
const char *kvf_layout_reason_text(uint32_t reason);

/* =================================================================================================
 * 14. Memory planner
 *
 * How many bytes a model's cache takes, before anything is allocated. A model is a list of groups:
 * layers with one layout that keep the same tokens. Row bytes are what a formula on paper gives;
 * page bytes are what must be there, and are exactly the bytes from the first to the last page of
 * that many. Memory of the manager itself, which is on the host, is told by
 * kvf_cache_required_size.
 * ================================================================================================= */

/* Layers that keep the same tokens in pages of one layout. */
typedef struct kvf_memory_group {
    uint32_t struct_size;          /* sizeof(kvf_memory_group) */
    uint32_t kind;                 /* KVF_GROUP_FULL or KVF_GROUP_WINDOW */
    const kvf_page_layout *layout; /* Layout of its pages; with a residual, of sealed pages. */
    const kvf_page_layout *exact;  /* With a residual: layout of open pages, an exact one of the
                                    * same shape. NULL = no residual. */
    uint32_t window;               /* Window groups: tokens that a query reads, its own included. */
    uint32_t sinks;                /* Tokens at the start that a window keeps, or that a residual
                                    * keeps exact. */
    uint32_t chunk;                /* Most tokens added at a time. 0 = 1. */
    uint32_t ring;                 /* Window groups: 1 = a fixed ring. Else 0. */
    uint32_t recent;               /* With a residual: fewest recent tokens that stay exact. */
    uint32_t reserved;             /* 0 */
} kvf_memory_group;

/* What sequences take. */
typedef struct kvf_memory_report {
    uint32_t struct_size;  /* sizeof(kvf_memory_report), set by the caller */
    uint32_t reserved;     /* 0 */
    uint64_t row_bytes;    /* Bytes of the rows that one sequence keeps, padding and free slots
                            * apart. */
    uint64_t page_bytes;   /* Bytes of the pages that it holds at most while it grows. */
    uint64_t pages;        /* These pages, over all groups. */
    uint64_t row_pages;    /* Entries of the longest row of its page tables. */
    uint64_t sequences;    /* Sequences that fit the budget. */
    uint64_t static_bytes; /* Bytes that are there once: scales outside pages. */
    uint64_t spare_bytes;  /* Bytes of the budget that are left over. */
} kvf_memory_report;

/*
 * Says what one sequence of `tokens` tokens takes in all groups, and how many such sequences
 * `budget` bytes hold. Sequences share nothing. `n` and `tokens` are at least 1. KVF_ERR_LAYOUT for
 * a layout that kvf_layout_check refuses, KVF_ERR_ARGUMENT for a window, ring or residual that
 * makes no sense, KVF_ERR_RANGE if a number needs more than 64 bits. O(groups).
 */
kvf_status kvf_memory_estimate(const kvf_memory_group *groups, size_t n, uint64_t tokens,
                               uint64_t budget, kvf_memory_report *report);

/* =================================================================================================
 * 15. Token eviction: streams
 *
 * Which tokens of a row stay when there is no room for all, and how pages follow. These functions
 * know no cache: they work on arrays of the caller, one kvf_stream for each row of pages, and may
 * be called from several threads for different streams. A library built without its feature "evict"
 * lacks this section and those behind it.
 *
 *     append     kvf_stream_append says to which slots the keys and values of new tokens go
 *     score      kvf_evict_h2o_observe and others keep a float per slot; or the caller writes the array
 *     keep       kvf_evict_keep_best: the budget's best tokens, and what is protected, as a bit per slot
 *     remove     kvf_stream_retain makes holes, which kernels mask by `valid`;
 *                kvf_stream_drop_dead_columns gives up pages without a live token;
 *                KVF_PLACE_REUSE writes new tokens into holes, kvf_stream_plan_compaction closes them
 *
 * Positions of what stays never change. [rows] in a comment: as many elements as the stream has
 * rows; [used]: as many words as it has columns in use, (rows + P - 1) / P. A score of a slot
 * without a live token has no meaning. Streams, scores of H2O, sums of keys, and the kept set of
 * kvf_evict_keep_union are read as well as written.
 *
 * `reason`, which may be NULL, gets the number of the rule that was broken, KVF_EVICT_*, where a
 * call fails with KVF_ERR_ARGUMENT, KVF_ERR_UNSUPPORTED, KVF_ERR_LAYOUT, KVF_RETRY or KVF_NEVER
 * because of one.
 * ================================================================================================= */

#define KVF_EVICT_SHAPE 1            /* Arrays are shorter than what they describe, or P is not
                                      * 1, 2, 4, ... 64. */
#define KVF_EVICT_STREAM 2           /* The counters of the stream do not fit its arrays. */
#define KVF_EVICT_FULL 3             /* No slot is left: evict, and reuse or compact. */
#define KVF_EVICT_POSITION 4         /* More tokens than positions. */
#define KVF_EVICT_RECENT 5           /* `recent` is 0. */
#define KVF_EVICT_PINS 6             /* Pins are empty, overlap or do not ascend. */
#define KVF_EVICT_BUDGET 7           /* The budget is less than what is protected. */
#define KVF_EVICT_OBSERVATION 8      /* An observation of another shape, or of a kind that the
                                      * policy does not take. */
#define KVF_EVICT_PARAMETER 9        /* A parameter out of its range. */
#define KVF_EVICT_GROUP_OF_TOKENS 10 /* Tokens of a quantised group along tokens are not
                                      * overwritten or moved one by one. */
#define KVF_EVICT_KEYS 11            /* Keys after RoPE, quantised or rotated, cannot be turned
                                      * to another position. */
#define KVF_EVICT_LAYOUT 12          /* Not a layout that kvf_layout_make has made. */
#define KVF_PLACE_BEHIND 0           /* Behind the last slot: slots stay in the order of
                                      * positions. */
#define KVF_PLACE_REUSE 1            /* Into holes first, the lowest first. Masks must then go by
                                      * position. */
#define KVF_POSITION_ABSOLUTE 0      /* Keys and queries are seen at their own position. The next
                                      * query's is `seen`. */
#define KVF_POSITION_RANK 1          /* They are seen at their rank among live tokens. The next
                                      * query's is `live`. */

/* The rule with the number that a `reason` got, in words. "unknown reason" for other numbers. */
const char *kvf_evict_reason_text(uint32_t reason);

/*
 * The slots of one row of pages: of a sequence, and of one layer or KV head or all that share a
 * table. Slot s is offset s % P of column s / P. All zero but for arrays and their sizes = nothing
 * there yet. Every call reads the struct, calls that take it without "const" write `seen`, `live`
 * and `rows`, and nothing of it is kept between calls.
 */
typedef struct kvf_stream {
    uint32_t struct_size; /* sizeof(kvf_stream) */
    uint32_t page_tokens; /* P, tokens per page: 1, 2, 4, ... 64. */
    uint32_t seen;        /* Position of the token that comes next. Only append and truncate
                           * change it. */
    uint32_t live;        /* Tokens that are kept. */
    uint32_t rows;        /* Slots in use: live ones and holes. */
    uint32_t columns;     /* Columns that the arrays have room for. */
    uint32_t channels;    /* Numbers that each slot has in `features`. 0 = none. */
    uint32_t reserved;    /* 0 */
    uint64_t *valid;      /* [columns]: bit o of word c says that offset o of column c holds a
                           * live token. Bits from `rows` on are 0. */
    uint32_t *positions;  /* [columns * P]: position of the token of each slot. Without meaning
                           * where none is live. */
    float *features;      /* [channels][columns * P]: numbers that stay with their tokens when
                           * these move, such as scores. Appended tokens begin with 0. */
} kvf_stream;

/*
 * Checks that counters, bits and positions of a stream belong together: KVF_OK, or
 * KVF_ERR_ARGUMENT. Other calls check what can be checked in O(1). O(rows), O(rows^2) where slots
 * are not in the order of positions.
 */
kvf_status kvf_stream_check(const kvf_stream *stream, uint32_t *reason);

/*
 * Takes up `count` tokens, at positions from `seen` on. `new_slots` [count], which may be NULL,
 * gets the slot of each, in order: write its key and value there. `placement` is KVF_PLACE_*.
 * KVF_RETRY where no slot is left, KVF_NEVER where `count` is more than the arrays ever hold, or 32
 * bits can number. O(used + count).
 */
kvf_status kvf_stream_append(kvf_stream *stream, uint32_t count, uint32_t placement,
                             uint32_t *new_slots, uint32_t *reason);

/*
 * Takes back all tokens from position `len` on, such as drafts that were not accepted. Evicted ones
 * do not come back. KVF_ERR_ARGUMENT for a position that was not seen. O(rows).
 */
kvf_status kvf_stream_truncate(kvf_stream *stream, uint32_t len, uint32_t *reason);

/* Makes holes of what `keep` [used] does not keep. O(used). */
kvf_status kvf_stream_retain(kvf_stream *stream, const uint64_t *keep, uint32_t *reason);

/*
 * Takes columns without a live token out of the row, and those behind them move up: no byte of a
 * page moves, only the row gets shorter. `dead` gets the numbers that these columns had before,
 * ascending: their pages are free. `n` gets how many, or on KVF_ERR_SHORT_BUFFER how many there
 * would be; nothing has changed then. O(rows).
 */
kvf_status kvf_stream_drop_dead_columns(kvf_stream *stream, uint32_t *dead, size_t cap, size_t *n,
                                        uint32_t *reason);

/*
 * The position of the next query; `mode` is KVF_POSITION_*. Where it is not below `max_positions`,
 * which is what the model was made for: KVF_RETRY for ranks, after eviction, and KVF_NEVER for
 * absolute positions. O(1).
 */
kvf_status kvf_stream_next_position(const kvf_stream *stream, uint32_t mode,
                                    uint32_t max_positions, uint32_t *position, uint32_t *reason);

/*
 * With KVF_POSITION_RANK: by how many positions the key of each slot, rotated to its own, is to be
 * rotated further. `deltas` [rows] gets rank - position, never above 0, and 0 for slots without a
 * live token. Always rotate the key as it was first stored. O(rows), O(rows^2) where slots are not
 * in the order of positions.
 */
kvf_status kvf_stream_deltas(const kvf_stream *stream, int32_t *deltas, uint32_t *reason);

/* =================================================================================================
 * 16. Token eviction: compaction
 *
 * Closing holes by moving rows of bytes. Plan, which changes nothing; move the bytes of keys and
 * values, in the order of the moves; commit, which moves positions and features alike. What a page
 * layout allows is told by kvf_evict_check: where groups of tokens are quantised together, they
 * move together, kvf_evict_move_unit of them.
 * ================================================================================================= */

#define KVF_REMOVE_HOLE 0    /* A hole, masked until its page has no live token. Nothing is
                              * copied. */
#define KVF_REMOVE_REPLACE 1 /* The next token is written there: KVF_PLACE_REUSE. */
#define KVF_REMOVE_COMPACT 2 /* Holes are closed now and then by moves. */

/*
 * `sparse` gets 1 where closing the holes frees a page and at most `percent` of the slots of all
 * columns in use are live, else 0. O(1).
 */
kvf_status kvf_stream_is_sparse(const kvf_stream *stream, uint32_t percent, uint32_t *sparse,
                                uint32_t *reason);

/*
 * `count` rows of bytes move from slot `from` of the row to slot `to`, which is lower. Neither
 * range crosses a page. Record.
 */
typedef struct kvf_slot_move {
    uint32_t from;  /* First source slot. */
    uint32_t to;    /* First target slot. */
    uint32_t count; /* Slots. */
} kvf_slot_move;

/* What a compaction does. */
typedef struct kvf_compaction {
    uint32_t struct_size;   /* sizeof(kvf_compaction), set by the caller */
    uint32_t rows;          /* Slots in use afterwards. */
    uint32_t columns;       /* Columns in use afterwards. */
    uint32_t freed;         /* Columns, behind those, that are no longer needed. */
    uint32_t first_written; /* First column that is written: copy pages from there to `columns`
                             * first where others share them. Equal to `columns` where nothing
                             * moves. */
} kvf_compaction;

/*
 * Plans the moves that close all holes, ascending: none moves to where another still has to move
 * from, so they can be carried out in place, one after the other. Units of `group` slots (1, or a
 * power of two up to P) with a live slot move as a whole and keep their holes. `moves`: `live` are
 * always enough. `n` gets how many, or on KVF_ERR_SHORT_BUFFER how many there would be. O(rows).
 */
kvf_status kvf_stream_plan_compaction(const kvf_stream *stream, uint32_t group,
                                      kvf_slot_move *moves, size_t cap, size_t *n,
                                      kvf_compaction *report, uint32_t *reason);

/*
 * Carries out in positions and features what kvf_stream_plan_compaction with the same group
 * planned, once the bytes have moved. Pages of the last `freed` columns are free. O(rows).
 */
kvf_status kvf_stream_commit_compaction(kvf_stream *stream, uint32_t group, uint32_t *reason);

/*
 * Whether tokens in pages of a layout can be removed in a way (KVF_REMOVE_*) and be seen at
 * positions of a mode (KVF_POSITION_*). KVF_ERR_UNSUPPORTED with the reason where they cannot:
 * groups along tokens are not replaced one by one, and keys after RoPE that are quantised or
 * rotated by Hadamard cannot be turned to a rank. O(1).
 */
kvf_status kvf_evict_check(const kvf_page_layout *layout, uint32_t removal, uint32_t mode,
                           uint32_t *reason);

/*
 * Slots that move as one under a layout, which is one that kvf_layout_make has made: 1, or the
 * longest groups along tokens. It is the `group` of a compaction.
 */
kvf_status kvf_evict_move_unit(const kvf_page_layout *layout, uint32_t *unit);

/* =================================================================================================
 * 17. Token eviction: what stays
 *
 * Kept sets from scores, one float per slot. Tokens are ordered by score, then by position: the
 * lowest go first, NaN is lowest of all, and of equal scores the older goes. Pins, sinks and the
 * newest tokens stay whatever their score. `keep` [used] gets a bit per slot in the form of a
 * stream's `valid`, `kept` the number of bits. Nothing changes until kvf_stream_retain.
 * ================================================================================================= */

/* Positions `start` to `end` - 1 that are never evicted. Record. */
typedef struct kvf_pin {
    uint32_t start; /* The first. */
    uint32_t end;   /* Behind the last. */
} kvf_pin;

/* What no score can evict. */
typedef struct kvf_protected {
    uint32_t struct_size; /* sizeof(kvf_protected) */
    uint32_t sinks;       /* First positions of the sequence. */
    uint32_t recent;      /* Newest positions, at least 1. */
    uint32_t n_pins;      /* Number of pins. */
    const kvf_pin *pins;  /* [n_pins]: ranges of positions, not empty, ascending, not
                           * overlapping. */
} kvf_protected;

/* The tokens that are protected at most, which is the least budget. O(pins). */
kvf_status kvf_evict_protected_tokens(const kvf_protected *guarded, uint32_t *tokens,
                                      uint32_t *reason);

/*
 * Keeps the `budget` best tokens, what is protected among them. `scores` [rows]; NULL = all equal,
 * so that the oldest go: a window, or with sinks StreamingLLM. A budget counts the token that was
 * just appended. O(rows) for each token that goes if they are few, else 17 passes over the rows.
 */
kvf_status kvf_evict_keep_best(const kvf_stream *stream, const float *scores,
                               const kvf_protected *guarded, uint32_t budget, uint64_t *keep,
                               uint32_t *kept, uint32_t *reason);

/*
 * Keeps what is protected, and every token whose score is `threshold` or more. With `recent` as a
 * delay, what was decided when a token came is carried out when it leaves the newest ones. O(rows).
 */
kvf_status kvf_evict_keep_above(const kvf_stream *stream, const float *scores,
                                const kvf_protected *guarded, float threshold, uint64_t *keep,
                                uint32_t *kept, uint32_t *reason);

/*
 * Adds to `keep` [n] what `other` [n] keeps: one set for all heads or layers that share a table.
 * `kept` gets the number of bits. O(n).
 */
kvf_status kvf_evict_keep_union(const uint64_t *other, size_t n, uint64_t *keep, uint32_t *kept);

/* =================================================================================================
 * 18. Token eviction: scores
 *
 * Policies that look at attention, or at nothing. `scores` [rows] may be a channel of the stream's
 * features, so that scores move with their tokens. A policy of one's own writes that array itself.
 * H2O and TOVA keep scores from step to step and observe each step once it has attended; what
 * others give is new each time.
 * ================================================================================================= */

#define KVF_SMOOTH_AVERAGE 0 /* The mean over the neighbours that the kernel covers; beyond the
                              * ends there is 0. */
#define KVF_SMOOTH_MAX 1     /* The greatest of them. */

#define KVF_REDUCE_MEAN 0  /* The mean of the query heads of a KV head. */
#define KVF_REDUCE_MAX 1   /* The greatest of them. */
#define KVF_REDUCE_SUM 2   /* Their sum. */
#define KVF_H2O_SKIP_OWN 1 /* Flag: a token's own query does not count for it. */
#define KVF_H2O_UNBIASED 2 /* Flag: each query is weighed by the tokens that it chose among, and
                            * kvf_evict_h2o_order gives the mean over the queries that saw the
                            * token: old tokens have no advantage. Without decay only. */

/* How H2O counts. All zero = as its reference implementation. */
typedef struct kvf_h2o {
    uint32_t struct_size; /* sizeof(kvf_h2o) */
    uint32_t reduce;      /* KVF_REDUCE_* */
    uint32_t flags;       /* KVF_H2O_SKIP_OWN | KVF_H2O_UNBIASED */
    float decay;          /* Scores are multiplied by it once per query: above 0, at most 1. 0 =
                           * 1, nothing is forgotten. */
} kvf_h2o;

#define KVF_OBSERVE_PROBABILITIES 1 /* Probabilities: values[queries][heads][rows]. */
#define KVF_OBSERVE_LOGITS 2        /* Logits: values[queries][heads][rows], and
                                     * lse[queries][heads]. */
#define KVF_OBSERVE_COLUMNS 3       /* Probabilities, reduced over heads and summed over
                                     * `queries` queries: values[rows]. */
#define KVF_OBSERVE_SCORES 4        /* Scores of the caller's own: values[rows]. */

/*
 * What the engine saw of one step's attention. The queries are those of the newest tokens, in
 * order; the last one is that of position seen - 1. What is not live or not visible to a query has
 * probability 0, or a logit of minus infinity.
 */
typedef struct kvf_observation {
    uint32_t struct_size; /* sizeof(kvf_observation) */
    uint32_t kind;        /* KVF_OBSERVE_* */
    uint32_t queries;     /* Queries. Unused with scores. */
    uint32_t heads;       /* Query heads of this KV head; of all KV heads where they share a kept
                           * set. Unused with columns and scores. */
    const float *values;  /* In slot order. */
    const float *lse;     /* Logits: logarithm of the sum of exponentials that the softmax of a
                           * row divides by. Else unused. */
} kvf_observation;

/*
 * H2O: adds the attention of a step to what tokens have received. Takes probabilities, logits and
 * column sums, these only of one query where there is decay or a flag. `how` may be NULL: all zero.
 * O(queries * heads * rows).
 */
kvf_status kvf_evict_h2o_observe(const kvf_stream *stream, const kvf_h2o *how,
                                 const kvf_observation *observation, float *scores,
                                 uint32_t *reason);

/*
 * Turns scores of H2O into the numbers that tokens are to be ordered by: with KVF_H2O_UNBIASED
 * means over the queries that saw a token, else the same. `ordered` [rows] gets them for live
 * slots. O(rows).
 */
kvf_status kvf_evict_h2o_order(const kvf_stream *stream, const kvf_h2o *how, const float *scores,
                               float *ordered, uint32_t *reason);

/*
 * TOVA: the attention of the last query, by the mean over heads. Takes probabilities and logits,
 * and column sums of one query. O(heads * rows).
 */
kvf_status kvf_evict_tova_observe(const kvf_stream *stream, const kvf_observation *observation,
                                  float *scores, uint32_t *reason);

/*
 * Takes scores that another part of the program observed, as they are: KVF_OBSERVE_SCORES. O(rows).
 */
kvf_status kvf_evict_external_observe(const kvf_stream *stream, const kvf_observation *observation,
                                      float *scores, uint32_t *reason);

/*
 * An order drawn by chance, as if tokens that go were drawn without replacement. A token's draw
 * depends on `seed`, `number` (one for each stream: of request, layer and head) and its position
 * alone. O(rows).
 */
kvf_status kvf_evict_random_scores(const kvf_stream *stream, uint64_t seed, uint64_t number,
                                   float *scores, uint32_t *reason);

/*
 * SnapKV: scores of a prompt from the attention that its last W queries gave, `sums` [rows]: summed
 * over the queries, reduced over heads. `smoothing` is KVF_SMOOTH_*, `kernel` an odd number of live
 * tokens up to 63; 1 leaves the sums as they are. Protect the W newest tokens. O(rows * kernel).
 */
kvf_status kvf_evict_snapkv_scores(const kvf_stream *stream, const float *sums, uint32_t smoothing,
                                   uint32_t kernel, float *scores, uint32_t *reason);

/* =================================================================================================
 * 19. Token eviction: scores of keys, and learned ones
 *
 * Policies that need no attention: lengths and directions of keys. And a small network over
 * features of a token, whose weights are the caller's. `scores` [rows] is written anew by each
 * call.
 * ================================================================================================= */

/* Knorm: tokens with short keys are kept. `norms` [rows] are lengths of keys. O(rows). */
kvf_status kvf_evict_knorm_scores(const kvf_stream *stream, const float *norms, float *scores,
                                  uint32_t *reason);

/*
 * KeyDiff: tokens whose keys differ from the others are kept, by the cosine of each key and the sum
 * of unit keys (kvf_keysum_add). `dots` [rows] are products of keys with the sum, `norms` [rows]
 * their lengths, `sum_norm` is the sum's. O(rows).
 */
kvf_status kvf_evict_keydiff_scores(const kvf_stream *stream, const float *dots,
                                    const float *norms, float sum_norm, float *scores,
                                    uint32_t *reason);

/* Adds the direction of a key, `vector` [n], to `sum` [n]. O(n). */
kvf_status kvf_keysum_add(const float *vector, size_t n, float *sum);

/* Takes the direction of a key out again, once its token is evicted. O(n). */
kvf_status kvf_keysum_remove(const float *vector, size_t n, float *sum);

/* The length of a vector of `n` elements: of a key, or of a sum of keys. O(n). */
kvf_status kvf_keysum_norm(const float *sum, size_t n, float *norm);

#define KVF_MLP_VERSION 1 /* Version of features and weights of the learned policy. */
#define KVF_FEATURES 8    /* Features of a token: ln(1 + age); attention received, summed, and
                           * per query that saw the token; attention of the last query; |k|; |v|;
                           * rank among live tokens over their number; 1 for position 0, else 0. */

/*
 * A small network that scores tokens: w2 . hardswish(W1 x + b1) + b2, where x is (feature - mean) /
 * deviation.
 */
typedef struct kvf_mlp {
    uint32_t struct_size; /* sizeof(kvf_mlp) */
    uint32_t version;     /* KVF_MLP_VERSION */
    uint32_t features;    /* F: KVF_FEATURES */
    uint32_t hidden;      /* H, hidden units: 1 to 32. */
    const float *weights; /* means[F], deviations[F], W1[H][F], b1[H], w2[H], b2, one behind the
                           * other. Finite; deviations above 0. */
    uint32_t n_weights;   /* Elements of `weights`: 2 F + H (F + 2) + 1. */
    uint32_t reserved;    /* 0 */
} kvf_mlp;

/* What features are made of, each [rows]. */
typedef struct kvf_feature_inputs {
    uint32_t struct_size;     /* sizeof(kvf_feature_inputs) */
    uint32_t reserved;        /* 0 */
    const float *sum;         /* Attention received, summed over all queries: scores of H2O. */
    const float *last;        /* Attention of the last query: scores of TOVA. */
    const float *key_norms;   /* Lengths of keys. */
    const float *value_norms; /* Lengths of values. */
} kvf_feature_inputs;

/* The learned policy: scores of all live tokens by a network. O(rows * F * H). */
kvf_status kvf_evict_learned_scores(const kvf_stream *stream, const kvf_mlp *mlp,
                                    const kvf_feature_inputs *inputs, float *scores,
                                    uint32_t *reason);

/*
 * The features that the network sees, for those who train one: features[live][KVF_FEATURES], live
 * tokens in slot order. `n` gets the number of floats, or on KVF_ERR_SHORT_BUFFER how many there
 * would be. O(rows * F).
 */
kvf_status kvf_evict_features(const kvf_stream *stream, const kvf_feature_inputs *inputs,
                              float *features, size_t cap, size_t *n, uint32_t *reason);

/*
 * Quest: chooses the `count` columns with the highest bounds, each the greatest product with the
 * query that any of its keys can reach, and evicts nothing. The first `dense` columns and the last
 * are always among them; `count` is above `dense`. Of equal bounds the later column is chosen.
 * `bounds` [n] and `chosen` [n] are one per column; `chosen` gets 1 or 0, `n_chosen` how many. At
 * most 64 passes over the columns.
 */
kvf_status kvf_evict_quest_columns(const float *bounds, size_t n, uint32_t count, uint32_t dense,
                                   uint8_t *chosen, uint32_t *n_chosen, uint32_t *reason);

/* =================================================================================================
 * 20. Token eviction: budgets
 *
 * How layers, or the heads of a layer, share tokens. Sums are exact. `least` is the fewest tokens
 * of one layer (0 = 1), `most` the most (0 = no limit); KVF_ERR_ARGUMENT where no budgets of the
 * wanted sum keep them. O(layers^2).
 * ================================================================================================= */

/* The same for all `n` layers, and what is left over to the first ones: `total` tokens. */
kvf_status kvf_budget_uniform(uint64_t total, uint32_t *budgets, size_t n, uint32_t *reason);

/*
 * PyramidKV: `mean` tokens a layer, which fall from layer to layer in equal steps, from 2 mean -
 * mean / beta to mean / beta. `beta` is 1 to 65,536, and there are as many layers at most.
 */
kvf_status kvf_budget_pyramid(uint32_t mean, uint32_t beta, uint32_t least, uint32_t most,
                              uint32_t *budgets, size_t n, uint32_t *reason);

/*
 * `total` tokens, below 2^48, in proportion to a weight of each layer, at most 2^40: a wish, or a
 * measured sensitivity. The rest of the division goes to the largest remainders, of equal ones to
 * the lower layer. Where all weights are 0 all are equal. At most 65,536 layers.
 */
kvf_status kvf_budget_by_weight(uint64_t total, const uint64_t *weights, size_t n, uint32_t least,
                                uint32_t most, uint32_t *budgets, uint32_t *reason);

/*
 * Ada-KV: `mean` tokens a head on average over `n` heads, at least `floor` for each; the rest goes
 * to the tokens with the highest scores of all heads, which lie in channel `channel` of the
 * features of each stream. Of equal scores the newer token is in, then that of the lower head. 65
 * passes over the tokens: for the end of a prompt, not for each step.
 */
kvf_status kvf_budget_by_head_scores(const kvf_stream *streams, size_t n, uint32_t channel,
                                     uint32_t mean, uint32_t floor, const kvf_protected *guarded,
                                     uint32_t *budgets, uint32_t *reason);

/* =================================================================================================
 * 21. Token eviction: what it costs
 *
 * The attention that evicted tokens would have had, their mass m: the output over all tokens is (1
 * - m) kept + m evicted, each over its tokens alone; the output after eviction is the kept part.
 * ================================================================================================= */

/*
 * The mass that a row of probabilities [rows] gives to live tokens that `keep` [used] does not
 * keep: what evicting them would lose. O(rows).
 */
kvf_status kvf_evict_mass_of_row(const kvf_stream *stream, const float *probabilities,
                                 const uint64_t *keep, float *mass, uint32_t *reason);

/*
 * The mass of what goes, 0 to 1, from the logarithms of the sums of exponentials over what is kept
 * and over all tokens.
 */
float kvf_evict_mass_of_lse(float kept, float all);

/* The error that eviction makes in an output of `n` elements: mass * (kept - evicted). O(n). */
kvf_status kvf_evict_output_error(float mass, const float *kept, const float *evicted, size_t n,
                                  float *error);

/* =================================================================================================
 * 22. Keys of pages
 *
 * What others know pages by: chained hashes of tokens, made without a cache. A router that hashes a
 * prompt as a cache does finds in that cache's events which pages it holds. Everything hashed is
 * little-endian.
 * ================================================================================================= */

#define KVF_KEY_BYTES 32 /* Bytes of a long key. */

/*
 * The key before the first page of a namespace, for a cache with this seed: xxh3-64 of the 64 bytes
 * of tenant, model, adapter, adapter_generation and format, with the seed; 1 for 0. O(1).
 */
kvf_status kvf_keychain_begin(const kvf_namespace_key *ns_key, uint64_t seed, uint64_t *key);

/*
 * The key of the page with these tokens, 1 to 256, that begins at token `start` behind the page
 * with key `parent`, as kvf_event has it: xxh3-64 of the tokens, 4 bytes each, with the parent for
 * a seed; then, for each span that begins in the page and for each word w of start * 2^32 + length
 * and digest[4], k = (k ^ w) * 0x9e3779b97f4a7c15, k = k ^ (k >> 29); 1 for 0. `spans` ascend. O(n
 * + n_spans).
 */
kvf_status kvf_keychain_next(uint64_t parent, uint32_t start, const kvf_token *tokens, size_t n,
                             const kvf_media_span *spans, size_t n_spans, uint64_t *key);

/*
 * The long key [KVF_KEY_BYTES] before the first page of a namespace: SHA-256 of "kvfolio key 1", a
 * zero byte, and the 64 bytes that kvf_keychain_begin hashes. For stores that many write to. O(1).
 */
kvf_status kvf_keychain_begin_long(const kvf_namespace_key *ns_key, uint8_t *key);

/*
 * The long key of a page: SHA-256 of `parent` [KVF_KEY_BYTES], the number of tokens (4 bytes), the
 * tokens, the number of spans that begin in the page (4 bytes), and their start, length and digest.
 * `key` [KVF_KEY_BYTES] may be `parent`. Arguments as for kvf_keychain_next. O(n + n_spans).
 */
kvf_status kvf_keychain_next_long(const uint8_t *parent, uint32_t start, const kvf_token *tokens,
                                  size_t n, const kvf_media_span *spans, size_t n_spans,
                                  uint8_t *key);

#ifdef __cplusplus
}
#endif

#endif /* KVFOLIO_H */
