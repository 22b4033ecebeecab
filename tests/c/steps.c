/*
 * steps.c - what larger engines use: 256 sequences in one call, sealing, and the index for a router
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvfolio.h"

enum { MANY = 256, PAGES = 1024, PAGE_TOKENS = 4, KEYS = 64 };

static void must(int holds, int line)
{
    if (!holds) {
        fprintf(stderr, "steps.c:%d: does not hold\n", line);
        exit(1);
    }
}
#define MUST(what) must((what), __LINE__)

static kvf_cache *make(void **mem, uint32_t sealed_pool, uint32_t sinks)
{
    kvf_pool_config pools[2] = {{sizeof pools[0], PAGES, KVF_POLICY_LRU}, {sizeof pools[0], 16, KVF_POLICY_LRU}};
    kvf_group_config group = {.struct_size = sizeof group, .page_tokens = PAGE_TOKENS, .sealed_pool = sealed_pool,
                              .sinks = sinks};
    kvf_config cfg = {.struct_size = sizeof cfg, .abi_version = KVF_ABI_VERSION, .pools = pools, .groups = &group,
                      .n_pools = 2, .n_groups = 1, .sequences = MANY, .tickets = 2, .events = 256};
    size_t bytes, align;
    kvf_cache *cache;

    MUST(kvf_cache_required_size(&cfg, &bytes, &align) == KVF_OK);
    *mem = aligned_alloc(align, (bytes + align - 1) / align * align);
    MUST(kvf_cache_init(*mem, bytes, &cfg, &cache) == KVF_OK);
    return cache;
}

/* One call adds what fits and says what became of each. */
static void many_in_one_call(void)
{
    static kvf_plan_item items[MANY];
    static kvf_status statuses[MANY];
    static kvf_accept accepts[MANY];
    static int64_t slots[MANY];
    static int32_t positions[MANY];
    static char taken[(PAGES + 1) * PAGE_TOKENS];
    kvf_shortage shortage = {.struct_size = sizeof shortage};
    kvf_token token = 7;
    kvf_group_need need;
    size_t added, n, i;
    void *mem;
    kvf_cache *cache = make(&mem, 0, 0);

    for (i = 0; i < MANY; i++) {
        MUST(kvf_seq_open(cache, NULL, &items[i].seq, NULL) == KVF_OK);
        items[i].tokens = &token;
        items[i].count = 1;
    }
    MUST(kvf_plan_estimate(cache, items[0].seq, 9, NULL, 0, &n) == KVF_ERR_SHORT_BUFFER && n == 1);
    MUST(kvf_plan_estimate(cache, items[0].seq, 9, &need, 1, &n) == KVF_OK && n == 1);
    MUST(need.need == 3 && need.have == PAGES && need.reclaimable == 0 && need.pending == 0);
    items[100].count = PAGES * PAGE_TOKENS + 1; /* more than there is */
    items[100].tokens = NULL;
    items[200].seq = items[199].seq;
    MUST(kvf_plan_begin(cache, 1) == KVF_OK);
    MUST(kvf_plan_add_batch(cache, items, MANY, statuses, &added, &shortage) == KVF_OK);
    MUST(added == MANY - 2 && statuses[0] == KVF_OK && statuses[255] == KVF_OK);
    MUST(statuses[100] == KVF_NEVER && statuses[200] == KVF_ERR_DUPLICATE);
    MUST(shortage.struct_size == sizeof shortage && shortage.need > shortage.have);
    MUST(kvf_plan_finish(cache, NULL) == KVF_OK);
    MUST(kvf_table_slots(cache, 0, slots, positions, MANY, &n) == KVF_OK && n == added);
    for (i = 0; i < n; i++) {
        MUST(slots[i] >= PAGE_TOKENS && !taken[slots[i]] && positions[i] == 0);
        taken[slots[i]] = 1;
        accepts[i].accepted = accepts[i].verified = 1;
    }
    MUST(slots[n] == -1 && positions[n] == 0);
    MUST(kvf_plan_commit(cache, accepts, n) == KVF_OK);
    free(mem);
}

/* Full pages move to another pool, and are published from there; those of sinks stay where they are. */
static void sealing(uint32_t sinks)
{
    kvf_token tokens[11] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    kvf_prompt prompt = {.struct_size = sizeof prompt, .n_tokens = 10, .tokens = tokens};
    kvf_accept accept = {1, 1, NULL};
    kvf_page_copy copies[4];
    const uint32_t first = (sinks + PAGE_TOKENS - 1) / PAGE_TOKENS;
    uint32_t begin, end, hit, i;
    int32_t row[4];
    size_t n;
    kvf_seq seq;
    void *mem;
    kvf_cache *cache = make(&mem, 2, sinks);

    MUST(kvf_seq_open(cache, NULL, &seq, NULL) == KVF_OK);
    MUST(kvf_seq_append(cache, seq, tokens, 10, NULL, NULL) == KVF_OK);
    MUST(kvf_prefix_lookup(cache, &prompt, 10, &hit) == KVF_OK && hit == first * PAGE_TOKENS);
    MUST(kvf_table_dense(cache, 0, &seq, 1, 4, 0, row, 4) == KVF_OK);
    MUST(kvf_plan_begin(cache, 1) == KVF_OK);
    MUST(kvf_plan_seal(cache, seq, 0, 2, NULL) == KVF_ERR_PLAN_STATE);
    MUST(kvf_plan_add(cache, seq, 1, tokens + 10, NULL) == KVF_OK);
    MUST(kvf_plan_seal(cache, seq, 0, 3, NULL) == KVF_ERR_ARGUMENT); /* the third page is not full */
    MUST(kvf_plan_seal(cache, seq, 0, first, NULL) == KVF_ERR_ARGUMENT);
    MUST(kvf_plan_seal(cache, seq, 0, 2, NULL) == KVF_OK);
    MUST(kvf_plan_seal(cache, seq, 0, 2, NULL) == KVF_ERR_DUPLICATE);
    MUST(kvf_plan_finish(cache, NULL) == KVF_OK);
    MUST(kvf_plan_copies(cache, copies, 4, &n) == KVF_OK && n == 2 - first);
    for (i = 0; i < n; i++)
        MUST(copies[i].seals == 1 && copies[i].source == (uint32_t)row[first + i] && copies[i].tokens == PAGE_TOKENS);
    MUST(kvf_plan_commit(cache, &accept, 1) == KVF_OK);
    MUST(kvf_seq_sealed_columns(cache, seq, 0, &begin, &end) == KVF_OK && begin == first && end == 2);
    MUST(kvf_prefix_lookup(cache, &prompt, 10, &hit) == KVF_OK && hit == 8);
    free(mem);
}

/* A router that reads all events knows the same keys as one that asks for the snapshot. */
static void keys_for_a_router(void)
{
    static kvf_event events[KEYS], keys[KEYS];
    static uint32_t scratch[1 + PAGES / 32];
    kvf_token tokens[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    kvf_token others[12] = {1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0};
    uint64_t last, lost;
    size_t n, needed, made, i, k;
    kvf_seq seq;
    void *mem;
    kvf_cache *cache = make(&mem, 0, 0);

    MUST(kvf_events_keys(cache, scratch, 1 + PAGES / 32, NULL, 0, &n, &last) == KVF_OK && n == 0 && last == 0);
    MUST(kvf_seq_open(cache, NULL, &seq, NULL) == KVF_OK);
    MUST(kvf_seq_append(cache, seq, tokens, 12, NULL, NULL) == KVF_OK);
    MUST(kvf_seq_close(cache, seq, KVF_CLOSE_KEEP) == KVF_OK);
    MUST(kvf_seq_open(cache, NULL, &seq, NULL) == KVF_OK);
    MUST(kvf_seq_append(cache, seq, others, 12, NULL, NULL) == KVF_OK);

    MUST(kvf_events_keys(cache, scratch, 1 + PAGES / 32, keys, 2, &needed, &last) == KVF_ERR_SHORT_BUFFER);
    MUST(kvf_events_keys(cache, scratch, 1 + PAGES / 32, keys, KEYS, &n, &last) == KVF_OK && n == needed && n == 5);
    MUST(kvf_events_read(cache, events, KEYS, &made, &lost) == KVF_OK && lost == 0);
    MUST(made > 0 && events[made - 1].number == last);
    for (i = 0; i < n; i++) {
        int is_made = 0, has_parent = keys[i].parent_key == 0;
        for (k = 0; k < made; k++)
            is_made |= events[k].kind == KVF_EVENT_STORED && events[k].key == keys[i].key &&
                       events[k].parent_key == keys[i].parent_key;
        for (k = 0; k < i; k++)
            has_parent |= keys[k].key == keys[i].parent_key;
        MUST(keys[i].kind == KVF_EVENT_STORED && keys[i].group == 0 && is_made && has_parent);
    }
    free(mem);
}

int main(void)
{
    many_in_one_call();
    sealing(0);
    sealing(1);
    keys_for_a_router();
    puts("steps.c: all hold");
    return 0;
}
