/* kvf_fuzz_spaces.c - namespaces: what a label stands for, and the calls that clear, close and open them */
#include <string.h>

#include "kvf_fuzz_calls.h"

/* A namespace that the scenario has not opened must not become the default one. */
kvf_namespace kvf_fuzz_space(const kvf_fuzz_world *world, uint32_t ns)
{
    return ns < world->spec->n_namespaces ? world->namespaces[ns] : UINT64_MAX;
}

kvf_prompt kvf_fuzz_prompt(const kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_prompt prompt;

    memset(&prompt, 0, sizeof prompt);
    prompt.struct_size = sizeof prompt;
    prompt.n_tokens = op->n_tokens;
    prompt.tokens = op->tokens;
    prompt.spans = op->spans;
    prompt.n_spans = op->n_spans;
    prompt.ns = kvf_fuzz_space(world, op->ns);
    return prompt;
}

/* Tickets and leases end with the index that they are about. */
static kvf_status clear(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_status status = op->flag ? kvf_namespace_clear_all(world->cache)
                                 : kvf_namespace_clear(world->cache, kvf_fuzz_space(world, op->ns));
    uint32_t i;

    if (status != KVF_OK)
        return status;
    for (i = 0; i < KVF_FUZZ_LABELS; i++) {
        if (world->spec->config.index != KVF_INDEX_NONE && (op->flag || world->tickets[i].ns == op->ns))
            world->tickets[i].live = 0;
        if (op->flag || world->leases[i].ns == op->ns)
            world->leases[i].live = 0;
    }
    return status;
}

/* A namespace that is opened again has a handle of its own; the one that was closed finds nothing. */
static kvf_status open_or_close(kvf_fuzz_world *world, const kvf_fuzz_op *op, kvf_shortage *shortage)
{
    kvf_prompt prompt = kvf_fuzz_prompt(world, op);
    kvf_namespace handle = KVF_FUZZ_UNSET;
    kvf_status status;
    uint32_t hit, i;

    if (op->kind == KVF_FUZZ_OPEN_SPACE) {
        if (op->ns >= world->spec->n_namespaces)
            return KVF_ERR_ARGUMENT;
        status = kvf_namespace_open(world->cache, &world->spec->namespaces[op->ns], &handle, shortage);
        kvf_fuzz_must(world, (status == KVF_OK) == (handle != KVF_FUZZ_UNSET), "a refused opening writes no handle");
        if (status == KVF_OK)
            world->namespaces[op->ns] = handle;
        return status;
    }
    status = kvf_namespace_close(world->cache, kvf_fuzz_space(world, op->ns));
    if (status != KVF_OK)
        return status;
    kvf_fuzz_must(world, kvf_prefix_lookup(world->cache, &prompt, 0, &hit) == KVF_ERR_STALE,
                  "a closed namespace is stale");
    for (i = 0; i < KVF_FUZZ_LABELS; i++)
        if (world->leases[i].ns == op->ns)
            world->leases[i].live = 0;
    return status;
}

kvf_status kvf_fuzz_space_call(kvf_fuzz_world *world, const kvf_fuzz_op *op, kvf_shortage *shortage)
{
    return op->kind == KVF_FUZZ_CLEAR ? clear(world, op) : open_or_close(world, op, shortage);
}
