/*
 * minimal.c - the least that decodes: one pool, one group, no index. Its size is what the library costs a program that calls
 * only this; main gives 0 if all was as it must be.
 */
#include <stddef.h>

#include <kvfolio.h>

enum { PAGES = 32, PAGE_TOKENS = 4, SEQUENCES = 4, STEP = 6, ROW = 4 };

static _Alignas(64) unsigned char memory[16 * 1024];
static int64_t slots[STEP];
static int32_t positions[STEP], table[ROW];

#define MUST(call) do { if ((call) != KVF_OK) return __LINE__; } while (0)

int main(void)
{
    static kvf_pool_config pool = {.struct_size = sizeof pool, .pages = PAGES};
    static kvf_group_config group = {.struct_size = sizeof group, .page_tokens = PAGE_TOKENS};
    static kvf_config cfg = {.struct_size = sizeof cfg, .abi_version = KVF_ABI_VERSION, .pools = &pool, .groups = &group,
                             .n_pools = 1, .n_groups = 1, .sequences = SEQUENCES, .index = KVF_INDEX_NONE};
    static const kvf_accept all = {.accepted = STEP, .verified = STEP};
    static const uint32_t tokens[2] = {1, 2};
    kvf_page_copy copy;
    kvf_cache *cache;
    kvf_seq seq, child;
    size_t n;

    MUST(kvf_cache_init(memory, sizeof memory, &cfg, &cache));
    MUST(kvf_seq_open(cache, NULL, &seq, NULL));
    MUST(kvf_plan_begin(cache, 0));
    MUST(kvf_plan_add(cache, seq, STEP, NULL, NULL));
    MUST(kvf_plan_finish(cache, NULL));
    MUST(kvf_table_slots(cache, 0, slots, positions, STEP, &n));
    MUST(kvf_table_dense(cache, 0, &seq, 1, ROW, -1, table, ROW));
    MUST(kvf_plan_commit(cache, &all, 1));
    MUST(kvf_seq_fork(cache, seq, STEP, &child, 1, NULL));
    MUST(kvf_seq_append(cache, child, tokens, 2, NULL, NULL));
    MUST(kvf_plan_copies(cache, &copy, 1, &n));
    MUST(kvf_seq_truncate(cache, child, 3));
    MUST(kvf_seq_close(cache, child, KVF_CLOSE_DISCARD));
    MUST(kvf_seq_close(cache, seq, KVF_CLOSE_DISCARD));
    /* The first pages are 1 and 2; the child wrote into a copy of page 2. */
    return slots[0] == PAGE_TOKENS && slots[5] == 2 * PAGE_TOKENS + 1 && table[0] == 1 && table[1] == 2 && table[2] == -1 &&
           n == 1 && copy.source == 2 && copy.target == 3 ? 0 : 1;
}
