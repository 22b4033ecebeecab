/* A cache for the scheduler without pages: each sequence owns a slot with room for the longest one. */
#ifndef ENGINE_CACHE_CONTIGUOUS_H
#define ENGINE_CACHE_CONTIGUOUS_H

#include "cache.h"
#include "model.h"
#include "threads.h"

/* Allocates `slots` slots of `capacity` tokens; a step has at most `max_rows` tokens. NULL and a reason on failure. */
struct cache *cache_contiguous_new(const struct model_shape *shape, struct threads *threads, int slots, int capacity,
                                   int max_rows, struct error *error);

#endif
