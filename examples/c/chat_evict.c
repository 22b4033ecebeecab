/* From the command line to a policy and a cache of streams. */
#include "chat_evict.h"

#include <stdio.h>

static int read_policy(const struct options *o, int layers, struct evict_weights *weights, struct evict_policy *policy,
                       struct error *error)
{
    const int removal = o->removal ? evict_removal_named(o->removal) : KVF_REMOVE_COMPACT;

    *policy = evict_policy_named(o->evict, o->budget);
    if (policy->kind == EVICT_NONE)
        return fail(error, "--evict takes %s, not \"%s\"", evict_names, o->evict);
    if (o->budget == 0)
        return fail(error, "--evict needs --budget");
    if (removal < 0)
        return fail(error, "--removal takes %s, not \"%s\"", evict_removal_names, o->removal);
    if (o->contiguous || o->draft > 0 || o->kv.layers)
        return fail(error, "--evict does not go with --contiguous, --draft or --kv-layer");
    if (policy->kind == EVICT_WINDOW && o->sinks > 0)
        return fail(error, "a window with sinks is --evict streaming");
    if ((policy->kind == EVICT_LEARNED) != (o->evict_weights != NULL))
        return fail(error, "--evict learned and --evict-weights need each other; weights are made by: make learn");
    if (o->evict_weights && evict_weights_read(weights, o->evict_weights, layers, error) != 0)
        return -1;
    policy->weights = weights;
    policy->removal = (uint32_t)removal;
    policy->before = o->evict_before;
    policy->seed = o->sampling.seed;
    if (o->slack >= 0)
        policy->slack = o->slack;
    if (o->sinks >= 0)
        policy->sinks = o->sinks;
    if (o->recent >= 0)
        policy->recent = o->recent;
    return 0;
}

struct cache *chat_evict_new(const struct options *o, const struct model_shape *shape, struct threads *threads,
                             int rows, struct evict_weights *weights, struct error *error)
{
    const long long pages = (long long)o->pages * shape->layers * shape->kv_heads;
    struct streams_config config = {
        .max_sequences = o->batch, .max_rows = rows, .chunk = o->chunk, .longest = shape->context, .kv = o->kv,
        .meter = o->meter,
    };
    struct kv_groups groups;

    if (read_policy(o, shape->layers, weights, &config.policy, error) != 0 ||
        kv_groups_make(&groups, shape, &o->kv, o->page_tokens, error) != 0)
        return NULL;
    config.page_tokens = groups.page_tokens;
    config.pages = pages < 1 << 24 ? (int)pages : 1 << 24; /* one of the user's holds all heads of all layers */
    config.columns = evict_columns(&config.policy, config.page_tokens, config.chunk, config.longest);
    return streams_new(&config, shape, threads, error);
}

void chat_evict_table(struct cache *cache, int kv_heads)
{
    struct streams_usage u;

    streams_usage(cache, 1, &u);
    if (u.streams == 0)
        return;
    printf("%-20s %.1f of %.1f a head and layer; %lld evicted, %lld moved\n", "tokens kept",
           (double)u.live / (double)u.streams, (double)u.seen / (double)u.streams, u.evicted, u.moved);
    printf("%-20s %lld at the end of the chats, %lld without holes\n", "pages of a head", u.pages, u.needed);
    printf("%-20s %.1f %% of the slots in use\n", "holes",
           u.rows > 0 ? 100.0 * (double)(u.rows - u.live) / (double)u.rows : 0);
    if (u.cuts > 0)
        printf("%-20s %.5f of the last query's attention an eviction; %.5f for KV head %d of layer %d\n", "evicted mass",
               u.mass / (double)u.cuts, u.greatest, u.stream % kv_heads, u.stream / kv_heads);
}
