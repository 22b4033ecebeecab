/* kvf_fuzz_spec.c - reads the configuration of a scenario */
#include <string.h>

#include "kvf_fuzz_bytes.h"

enum { MOST_LIMIT = 1 << 20 };

static void read_pool(kvf_fuzz_input *in, kvf_pool_config *pool)
{
    pool->struct_size = sizeof *pool;
    pool->pages = kvf_fuzz_num(in, 24, MOST_LIMIT) + 1;
    pool->policy = kvf_fuzz_num(in, 1, 2); /* in the order of KVF_POLICY_* */
}

static void read_group(kvf_fuzz_input *in, uint32_t version, kvf_group_config *group, uint32_t pools)
{
    memset(group, 0, sizeof *group);
    group->struct_size = sizeof *group;
    group->kind = kvf_fuzz_num(in, 2, 1);
    group->page_tokens = 1u << kvf_fuzz_num(in, 4, 8);
    group->pool = kvf_fuzz_num(in, 2, 15) % pools;
    if (group->kind == KVF_GROUP_WINDOW) {
        group->window = kvf_fuzz_num(in, 20, MOST_LIMIT) + 1;
        group->sinks = kvf_fuzz_num(in, 5, MOST_LIMIT);
    }
    group->window_keep = kvf_fuzz_flag(in, 2);
    if (version < 2)
        return;
    group->flags = kvf_fuzz_flag(in, 2) * KVF_GROUP_CONTIGUOUS;
    if (group->kind == KVF_GROUP_WINDOW && kvf_fuzz_num(in, 4, 3) == 3)
        group->ring_tokens = kvf_fuzz_num(in, 20, MOST_LIMIT) + 1;
    if (version >= 3 && group->kind == KVF_GROUP_FULL && kvf_fuzz_num(in, 4, 3) == 3) {
        uint32_t pool = kvf_fuzz_num(in, 2, 15) % pools;
        group->sealed_pool = pool == group->pool ? 0 : pool + 1;
    }
    if (version >= 4 && group->sealed_pool != 0)
        group->sinks = kvf_fuzz_num(in, 5, MOST_LIMIT);
}

static void read_groups(kvf_fuzz_input *in, kvf_fuzz_spec *spec)
{
    kvf_group_config group;
    uint32_t n = kvf_fuzz_num(in, 3, 1023) + 1, i;

    for (i = 0; i < n; i++) {
        read_group(in, spec->version, &group, spec->config.n_pools);
        if (i < KVF_FUZZ_GROUPS)
            spec->groups[i] = group;
    }
    spec->fits = n <= KVF_FUZZ_GROUPS;
    spec->config.n_groups = spec->fits ? n : KVF_FUZZ_GROUPS;
}

/* Of equal ones the first stays. */
static void read_namespaces(kvf_fuzz_input *in, kvf_fuzz_spec *spec)
{
    uint32_t n = kvf_fuzz_num(in, 2, KVF_FUZZ_NAMESPACES - 1) + 1, i, k;

    for (i = 0; i < n; i++) {
        kvf_namespace_key key;
        memset(&key, 0, sizeof key);
        key.struct_size = sizeof key;
        key.tenant[0] = kvf_fuzz_num(in, 1, UINT32_MAX);
        key.adapter_generation = kvf_fuzz_num(in, 1, UINT32_MAX);
        key.format = kvf_fuzz_num(in, 1, UINT32_MAX);
        key.adapter = (uint32_t)(i + kvf_fuzz_num(in, 1, UINT32_MAX));
        for (k = 0; k < spec->n_namespaces; k++)
            if (memcmp(&spec->namespaces[k], &key, sizeof key) == 0)
                break;
        if (k == spec->n_namespaces)
            spec->namespaces[spec->n_namespaces++] = key;
    }
}

static int has_full_group(const kvf_config *config)
{
    uint32_t i;
    for (i = 0; i < config->n_groups; i++)
        if (config->groups[i].kind == KVF_GROUP_FULL)
            return 1;
    return 0;
}

void kvf_fuzz_read_spec(kvf_fuzz_input *in, kvf_fuzz_spec *spec)
{
    kvf_config *config = &spec->config;
    uint32_t version = kvf_fuzz_byte(in), index, i;

    memset(spec, 0, sizeof *spec);
    spec->version = version >= 1 && version <= 3 ? version : 4; /* what names no version means the newest */
    config->struct_size = sizeof *config;
    config->abi_version = KVF_ABI_VERSION;
    config->pools = spec->pools;
    config->groups = spec->groups;
    index = kvf_fuzz_num(in, 8, 7);
    config->index = index < 4 ? KVF_INDEX_TREE : index < 7 ? KVF_INDEX_FLAT : KVF_INDEX_NONE;
    config->publish = kvf_fuzz_flag(in, 2);
    config->flags = kvf_fuzz_flag(in, 1) * KVF_CONFIG_PARTIAL_TAIL;
    config->flags |= kvf_fuzz_flag(in, 1) * KVF_CONFIG_SCRUB;
    config->n_pools = kvf_fuzz_num(in, 2, KVF_FUZZ_POOLS - 1) + 1;
    for (i = 0; i < config->n_pools; i++)
        read_pool(in, &spec->pools[i]);
    read_groups(in, spec);
    read_namespaces(in, spec);
    config->sequences = kvf_fuzz_num(in, 1, MOST_LIMIT);
    config->tickets = kvf_fuzz_num(in, 1, MOST_LIMIT);
    config->transfers = kvf_fuzz_num(in, 1, MOST_LIMIT);
    config->events = kvf_fuzz_num(in, 1, MOST_LIMIT);
    config->table_chunks = kvf_fuzz_num(in, 1, MOST_LIMIT);
    config->classes = kvf_fuzz_num(in, 1, MOST_LIMIT);
    config->leases = kvf_fuzz_num(in, 1, MOST_LIMIT);
    config->quotas = kvf_fuzz_num(in, 1, MOST_LIMIT);
    config->key_parts = kvf_fuzz_num(in, 1, MOST_LIMIT);
    if (spec->version >= 3) {
        config->index_nodes = kvf_fuzz_num(in, 1, MOST_LIMIT);
        config->namespaces = kvf_fuzz_num(in, 1, MOST_LIMIT);
        config->plan_copies = kvf_fuzz_num(in, 1, MOST_LIMIT);
    }
    if (config->namespaces == 0)
        config->namespaces = spec->n_namespaces + 1;
    config->seed = kvf_fuzz_num(in, 4, UINT32_MAX);
    if (config->classes > 63)
        config->classes = 63;
    if (config->quotas > spec->n_namespaces)
        config->quotas = spec->n_namespaces;
    if (config->quotas > config->namespaces)
        config->quotas = config->namespaces;
    if (spec->version < 3 && config->index != KVF_INDEX_NONE && !has_full_group(config)) {
        spec->groups[0].kind = KVF_GROUP_FULL;
        spec->groups[0].window = spec->groups[0].sinks = spec->groups[0].ring_tokens = 0;
    }
}
