/*
 * two_caches.c - caches are independent: what happens in one leaves the other's digest alone
 *
 * Also: the same calls give the same digest and the same pages wherever the memory lies.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvfolio.h"

enum { TOKENS = 40 };

static void must(kvf_status status, int line)
{
    if (status != KVF_OK) {
        fprintf(stderr, "line %d: %s\n", line, kvf_status_name(status));
        exit(1);
    }
}
#define MUST(call) must((call), __LINE__)

static kvf_cache *make(void **mem, uint32_t pages, int fill)
{
    kvf_pool_config pool = {.struct_size = sizeof pool, .pages = pages};
    kvf_group_config group = {.struct_size = sizeof group, .page_tokens = 4};
    kvf_config cfg = {.struct_size = sizeof cfg, .abi_version = KVF_ABI_VERSION,
                      .pools = &pool, .groups = &group, .n_pools = 1, .n_groups = 1,
                      .sequences = 4, .tickets = 4, .events = 16, .seed = 1};
    size_t bytes, align;
    kvf_cache *cache;

    MUST(kvf_cache_required_size(&cfg, &bytes, &align));
    *mem = aligned_alloc(align, bytes);
    memset(*mem, fill, bytes); /* what was there must not matter */
    MUST(kvf_cache_init(*mem, bytes, &cfg, &cache));
    return cache;
}

static uint64_t digest(const kvf_cache *cache)
{
    uint64_t value;
    MUST(kvf_cache_digest(cache, &value));
    return value;
}

static kvf_seq append(kvf_cache *cache, uint32_t from)
{
    uint32_t tokens[TOKENS], i;
    kvf_seq seq;

    for (i = 0; i < TOKENS; i++)
        tokens[i] = from + i;
    MUST(kvf_seq_open(cache, NULL, &seq, NULL));
    MUST(kvf_seq_append(cache, seq, tokens, TOKENS, NULL, NULL));
    return seq;
}

int main(void)
{
    void *mem[3];
    kvf_cache *a = make(&mem[0], 32, 0x00), *b = make(&mem[1], 64, 0xFF), *twin = make(&mem[2], 32, 0xAA);
    uint64_t before = digest(b);
    kvf_seq seq = append(a, 1);
    int32_t row[16], twin_row[16];
    int good = 1;

    good &= digest(b) == before;
    good &= digest(a) != digest(twin);
    good &= append(twin, 1) == seq;
    good &= digest(a) == digest(twin);
    MUST(kvf_table_dense(a, 0, &seq, 1, 16, -1, row, 16));
    MUST(kvf_table_dense(twin, 0, &seq, 1, 16, -1, twin_row, 16));
    good &= memcmp(row, twin_row, sizeof row) == 0;
    append(b, 100);
    good &= digest(a) == digest(twin);
    MUST(kvf_cache_deinit(a));
    good &= kvf_seq_close(a, seq, KVF_CLOSE_KEEP) == KVF_ERR_HANDLE;
    MUST(kvf_seq_close(twin, seq, KVF_CLOSE_KEEP));
    good &= kvf_seq_close(twin, seq, KVF_CLOSE_KEEP) == KVF_ERR_STALE;
    puts(good ? "two caches: independent" : "two caches: WRONG");
    free(mem[0]);
    free(mem[1]);
    free(mem[2]);
    return good ? 0 : 1;
}
