/*
 * calls.c - what single calls cost through the C interface
 *
 * Prints, in nanoseconds, best of many rounds: kvf_seq_info_read; kvf_seq_append_batch of one token for each of 256
 * sequences, per sequence; kvf_table_changed over 256 rows. bench/src/calls.rs does the same through the Rust interface.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kvfolio.h"

enum { PAGES = 65536, BATCH = 256, PROMPT = 512, ROUNDS = 24, STEPS = 32, REPEATS = 64 };

static kvf_seq seqs[BATCH];
static kvf_plan_item items[BATCH];
static kvf_row_query queries[BATCH];
static kvf_row_delta deltas[BATCH];
static int32_t entries[BATCH * 64];
static uint32_t tokens[BATCH][PROMPT + BATCH];

static void must(kvf_status status, int line)
{
    if (status != KVF_OK) {
        fprintf(stderr, "line %d: %s\n", line, kvf_status_text(status));
        exit(1);
    }
}
#define MUST(call) must((call), __LINE__)

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static kvf_cache *make_cache(void)
{
    kvf_pool_config pool = {.struct_size = sizeof pool, .pages = PAGES};
    kvf_group_config group = {.struct_size = sizeof group};
    kvf_config cfg = {.struct_size = sizeof cfg, .abi_version = KVF_ABI_VERSION,
                      .pools = &pool, .groups = &group, .n_pools = 1, .n_groups = 1,
                      .sequences = BATCH, .tickets = 8};
    size_t bytes, align;
    kvf_cache *cache;
    void *mem;

    MUST(kvf_cache_required_size(&cfg, &bytes, &align));
    mem = aligned_alloc(align, (bytes + align - 1) / align * align);
    if (!mem)
        exit(1);
    MUST(kvf_cache_init(mem, bytes, &cfg, &cache));
    return cache;
}

/* Sequences of PROMPT tokens, and up to BATCH - 1 more where `uneven`. */
static void open_all(kvf_cache *cache, int uneven)
{
    size_t i, k;

    for (i = 0; i < BATCH; i++) {
        for (k = 0; k < PROMPT + BATCH; k++)
            tokens[i][k] = (uint32_t)(i * 1000 + k);
        MUST(kvf_seq_open(cache, NULL, &seqs[i], NULL));
        MUST(kvf_seq_append(cache, seqs[i], tokens[i], PROMPT + (uneven ? i : 0), NULL, NULL));
        items[i].seq = queries[i].seq = seqs[i];
        items[i].tokens = tokens[i];
        items[i].count = 1;
    }
}

static void close_all(kvf_cache *cache)
{
    size_t i;

    for (i = 0; i < BATCH; i++)
        MUST(kvf_seq_close(cache, seqs[i], KVF_CLOSE_KEEP));
}

/* What the rows showed before the last step. */
static void show(kvf_cache *cache)
{
    kvf_delta_report report = {.struct_size = sizeof report};
    size_t i;

    for (i = 0; i < BATCH; i++)
        queries[i].since = 0;
    MUST(kvf_table_changed(cache, 0, queries, BATCH, deltas, BATCH, entries, BATCH * 64, &report));
    for (i = 0; i < BATCH; i++)
        queries[i].since = report.version;
    MUST(kvf_seq_append_batch(cache, items, BATCH, NULL, NULL));
}

static double info_ns(kvf_cache *cache)
{
    kvf_seq_info info = {.struct_size = sizeof info};
    double start = now();
    int i, k;

    for (k = 0; k < REPEATS; k++)
        for (i = 0; i < BATCH; i++)
            MUST(kvf_seq_info_read(cache, seqs[i], &info));
    return (now() - start) / (REPEATS * BATCH);
}

static double append_ns(kvf_cache *cache)
{
    double start = now();
    int k;

    for (k = 0; k < STEPS; k++)
        MUST(kvf_seq_append_batch(cache, items, BATCH, NULL, NULL));
    return (now() - start) / (STEPS * BATCH);
}

static double changed_ns(kvf_cache *cache)
{
    kvf_delta_report report = {.struct_size = sizeof report};
    double start = now();
    int k;

    for (k = 0; k < REPEATS; k++)
        MUST(kvf_table_changed(cache, 0, queries, BATCH, deltas, BATCH, entries, BATCH * 64, &report));
    return (now() - start) / REPEATS;
}

static double lower(double a, double b) { return a < b ? a : b; }

int main(void)
{
    kvf_cache *cache = make_cache();
    double info = 1e9, append = 1e9, some = 1e9, all = 1e9;
    int round;

    for (round = 0; round < ROUNDS; round++) {
        open_all(cache, 1);
        info = lower(info, info_ns(cache));
        append = lower(append, append_ns(cache));
        show(cache);
        some = lower(some, changed_ns(cache));
        close_all(cache);
        open_all(cache, 0);
        show(cache);
        all = lower(all, changed_ns(cache));
        close_all(cache);
    }
    printf("%.3f %.3f %.1f %.1f\n", info, append, some, all);
    return 0;
}
