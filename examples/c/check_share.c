/* Check share: of a step of 16 chats that generate, at most one hundredth is spent in calls of kvfolio. */
#include "check.h"

#include "clock.h"
#include "random.h"
#include "sampler.h"
#include "step.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 16, PROMPT = 16, STEPS = 24, PAGE = 16, LIMIT = 10 /* thousandths */ };

/* One step of all chats, `count` tokens each. Returns its seconds. */
static double step(const struct check *check, struct cache *cache, struct engine *engine, float *logits,
                   const uint64_t *sequences, int32_t (*tokens)[PROMPT], int count)
{
    const int vocab = check->loaded.model.shape.vocab;
    const double start = clock_seconds();
    int32_t accepted[BATCH];
    struct cache_batch batch;
    struct error error;

    if (cache->begin(cache, &error) != 0)
        die("%s", error.text);
    for (int i = 0; i < BATCH; i++) {
        if (cache->add(cache, sequences[i], tokens[i], count, 1, &error) != CACHE_OK)
            die("no room for chat %d", i);
        accepted[i] = count;
    }
    if (cache->finish(cache, &batch, &error) != 0 ||
        engine_forward(engine, cache->kv, batch.tokens, batch.rows, batch.n, logits, &error) != 0)
        die("%s", error.text);
    for (int i = 0; i < BATCH; i++)
        tokens[i][0] = sampler_greedy(logits + (size_t)i * (size_t)vocab, vocab);
    if (cache->commit(cache, accepted, &error) != 0)
        die("%s", error.text);
    return clock_seconds() - start;
}

int check_share(struct check *check)
{
    const struct model *model = &check->loaded.model;
    const struct step_config config = { PAGE, BATCH * ((PROMPT + STEPS) / PAGE + 1), BATCH, BATCH * PROMPT,
                                        { .format = "f32" } };
    struct threads *threads = threads_new(0);
    struct error error;
    struct cache *cache = step_new(&config, &model->shape, threads, &error);
    struct engine *engine = cache ? engine_new(model, threads, config.max_rows, &error) : NULL;
    float *logits = malloc((size_t)BATCH * (size_t)model->shape.vocab * sizeof *logits);
    uint64_t sequences[BATCH];
    int32_t tokens[BATCH][PROMPT];
    struct cache_usage before, after;
    double seconds = 0, inside;
    int hit;

    if (!engine || !logits)
        die("%s", error.text);
    for (int i = 0; i < BATCH; i++) {
        for (int j = 0; j < PROMPT; j++)
            tokens[i][j] = (int32_t)(random_bits(21 + (uint64_t)i, (uint64_t)j) % (uint64_t)model->shape.vocab);
        if (cache->open(cache, tokens[i], PROMPT, &sequences[i], &hit, &error) != CACHE_OK)
            die("%s", error.text);
    }
    step(check, cache, engine, logits, sequences, tokens, PROMPT);
    cache->usage(cache, &before);
    for (int i = 0; i < STEPS; i++)
        seconds += step(check, cache, engine, logits, sequences, tokens, 1);
    cache->usage(cache, &after);
    inside = after.seconds - before.seconds;
    printf("share %s, batch %d: %.1f us of kvfolio in a step of %.0f us: %.3f %%, at most %.1f %%\n", check->model_name,
           BATCH, 1e6 * inside / STEPS, 1e6 * seconds / STEPS, 100.0 * inside / seconds, LIMIT / 10.0);
    engine_free(engine);
    cache->free(cache);
    threads_free(threads);
    free(logits);
    return inside * 1000.0 > LIMIT * seconds;
}
