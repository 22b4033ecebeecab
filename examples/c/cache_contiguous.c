/*
 * A cache for the scheduler without pages, to compare with. Nothing is shared: a prompt is always computed whole, and
 * a fork is refused, so that the scheduler opens another request instead.
 */
#include "cache_contiguous.h"

#include "kv_contiguous.h"

#include <stdlib.h>
#include <string.h>

struct slots {
    struct cache cache; /* first: a pointer to it is a pointer to us */
    int n, capacity, max_rows;
    size_t slot_bytes;
    char *taken;      /* [n] */
    int *length;      /* [n] tokens */
    int used, peak;

    /* The step at hand, in the order of add. */
    int *order;       /* [n] slots */
    int *counts;      /* [n] tokens */
    int n_added;
    int finished;     /* 1 iff the backend has been told of the rows */
    int32_t *tokens;  /* [max_rows] */
    struct row_desc *rows;
    int n_rows;
};

static int no_prefix(struct cache *self, const int32_t *tokens, int n)
{
    (void)self, (void)tokens, (void)n;
    return 0;
}

static enum cache_answer slots_open(struct cache *self, const int32_t *tokens, int n, uint64_t *sequence, int *hit,
                                    struct error *error)
{
    struct slots *s = (struct slots *)self;
    (void)tokens, (void)error;

    if (n > s->capacity)
        return CACHE_NEVER;
    for (int i = 0; i < s->n; i++) {
        if (s->taken[i])
            continue;
        s->taken[i] = 1;
        s->length[i] = 0;
        kv_contiguous_truncate(self->kv, i, 0);
        if (++s->used > s->peak)
            s->peak = s->used;
        *sequence = (uint64_t)i;
        *hit = 0;
        return CACHE_OK;
    }
    return CACHE_RETRY;
}

static enum cache_answer no_fork(struct cache *self, uint64_t sequence, uint64_t *children, int n,
                                 struct error *error)
{
    (void)self, (void)sequence, (void)children, (void)n, (void)error;
    return CACHE_RETRY;
}

static int slots_close(struct cache *self, uint64_t sequence, enum cache_close how, struct error *error)
{
    struct slots *s = (struct slots *)self;
    (void)how, (void)error;
    s->taken[sequence] = 0;
    s->used--;
    return 0;
}

static int slots_has_room(struct cache *self, int from, int to)
{
    (void)from;
    return to <= ((struct slots *)self)->capacity;
}

static int slots_begin(struct cache *self, struct error *error)
{
    struct slots *s = (struct slots *)self;
    (void)error;
    s->n_added = s->n_rows = s->finished = 0;
    return 0;
}

static enum cache_answer slots_add(struct cache *self, uint64_t sequence, const int32_t *tokens, int n, int wanted,
                                   struct error *error)
{
    struct slots *s = (struct slots *)self;
    const int slot = (int)sequence;

    if (n > s->max_rows - s->n_rows) {
        fail(error, "a step has at most %d tokens", s->max_rows);
        return CACHE_FAILED;
    }
    if (s->length[slot] + n > s->capacity)
        return CACHE_NEVER;
    for (int i = 0; i < n; i++) {
        s->tokens[s->n_rows] = tokens[i];
        s->rows[s->n_rows++] = (struct row_desc){ slot, s->length[slot] + i, i >= n - wanted };
    }
    s->order[s->n_added] = slot;
    s->counts[s->n_added++] = n;
    return CACHE_OK;
}

static int slots_finish(struct cache *self, struct cache_batch *batch, struct error *error)
{
    struct slots *s = (struct slots *)self;
    (void)error;
    s->finished = 1;
    *batch = (struct cache_batch){ s->tokens, s->rows, s->n_rows };
    return 0;
}

static int slots_commit(struct cache *self, const int32_t *accepted, struct error *error)
{
    struct slots *s = (struct slots *)self;
    (void)error;
    for (int i = 0; i < s->n_added; i++) {
        s->length[s->order[i]] += accepted[i];
        kv_contiguous_truncate(self->kv, s->order[i], s->length[s->order[i]]);
    }
    return 0;
}

static void slots_abort(struct cache *self)
{
    struct slots *s = (struct slots *)self;
    for (int i = 0; i < s->n_added && s->finished; i++)
        kv_contiguous_truncate(self->kv, s->order[i], s->length[s->order[i]]);
}

static void slots_usage(struct cache *self, struct cache_usage *usage)
{
    const struct slots *s = (const struct slots *)self;
    *usage = (struct cache_usage){ .pages = s->n, .used = s->used, .peak = s->peak, .page_bytes = s->slot_bytes };
}

static void slots_free(struct cache *self)
{
    struct slots *s = (struct slots *)self;
    if (!s)
        return;
    kv_contiguous_free(s->cache.kv);
    free(s->taken);
    free(s->length);
    free(s->order);
    free(s->counts);
    free(s->tokens);
    free(s->rows);
    free(s);
}

struct cache *cache_contiguous_new(const struct model_shape *shape, struct threads *threads, int slots, int capacity,
                                   int max_rows, struct error *error)
{
    struct slots *s = calloc(1, sizeof *s);

    if (!s) {
        fail(error, "out of memory");
        return NULL;
    }
    s->cache = (struct cache){ NULL, no_prefix, slots_open, no_fork, slots_close, slots_has_room, slots_begin,
                               slots_add, slots_finish, slots_commit, slots_abort, slots_usage, slots_free };
    s->n = slots;
    s->capacity = capacity;
    s->max_rows = max_rows;
    s->slot_bytes = (size_t)capacity * (size_t)shape->layers * 2 * (size_t)(shape->kv_heads * shape->head_dim) *
                    sizeof(float);
    s->taken = calloc((size_t)slots, 1);
    s->length = calloc((size_t)slots, sizeof *s->length);
    s->order = calloc((size_t)slots, sizeof *s->order);
    s->counts = calloc((size_t)slots, sizeof *s->counts);
    s->tokens = calloc((size_t)max_rows, sizeof *s->tokens);
    s->rows = calloc((size_t)max_rows, sizeof *s->rows);
    if (s->taken && s->length && s->order && s->counts && s->tokens && s->rows)
        s->cache.kv = kv_contiguous_new(shape, threads, slots, capacity, error);
    else
        fail(error, "out of memory for %d slots", slots);
    if (s->cache.kv)
        return &s->cache;
    slots_free(&s->cache);
    return NULL;
}
