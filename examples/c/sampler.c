/* Logits to the next token. */
#include "sampler.h"

#include "random.h"

#include <math.h>
#include <stdlib.h>

struct choice {
    float weight; /* exp((logit - highest) / temperature) */
    int32_t id;
};

struct sampler {
    int vocab;
    struct choice *choices; /* [vocab] */
};

struct sampler *sampler_new(int vocab, struct error *error)
{
    struct sampler *s = calloc(1, sizeof *s);
    if (s) {
        s->vocab = vocab;
        s->choices = malloc((size_t)vocab * sizeof *s->choices);
    }
    if (!s || !s->choices) {
        sampler_free(s);
        fail(error, "sampler: out of memory for %d logits", vocab);
        return NULL;
    }
    return s;
}

void sampler_free(struct sampler *s)
{
    if (!s)
        return;
    free(s->choices);
    free(s);
}

int32_t sampler_greedy(const float *logits, int vocab)
{
    int32_t best = 0;
    for (int32_t id = 1; id < vocab; id++)
        if (logits[id] > logits[best])
            best = id;
    return best;
}

double sampler_nll(const float *logits, int vocab, int32_t id)
{
    const float highest = logits[sampler_greedy(logits, vocab)];
    double sum = 0.0;

    for (int i = 0; i < vocab; i++)
        sum += (double)expf(logits[i] - highest);
    return log(sum) + (double)highest - (double)logits[id];
}

/* Heaviest first, then lowest id: a total order, so that any qsort gives the same result. */
static int heavier(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

int32_t sampler_draw(struct sampler *s, const float *logits, const struct sampling *sampling, uint64_t counter)
{
    const int32_t best = sampler_greedy(logits, s->vocab);
    double total = 0.0, kept = 0.0, target;
    int n = 0, limit = 0;

    if (!(sampling->temperature > 0.0f))
        return best;
    for (int32_t id = 0; id < s->vocab; id++) {
        const float weight = expf((logits[id] - logits[best]) / sampling->temperature);
        if (weight > 0.0f)
            s->choices[n++] = (struct choice){ weight, id };
    }
    for (int i = 0; i < n; i++)
        total += (double)s->choices[i].weight;

    if (sampling->top_p > 0.0f && sampling->top_p < 1.0f) {
        /* A token lighter than (1-p)/(vocab-1) of the total is never in the set: all such together weigh too little. */
        const double cut = (1.0 - (double)sampling->top_p) * total / (s->vocab > 1 ? s->vocab - 1 : 1);
        int heavy = 0;
        for (int i = 0; i < n; i++)
            if ((double)s->choices[i].weight >= cut)
                s->choices[heavy++] = s->choices[i];
        n = heavy;
        qsort(s->choices, (size_t)n, sizeof *s->choices, heavier);
        target = (double)sampling->top_p * total;
    } else {
        target = total;
    }
    while (limit < n && (kept < target || limit == 0))
        kept += (double)s->choices[limit++].weight;

    target = kept * (double)random_unit(sampling->seed, counter);
    for (int i = 0; i < limit; i++) {
        target -= (double)s->choices[i].weight;
        if (target < 0.0)
            return s->choices[i].id;
    }
    return limit > 0 ? s->choices[limit - 1].id : best;
}
