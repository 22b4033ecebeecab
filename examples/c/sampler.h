/* Logits to the next token. */
#ifndef ENGINE_SAMPLER_H
#define ENGINE_SAMPLER_H

#include "error.h"

#include <stdint.h>

struct sampling {
    float temperature; /* 0 = greedy */
    float top_p;       /* smallest set of tokens whose probability reaches this; 0 or >= 1 = all */
    uint64_t seed;
};

struct sampler; /* scratch for one vocabulary; no state that outlives a call */

/* Allocates scratch for logits[vocab]. NULL and a reason on failure. */
struct sampler *sampler_new(int vocab, struct error *error);
void sampler_free(struct sampler *sampler);

/*
 * Draws a token. The draw is number `counter` of stream `seed` (use the position in the sequence): it depends on
 * nothing else, so a sequence that is computed again in another batch draws the same tokens. Ties go to the lowest id.
 */
int32_t sampler_draw(struct sampler *sampler, const float *logits, const struct sampling *sampling, uint64_t counter);

/* Returns the id of the highest logit, the lowest one on ties. */
int32_t sampler_greedy(const float *logits, int vocab);

/* Returns -log softmax(logits)[id]. */
double sampler_nll(const float *logits, int vocab, int32_t id);

#endif
