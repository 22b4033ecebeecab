/*
 * A cache for the scheduler without a manager, to compare with. Nothing is shared: a prompt is always computed whole,
 * and a fork is refused, so that the scheduler opens another request instead.
 *
 * Keys and values in f32 lie in arrays, with attention that knows no pages (kv_contiguous.c). Other formats have no
 * such kernel: they lie in pages, in order (straight.c).
 */
#include "cache_contiguous.h"

#include "kv_contiguous.h"
#include "straight.h"

#include <stdlib.h>
#include <string.h>

struct slots {
    struct cache cache; /* first: a pointer to it is a pointer to us */
    struct kv_groups groups;
    struct straight straight;
    int in_pages;     /* 0 = arrays */
    int n, capacity, max_rows;
    size_t slot_bytes, slot_f16_bytes;
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

/* Forgets what lies behind a slot's tokens. */
static void forget(struct slots *s, int slot)
{
    if (!s->in_pages)
        kv_contiguous_truncate(s->cache.kv, slot, s->length[slot]);
    else if (s->length[slot] == 0)
        straight_clear(&s->straight, slot);
}

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
        forget(s, i);
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

static int slots_run(struct cache *self, uint64_t sequence, int n)
{
    const struct slots *s = (const struct slots *)self;
    return kv_groups_run(&s->groups, s->length[sequence], n);
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
    if (s->in_pages) {
        straight_plan(&s->straight, s->rows, s->n_rows);
        kv_paged_set_batch(self->kv, &(struct kv_paged_batch){ s->straight.parts, s->n });
    }
    *batch = (struct cache_batch){ s->tokens, s->rows, s->n_rows };
    return 0;
}

static int slots_commit(struct cache *self, const int32_t *accepted, struct error *error)
{
    struct slots *s = (struct slots *)self;
    (void)error;
    for (int i = 0; i < s->n_added; i++) {
        if (s->in_pages)
            straight_commit(&s->straight, s->order[i]);
        s->length[s->order[i]] += accepted[i];
        forget(s, s->order[i]);
    }
    return 0;
}

static void slots_abort(struct cache *self)
{
    struct slots *s = (struct slots *)self;
    for (int i = 0; i < s->n_added && s->finished; i++)
        forget(s, s->order[i]);
}

static void slots_usage(struct cache *self, struct cache_usage *usage)
{
    const struct slots *s = (const struct slots *)self;
    *usage = (struct cache_usage){ .pages = s->n, .used = s->used, .peak = s->peak,
                                  .peak_bytes = s->slot_bytes * (size_t)s->peak,
                                  .peak_f16_bytes = s->slot_f16_bytes * (size_t)s->peak };
}

static void slots_free(struct cache *self)
{
    struct slots *s = (struct slots *)self;
    if (!s)
        return;
    if (s->in_pages)
        kv_paged_free(s->cache.kv);
    else
        kv_contiguous_free(s->cache.kv);
    straight_free(&s->straight);
    free(s->taken);
    free(s->length);
    free(s->order);
    free(s->counts);
    free(s->tokens);
    free(s->rows);
    free(s);
}

/* The memory of the slots. */
static struct kv_backend *make_memory(struct slots *s, struct threads *threads, struct error *error)
{
    int pages[KV_GROUPS], sealed[KV_GROUPS];

    s->slot_f16_bytes = (size_t)s->capacity * kv_groups_f16_token(&s->groups, s->groups.shape.layers);
    s->slot_bytes = 2 * s->slot_f16_bytes;
    if (!s->in_pages)
        return kv_contiguous_new(&s->groups.shape, threads, s->n, s->capacity, error);
    if (straight_init(&s->straight, &s->groups, s->n, s->capacity, s->max_rows, error) != 0)
        return NULL;
    s->slot_bytes = 0;
    straight_pages(&s->straight, pages, sealed);
    for (int g = 0; g < s->groups.n; g++) {
        const struct kv_group *group = &s->groups.groups[g];
        const uint64_t open = (sealed[g] ? group->exact : group->layout).page_bytes;
        s->slot_bytes += ((uint64_t)pages[g] * open + (uint64_t)sealed[g] * group->layout.page_bytes) / (uint64_t)s->n;
    }
    return kv_paged_new(&s->groups, threads, pages, sealed, error);
}

struct cache *cache_contiguous_new(const struct model_shape *shape, struct threads *threads, const struct kv_spec *kv,
                                   int page_tokens, int slots, int capacity, int max_rows, struct error *error)
{
    struct slots *s = calloc(1, sizeof *s);

    if (!s) {
        fail(error, "out of memory");
        return NULL;
    }
    s->cache = (struct cache){ NULL, no_prefix, slots_open, no_fork, slots_close, slots_has_room, slots_begin,
                               slots_run, slots_add, slots_finish, slots_commit, slots_abort, slots_usage, slots_free };
    s->n = slots;
    s->capacity = capacity;
    s->max_rows = max_rows;
    if (kv_groups_make(&s->groups, shape, kv, page_tokens, error) != 0) {
        slots_free(&s->cache);
        return NULL;
    }
    s->in_pages = s->groups.n > 1 || s->groups.groups[0].layout.k.format.element != KVF_ELEMENT_F32;
    s->taken = calloc((size_t)slots, 1);
    s->length = calloc((size_t)slots, sizeof *s->length);
    s->order = calloc((size_t)slots, sizeof *s->order);
    s->counts = calloc((size_t)slots, sizeof *s->counts);
    s->tokens = calloc((size_t)max_rows, sizeof *s->tokens);
    s->rows = calloc((size_t)max_rows, sizeof *s->rows);
    if (s->taken && s->length && s->order && s->counts && s->tokens && s->rows)
        s->cache.kv = make_memory(s, threads, error);
    else
        fail(error, "out of memory for %d slots", slots);
    if (s->cache.kv)
        return &s->cache;
    slots_free(&s->cache);
    return NULL;
}

void cache_contiguous_seal(struct cache *cache, uint64_t sequence, int pages)
{
    struct slots *s = (struct slots *)cache;
    if (s->in_pages && s->straight.floor[sequence] < pages)
        s->straight.floor[sequence] = pages;
}

const void *cache_contiguous_page(const struct cache *cache, uint64_t sequence, int group, int n, int *sealed)
{
    const struct slots *s = (const struct slots *)cache;
    const struct straight_group *of = &s->straight.of[group];
    const struct kv_pool *pool;

    if (!s->in_pages)
        return NULL;
    *sealed = n >= (int)of->begin[sequence] && n < (int)of->end[sequence];
    pool = kv_paged_pool(cache->kv, group, *sealed);
    return (const char *)pool->memory +
           (size_t)of->tables[(size_t)sequence * (size_t)s->straight.slot_pages + (size_t)n] * pool->layout->page_bytes;
}
