/* kvf_fuzz.c - runs a scenario and looks, after every op, at all that the C interface shows */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kvf_fuzz.h"
#include "kvf_fuzz_calls.h"

enum { SEQUENCES = 16, TICKETS = 16, TRANSFERS = 8, EVENTS = 64, CHUNK = 32, SCRATCH = 1 << 14, ROW = 1024 };

void (*kvf_fuzz_on_step)(const kvf_fuzz_step *step);
void (*kvf_fuzz_on_violation)(const kvf_fuzz_step *step, const char *what);
uint64_t kvf_fuzz_digest;

static union {
    uint64_t aligns[KVF_FUZZ_MEMORY / 8 + 8];
    uint8_t bytes[KVF_FUZZ_MEMORY + 64];
} memory;
static uint32_t scratch[SCRATCH];
static kvf_fuzz_spec spec;
static kvf_fuzz_world world;
static kvf_fuzz_op op;

/* --- beginning --- */

/* A limit that the scenario leaves open is large enough for it. */
static void fill_in(kvf_config *config)
{
    uint32_t holders, pages = 0, all = 0, full = 0, sealed = 0, i;

    config->sequences = config->sequences ? config->sequences : SEQUENCES;
    config->tickets = config->tickets ? config->tickets : TICKETS;
    config->transfers = config->transfers ? config->transfers : TRANSFERS;
    config->events = config->events ? config->events : EVENTS;
    config->plan_tokens = KVF_FUZZ_TOKENS;
    for (i = 0; i < config->n_pools; i++) {
        pages = config->pools[i].pages > pages ? config->pools[i].pages : pages;
        all += config->pools[i].pages;
    }
    config->index_nodes = config->index_nodes ? config->index_nodes : 64 + 2 * all; /* unused if a group is full */
    for (i = 0; i < config->n_groups; i++) {
        full |= config->groups[i].kind == KVF_GROUP_FULL;
        sealed |= config->groups[i].sealed_pool;
    }
    if (sealed != 0 && config->plan_copies == 0)
        config->plan_copies = 2 * all + 3 * config->n_groups * config->sequences;
    if (!full && config->index_nodes > pages)
        pages = config->index_nodes;
    holders = config->sequences + config->tickets + config->transfers;
    if (config->table_chunks == 0)
        config->table_chunks = holders * (config->n_groups + 1) * (pages / CHUNK + 3);
}

static int make_cache(void)
{
    kvf_config *config = &spec.config;
    size_t bytes, align, offset;
    uint32_t i;

    if (!spec.fits || config->sequences > KVF_FUZZ_LABELS || config->tickets > 1024 || config->transfers > 1024)
        return 0;
    fill_in(config);
    if (kvf_cache_required_size(config, &bytes, &align) != KVF_OK || bytes > KVF_FUZZ_MEMORY || align > 64)
        return 0;
    offset = (64 - (uintptr_t)memory.bytes % 64) % 64;
    memset(&world, 0, sizeof world);
    world.spec = &spec;
    kvf_fuzz_must(&world, kvf_cache_init(memory.bytes + offset, bytes, config, &world.cache) == KVF_OK,
                  "what the size was told for can be made");
    for (i = 0; i < spec.n_namespaces && world.fault == NULL; i++) {
        world.namespaces[i] = UINT64_MAX; /* what the scenario has no room for must not be the default one */
        if (kvf_namespace_open(world.cache, &spec.namespaces[i], &world.namespaces[i], NULL) != KVF_OK)
            kvf_fuzz_must(&world, i + 1 >= config->namespaces, "namespaces within their limit open");
    }
    return 1;
}

/* --- after every op --- */

static void check_rules(kvf_fuzz_step *step)
{
    kvf_violation violation;
    kvf_status status;

    memset(&violation, 0, sizeof violation);
    violation.struct_size = sizeof violation;
    status = kvf_cache_check(world.cache, 2, scratch, SCRATCH, NULL, &violation);
    step->rule = violation.rule;
    step->index = violation.index;
    kvf_fuzz_must(&world, status == KVF_OK && violation.rule == 0, "kvf_cache_check finds no violation");
}

static kvf_pool_stats pool_stats(uint32_t pool)
{
    kvf_pool_stats stats;

    memset(&stats, 0, sizeof stats);
    stats.struct_size = sizeof stats;
    kvf_fuzz_must(&world, kvf_pool_stats_read(world.cache, pool, &stats) == KVF_OK, "pools can be read");
    return stats;
}

static void check_pools(void)
{
    uint32_t i;
    for (i = 0; i < spec.config.n_pools; i++) {
        kvf_pool_stats stats = pool_stats(i);
        kvf_fuzz_must(&world, (uint64_t)stats.used + stats.cached + stats.free_pages == spec.config.pools[i].pages &&
                      stats.pending <= stats.used, "used + cached + free = pages");
    }
}

/* Both forms of a row say the same, its pages are pages, and its last one is as full as the length says. */
static void check_row(uint32_t group, kvf_seq seq, uint32_t written)
{
    static int32_t dense[ROW], indices[ROW];
    const kvf_group_config *own = &spec.config.groups[group];
    uint32_t pages = 0, begin = UINT32_MAX, end = 0, i;
    int32_t indptr[2] = {-1, -1}, last = -1;
    size_t n = 0;

    kvf_fuzz_must(&world, kvf_seq_pages(world.cache, seq, group, &pages) == KVF_OK, "rows can be read");
    kvf_fuzz_must(&world, kvf_seq_sealed_columns(world.cache, seq, group, &begin, &end) == KVF_OK && begin <= end &&
                  (begin == end || (own->sealed_pool != 0 && end <= pages)), "a row's sealed columns can be read");
    if (pages > ROW)
        return;
    kvf_fuzz_must(&world, kvf_table_dense(world.cache, group, &seq, 1, ROW, -1, dense, ROW) == KVF_OK &&
                  kvf_table_csr(world.cache, group, &seq, 1, indptr, &last, indices, ROW, &n) == KVF_OK,
                  "rows can be read");
    kvf_fuzz_must(&world, n == pages && indptr[0] == 0 && indptr[1] == (int32_t)pages,
                  "both forms have the row's length");
    kvf_fuzz_must(&world, pages == (written + own->page_tokens - 1) / own->page_tokens,
                  "a row is as long as its tokens");
    kvf_fuzz_must(&world, written == 0 ? last == 0 : last == (int32_t)((written - 1) % own->page_tokens + 1),
                  "the last page has 1 to P tokens");
    for (i = 0; i < ROW; i++) {
        if (i < pages)
            kvf_fuzz_must(&world, dense[i] == indices[i] && dense[i] >= 0 &&
                          (uint32_t)dense[i] <= spec.config.pools[i >= begin && i < end ? own->sealed_pool - 1 : own->pool].pages, "both forms have the row's pages");
        else
            kvf_fuzz_must(&world, dense[i] == -1, "the rest of a dense row is padding");
    }
}

static void check_sequence(const kvf_fuzz_sequence *sequence)
{
    kvf_seq_info info;
    uint32_t i;

    if (!sequence->live || sequence->closing)
        return;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    kvf_fuzz_must(&world, kvf_seq_info_read(world.cache, sequence->handle, &info) == KVF_OK,
                  "a live sequence can be read");
    kvf_fuzz_must(&world, info.published <= info.verified && info.verified <= info.len && info.len <= info.written,
                  "published <= verified <= len <= written");
    for (i = 0; i < spec.config.n_groups && world.fault == NULL; i++)
        check_row(i, sequence->handle, info.written);
}

/* Statuses that a correct program can get; all others say that harness or library is wrong. */
static int is_expected(kvf_status status)
{
    switch (status) {
    case KVF_OK: case KVF_RETRY: case KVF_PENDING: case KVF_NEVER: case KVF_ERR_ARGUMENT: case KVF_ERR_TIME:
    case KVF_ERR_STALE: case KVF_ERR_BUSY: case KVF_ERR_DUPLICATE: case KVF_ERR_PLAN_STATE: case KVF_ERR_WINDOW_LOST:
    case KVF_ERR_UNSUPPORTED:
        return 1;
    default:
        return 0;
    }
}

static uint64_t digest_now(void)
{
    uint64_t digest = 0;
    kvf_fuzz_must(&world, kvf_cache_digest(world.cache, &digest) == KVF_OK, "a cache has a digest");
    return digest;
}

/* The digest from before the open plan began, as long as nothing but kvf_plan_add happened since. */
static struct {
    int known;
    uint64_t digest;
} begun;

static void check_step(kvf_fuzz_step *step, uint64_t before, kvf_tick tick_before)
{
    step->digest = digest_now();
    kvf_fuzz_must(&world, is_expected(step->status), "the status is one that the call can have");
    kvf_fuzz_must(&world, step->status == KVF_OK || step->digest == before, "a call that fails changes nothing");
    switch (op.kind) {
    case KVF_FUZZ_LOOKUP:
    case KVF_FUZZ_EXPORT:
    case KVF_FUZZ_RING:
    case KVF_FUZZ_DRAIN:
    case KVF_FUZZ_CHECK:
        kvf_fuzz_must(&world, step->digest == before, "reading changes nothing");
        break;
    case KVF_FUZZ_BEGIN:
        if (step->status == KVF_OK) {
            begun.known = world.tick == tick_before;
            begun.digest = before;
        }
        break;
    case KVF_FUZZ_ADD:
    case KVF_FUZZ_SEAL:
        break;
    case KVF_FUZZ_CANCEL:
        if (step->status == KVF_OK && begun.known)
            kvf_fuzz_must(&world, step->digest == begun.digest, "a cancelled plan changes nothing");
        break;
    default:
        begun.known &= step->status != KVF_OK;
    }
    check_pools();
    check_sequence(&world.sequences[op.seq]);
    check_rules(step);
}

/* --- the end: everything is given back, and nothing is left over --- */

static void give_back(void)
{
    uint32_t i;

    if (world.plan == KVF_FUZZ_BUILDING)
        kvf_fuzz_must(&world, kvf_plan_cancel(world.cache) == KVF_OK, "a plan that is built can be cancelled");
    if (world.plan == KVF_FUZZ_FINISHED)
        kvf_fuzz_must(&world, kvf_plan_abort(world.cache) == KVF_OK, "a finished plan can be aborted");
    for (i = 0; i < KVF_FUZZ_LABELS; i++) {
        if (world.transfers[i].live)
            kvf_fuzz_must(&world, kvf_io_end(world.cache, world.transfers[i].handle, KVF_IO_OK) == KVF_OK,
                          "a running transfer ends");
        if (world.tickets[i].live)
            kvf_fuzz_must(&world, kvf_prefix_drop(world.cache, world.tickets[i].handle) == KVF_OK,
                          "a live ticket drops");
        if (world.sequences[i].live && !world.sequences[i].closing)
            kvf_fuzz_must(&world, kvf_seq_close(world.cache, world.sequences[i].handle, i % 2) == KVF_OK,
                          "a live sequence closes");
    }
}

static void check_end(kvf_fuzz_step *step, const kvf_stats *empty)
{
    kvf_stats stats;
    uint32_t i;

    give_back();
    for (i = 0; i < spec.config.n_pools; i++)
        kvf_fuzz_must(&world, pool_stats(i).used == 0, "no page is used once everything is given back");
    check_rules(step);
    kvf_fuzz_must(&world, kvf_namespace_clear_all(world.cache) == KVF_OK, "the index can be cleared");
    for (i = 0; i < spec.config.n_pools; i++)
        kvf_fuzz_must(&world, pool_stats(i).free_pages == spec.config.pools[i].pages,
                      "every page is free once cleared");
    check_rules(step);
    memset(&stats, 0, sizeof stats);
    stats.struct_size = sizeof stats;
    kvf_fuzz_must(&world, kvf_stats_read(world.cache, &stats) == KVF_OK, "statistics can be read");
    kvf_fuzz_must(&world, stats.sequences == 0 && stats.tickets == 0 && stats.transfers == 0 &&
                  stats.indexed_pages == 0 && stats.free_chunks == empty->free_chunks &&
                  stats.free_key_parts == empty->free_key_parts,
                  "an emptied cache has what it began with");
}

static int report(const kvf_fuzz_step *step)
{
    if (world.fault == NULL)
        return 0;
    if (kvf_fuzz_on_violation == NULL)
        abort();
    kvf_fuzz_on_violation(step, world.fault);
    return 1;
}

int kvf_fuzz_one(const uint8_t *data, size_t len)
{
    kvf_fuzz_input in = {data, len};
    kvf_fuzz_step step;
    kvf_stats empty;
    kvf_tick tick;
    uint64_t before;

    memset(&step, 0, sizeof step);
    memset(&op, 0, offsetof(kvf_fuzz_op, tokens));
    kvf_fuzz_read_spec(&in, &spec);
    if (!make_cache())
        return -1;
    memset(&empty, 0, sizeof empty);
    empty.struct_size = sizeof empty;
    begun.known = 0;
    kvf_fuzz_digest = digest_now();
    kvf_fuzz_must(&world, kvf_stats_read(world.cache, &empty) == KVF_OK, "statistics can be read");
    for (; in.left > 0 && world.fault == NULL; step.op++) {
        before = kvf_fuzz_digest;
        tick = world.tick;
        kvf_fuzz_read_op(&in, &spec, &op);
        step.status = kvf_fuzz_call(&world, &op);
        check_step(&step, before, tick);
        kvf_fuzz_digest = step.digest;
        if (kvf_fuzz_on_step != NULL)
            kvf_fuzz_on_step(&step);
        if (world.fault != NULL)
            return report(&step);
    }
    check_end(&step, &empty);
    return report(&step);
}
