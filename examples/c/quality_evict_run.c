/* Runs a text through many chats in lockstep, over one cache of streams. */
#include "quality_evict.h"

#include "forward.h"
#include "sampler.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64, PAGE = 16 };

struct run {
    const struct model *model;
    const struct evict_policy *policies;
    const int32_t *tokens;
    int n, count, from;
    struct evict_result *results;
    struct threads *threads;
    struct cache *cache;
    struct engine *engine;
    float *logits;                 /* [EVICT_LANES][vocab] */
    uint64_t sequences[EVICT_LANES];
    int lens[EVICT_LANES];         /* tokens of each chat */
    int lanes[EVICT_LANES];        /* of the rows of logits */
};

/* Looks at rows of logits: bodies of parallel_for. */
static void look(void *context, int begin, int end, int worker)
{
    struct run *r = context;
    const int vocab = r->model->shape.vocab;
    (void)worker;

    for (int i = begin; i < end; i++) {
        const float *logits = r->logits + (size_t)i * (size_t)vocab;
        const int at = r->lens[r->lanes[i]];
        const int32_t target = r->tokens[at];

        r->results[r->lanes[i]].nll[at] = sampler_nll(logits, vocab, target);
        r->results[r->lanes[i]].hit[at] = sampler_greedy(logits, vocab) == target;
    }
}

/* The next tokens of a chat: all there are before its budget is full or predictions begin, then one. */
static int count_of(const struct run *r, int lane)
{
    const int len = r->lens[lane], budget = r->policies[lane].budget;
    int until = r->from - 1;

    if (r->policies[lane].kind != EVICT_NONE && budget < until)
        until = budget;
    return until - len > CHUNK ? CHUNK : until > len ? until - len : 1;
}

/* The chat that is furthest behind goes first, and all that are level with it: then nobody waits for long. */
static int step(struct run *r, struct error *error)
{
    int32_t accepted[EVICT_LANES];
    int stepped[EVICT_LANES], n_stepped = 0, n_wanted = 0, least = r->count;
    struct cache_batch batch;

    for (int l = 0; l < r->n; l++)
        least = r->lens[l] < least ? r->lens[l] : least;
    if (least == r->count - 1)
        return 0;
    if (r->cache->begin(r->cache, error) != 0)
        return -1;
    for (int l = 0; l < r->n; l++) {
        const int count = count_of(r, l), wanted = r->lens[l] + count >= r->from;
        if (r->lens[l] > least)
            continue;
        if (r->cache->add(r->cache, r->sequences[l], r->tokens + r->lens[l], count, wanted, error) != CACHE_OK)
            return -1;
        accepted[n_stepped] = count;
        stepped[n_stepped++] = l;
        if (wanted)
            r->lanes[n_wanted++] = l;
    }
    if (r->cache->finish(r->cache, &batch, error) != 0 ||
        engine_forward(r->engine, r->cache->kv, batch.tokens, batch.rows, batch.n, r->logits, error) != 0 ||
        r->cache->commit(r->cache, accepted, error) != 0)
        return -1;
    for (int i = 0; i < n_stepped; i++)
        r->lens[stepped[i]] += accepted[i];
    parallel_for(r->threads, n_wanted, 1, look, r);
    return 1;
}

static int start(struct run *r, struct error *error)
{
    const struct model_shape *shape = &r->model->shape;
    const int streams = shape->layers * shape->kv_heads;
    struct streams_config config = { .page_tokens = PAGE, .max_sequences = r->n, .max_rows = r->n * CHUNK,
                                     .chunk = CHUNK, .longest = r->count };

    for (int l = 0; l < r->n; l++) {
        const int columns = evict_columns(&r->policies[l], PAGE, CHUNK, r->count);
        config.columns = columns > config.columns ? columns : config.columns;
        config.pages += columns * streams;
    }
    r->threads = threads_new(0);
    r->logits = malloc(EVICT_LANES * (size_t)shape->vocab * sizeof *r->logits);
    if (!r->threads || !r->logits)
        return fail(error, "out of memory for %d chats", r->n);
    r->engine = engine_new(r->model, r->threads, config.max_rows, error);
    r->cache = r->engine ? streams_new(&config, shape, r->threads, error) : NULL;
    if (!r->cache)
        return -1;
    for (int l = 0; l < r->n; l++) {
        int hit;
        memset(&r->results[l], 0, sizeof r->results[l]);
        if (streams_policy(r->cache, &r->policies[l], error) != 0)
            return -1;
        if (r->cache->open(r->cache, r->tokens, r->count, &r->sequences[l], &hit, error) != CACHE_OK)
            return fail(error, "no room for chat %d", l);
    }
    return 0;
}

int evict_run(const struct model *model, const struct evict_policy *policies, int n, const int32_t *tokens, int count,
              int from, struct evict_result *results, struct error *error)
{
    static struct run r;
    int more;

    r = (struct run){ .model = model, .policies = policies, .tokens = tokens, .n = n, .count = count, .from = from,
                      .results = results };
    more = start(&r, error) == 0 ? 1 : -1;
    while (more > 0)
        more = step(&r, error);
    if (r.cache)
        r.cache->free(r.cache);
    engine_free(r.engine);
    threads_free(r.threads);
    free(r.logits);
    return more;
}
