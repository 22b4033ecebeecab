/* A key/value cache without pages: each sequence owns room for a fixed number of tokens. */
#ifndef ENGINE_KV_CONTIGUOUS_H
#define ENGINE_KV_CONTIGUOUS_H

#include "kv.h"
#include "model.h"
#include "threads.h"

/*
 * Allocates room for `sequences` sequences of `capacity` tokens; `threads` is borrowed. NULL and a reason on failure.
 * A batch row of sequence s must carry on where s ends; rewinding is done by kv_contiguous_truncate.
 */
struct kv_backend *kv_contiguous_new(const struct model_shape *shape, struct threads *threads, int sequences,
                                     int capacity, struct error *error);

/* Frees it; harmless on NULL. */
void kv_contiguous_free(struct kv_backend *backend);

/* Forgets the tokens of `sequence` from position `length` on. */
void kv_contiguous_truncate(struct kv_backend *backend, int sequence, int length);

#endif
