/*
 * minimal.c - the smallest engine: one request after another, greedy, batch of one
 *
 * The "model" here predicts (last token + 1) % 50 and stores each token's id as its key, so that
 * reading the keys back through the page table shows whether the cache told the truth.
 *
 *   cc -Iinclude tests/c/minimal.c libkvfolio.a
 */
#include <stdio.h>
#include <stdlib.h>

#include "kvfolio.h"

enum { PAGES = 32, PAGE_TOKENS = 4, MOST_TOKENS = 64, ROW = MOST_TOKENS / PAGE_TOKENS };

static uint32_t keys[(PAGES + 1) * PAGE_TOKENS]; /* device memory: one number per slot */

static void must(kvf_status status, int line)
{
    if (status != KVF_OK) {
        fprintf(stderr, "line %d: %s: %s\n", line, kvf_status_name(status), kvf_status_text(status));
        exit(1);
    }
}
#define MUST(call) must((call), __LINE__)

static kvf_cache *make_cache(void **mem)
{
    kvf_pool_config pool = {.struct_size = sizeof pool, .pages = PAGES};
    kvf_group_config group = {.struct_size = sizeof group, .page_tokens = PAGE_TOKENS};
    kvf_config cfg = {.struct_size = sizeof cfg, .abi_version = KVF_ABI_VERSION,
                      .pools = &pool, .groups = &group, .n_pools = 1, .n_groups = 1,
                      .sequences = 4, .tickets = 4};
    size_t bytes, align;
    kvf_cache *cache;

    MUST(kvf_cache_required_size(&cfg, &bytes, &align));
    *mem = aligned_alloc(align, bytes);
    MUST(kvf_cache_init(*mem, bytes, &cfg, &cache));
    return cache;
}

/* One step: room for `n` tokens of a sequence, "compute" them, keep them all. */
static void step(kvf_cache *cache, kvf_tick now, kvf_seq seq, const uint32_t *tokens, uint32_t n)
{
    kvf_plan_report report = {.struct_size = sizeof report};
    kvf_page_copy copies[4];
    int64_t slots[MOST_TOKENS];
    int32_t positions[MOST_TOKENS];
    kvf_accept accept = {.accepted = n, .verified = n};
    size_t count, i, k;

    MUST(kvf_plan_begin(cache, now));
    MUST(kvf_plan_add(cache, seq, n, tokens, NULL));
    MUST(kvf_plan_finish(cache, &report));
    MUST(kvf_plan_copies(cache, copies, 4, &count));
    for (i = 0; i < count; i++)
        for (k = 0; k < copies[i].tokens; k++)
            keys[copies[i].target * PAGE_TOKENS + k] = keys[copies[i].source * PAGE_TOKENS + k];
    MUST(kvf_table_slots(cache, 0, slots, positions, MOST_TOKENS, &count));
    for (i = 0; i < count; i++)
        keys[slots[i]] = tokens[i];
    MUST(kvf_plan_commit(cache, &accept, 1));
}

/* Answers a prompt of `n` tokens with `extra` more; gives how many tokens were cached. */
static uint32_t serve(kvf_cache *cache, kvf_tick *now, uint32_t *tokens, uint32_t n, uint32_t extra)
{
    kvf_prompt prompt = {.struct_size = sizeof prompt, .n_tokens = n, .tokens = tokens};
    int32_t row[ROW];
    kvf_ticket ticket;
    kvf_seq seq;
    uint32_t hit, i;

    MUST(kvf_prefix_match(cache, &prompt, n - 1, KVF_NO_DEADLINE, &ticket, &hit, NULL));
    MUST(kvf_seq_open_ticket(cache, ticket, NULL, &seq, NULL));
    step(cache, ++*now, seq, tokens + hit, n - hit); /* prefill what was not cached */
    for (i = 0; i < extra; i++) {                    /* decode */
        tokens[n + i] = (tokens[n + i - 1] + 1) % 50;
        step(cache, ++*now, seq, tokens + n + i, 1);
    }
    MUST(kvf_table_dense(cache, 0, &seq, 1, ROW, -1, row, ROW));
    for (i = 0; i < n + extra; i++) {
        if (keys[row[i / PAGE_TOKENS] * PAGE_TOKENS + i % PAGE_TOKENS] != tokens[i]) {
            fprintf(stderr, "token %u was not read back\n", (unsigned)i);
            exit(1);
        }
    }
    MUST(kvf_seq_close(cache, seq, KVF_CLOSE_KEEP));
    return hit;
}

int main(void)
{
    uint32_t first[MOST_TOKENS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    uint32_t second[MOST_TOKENS] = {1, 2, 3, 4, 5, 6, 7, 8, 30, 31};
    void *mem;
    kvf_cache *cache = make_cache(&mem);
    kvf_tick now = 0;
    uint32_t cold = serve(cache, &now, first, 10, 7);
    uint32_t warm = serve(cache, &now, second, 10, 7);
    uint32_t again = serve(cache, &now, first, 17, 3);

    printf("cached tokens: %u, %u, %u\n", (unsigned)cold, (unsigned)warm, (unsigned)again);
    MUST(kvf_cache_deinit(cache));
    free(mem);
    return cold == 0 && warm == 8 && again == 16 ? 0 : 1;
}
