/*
 * Keys and values as the KIVI paper keeps them, for measuring only: one sequence in arrays, without a manager.
 *
 * Keys: R of them are quantised at once when R are exact, along tokens in groups of G. Values: one leaves the last R
 * with each token, and is quantised in groups of G channels. Each query is answered before its own token makes
 * anything leave, so the one at position t reads t - t mod R keys and max(t - R, 0) values as quantised.
 *
 *     position      0 ... 127    128 ... 255    256 ...
 *     keys          exact        128 quantised  256 quantised
 *     values        exact        t - 128 quantised
 *
 * Pages cannot do that: a page holds keys and values of the same tokens and is sealed whole. A token has both its forms
 * here, and a query copies together what it reads: any chunk of tokens gives the same bits.
 */
#include "quality.h"

#include "kvfolio.h"
#include "kvfolio_kernels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { R = QUALITY_PAPER_RECENT, G = QUALITY_PAPER_GROUP };

/* One of k and v: [layer][token][kv head][head_dim], exact and as it reads once quantised. */
struct forms {
    float *exact, *read;
};

struct paper {
    struct kv_backend backend; /* first: a pointer to it is a pointer to us */
    struct model_shape shape;
    struct threads *threads;
    int capacity, length;
    struct forms k, v;
    uint8_t *codes; /* of R tokens */
    uint16_t *scales, *zeros;
    kvf_kernel_attention attention;
    float *scratch; /* [threads][scratch_floats], then k and v of one query */
    uint64_t scratch_floats;
    const struct row_desc *rows; /* the batch at hand */

    /* The attend call at hand. */
    int layer;
    const float *q;
    float *out;
    atomic_int status; /* the first failure of a kernel call */
};

static size_t width_of(const struct paper *p)
{
    return (size_t)(p->shape.kv_heads * p->shape.head_dim);
}

/* Offset of a token's row, in floats. */
static size_t row_at(const struct paper *p, int layer, int token)
{
    return ((size_t)layer * (size_t)p->capacity + (size_t)token) * width_of(p);
}

static int begin(struct kv_backend *self, const struct row_desc *rows, int n, struct error *error)
{
    struct paper *p = (struct paper *)self;

    for (int i = 0; i < n; i++) {
        if (rows[i].position != p->length || p->length == p->capacity)
            return fail(error, "kivi: row %d is position %d, %d of %d are there", i, (int)rows[i].position, p->length,
                        p->capacity);
        p->length++;
    }
    p->rows = rows;
    return 0;
}

/* Quantises and reads back tokens of a layer, whose channels are those of all heads. */
static int round_trip(struct paper *p, const struct forms *x, uint32_t axis, int layer, int token, int tokens,
                      struct error *error)
{
    const size_t at = row_at(p, layer, token);
    const kvf_kernel_rows rows = {
        .struct_size = sizeof rows, .element = KVF_ELEMENT_INT2, .axis = axis, .group = G,
        .dim = (uint32_t)width_of(p), .tokens = (uint64_t)tokens, .codes = p->codes, .scales = p->scales,
        .zeros = p->zeros,
    };
    int status = kvf_cpu_quantize(&rows, KVF_KERNEL_DTYPE_F32, x->exact + at, NULL);

    if (status == KVF_KERNEL_OK)
        status = kvf_cpu_dequantize(&rows, KVF_KERNEL_DTYPE_F32, x->read + at);
    return status == KVF_KERNEL_OK ? 0 : fail(error, "kivi: %s", kvf_kernel_status_name(status));
}

static int append(struct kv_backend *self, int layer, const float *k, const float *v, int n, struct error *error)
{
    struct paper *p = (struct paper *)self;
    const size_t width = width_of(p);

    for (int i = 0; i < n; i++) {
        const int token = p->rows[i].position;
        memcpy(p->k.exact + row_at(p, layer, token), k + (size_t)i * width, width * sizeof *k);
        memcpy(p->v.exact + row_at(p, layer, token), v + (size_t)i * width, width * sizeof *v);
        if (round_trip(p, &p->v, KVF_AXIS_TOKEN, layer, token, 1, error) != 0)
            return -1;
        if ((token + 1) % R == 0 && round_trip(p, &p->k, KVF_AXIS_CHANNEL, layer, token + 1 - R, R, error) != 0)
            return -1;
    }
    return 0;
}

/* One head of the first `tokens` tokens, `quantised` of them as they read: [tokens][head_dim]. */
static void gather(const struct paper *p, const struct forms *x, int head, int quantised, int tokens, float *to)
{
    const size_t d = (size_t)p->shape.head_dim;

    for (int t = 0; t < tokens; t++) {
        const float *from = (t < quantised ? x->read : x->exact) + row_at(p, p->layer, t) + (size_t)head * d;
        memcpy(to + (size_t)t * d, from, d * sizeof *to);
    }
}

/* Items are (row, kv head) pairs. */
static void attend_range(void *context, int first, int last, int worker)
{
    struct paper *p = context;
    const int kv_heads = p->shape.kv_heads, group = p->shape.heads / kv_heads, d = p->shape.head_dim;
    const size_t rows = (size_t)p->capacity * (size_t)d;
    float *scratch = p->scratch + (size_t)worker * (p->scratch_floats + 2 * rows);
    float *k = scratch + p->scratch_floats, *v = k + rows;
    const kvf_kernel_work work = { .struct_size = sizeof work, .row_end = 1, .head_end = (uint32_t)group,
                                   .scratch = scratch, .scratch_floats = p->scratch_floats };

    for (int item = first; item < last; item++) {
        const int i = item / kv_heads, head = item % kv_heads, t = p->rows[i].position;
        const size_t at = ((size_t)i * (size_t)p->shape.heads + (size_t)(head * group)) * (size_t)d;
        const kvf_kernel_contiguous kv = { .struct_size = sizeof kv, .dtype = KVF_KERNEL_DTYPE_F32,
                                           .tokens = (uint32_t)t + 1, .kv_heads = 1, .head_dim = (uint32_t)d,
                                           .k = k, .v = v };
        const kvf_kernel_queries queries = { .struct_size = sizeof queries, .n = 1, .q = p->q + at,
                                             .positions = &p->rows[i].position, .out = p->out + at };
        int status;

        gather(p, &p->k, head, t - t % R, t + 1, k);
        gather(p, &p->v, head, t > R ? t - R : 0, t + 1, v);
        status = kvf_cpu_attention_contiguous(&kv, &p->attention, &queries, &work);
        if (status != KVF_KERNEL_OK)
            atomic_store(&p->status, status);
    }
}

static int attend(struct kv_backend *self, int layer, const float *q, float *out, int n, struct error *error)
{
    struct paper *p = (struct paper *)self;
    int status;

    p->layer = layer;
    p->q = q;
    p->out = out;
    atomic_store(&p->status, KVF_KERNEL_OK);
    parallel_for(p->threads, n * p->shape.kv_heads, 1, attend_range, p);
    status = atomic_load(&p->status);
    return status == KVF_KERNEL_OK ? 0 : fail(error, "kivi: attention: %s", kvf_kernel_status_name(status));
}

struct kv_backend *quality_paper_new(const struct model_shape *shape, struct threads *threads, int capacity,
                                     struct error *error)
{
    const size_t width = (size_t)(shape->kv_heads * shape->head_dim);
    const size_t floats = (size_t)shape->layers * (size_t)capacity * width;
    struct paper *p = calloc(1, sizeof *p);
    int status = KVF_KERNEL_OK;

    if (p) {
        *p = (struct paper){ .backend = { begin, append, attend }, .shape = *shape, .threads = threads,
                             .capacity = capacity };
        /* Heads of one KV head at a time. */
        p->attention = (kvf_kernel_attention){ .struct_size = sizeof p->attention,
                                               .heads = (uint32_t)(shape->heads / shape->kv_heads) };
        status = kvf_cpu_attention_scratch(1, &p->attention, (uint32_t)capacity, &p->scratch_floats);
        p->k = (struct forms){ malloc(floats * sizeof(float)), malloc(floats * sizeof(float)) };
        p->v = (struct forms){ malloc(floats * sizeof(float)), malloc(floats * sizeof(float)) };
        p->codes = malloc(R * width / 4);
        p->scales = malloc(R * width / G * sizeof *p->scales);
        p->zeros = malloc(R * width / G * sizeof *p->zeros);
        p->scratch = malloc((size_t)threads_count(threads) * sizeof *p->scratch *
                            (p->scratch_floats + 2 * (size_t)capacity * (size_t)shape->head_dim));
        if (status == KVF_KERNEL_OK && p->k.exact && p->k.read && p->v.exact && p->v.read && p->codes && p->scales &&
            p->zeros && p->scratch)
            return &p->backend;
        quality_paper_free(&p->backend);
    }
    fail(error, "kivi: %s", status == KVF_KERNEL_OK ? "out of memory" : kvf_kernel_status_name(status));
    return NULL;
}

void quality_paper_free(struct kv_backend *backend)
{
    struct paper *p = (struct paper *)backend;
    if (!p)
        return;
    free(p->k.exact);
    free(p->k.read);
    free(p->v.exact);
    free(p->v.read);
    free(p->codes);
    free(p->scales);
    free(p->zeros);
    free(p->scratch);
    free(p);
}

/* K holds whole groups of R, V all but the last R; what is not quantised is f32. */
double quality_paper_bytes(const struct model_shape *shape, int tokens)
{
    const double width = (double)(shape->layers * shape->kv_heads * shape->head_dim);
    const double quantised = 2.0 / 8 + 4.0 / G; /* code, and a share of scale and zero in f16 */
    const int k = tokens - tokens % R, v = tokens > R ? tokens - R : 0;

    return width * (quantised * (k + v) + 4.0 * (2 * tokens - k - v)) / tokens;
}
