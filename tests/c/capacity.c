/*
 * capacity.c - running out of each thing that the configuration counts
 *
 * Every shortage must name what is short and leave the digest alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvfolio.h"

enum { PAGES = 12, PAGE_TOKENS = 4, SEQUENCES = 4 };

static int failures;
static uint32_t tokens[64];
static kvf_shortage shortage;

#define CHECK(condition) check((condition), #condition, __LINE__)

static void check(int good, const char *what, int line)
{
    if (!good) {
        printf("capacity.c:%d: %s\n", line, what);
        failures++;
    }
}

static uint64_t digest(const kvf_cache *cache)
{
    uint64_t value = 0;
    CHECK(kvf_cache_digest(cache, &value) == KVF_OK);
    return value;
}

/* Where a call writes the details of a shortage: cleared before each. */
static kvf_shortage *details(void)
{
    memset(&shortage, 0xEE, sizeof shortage);
    shortage.struct_size = sizeof shortage;
    return &shortage;
}

static kvf_cache *make(void **mem)
{
    kvf_pool_config pool = {.struct_size = sizeof pool, .pages = PAGES};
    kvf_group_config group = {.struct_size = sizeof group, .page_tokens = PAGE_TOKENS};
    kvf_config cfg = {.struct_size = sizeof cfg, .abi_version = KVF_ABI_VERSION,
                      .pools = &pool, .groups = &group, .n_pools = 1, .n_groups = 1,
                      .sequences = SEQUENCES, .tickets = 2, .transfers = 1, .namespaces = 2,
                      .key_parts = 2, .leases = 1, .plan_tokens = 40};
    kvf_cache *cache = NULL;
    size_t bytes = 0, align = 0;

    CHECK(kvf_cache_required_size(&cfg, &bytes, &align) == KVF_OK);
    *mem = aligned_alloc(align, bytes);
    if (*mem == NULL || kvf_cache_init(*mem, bytes, &cfg, &cache) != KVF_OK)
        exit(1);
    return cache;
}

static void handles(kvf_cache *cache, kvf_seq *seqs)
{
    kvf_prompt prompt = {.struct_size = sizeof prompt, .n_tokens = 9, .tokens = tokens};
    kvf_namespace_key key = {.struct_size = sizeof key, .model = 7};
    kvf_media_span spans[3] = {{20, 1, {1}}, {21, 1, {2}}, {22, 1, {3}}};
    kvf_seq none = 0;
    kvf_ticket ticket = 0;
    kvf_transfer transfer = 0;
    kvf_lease lease = 0;
    kvf_namespace ns = 0;
    uint32_t hit = 0, i;
    uint64_t before;

    for (i = 0; i < SEQUENCES; i++)
        CHECK(kvf_seq_open(cache, NULL, &seqs[i], NULL) == KVF_OK);
    before = digest(cache);
    CHECK(kvf_seq_open(cache, NULL, &none, details()) == KVF_RETRY && none == 0);
    CHECK(shortage.resource == KVF_RESOURCE_SEQUENCES);
    CHECK(kvf_seq_fork(cache, seqs[0], 0, &none, 1, details()) == KVF_RETRY && none == 0);
    CHECK(shortage.resource == KVF_RESOURCE_SEQUENCES);
    CHECK(kvf_seq_add_spans(cache, seqs[0], spans, 3, details()) == KVF_RETRY);
    CHECK(shortage.resource == KVF_RESOURCE_KEY_PARTS && shortage.need == 3 && shortage.have == 2);
    CHECK(digest(cache) == before);

    CHECK(kvf_seq_append(cache, seqs[0], tokens, 8, NULL, NULL) == KVF_OK);
    for (i = 0; i < 2; i++)
        CHECK(kvf_prefix_match(cache, &prompt, 8, KVF_NO_DEADLINE, &ticket, &hit, NULL) == KVF_OK);
    CHECK(hit == 8);
    CHECK(kvf_io_begin_seq(cache, seqs[0], 0, 4, KVF_IO_STORE, &transfer, NULL) == KVF_OK);
    CHECK(kvf_retain_lease(cache, seqs[0], 8, 9, &lease, NULL) == KVF_OK);
    CHECK(kvf_namespace_open(cache, &key, &ns, NULL) == KVF_OK);
    before = digest(cache);
    CHECK(kvf_prefix_match(cache, &prompt, 8, KVF_NO_DEADLINE, &ticket, &hit, details()) == KVF_RETRY);
    CHECK(shortage.resource == KVF_RESOURCE_TICKETS);
    CHECK(kvf_io_begin_seq(cache, seqs[0], 0, 4, KVF_IO_STORE, &transfer, details()) == KVF_RETRY);
    CHECK(shortage.resource == KVF_RESOURCE_TRANSFERS);
    CHECK(kvf_retain_lease(cache, seqs[0], 8, 9, &lease, details()) == KVF_RETRY);
    CHECK(shortage.resource == KVF_RESOURCE_LEASES);
    key.model = 8;
    CHECK(kvf_namespace_open(cache, &key, &ns, details()) == KVF_RETRY);
    CHECK(shortage.resource == KVF_RESOURCE_NAMESPACES);
    CHECK(kvf_namespace_set_quota(cache, ns, 0, 4, details()) == KVF_RETRY);
    CHECK(shortage.resource == KVF_RESOURCE_QUOTAS);
    CHECK(digest(cache) == before);
    CHECK(kvf_io_end(cache, transfer, KVF_IO_OK) == KVF_OK);
}

/* seqs[0] has 8 tokens in 2 of 12 pages, which tickets pin too. */
static void plans(kvf_cache *cache, const kvf_seq *seqs)
{
    kvf_plan_item items[5] = {
        {seqs[1], NULL, 16, 0}, {seqs[1], NULL, 1, 0}, {seqs[2], NULL, 100, 0},
        {77, NULL, 1, 0},       {seqs[3], NULL, 28, 0},
    };
    kvf_status statuses[5];
    kvf_accept accepts[2] = {{.accepted = 16, .verified = 16}, {.accepted = 8, .verified = 8}};
    size_t added = 0;
    uint64_t before = digest(cache);
    uint32_t most;

    /* All or nothing. */
    items[1] = items[2];
    CHECK(kvf_seq_append_batch(cache, items, 2, NULL, details()) == KVF_NEVER);
    CHECK(shortage.resource == KVF_RESOURCE_PAGES && shortage.most >= 40 && shortage.most <= 48);
    CHECK(digest(cache) == before);

    CHECK(kvf_plan_begin(cache, 1) == KVF_OK);
    before = digest(cache);
    CHECK(kvf_plan_add(cache, seqs[2], 100, NULL, NULL) == KVF_NEVER); /* nobody wants details */
    CHECK(kvf_plan_add(cache, seqs[2], 64, tokens, details()) == KVF_RETRY);
    CHECK(shortage.resource == KVF_RESOURCE_PLAN_TOKENS && shortage.need == 64 && shortage.have == 40);
    CHECK(digest(cache) == before);

    /* Those that fit are added, whatever stands between them. */
    items[1].seq = seqs[1];
    items[1].count = 1;
    CHECK(kvf_plan_add_batch(cache, items, 5, statuses, &added, details()) == KVF_OK);
    CHECK(added == 1);
    CHECK(statuses[0] == KVF_OK && statuses[1] == KVF_ERR_DUPLICATE && statuses[2] == KVF_NEVER);
    CHECK(statuses[3] == KVF_ERR_STALE && statuses[4] == KVF_RETRY);
    CHECK(shortage.resource == KVF_RESOURCE_PAGES && shortage.need == 25); /* of the first shortage */
    most = shortage.most;
    CHECK(most == 48);
    CHECK(kvf_plan_add(cache, seqs[3], 28, NULL, details()) == KVF_RETRY);
    CHECK(shortage.need == 7 && shortage.have == 6 && shortage.reclaimable == 0 && shortage.pending == 0);
    CHECK(kvf_plan_add(cache, seqs[3], 8, NULL, NULL) == KVF_OK);
    CHECK(kvf_plan_finish(cache, NULL) == KVF_OK);
    CHECK(kvf_plan_commit(cache, accepts, 2) == KVF_OK);
}

int main(void)
{
    kvf_seq seqs[SEQUENCES];
    kvf_violation violation = {.struct_size = sizeof violation};
    uint32_t scratch[256], i;
    void *mem = NULL;
    kvf_cache *cache = make(&mem);

    for (i = 0; i < 64; i++)
        tokens[i] = i + 1;
    handles(cache, seqs);
    plans(cache, seqs);
    CHECK(kvf_cache_check(cache, 2, scratch, 256, NULL, &violation) == KVF_OK);
    printf("capacity: %d failures\n", failures);
    free(mem);
    return failures == 0 ? 0 : 1;
}
