/*
 * Eviction once more, on plain lists of positions, to compare the cache with. It is told what the kernels' attention
 * was, reads keys where they lie, and knows nothing of slots, bits, holes or moves.
 */
#ifndef ENGINE_EVICT_SIM_H
#define ENGINE_EVICT_SIM_H

#include "model.h"
#include "streams.h"

struct evict_sim;

/* A chat under a policy. NULL without memory. */
struct evict_sim *evict_sim_new(const struct evict_policy *policy, const struct model_shape *shape, int most);
void evict_sim_free(struct evict_sim *sim);

/* Before the model: `count` tokens come. */
void evict_sim_begin(struct evict_sim *sim, int count);

/* What a query paid attention to; different streams may be told about at the same time. */
void evict_sim_tell(struct evict_sim *sim, const kvf_stream *stream, int number, int position,
                    const float *probabilities, int slots);

/* After the model, before the cache commits: tokens are scored, and go. */
void evict_sim_end(struct evict_sim *sim, struct cache *cache, uint64_t sequence);

/* Kept positions that only the cache or only the list has, over all streams; adds how many were compared. */
long long evict_sim_compare(struct evict_sim *sim, struct cache *cache, uint64_t sequence, long long *compared);

/* What the last query had paid to tokens that went, of all lists, and by how many evictions from a list. */
double evict_sim_mass(const struct evict_sim *sim, long long *cuts);

/* Live slots whose position the list did not have when a query read them. */
long long evict_sim_strangers(const struct evict_sim *sim);

#endif
