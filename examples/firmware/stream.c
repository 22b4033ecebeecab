#include "stream.h"

#include <stddef.h>

#include <kvfolio.h>

#include "stack.h"
#include "text.h"

enum {
    PAGES = 64,
    PAGE_TOKENS = 4,
    SEQUENCES = 8,
    TICKETS = 4,
    LONGEST = 60, /* tokens of a sequence at most */
    COMMON = 12,  /* tokens that all families have in common */
    FAMILIES = 3,
    BATCH = 6, /* tokens that one step adds to a sequence at most */
    ROW = (LONGEST + BATCH) / PAGE_TOKENS + 2,
    GROUPS = 2
};

static _Alignas(64) unsigned char memory[40 * 1024]; /* the cache lives here */
static kvf_cache *cache;
static kvf_shortage shortage = {.struct_size = sizeof shortage};
static uint64_t outputs; /* checksum of all that the library said */
static uint32_t state;   /* of the random numbers */
static kvf_tick now;
static int wrong; /* an answer was one that must not be */
static kvf_status answer;

/* What is open. A sequence's tokens follow from its family, so that many begin alike. */
static struct {
    kvf_seq id; /* 0 = not open */
    uint32_t len;
    uint32_t family;
} open[SEQUENCES];
static kvf_transfer transfer; /* 0 = none */

static uint32_t below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % n;
}

static void fold(uint64_t value)
{
    outputs = (outputs ^ value) * 0x100000001b3u;
}

/* Full memory, a busy sequence and a handle that time ended belong to the stream; all else is a fault. */
static int good(const char *function, kvf_status status)
{
    text line = {.used = 0};

    fold((uint64_t)status);
    if (status == KVF_OK)
        return 1;
    if (kvf_status_is_capacity(status) || status == KVF_ERR_BUSY || status == KVF_ERR_STALE ||
        status == KVF_ERR_WINDOW_LOST)
        return 0;
    text_add(&line, function);
    text_add(&line, ": ");
    text_add(&line, kvf_status_name(status));
    text_end(&line);
    wrong = 1;
    return 0;
}

/* 1 = the call did what it was asked. */
#define CALL(function, ...)                                                                                       \
    (stack_paint(), answer = function(__VA_ARGS__), stack_note(#function, stack_used()), good(#function, answer))

static uint32_t tokens[LONGEST + BATCH];

/* Tokens `from` to `from + n` - 1 of a family. */
static void write_tokens(uint32_t family, uint32_t from, uint32_t n)
{
    uint32_t i;

    for (i = 0; i < n; i++)
        tokens[i] = from + i < COMMON ? from + i : 1000 * (family + 1) + from + i;
}

static int start(int indexed)
{
    static kvf_pool_config pool = {.struct_size = sizeof pool, .pages = PAGES};
    static kvf_group_config groups[GROUPS] = {
        {.struct_size = sizeof groups[0], .page_tokens = PAGE_TOKENS},
        {.struct_size = sizeof groups[0], .kind = KVF_GROUP_WINDOW, .page_tokens = PAGE_TOKENS, .window = 12, .sinks = 4},
    };
    static kvf_config cfg = {.struct_size = sizeof cfg, .abi_version = KVF_ABI_VERSION, .pools = &pool, .groups = groups,
                             .n_pools = 1, .n_groups = GROUPS, .sequences = SEQUENCES, .tickets = TICKETS,
                             .transfers = 1, .plan_tokens = SEQUENCES * BATCH};
    text line = {.used = 0};
    size_t bytes = 0, align = 0;

    cfg.index = indexed ? KVF_INDEX_TREE : KVF_INDEX_NONE;
    cfg.flags = indexed ? KVF_CONFIG_PARTIAL_TAIL : 0;
    cfg.events = indexed ? 16 : 0;
    cfg.leases = indexed ? 2 : 0;
    if (!CALL(kvf_cache_required_size, &cfg, &bytes, &align))
        return 0;
    text_add(&line, "memory ");
    text_add_number(&line, (uint32_t)bytes);
    text_end(&line);
    outputs = 0xcbf29ce484222325u; /* sizes are no part of it */
    return CALL(kvf_cache_init, memory, sizeof memory, &cfg, &cache);
}

static uint32_t free_slot(void)
{
    uint32_t i = 0;

    while (i < SEQUENCES && open[i].id != 0)
        i++;
    return i;
}

static void open_sequence(void)
{
    kvf_prompt prompt = {.struct_size = sizeof prompt, .tokens = tokens};
    uint32_t slot = free_slot(), hit = 0, family = below(FAMILIES);
    kvf_ticket ticket = 0;

    prompt.n_tokens = 1 + below(LONGEST);
    write_tokens(family, 0, prompt.n_tokens);
    if (CALL(kvf_prefix_lookup, cache, &prompt, prompt.n_tokens - 1, &hit))
        fold(hit);
    if (slot == SEQUENCES ||
        !CALL(kvf_prefix_match, cache, &prompt, prompt.n_tokens - 1, now + 2, &ticket, &hit, &shortage))
        return;
    fold(hit);
    if (below(8) == 0) {
        CALL(kvf_prefix_drop, cache, ticket);
    } else if (CALL(kvf_seq_open_ticket, cache, ticket, NULL, &open[slot].id, &shortage)) {
        open[slot].len = hit;
        open[slot].family = family;
    }
}

static void close_sequence(uint32_t slot)
{
    if (CALL(kvf_seq_close, cache, open[slot].id, below(3) == 0 ? KVF_CLOSE_DISCARD : KVF_CLOSE_KEEP))
        open[slot].id = 0;
}

/* The child goes on as another family does. */
static void fork_sequence(uint32_t slot)
{
    uint32_t child = free_slot(), at = below(open[slot].len + 1);

    if (child < SEQUENCES && CALL(kvf_seq_fork, cache, open[slot].id, at, &open[child].id, 1, &shortage)) {
        open[child].len = at;
        open[child].family = below(FAMILIES);
    }
}

static void truncate_sequence(uint32_t slot)
{
    uint32_t len = below(open[slot].len + 1);

    if (CALL(kvf_seq_truncate, cache, open[slot].id, len))
        open[slot].len = len;
}

static void append_to_sequence(uint32_t slot)
{
    kvf_plan_report report = {.struct_size = sizeof report};
    uint32_t n = 1 + below(BATCH);

    write_tokens(open[slot].family, open[slot].len, n);
    if (open[slot].len + n <= LONGEST && CALL(kvf_seq_append, cache, open[slot].id, tokens, n, &report, &shortage)) {
        open[slot].len += n;
        fold(report.copies);
        fold(report.evicted);
    }
}

/* What a kernel would get for the finished plan. */
static void read_plan(const kvf_seq *seqs, uint32_t n)
{
    static kvf_page_copy copies[SEQUENCES * GROUPS];
    static int64_t slots[SEQUENCES * BATCH];
    static int32_t positions[SEQUENCES * BATCH], table[SEQUENCES * ROW];
    uint32_t group;
    size_t count = 0, i;

    if (CALL(kvf_plan_copies, cache, copies, SEQUENCES * GROUPS, &count))
        for (i = 0; i < count; i++)
            fold(((uint64_t)copies[i].source << 32 | copies[i].target) + copies[i].tokens);
    for (group = 0; group < GROUPS; group++) {
        if (CALL(kvf_table_slots, cache, group, slots, positions, SEQUENCES * BATCH, &count))
            for (i = 0; i < count; i++)
                fold((uint64_t)slots[i] << 8 ^ (uint64_t)positions[i]);
        if (CALL(kvf_table_dense, cache, group, seqs, n, ROW, -1, table, SEQUENCES * ROW))
            for (i = 0; i < (size_t)n * ROW; i++)
                fold((uint64_t)table[i]);
    }
}

static void step(void)
{
    static kvf_accept accepts[SEQUENCES];
    static kvf_seq seqs[SEQUENCES];
    static uint32_t slots[SEQUENCES];
    kvf_plan_report report = {.struct_size = sizeof report};
    uint32_t slot, n = 0, i;

    if (!CALL(kvf_plan_begin, cache, now))
        return;
    for (slot = 0; slot < SEQUENCES; slot++) {
        uint32_t count = 1 + below(BATCH);
        if (open[slot].id == 0 || open[slot].len + count > LONGEST || below(4) == 0)
            continue;
        write_tokens(open[slot].family, open[slot].len, count);
        if (!CALL(kvf_plan_add, cache, open[slot].id, count, tokens, &shortage))
            continue;
        accepts[n].accepted = below(count + 1);
        accepts[n].verified = accepts[n].accepted;
        seqs[n] = open[slot].id;
        slots[n++] = slot;
    }
    if (below(8) == 0) {
        CALL(kvf_plan_cancel, cache);
        return;
    }
    if (!CALL(kvf_plan_finish, cache, &report))
        return;
    fold(report.evicted);
    read_plan(seqs, n);
    if (below(8) == 0) {
        CALL(kvf_plan_abort, cache);
        return;
    }
    if (CALL(kvf_plan_commit, cache, accepts, n))
        for (i = 0; i < n; i++)
            open[slots[i]].len += accepts[i].accepted;
}

static void transfer_or_end(uint32_t slot)
{
    if (transfer != 0) {
        if (CALL(kvf_io_end, cache, transfer, below(4) == 0 ? KVF_IO_FAILED : KVF_IO_OK))
            transfer = 0;
    } else if (open[slot].len > 0) {
        CALL(kvf_io_begin_seq, cache, open[slot].id, 0, open[slot].len, below(2), &transfer, &shortage);
    }
}

static void evict(void)
{
    uint32_t freed = 0;

    if (CALL(kvf_cache_evict, cache, 0, 1 + below(4), &freed))
        fold(freed);
}

static void look(uint32_t slot)
{
    static kvf_event events[4];
    kvf_seq_info info = {.struct_size = sizeof info};
    kvf_pool_stats pool = {.struct_size = sizeof pool};
    size_t n = 0, i;
    uint64_t lost = 0;

    if (CALL(kvf_seq_info_read, cache, open[slot].id, &info)) {
        fold(info.len);
        fold(info.published);
        open[slot].len = info.len;
    }
    if (CALL(kvf_pool_stats_read, cache, 0, &pool))
        fold((uint64_t)pool.used << 32 | pool.cached);
    if (CALL(kvf_events_read, cache, events, 4, &n, &lost))
        for (i = 0; i < n; i++)
            fold(events[i].key + events[i].kind);
    fold(lost);
}

static void operation(void)
{
    uint32_t slot = below(SEQUENCES), what = below(16);

    now += below(2);
    if (what < 4)
        step();
    else if (what == 4)
        evict();
    else if (what < 7 || open[slot].id == 0)
        open_sequence();
    else if (what < 9)
        append_to_sequence(slot);
    else if (what < 11)
        fork_sequence(slot);
    else if (what == 11)
        truncate_sequence(slot);
    else if (what == 12)
        transfer_or_end(slot);
    else if (what == 13)
        look(slot);
    else
        close_sequence(slot);
}

/* One line, if the cache is sound. */
static void report(uint32_t operations)
{
    static uint32_t scratch[1024];
    kvf_violation violation = {.struct_size = sizeof violation};
    text line = {.used = 0};
    uint64_t digest = 0;

    if (!CALL(kvf_cache_check, cache, 2, scratch, 1024, NULL, &violation) || !CALL(kvf_cache_digest, cache, &digest))
        return;
    text_add(&line, "op ");
    text_add_number(&line, operations);
    text_add(&line, " digest ");
    text_add_hex(&line, digest);
    text_add(&line, " outputs ");
    text_add_hex(&line, outputs);
    text_end(&line);
}

int stream_run(uint32_t seed, int indexed)
{
    uint32_t done;

    state = seed;
    if (!start(indexed))
        return 1;
    for (done = 1; done <= STREAM_OPERATIONS && !wrong; done++) {
        operation();
        if (done % STREAM_REPORT == 0)
            report(done);
    }
    stack_report();
    return wrong;
}
