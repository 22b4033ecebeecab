/*
 * What a scheduler asks of a cache. step.c answers with kvfolio, cache_contiguous.c with an array per sequence.
 *
 * A step is begin, add for each sequence, finish, then the model over the batch, then commit. A new request is open;
 * a request that ends, or that makes room for others, is close.
 */
#ifndef ENGINE_CACHE_H
#define ENGINE_CACHE_H

#include "error.h"
#include "kv.h"

#include <stddef.h>
#include <stdint.h>

enum cache_answer {
    CACHE_OK,
    CACHE_RETRY,   /* not now: others must give something up first */
    CACHE_PENDING, /* not now: wait, room is on its way */
    CACHE_NEVER,   /* it would not fit if it were alone */
    CACHE_FAILED   /* something is wrong; the error says what */
};

enum cache_close {
    CACHE_KEEP,   /* what was computed may be found by later requests */
    CACHE_DISCARD
};

/* What finish gives: the rows of the step, in the order of add. */
struct cache_batch {
    const int32_t *tokens;       /* [n] */
    const struct row_desc *rows; /* [n] */
    int n;
};

struct cache_usage {
    int page_tokens;            /* 0 = no pages */
    int pages, used, peak;      /* of pages, or of slots for sequences where there are none */
    size_t peak_bytes;          /* of pages or slots in use at the peak */
    size_t peak_f16_bytes;      /* what the same pages would take in f16 */
    double token_bytes;         /* what a token takes in a sequence of planned_tokens, says the planner; 0 = unknown */
    int planned_tokens;
    int f16_token_bytes;
    long long copies;           /* pages copied before a write */
    long long evicted;          /* pages that were cached and had to go */
    double seconds;             /* spent in calls of the manager */
};

struct cache {
    struct kv_backend *kv; /* for engine_forward, between finish and commit */

    /* Tokens of the beginning of tokens[n] that open would find, at most n - 1. */
    int (*cached)(struct cache *self, const int32_t *tokens, int n);

    /* Opens a sequence. It begins with *hit tokens that need not be computed. */
    enum cache_answer (*open)(struct cache *self, const int32_t *tokens, int n, uint64_t *sequence, int *hit,
                              struct error *error);

    /* Opens n sequences with the same tokens as `sequence`: all or none. */
    enum cache_answer (*fork)(struct cache *self, uint64_t sequence, uint64_t *children, int n, struct error *error);

    int (*close)(struct cache *self, uint64_t sequence, enum cache_close how, struct error *error);

    /* 1 iff a sequence could grow from `from` to `to` tokens now, with nobody else growing. */
    int (*has_room)(struct cache *self, int from, int to);

    int (*begin)(struct cache *self, struct error *error);

    /* How many of the next n tokens of a sequence a step may take at once: at least 1 of them. */
    int (*run)(struct cache *self, uint64_t sequence, int n);

    /* Adds tokens[n] of a sequence to the step. Logits are wanted of the last `wanted` of them. */
    enum cache_answer (*add)(struct cache *self, uint64_t sequence, const int32_t *tokens, int n, int wanted,
                             struct error *error);

    int (*finish)(struct cache *self, struct cache_batch *batch, struct error *error);

    /* accepted[i] tokens of the i-th add belong to its sequence from now on; the others never were. */
    int (*commit)(struct cache *self, const int32_t *accepted, struct error *error);

    /* Gives up a step that was begun or finished. */
    void (*abort)(struct cache *self);

    void (*usage)(struct cache *self, struct cache_usage *usage);
    void (*free)(struct cache *self);
};

#endif
