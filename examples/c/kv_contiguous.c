/*
 * A key/value cache without pages: k and v are [layer][sequence][token][kv head][head_dim], f32.
 *
 * Attention is kvf_cpu_attention_contiguous, one query row and one group of heads a call. It is the arithmetic of the
 * paged kernel, bit for bit, so this cache is what a paged one is compared with.
 */
#include "kv_contiguous.h"

#include "kvfolio_kernels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct contiguous {
    struct kv_backend backend; /* first: a pointer to it is a pointer to us */
    struct model_shape shape;
    struct threads *threads;
    int sequences;
    int capacity;  /* tokens a sequence */
    float *k;
    float *v;
    int *length;   /* [sequences] tokens held */
    kvf_kernel_attention attention;
    float *scratch; /* [threads][scratch_floats] */
    uint64_t scratch_floats;

    const struct row_desc *rows; /* the batch at hand */

    /* The attend call at hand. */
    int layer;
    const float *q;
    float *out;
    atomic_int status; /* the first failure of a kernel call */
};

/* Offset of the first element of a token, in floats. */
static size_t token_offset(const struct contiguous *c, int layer, int sequence, int token)
{
    const size_t row = ((size_t)layer * (size_t)c->sequences + (size_t)sequence) * (size_t)c->capacity + (size_t)token;
    return row * (size_t)(c->shape.kv_heads * c->shape.head_dim);
}

static int begin(struct kv_backend *self, const struct row_desc *rows, int n, struct error *error)
{
    struct contiguous *c = (struct contiguous *)self;
    for (int i = 0; i < n; i++) {
        const int sequence = rows[i].sequence, position = rows[i].position;
        if (sequence < 0 || sequence >= c->sequences)
            return fail(error, "kv: row %d names sequence %d of %d", i, sequence, c->sequences);
        if (position != c->length[sequence])
            return fail(error, "kv: row %d is position %d, sequence %d ends at %d", i, position, sequence,
                        c->length[sequence]);
        if (position >= c->capacity)
            return fail(error, "kv: sequence %d is full with %d tokens", sequence, c->capacity);
        c->length[sequence]++;
    }
    c->rows = rows;
    return 0;
}

static int append(struct kv_backend *self, int layer, const float *k, const float *v, int n, struct error *error)
{
    struct contiguous *c = (struct contiguous *)self;
    const size_t width = (size_t)(c->shape.kv_heads * c->shape.head_dim);
    (void)error;
    for (int i = 0; i < n; i++) {
        const size_t at = token_offset(c, layer, c->rows[i].sequence, c->rows[i].position);
        memcpy(c->k + at, k + (size_t)i * width, width * sizeof *k);
        memcpy(c->v + at, v + (size_t)i * width, width * sizeof *v);
    }
    return 0;
}

/* Items are (row, kv head) pairs. */
static void attend_range(void *context, int first, int last, int worker)
{
    struct contiguous *c = context;
    const int kv_heads = c->shape.kv_heads, group = c->shape.heads / kv_heads;
    const size_t q_width = (size_t)(c->shape.heads * c->shape.head_dim);

    for (int item = first; item < last; item++) {
        const int i = item / kv_heads, kv_head = item % kv_heads;
        const struct row_desc *row = &c->rows[i];
        const size_t at = token_offset(c, c->layer, row->sequence, 0);
        const kvf_kernel_contiguous kv = {
            .struct_size = sizeof kv, .dtype = KVF_KERNEL_DTYPE_F32, .tokens = (uint32_t)row->position + 1,
            .kv_heads = (uint32_t)kv_heads, .head_dim = (uint32_t)c->shape.head_dim, .k = c->k + at, .v = c->v + at,
        };
        const kvf_kernel_queries queries = {
            .struct_size = sizeof queries, .n = 1, .q = c->q + (size_t)i * q_width, .positions = &row->position,
            .out = c->out + (size_t)i * q_width,
        };
        const kvf_kernel_work work = {
            .struct_size = sizeof work, .row_begin = 0, .row_end = 1, .head_begin = (uint32_t)(kv_head * group),
            .head_end = (uint32_t)(kv_head * group + group), .scratch = c->scratch + (size_t)worker * c->scratch_floats,
            .scratch_floats = c->scratch_floats,
        };
        const int status = kvf_cpu_attention_contiguous(&kv, &c->attention, &queries, &work);
        if (status != KVF_KERNEL_OK)
            atomic_store(&c->status, status);
    }
}

static int attend(struct kv_backend *self, int layer, const float *q, float *out, int n, struct error *error)
{
    struct contiguous *c = (struct contiguous *)self;

    c->layer = layer;
    c->q = q;
    c->out = out;
    atomic_store(&c->status, KVF_KERNEL_OK);
    parallel_for(c->threads, n * c->shape.kv_heads, 1, attend_range, c);
    if (atomic_load(&c->status) != KVF_KERNEL_OK)
        return fail(error, "kv: attention: %s", kvf_kernel_status_name(atomic_load(&c->status)));
    return 0;
}

struct kv_backend *kv_contiguous_new(const struct model_shape *shape, struct threads *threads, int sequences,
                                     int capacity, struct error *error)
{
    const size_t floats = (size_t)shape->layers * (size_t)sequences * (size_t)capacity *
                          (size_t)(shape->kv_heads * shape->head_dim);
    struct contiguous *c = calloc(1, sizeof *c);
    int status;

    if (!c)
        goto out_of_memory;
    c->backend = (struct kv_backend){ begin, append, attend };
    c->shape = *shape;
    c->threads = threads;
    c->sequences = sequences;
    c->capacity = capacity;
    c->attention = (kvf_kernel_attention){ .struct_size = sizeof c->attention, .heads = (uint32_t)shape->heads };
    status = kvf_cpu_attention_scratch((uint32_t)shape->kv_heads, &c->attention, (uint32_t)capacity,
                                       &c->scratch_floats);
    if (status != KVF_KERNEL_OK) {
        kv_contiguous_free(&c->backend);
        fail(error, "kv: %s", kvf_kernel_status_name(status));
        return NULL;
    }
    c->k = malloc(floats * sizeof *c->k);
    c->v = malloc(floats * sizeof *c->v);
    c->length = calloc((size_t)sequences, sizeof *c->length);
    c->scratch = malloc((size_t)threads_count(threads) * c->scratch_floats * sizeof *c->scratch);
    if (c->k && c->v && c->length && c->scratch)
        return &c->backend;
    kv_contiguous_free(&c->backend);
out_of_memory:
    fail(error, "kv: out of memory for %d sequences of %d tokens", sequences, capacity);
    return NULL;
}

void kv_contiguous_free(struct kv_backend *backend)
{
    struct contiguous *c = (struct contiguous *)backend;
    if (!c)
        return;
    free(c->k);
    free(c->v);
    free(c->length);
    free(c->scratch);
    free(c);
}

void kv_contiguous_truncate(struct kv_backend *backend, int sequence, int length)
{
    struct contiguous *c = (struct contiguous *)backend;
    if (sequence >= 0 && sequence < c->sequences && length >= 0 && length < c->length[sequence])
        c->length[sequence] = length;
}
