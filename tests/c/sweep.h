/*
 * sweep.h - what the cases that sweep.py makes run on
 *
 * A case is one call with one fault. It must answer the status that the table says, write no byte of
 * `out` (each is filled with a pattern first), and leave the digest as it was. The same call without
 * the fault must succeed at the end, so that nothing but the fault can be the reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvfolio.h"

enum { SOME = 64, PATTERN = 0xA5 };
enum { IDLE, BUILDING, FINISHED };

/* Bytes behind a struct, for sizes larger than the struct. */
#define GROWN(type) union { type s; unsigned char bytes[sizeof(type) + 16]; }

/* All that calls may write. */
static struct {
    uint32_t u32[4][SOME];
    int32_t i32[4][SOME];
    uint64_t u64[4][SOME];
    int64_t i64[SOME];
    size_t size[4];
    void *pointer[2];
    kvf_page_copy copies[SOME];
    kvf_page_ref pages[SOME];
    kvf_row_delta rows[SOME];
    kvf_event events[SOME];
    GROWN(kvf_shortage) shortage;
    GROWN(kvf_plan_report) plan_report;
    GROWN(kvf_seq_info) seq_info;
    GROWN(kvf_delta_report) delta_report;
    GROWN(kvf_ring_report) ring_report;
    GROWN(kvf_stats) stats;
    GROWN(kvf_pool_stats) pool_stats;
    GROWN(kvf_page_info) page_info;
    GROWN(kvf_violation) violation;
    unsigned char slack[64];
} out, before;

/* All that calls read. */
static struct {
    kvf_token tokens[SOME];
    kvf_seq seqs[2];
    kvf_media_span spans[2];
    kvf_pool_config pools[2];
    kvf_group_config groups[2];
    kvf_row_query queries[2];
    kvf_plan_item items[1];
    kvf_accept accepts[1];
    GROWN(kvf_config) config;
    GROWN(kvf_namespace_key) namespace_key;
    GROWN(kvf_open_params) open_params;
    GROWN(kvf_prompt) prompt;
    unsigned char slack[64];
} in;

/* Handles of a cache with something of everything, and of things that are gone. */
static struct {
    kvf_seq seq, other, gone_seq;
    kvf_ticket ticket, gone_ticket;
    kvf_transfer transfer, gone_transfer;
    kvf_lease lease, gone_lease;
    kvf_namespace space, gone_space;
} has;

static void *memory; /* of the cache; `spare` is for kvf_cache_init */
static unsigned char *spare;
static size_t bytes, align;
static kvf_cache *cache;
static uint64_t digest;
static int cases, failures;

static void must(kvf_status status, int line)
{
    if (status != KVF_OK) {
        printf("sweep.h:%d: %s\n", line, kvf_status_name(status));
        exit(1);
    }
}
#define MUST(call) must((call), __LINE__)

static void *aligned(size_t size, void **block)
{
    *block = malloc(size + 64);
    return (char *)*block + (64 - (uintptr_t)*block % 64);
}

#define SIZED(object) ((object).struct_size = sizeof(object))

/* Valid inputs, and outputs full of the pattern. */
static void reset(void)
{
    int i;

    memset(&in, 0, sizeof in);
    for (i = 0; i < SOME; i++)
        in.tokens[i] = (kvf_token)i;
    in.seqs[0] = has.seq;
    in.seqs[1] = has.other;
    in.spans[0].start = 20;
    in.spans[0].length = 2;
    in.spans[1].start = 30;
    in.spans[1].length = 1;
    SIZED(in.pools[0]);
    in.pools[0].pages = 16;
    SIZED(in.pools[1]);
    in.pools[1].pages = 12;
    SIZED(in.groups[0]);
    in.groups[0].page_tokens = 4;
    SIZED(in.groups[1]);
    in.groups[1].page_tokens = 4;
    in.groups[1].pool = 1;
    in.groups[1].kind = KVF_GROUP_WINDOW;
    in.groups[1].window = 8;
    in.queries[0].seq = has.seq;
    in.queries[1].seq = has.other;
    in.items[0].seq = has.seq;
    in.items[0].tokens = in.tokens + 10;
    in.items[0].count = 2;
    in.accepts[0].accepted = 2;
    in.accepts[0].verified = 2;
    SIZED(in.config.s);
    in.config.s.abi_version = KVF_ABI_VERSION;
    in.config.s.pools = in.pools;
    in.config.s.groups = in.groups;
    in.config.s.n_pools = 2;
    in.config.s.n_groups = 2;
    in.config.s.sequences = 6;
    in.config.s.tickets = 4;
    in.config.s.transfers = 4;
    in.config.s.namespaces = 4;
    in.config.s.key_parts = 8;
    in.config.s.events = 8;
    in.config.s.leases = 2;
    in.config.s.quotas = 2;
    in.config.s.classes = 2;
    in.config.s.flags = KVF_CONFIG_PARTIAL_TAIL | KVF_CONFIG_SCRUB;
    SIZED(in.namespace_key.s);
    in.namespace_key.s.tenant[0] = 9;
    SIZED(in.open_params.s);
    in.open_params.s.spans = in.spans;
    in.open_params.s.n_spans = 2;
    SIZED(in.prompt.s);
    in.prompt.s.tokens = in.tokens;
    in.prompt.s.n_tokens = 10;
    in.prompt.s.spans = in.spans;
    in.prompt.s.n_spans = 2;

    memset(&out, PATTERN, sizeof out);
    SIZED(out.shortage.s);
    SIZED(out.plan_report.s);
    SIZED(out.seq_info.s);
    SIZED(out.delta_report.s);
    SIZED(out.ring_report.s);
    SIZED(out.stats.s);
    SIZED(out.pool_stats.s);
    SIZED(out.page_info.s);
    SIZED(out.violation.s);
}

static uint64_t digest_now(void)
{
    uint64_t now = 0;

    MUST(kvf_cache_digest(cache, &now));
    return now;
}

/* A cache with two forked sequences of 10 tokens and one of each other thing, its plan in `state`. */
static void build(int state)
{
    static void *blocks[2];
    kvf_prompt none;
    kvf_accept accept;
    uint32_t hit;

    free(blocks[0]);
    free(blocks[1]);
    memset(&has, 0, sizeof has);
    reset();
    MUST(kvf_cache_required_size(&in.config.s, &bytes, &align));
    memory = aligned(bytes, &blocks[0]);
    spare = aligned(bytes, &blocks[1]);
    memset(spare, PATTERN, bytes);
    MUST(kvf_cache_init(memory, bytes, &in.config.s, &cache));

    in.namespace_key.s.tenant[0] = 1;
    MUST(kvf_namespace_open(cache, &in.namespace_key.s, &has.gone_space, NULL));
    MUST(kvf_namespace_close(cache, has.gone_space));
    MUST(kvf_namespace_open(cache, &in.namespace_key.s, &has.space, NULL));

    MUST(kvf_seq_open(cache, NULL, &has.gone_seq, NULL));
    MUST(kvf_seq_close(cache, has.gone_seq, KVF_CLOSE_KEEP));
    MUST(kvf_seq_open(cache, NULL, &has.seq, NULL));
    MUST(kvf_seq_append(cache, has.seq, in.tokens, 10, NULL, NULL));
    MUST(kvf_seq_fork(cache, has.seq, 10, &has.other, 1, NULL));

    memset(&none, 0, sizeof none);
    SIZED(none);
    none.tokens = in.tokens;
    none.n_tokens = 10;
    MUST(kvf_prefix_match(cache, &none, 10, 0, &has.gone_ticket, &hit, NULL));
    MUST(kvf_prefix_drop(cache, has.gone_ticket));
    MUST(kvf_prefix_match(cache, &none, 10, KVF_NO_DEADLINE, &has.ticket, &hit, NULL));
    MUST(kvf_io_begin_seq(cache, has.seq, 0, 4, KVF_IO_STORE, &has.gone_transfer, NULL));
    MUST(kvf_io_end(cache, has.gone_transfer, KVF_IO_OK));
    MUST(kvf_io_begin_seq(cache, has.seq, 0, 4, KVF_IO_STORE, &has.transfer, NULL));
    MUST(kvf_retain_lease(cache, has.seq, 4, 99, &has.gone_lease, NULL));
    MUST(kvf_retain_end(cache, has.gone_lease));
    MUST(kvf_retain_lease(cache, has.seq, 4, 99, &has.lease, NULL));

    if (state != IDLE) {
        MUST(kvf_plan_begin(cache, 5));
        memset(&accept, 0, sizeof accept);
        if (state == FINISHED) {
            MUST(kvf_plan_add(cache, has.seq, 2, in.tokens + 10, NULL));
            MUST(kvf_plan_finish(cache, NULL));
        }
    }
    reset();
    digest = digest_now();
}

/* Before a call: what `out` holds now must be there afterwards. */
static void ready(void)
{
    memcpy(&before, &out, sizeof out);
}

static int spare_is_untouched(void)
{
    size_t i;

    for (i = 0; i < bytes; i++)
        if (spare[i] != PATTERN)
            return 0;
    return 1;
}

static void judge(const char *what, kvf_status got, kvf_status want, const void *may, size_t size)
{
    size_t at = may ? (size_t)((const char *)may - (const char *)&out) : 0;
    const char *wrong = NULL;

    cases++;
    if (may) /* what the function's text says is written on this failure */
        memcpy((char *)&before + at, may, size);
    if (got != want)
        wrong = kvf_status_name(got);
    else if (memcmp(&before, &out, sizeof out) != 0)
        wrong = "an output was written";
    else if (digest_now() != digest)
        wrong = "the cache was changed";
    else if (!spare_is_untouched())
        wrong = "memory was written";
    if (wrong) {
        digest = digest_now();
        printf("%s: want %s: %s\n", what, kvf_status_name(want), wrong);
        failures++;
    }
    reset();
}
