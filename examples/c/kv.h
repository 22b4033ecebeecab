/*
 * What the model asks of a key/value cache, and all it knows about one.
 *
 * forward.c computes a batch of rows. For each layer in turn it hands over the rows' keys and values (append), then
 * asks for the attention of the rows' queries (attend). Which memory the keys lie in, in pages or in one piece, is
 * the backend's business alone: kv_contiguous.c is one, a paged cache another.
 *
 * Arithmetic contract: the output of a row depends on its query, and on the keys and values of its own sequence at
 * positions 0..position that the backend keeps, and on nothing else: not on the other rows, not on how tokens were
 * cut into batches, not on threads. Then logits are equal bit for bit whatever the batching.
 */
#ifndef ENGINE_KV_H
#define ENGINE_KV_H

#include "error.h"

#include <stdint.h>

/* One token of a batch. Rows of one sequence come in ascending positions; sequences may be mixed in any order. */
struct row_desc {
    int32_t sequence;    /* what the number means is between the caller and the backend */
    int32_t position;    /* absolute, >= 0; RoPE uses it */
    int32_t want_logits; /* 0 or 1 */
};

struct kv_backend {
    /*
     * Opens a batch: rows[n] holds until the next begin. The place to reserve room and to check that every position
     * is the next one of its sequence.
     */
    int (*begin)(struct kv_backend *self, const struct row_desc *rows, int n, struct error *error);

    /* Stores k and v, each [n][kv_heads][head_dim] with RoPE applied to k, as the batch's rows of `layer`. */
    int (*append)(struct kv_backend *self, int layer, const float *k, const float *v, int n, struct error *error);

    /*
     * out[n][heads][head_dim] = attention of q[n][heads][head_dim] in `layer`, scores scaled by 1/sqrt(head_dim).
     * Row i sees its sequence up to and including its own position; append has been called for this layer.
     */
    int (*attend)(struct kv_backend *self, int layer, const float *q, float *out, int n, struct error *error);
};

#endif
