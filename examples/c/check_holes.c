/*
 * What eviction leaves behind does not matter: attention over rows with holes, whose slots are filled with NaN, gives
 * the bits of attention over arrays that hold the kept tokens alone, before holes are closed and after; texts are the
 * same whether holes stay or are closed; and pages in use are those that the kept tokens fill.
 */
#include "check.h"
#include "random.h"
#include "streams.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGET = 40, CHUNK = 16, WAYS = 3, TOTAL = 220, PAGE = 8 };

struct holes {
    const struct model *model;
    struct threads *threads;
    struct cache *cache;
    struct engine *engine;
    uint64_t chats[WAYS]; /* by KVF_REMOVE_* */
    float *logits;        /* [WAYS][vocab] */
    float *k, *v, *q, *out[2], *scratch;
    int len;
    long long logits_differ, rows;
    float most;           /* difference of a logit where slots are used again */
};

static struct streams_view view_of(struct holes *h, int way, int stream)
{
    return streams_view(h->cache, h->chats[way], stream / h->model->shape.kv_heads, stream % h->model->shape.kv_heads);
}

static int streams(const struct holes *h)
{
    return h->model->shape.layers * h->model->shape.kv_heads;
}

static int is_live(const kvf_stream *s, uint32_t slot)
{
    return (int)(s->valid[slot / s->page_tokens] >> slot % s->page_tokens & 1);
}

static float *at(const struct streams_view *view, void *base, uint64_t page_stride, uint64_t token_stride,
                 uint32_t slot)
{
    const uint32_t page = view->stream->page_tokens;
    return (float *)((char *)base + (uint64_t)view->table[slot / page] * page_stride + slot % page * token_stride);
}

static float *key_at(const struct streams_view *view, uint32_t slot)
{
    return at(view, view->pages.k, view->pages.k_page_stride, view->pages.k_token_stride, slot);
}

static float *value_at(const struct streams_view *view, uint32_t slot)
{
    return at(view, view->pages.v, view->pages.v_page_stride, view->pages.v_token_stride, slot);
}

static void start(struct holes *h, const struct model *model, const char *policy)
{
    const size_t dim = (size_t)model->shape.head_dim, group = (size_t)(model->shape.heads / model->shape.kv_heads);
    struct streams_config config = { .page_tokens = PAGE, .max_rows = WAYS * CHUNK, .max_sequences = WAYS,
                                     .chunk = CHUNK, .longest = TOTAL };
    struct evict_policy of[WAYS];
    struct error error;
    struct streams_view view;
    int hit;

    *h = (struct holes){ .model = model };
    for (int way = 0; way < WAYS; way++) {
        int columns;
        of[way] = evict_policy_named(policy, BUDGET);
        of[way].removal = (uint32_t)way;
        columns = evict_columns(&of[way], PAGE, CHUNK, TOTAL);
        config.columns = columns > config.columns ? columns : config.columns;
        config.pages += columns * streams(h);
    }
    h->threads = threads_new(0);
    h->cache = streams_new(&config, &model->shape, h->threads, &error);
    h->engine = h->cache ? engine_new(model, h->threads, config.max_rows, &error) : NULL;
    h->logits = malloc(WAYS * (size_t)model->shape.vocab * sizeof *h->logits);
    h->k = malloc(TOTAL * dim * sizeof *h->k);
    h->v = malloc(TOTAL * dim * sizeof *h->v);
    h->q = malloc(group * dim * sizeof *h->q);
    h->out[0] = malloc(group * dim * sizeof *h->out[0]);
    h->out[1] = malloc(group * dim * sizeof *h->out[1]);
    h->scratch = malloc(8 * (TOTAL + 64) * sizeof *h->scratch);
    if (!h->engine || !h->logits || !h->k || !h->v || !h->q || !h->out[0] || !h->out[1] || !h->scratch)
        die("%s", h->engine ? "out of memory" : error.text);
    for (int way = 0; way < WAYS; way++) {
        if (streams_policy(h->cache, &of[way], &error) != 0 ||
            h->cache->open(h->cache, NULL, 0, &h->chats[way], &hit, &error) != CACHE_OK)
            die("a chat cannot be opened");
    }
    /* Not a number anywhere: what is read must have been written. */
    view = view_of(h, 0, 0);
    memset(view.pages.k, 0xff, ((size_t)view.pages.n_pages + 1) * view.pages.k_page_stride);
}

static void stop(struct holes *h)
{
    engine_free(h->engine);
    h->cache->free(h->cache);
    threads_free(h->threads);
    free(h->logits);
    free(h->k);
    free(h->v);
    free(h->q);
    free(h->out[0]);
    free(h->out[1]);
    free(h->scratch);
}

/* Slots of tokens that were evicted. */
static void poison(struct holes *h)
{
    const size_t bytes = (size_t)h->model->shape.head_dim * sizeof(float);

    for (int i = 0; i < WAYS * streams(h); i++) {
        const struct streams_view view = view_of(h, i / streams(h), i % streams(h));
        for (uint32_t slot = 0; slot < view.stream->rows; slot++) {
            if (is_live(view.stream, slot))
                continue;
            memset(key_at(&view, slot), 0xff, bytes);
            memset(value_at(&view, slot), 0xff, bytes);
        }
    }
}

/* The next tokens of all three chats; logits of the last one are compared. */
static void step(struct holes *h, int count)
{
    const int vocab = h->model->shape.vocab;
    const int32_t accepted[WAYS] = { count, count, count };
    const float *hole = h->logits, *replace = hole + vocab, *compact = replace + vocab;
    struct cache_batch batch;
    struct error error;
    int32_t tokens[CHUNK];

    for (int i = 0; i < count; i++)
        tokens[i] = (int32_t)(random_bits(78, (uint64_t)(h->len + i)) % (uint64_t)vocab);
    if (h->cache->begin(h->cache, &error) != 0)
        die("%s", error.text);
    for (int way = 0; way < WAYS; way++) {
        if (h->cache->add(h->cache, h->chats[way], tokens, count, 1, &error) != CACHE_OK)
            die("%s", error.text);
    }
    if (h->cache->finish(h->cache, &batch, &error) != 0 ||
        engine_forward(h->engine, h->cache->kv, batch.tokens, batch.rows, batch.n, h->logits, &error) != 0 ||
        h->cache->commit(h->cache, accepted, &error) != 0)
        die("%s", error.text);
    h->rows++;
    h->logits_differ += memcmp(hole, compact, (size_t)vocab * sizeof *hole) != 0;
    for (int i = 0; i < vocab; i++)
        h->most = fabsf(hole[i] - replace[i]) > h->most || isnan(replace[i]) ? fabsf(hole[i] - replace[i]) : h->most;
    h->len += count;
    poison(h);
}

/* ---- Attention of one query over a row, and over arrays with what the row keeps ---- */

static void over_row(struct holes *h, const struct streams_view *view, kvf_kernel_queries *queries,
                     const kvf_kernel_work *work)
{
    const kvf_stream *s = view->stream;
    const kvf_kernel_table table = { .struct_size = sizeof table, .rows = 1, .stride = s->columns,
                                     .entries = view->table };
    const kvf_kernel_slots slots = { .struct_size = sizeof slots, .valid = s->valid,
                                     .positions = (const int32_t *)s->positions, .used = &s->rows };
    const int32_t last = (int32_t)s->seen - 1;
    int32_t status;

    queries->out = h->out[0];
    queries->positions = &last;
    status = kvf_cpu_attention_slots(&view->pages, &table, &slots, &view->attention, queries, NULL, work);
    if (status != KVF_KERNEL_OK)
        die("attention over slots: %s", kvf_kernel_status_name(status));
}

static void over_arrays(struct holes *h, const struct streams_view *view, kvf_kernel_queries *queries,
                        const kvf_kernel_work *work)
{
    const kvf_stream *s = view->stream;
    const size_t dim = (size_t)h->model->shape.head_dim;
    const int32_t last = (int32_t)s->live - 1;
    kvf_kernel_contiguous kv = { .struct_size = sizeof kv, .dtype = KVF_KERNEL_DTYPE_F32, .kv_heads = 1,
                                 .head_dim = (uint32_t)dim, .k = h->k, .v = h->v };
    int32_t status;

    /* In the order of positions, whatever the order of slots. */
    for (uint32_t position = 0; position < s->seen; position++) {
        for (uint32_t slot = 0; slot < s->rows; slot++) {
            if (!is_live(s, slot) || s->positions[slot] != position)
                continue;
            memcpy(h->k + kv.tokens * dim, key_at(view, slot), dim * sizeof *h->k);
            memcpy(h->v + kv.tokens * dim, value_at(view, slot), dim * sizeof *h->v);
            kv.tokens++;
        }
    }
    queries->out = h->out[1];
    queries->positions = &last;
    status = kvf_cpu_attention_contiguous(&kv, &view->attention, queries, work);
    if (status != KVF_KERNEL_OK || kv.tokens != s->live)
        die("attention over arrays: %s, %u tokens", kvf_kernel_status_name(status), (unsigned)kv.tokens);
}

/* Streams of a chat whose attention is not that over arrays: bit for bit, or within `near`. */
static int compare_rows(struct holes *h, int way, float near)
{
    const size_t group = (size_t)(h->model->shape.heads / h->model->shape.kv_heads);
    const size_t floats = group * (size_t)h->model->shape.head_dim;
    static const int32_t only_row = 0;
    int wrong = 0;

    for (int i = 0; i < streams(h); i++) {
        const struct streams_view view = view_of(h, way, i);
        kvf_kernel_queries queries = { .struct_size = sizeof queries, .n = 1, .q = h->q, .table_rows = &only_row };
        const kvf_kernel_work work = { .struct_size = sizeof work, .row_end = 1, .head_end = (uint32_t)group,
                                       .scratch = h->scratch, .scratch_floats = 8 * (TOTAL + 64) };
        int differs = 0;
        for (size_t e = 0; e < floats; e++)
            h->q[e] = 8 * random_unit(79, (uint64_t)i * floats + e) - 4;
        over_row(h, &view, &queries, &work);
        over_arrays(h, &view, &queries, &work);
        for (size_t e = 0; e < floats; e++)
            differs |= !(fabsf(h->out[0][e] - h->out[1][e]) <= near);
        wrong += differs || (near == 0 && memcmp(h->out[0], h->out[1], floats * sizeof *h->out[0]) != 0);
    }
    return wrong;
}

static int check_policy(struct holes *h, const char *model_name, const char *policy)
{
    struct streams_usage before, after;
    kvf_pool_stats pool = { .struct_size = sizeof pool };
    struct error error;
    uint32_t used;
    int wrong[WAYS + 1], failures;

    while (h->len < TOTAL / 2)
        step(h, CHUNK);
    while (h->len < TOTAL)
        step(h, 1);
    streams_usage(h->cache, 0, &before);
    if (kvf_pool_stats_read(streams_manager(h->cache), 0, &pool) != KVF_OK)
        die("no statistics");
    used = pool.used;
    wrong[KVF_REMOVE_HOLE] = compare_rows(h, KVF_REMOVE_HOLE, 0);
    wrong[KVF_REMOVE_COMPACT] = compare_rows(h, KVF_REMOVE_COMPACT, 0);
    wrong[KVF_REMOVE_REPLACE] = compare_rows(h, KVF_REMOVE_REPLACE, 1e-5f);
    for (int way = 0; way < WAYS; way++) {
        if (streams_compact(h->cache, h->chats[way], &error) != 0)
            die("%s", error.text);
    }
    wrong[WAYS] = compare_rows(h, KVF_REMOVE_HOLE, 0) + compare_rows(h, KVF_REMOVE_COMPACT, 0);
    streams_usage(h->cache, 0, &after);
    if (kvf_pool_stats_read(streams_manager(h->cache), 0, &pool) != KVF_OK)
        die("no statistics");
    failures = wrong[0] + wrong[1] + wrong[2] + wrong[3] + (h->logits_differ > 0) + !(h->most < 1e-3f) +
               (before.rows == before.live) + (after.rows != after.live) + ((long long)used != before.pages) +
               ((long long)pool.used != after.needed);
    printf("holes %s, %s: %lld of %lld slots were holes; of %d rows with holes %d, of compacted ones %d, of those "
           "whose slots are used again %d differ from arrays, once all are closed %d\n", model_name, policy,
           before.rows - before.live, before.rows, streams(h), wrong[KVF_REMOVE_HOLE], wrong[KVF_REMOVE_COMPACT],
           wrong[KVF_REMOVE_REPLACE], wrong[WAYS]);
    printf("    %lld of %lld rows of logits differ between holes and none, at most by %g where slots are used again; "
           "pages in use: %u with holes, %u without, which tokens fill: %lld%s\n", h->logits_differ, h->rows,
           (double)h->most, (unsigned)used, (unsigned)pool.used, after.needed, failures ? "  FAILED" : "");
    return failures;
}

int check_holes(struct check *check)
{
    static const char *const policies[] = { "streaming", "h2o", "knorm" };
    static struct holes h;
    int failures = 0;

    for (int i = 0; i < 3; i++) {
        start(&h, &check->loaded.model, policies[i]);
        failures += check_policy(&h, check->model_name, policies[i]);
        stop(&h);
    }
    return failures;
}
