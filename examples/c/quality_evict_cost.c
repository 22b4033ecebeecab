/* What eviction adds to a step of one chat: the calls of kvfolio beside the whole. */
#include "quality_evict.h"

#include "clock.h"
#include "forward.h"
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHUNK = 64, PAGE = 16, STEPS = 64 };

struct cost {
    double seconds, of_kvfolio; /* of a step */
};

/* A step of `count` tokens. */
static int step(struct cache *cache, struct engine *engine, uint64_t sequence, const int32_t *tokens, int count,
                float *logits, struct error *error)
{
    const int32_t accepted = count;
    struct cache_batch batch;

    return cache->begin(cache, error) == 0 &&
                   cache->add(cache, sequence, tokens, count, logits != NULL, error) == CACHE_OK &&
                   cache->finish(cache, &batch, error) == 0 &&
                   engine_forward(engine, cache->kv, batch.tokens, batch.rows, batch.n, logits, error) == 0 &&
                   cache->commit(cache, &accepted, error) == 0
               ? 0 : -1;
}

/* Fills the budget in chunks, then takes one token a step. */
static int measure(struct cache *cache, struct engine *engine, const int32_t *tokens, int count, float *logits,
                   struct cost *cost, struct error *error)
{
    const int filled = count - STEPS;
    struct cache_usage before, after;
    uint64_t sequence;
    double start;
    int hit;

    if (cache->open(cache, tokens, count, &sequence, &hit, error) != CACHE_OK)
        return fail(error, "no room for the chat");
    for (int at = 0; at < filled; at += CHUNK) {
        if (step(cache, engine, sequence, tokens + at, filled - at < CHUNK ? filled - at : CHUNK, NULL, error) != 0)
            return -1;
    }
    cache->usage(cache, &before);
    start = clock_seconds();
    for (int at = filled; at < count; at++) {
        if (step(cache, engine, sequence, tokens + at, 1, logits, error) != 0)
            return -1;
    }
    cost->seconds = (clock_seconds() - start) / STEPS;
    cache->usage(cache, &after);
    cost->of_kvfolio = (after.seconds - before.seconds) / STEPS;
    return 0;
}

static int run(const struct model *model, const struct evict_policy *policy, const int32_t *tokens, int count,
               struct cost *cost, struct error *error)
{
    const int columns = evict_columns(policy, PAGE, CHUNK, count);
    const struct streams_config config = {
        .page_tokens = PAGE, .pages = columns * model->shape.layers * model->shape.kv_heads, .columns = columns,
        .max_sequences = 1, .max_rows = CHUNK, .chunk = CHUNK, .longest = count, .policy = *policy,
    };
    struct threads *threads = threads_new(0);
    struct engine *engine = threads ? engine_new(model, threads, CHUNK, error) : NULL;
    struct cache *cache = engine ? streams_new(&config, &model->shape, threads, error) : NULL;
    float *logits = malloc((size_t)model->shape.vocab * sizeof *logits);
    int status = -1;

    if (!threads || !logits)
        fail(error, "out of memory for a chat of %d tokens", count);
    else if (cache)
        status = measure(cache, engine, tokens, count, logits, cost, error);
    if (cache)
        cache->free(cache);
    engine_free(engine);
    threads_free(threads);
    free(logits);
    return status;
}

int evict_cost(const struct model *model, const struct evict_policy *policies, int n, const int32_t *tokens, int count,
               struct error *error)
{
    int failures = 0;

    printf("%d tokens a head and layer, %d steps with one more: milliseconds a step\n", count - STEPS, STEPS);
    printf("%-15s %8s %18s %8s\n", "policy", "step", "calls of kvfolio", "share");
    for (int i = 0; i < n; i++) {
        struct evict_policy policy = policies[i];
        struct cost cost = { 0 };
        double share;

        policy.budget = count - STEPS;
        if (run(model, &policy, tokens, count, &cost, error) != 0)
            return -1;
        share = cost.of_kvfolio / cost.seconds;
        printf("%-15s %8.1f %18.3f %6.2f %%%s\n", evict_kind_name(policy.kind), cost.seconds * 1e3, cost.of_kvfolio * 1e3,
               share * 100, share < 0.02 ? "" : "  FAILED: 2 % at most");
        failures += !(share < 0.02);
    }
    return failures;
}
