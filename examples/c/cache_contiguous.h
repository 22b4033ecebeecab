/* A cache for the scheduler without pages that are managed, to compare with. */
#ifndef ENGINE_CACHE_CONTIGUOUS_H
#define ENGINE_CACHE_CONTIGUOUS_H

#include "cache.h"
#include "kv_groups.h"
#include "model.h"
#include "threads.h"

/*
 * `slots` slots of `capacity` tokens each, steps of at most `max_rows` tokens; `threads` is borrowed. f32 is kept in
 * arrays; other formats in pages of `page_tokens` tokens (0 = what the format needs) that lie in order. NULL and a
 * reason on failure.
 */
struct cache *cache_contiguous_new(const struct model_shape *shape, struct threads *threads, const struct kv_spec *kv,
                                   int page_tokens, int slots, int capacity, int max_rows, struct error *error);

/*
 * For the checks. From the next step on the first `pages` pages of a sequence are read as sealed, whatever the
 * schedule says: what a sequence reads that found them in a cache.
 */
void cache_contiguous_seal(struct cache *cache, uint64_t sequence, int pages);

/* For the checks: the page with tokens n * P .. of a sequence in a group, and whether it is sealed. NULL for arrays. */
const void *cache_contiguous_page(const struct cache *cache, uint64_t sequence, int group, int n, int *sealed);

#endif
