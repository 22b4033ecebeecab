/*
 * Every policy in a chat of its own, all in one batch: the positions that the cache keeps are those of lists that are
 * told the same attention (evict_sim.c), after every step.
 */
#include "check.h"
#include "evict_sim.h"
#include "random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUDGET = 40, CHUNK = 7, POLICIES = EVICT_KINDS + 2, STEPS_OF_ONE = 90, STEPS_OF_CHUNK = 10 };

/* When tokens go, and what becomes of their slots. */
static const struct way {
    int before;
    uint32_t removal;
    const char *name;
} ways[] = {
    { 0, KVF_REMOVE_COMPACT, "after attention, compacted" },
    { 1, KVF_REMOVE_HOLE, "before attention, holes" },
    { 0, KVF_REMOVE_REPLACE, "after attention, replaced" },
};

struct run {
    const struct model *model;
    struct threads *threads;
    struct cache *cache;
    struct engine *engine;
    struct evict_policy policies[POLICIES];
    uint64_t sequences[POLICIES];
    struct evict_sim *sims[POLICIES];
    long long wrong[POLICIES], compared[POLICIES];
    int n, len;
    struct evict_weights weights;
};

enum { HIDDEN = 5 };

/* Weights by chance, one network for each layer, that make the scores differ. */
static void draw_weights(struct evict_weights *weights, int layers)
{
    const size_t each = evict_weights_floats(HIDDEN), all = (size_t)layers * each;

    *weights = (struct evict_weights){ HIDDEN, (uint32_t)layers, malloc(all * sizeof(float)) };
    for (size_t i = 0; weights->weights && i < all; i++) {
        const int is_deviation = i % each >= KVF_FEATURES && i % each < 2 * KVF_FEATURES;
        const float drawn = (float)(random_bits(31, i) >> 40) / (1 << 23);
        weights->weights[i] = is_deviation ? drawn + 0.1f : drawn - 1;
    }
}

static void tell(void *user, const struct streams_view *view, int chat, int stream, int position,
                 const float *probabilities, int slots)
{
    struct run *r = user;
    evict_sim_tell(r->sims[chat], view->stream, stream, position, probabilities, slots);
}

/* Neighbours and ranks are those of slots, which are not those of positions where slots are used again. */
static int goes_with(enum evict_kind kind, uint32_t removal)
{
    return (kind != EVICT_SNAPKV && kind != EVICT_LEARNED) || removal != KVF_REMOVE_REPLACE;
}

/* All policies, H2O with one set for a layer, and one with pins. */
static int choose_policies(struct run *r, const struct way *way)
{
    int n = 0;

    for (int kind = EVICT_WINDOW; kind < EVICT_KINDS; kind++) {
        if (goes_with((enum evict_kind)kind, way->removal))
            r->policies[n++] = evict_policy_named(evict_kind_name((enum evict_kind)kind), BUDGET);
    }
    r->policies[n] = evict_policy_named("h2o", BUDGET);
    r->policies[n++].per_layer = 1;
    r->policies[n] = evict_policy_named("h2o", BUDGET);
    r->policies[n++].pin = (kvf_pin){ 6, 13 };
    for (int i = 0; i < n; i++) {
        r->policies[i].weights = &r->weights;
        r->policies[i].before = way->before;
        r->policies[i].removal = way->removal;
    }
    return n;
}

static void start(struct run *r, const struct model *model, const struct way *way)
{
    const int most = STEPS_OF_ONE + STEPS_OF_CHUNK * CHUNK;
    struct streams_config config = { .page_tokens = 8, .max_rows = POLICIES * CHUNK, .max_sequences = POLICIES,
                                     .chunk = CHUNK, .longest = most, .meter = 1 };
    struct error error;

    *r = (struct run){ .model = model };
    draw_weights(&r->weights, model->shape.layers);
    r->n = choose_policies(r, way);
    for (int i = 0; i < r->n; i++) {
        const int columns = evict_columns(&r->policies[i], config.page_tokens, CHUNK, most);
        config.columns = columns > config.columns ? columns : config.columns;
    }
    config.pages = config.columns * r->n * model->shape.layers * model->shape.kv_heads;
    r->threads = threads_new(0);
    r->cache = streams_new(&config, &model->shape, r->threads, &error);
    r->engine = r->cache ? engine_new(model, r->threads, config.max_rows, &error) : NULL;
    if (!r->engine)
        die("%s", error.text);
    for (int i = 0; i < r->n; i++) {
        int hit;
        r->sims[i] = evict_sim_new(&r->policies[i], &model->shape, most);
        if (!r->sims[i] || streams_policy(r->cache, &r->policies[i], &error) != 0 ||
            r->cache->open(r->cache, NULL, 0, &r->sequences[i], &hit, &error) != CACHE_OK)
            die("a chat cannot be opened");
    }
    streams_watch(r->cache, &(struct streams_watch){ r, tell });
}

static void stop(struct run *r)
{
    for (int i = 0; i < r->n; i++)
        evict_sim_free(r->sims[i]);
    engine_free(r->engine);
    r->cache->free(r->cache);
    threads_free(r->threads);
    evict_weights_free(&r->weights);
}

/* The next tokens of all chats, at most `count`. */
static void step(struct run *r, int count)
{
    struct cache_batch batch;
    struct error error;
    int32_t tokens[CHUNK], accepted[POLICIES];

    count = r->cache->run(r->cache, r->sequences[0], count);
    for (int i = 0; i < count; i++)
        tokens[i] = (int32_t)(random_bits(77, (uint64_t)(r->len + i)) % (uint64_t)r->model->shape.vocab);
    if (r->cache->begin(r->cache, &error) != 0)
        die("%s", error.text);
    for (int i = 0; i < r->n; i++) {
        accepted[i] = count;
        if (r->cache->add(r->cache, r->sequences[i], tokens, count, 0, &error) != CACHE_OK)
            die("%s", error.text);
        evict_sim_begin(r->sims[i], count);
    }
    if (r->cache->finish(r->cache, &batch, &error) != 0 ||
        engine_forward(r->engine, r->cache->kv, batch.tokens, batch.rows, batch.n, NULL, &error) != 0)
        die("%s", error.text);
    for (int i = 0; i < r->n; i++)
        evict_sim_end(r->sims[i], r->cache, r->sequences[i]);
    if (r->cache->commit(r->cache, accepted, &error) != 0)
        die("%s", error.text);
    for (int i = 0; i < r->n; i++)
        r->wrong[i] += evict_sim_compare(r->sims[i], r->cache, r->sequences[i], &r->compared[i]);
    r->len += count;
}

/* The meter of the cache beside that of the lists. */
static int check_meter(const struct run *r, const struct streams_usage *usage)
{
    double mass = 0;
    long long cuts = 0;
    int bad;

    for (int i = 0; i < r->n; i++) {
        long long of_chat;
        mass += evict_sim_mass(r->sims[i], &of_chat);
        cuts += of_chat;
    }
    bad = usage->cuts != cuts || !(fabs(usage->mass - mass) <= 1e-5 * mass) || !(mass > 0);
    printf("    evicted mass %.6f in %lld evictions, of the lists %.6f in %lld%s\n", usage->mass, usage->cuts, mass, cuts,
           bad ? "  FAILED" : "");
    return bad;
}

int check_evict(struct check *check)
{
    static struct run r;
    int failures = 0;

    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct streams_usage usage;
        start(&r, &check->loaded.model, &ways[w]);
        for (int i = 0; i < STEPS_OF_CHUNK; i++)
            step(&r, CHUNK);
        for (int i = 0; i < STEPS_OF_ONE; i++)
            step(&r, 1);
        streams_usage(r.cache, 0, &usage);
        printf("evict %s, %s: %lld tokens evicted, %lld moved\n", check->model_name, ways[w].name, usage.evicted,
               usage.moved);
        for (int i = 0; i < r.n; i++) {
            const struct evict_policy *p = &r.policies[i];
            const long long strangers = evict_sim_strangers(r.sims[i]);
            const int bad = r.wrong[i] > 0 || strangers > 0 || r.compared[i] == 0;
            printf("    %s%s%s: %lld of %lld kept positions differ, %lld read that were not kept%s\n",
                   evict_kind_name(p->kind), p->per_layer ? " by layer" : "", p->pin.end > 0 ? " with a pin" : "",
                   r.wrong[i], r.compared[i], strangers, bad ? "  FAILED" : "");
            failures += bad;
        }
        failures += check_meter(&r, &usage);
        stop(&r);
    }
    return failures;
}
