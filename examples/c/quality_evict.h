/* What eviction costs a model: many chats over one text, each with a policy of its own. */
#ifndef ENGINE_QUALITY_EVICT_H
#define ENGINE_QUALITY_EVICT_H

#include "evict.h"
#include "load.h"

enum { EVICT_TOKENS = 1024, EVICT_LANES = 64 };

/* What one policy gave, for each token of the text that was predicted. */
struct evict_result {
    double nll[EVICT_TOKENS];
    char hit[EVICT_TOKENS]; /* 1 = it was the likeliest */
};

/*
 * Runs tokens[count] through one chat for each of policies[n], n <= EVICT_LANES, in lockstep, as one batch of the
 * model over one cache. Predictions of tokens from `from` on are looked at. A chat takes chunks of 64 until its budget
 * is full, then one token a step; all chats do from the first prediction on.
 */
int evict_run(const struct model *model, const struct evict_policy *policies, int n, const int32_t *tokens, int count,
              int from, struct evict_result *results, struct error *error);

/*
 * Prints what a step of one chat costs with each of policies[n] once count - 64 tokens are kept, and what of it are calls
 * of kvfolio, which must be less than 2 %. Gives how many are not, or -1 and a reason.
 */
int evict_cost(const struct model *model, const struct evict_policy *policies, int n, const int32_t *tokens, int count,
               struct error *error);

#endif
