/*
 * A key/value cache in pages: for each layer k and v are [page][token][kv head][head_dim].
 *
 * Page tables are read where the manager wrote them. Attention is kvf_cpu_attention, one query row and one group of
 * heads a call, so that rows and heads spread over the threads.
 */
#include "kv_paged.h"

#include <stdatomic.h>
#include <stdlib.h>

struct paged {
    struct kv_backend backend; /* first: a pointer to it is a pointer to us */
    struct model_shape shape;
    struct threads *threads;
    kvf_kernel_pages *layers;  /* [layers] */
    void *memory;              /* [layers][k, v][page 0..pages][token][kv head][head_dim] */
    size_t page_bytes;         /* of k or v in one layer */
    kvf_kernel_attention attention;
    float *scratch;            /* [threads][scratch_floats], grown when a batch has longer tables */
    uint64_t scratch_floats;

    /* The batch at hand. */
    struct kv_paged_batch batch;
    const struct row_desc *rows;

    /* The attend call at hand. */
    int layer;
    const float *q;
    float *out;
    atomic_int status; /* the first failure of a kernel call */
};

static int check(int32_t status, const char *what, struct error *error)
{
    return status == KVF_KERNEL_OK ? 0 : fail(error, "pages: %s: %s", what, kvf_kernel_status_name(status));
}

/* Makes room for attention over `tokens` tokens in every thread. */
static int reserve_scratch(struct paged *p, uint32_t tokens, struct error *error)
{
    uint64_t floats;
    float *scratch;

    if (check(kvf_cpu_attention_scratch((uint32_t)p->shape.kv_heads, &p->attention, tokens, &floats), "scratch",
              error) != 0)
        return -1;
    if (floats <= p->scratch_floats)
        return 0;
    scratch = malloc((size_t)threads_count(p->threads) * floats * sizeof *scratch);
    if (!scratch)
        return fail(error, "pages: out of memory for attention over %u tokens", tokens);
    free(p->scratch);
    p->scratch = scratch;
    p->scratch_floats = floats;
    return 0;
}

/* Runs the batch's copies: after this, pages may be written. */
static int begin(struct kv_backend *self, const struct row_desc *rows, int n, struct error *error)
{
    struct paged *p = (struct paged *)self;
    const uint32_t page_tokens = p->layers[0].page_tokens;

    for (int i = 0; i < n; i++) {
        if (rows[i].sequence < 0 || rows[i].sequence >= p->batch.table_rows)
            return fail(error, "pages: row %d names table row %d of %d", i, (int)rows[i].sequence,
                        p->batch.table_rows);
    }
    if (reserve_scratch(p, (uint32_t)p->batch.table_stride * page_tokens, error) != 0)
        return -1;
    for (int l = 0; l < p->shape.layers && p->batch.n_copies > 0; l++) {
        if (check(kvf_cpu_copy_pages(&p->layers[l], p->batch.copies, (uint32_t)p->batch.n_copies), "copy", error) != 0)
            return -1;
    }
    p->rows = rows;
    return 0;
}

static int append(struct kv_backend *self, int layer, const float *k, const float *v, int n, struct error *error)
{
    struct paged *p = (struct paged *)self;
    return check(kvf_cpu_append(&p->layers[layer], k, v, p->batch.slots, (uint32_t)n), "append", error);
}

/* Items are (row, kv head) pairs. */
static void attend_range(void *context, int first, int last, int worker)
{
    struct paged *p = context;
    const int kv_heads = p->shape.kv_heads, group = p->shape.heads / kv_heads;
    const size_t q_width = (size_t)(p->shape.heads * p->shape.head_dim);
    const kvf_kernel_table table = {
        .struct_size = sizeof table, .rows = (uint32_t)p->batch.table_rows,
        .stride = (uint32_t)p->batch.table_stride, .entries = p->batch.tables,
    };

    for (int item = first; item < last; item++) {
        const int i = item / kv_heads, kv_head = item % kv_heads;
        const struct row_desc *row = &p->rows[i];
        const kvf_kernel_queries queries = {
            .struct_size = sizeof queries, .n = 1, .q = p->q + (size_t)i * q_width, .positions = &row->position,
            .out = p->out + (size_t)i * q_width, .table_rows = &row->sequence,
        };
        const kvf_kernel_work work = {
            .struct_size = sizeof work, .row_begin = 0, .row_end = 1, .head_begin = (uint32_t)(kv_head * group),
            .head_end = (uint32_t)(kv_head * group + group), .scratch = p->scratch + (size_t)worker * p->scratch_floats,
            .scratch_floats = p->scratch_floats,
        };
        const int status = kvf_cpu_attention(&p->layers[p->layer], &table, &p->attention, &queries, &work);
        if (status != KVF_KERNEL_OK)
            atomic_store(&p->status, status);
    }
}

static int attend(struct kv_backend *self, int layer, const float *q, float *out, int n, struct error *error)
{
    struct paged *p = (struct paged *)self;

    p->layer = layer;
    p->q = q;
    p->out = out;
    atomic_store(&p->status, KVF_KERNEL_OK);
    parallel_for(p->threads, n * p->shape.kv_heads, 1, attend_range, p);
    return check(atomic_load(&p->status), "attention", error);
}

struct kv_backend *kv_paged_new(const struct model_shape *shape, struct threads *threads, uint32_t dtype,
                                int page_tokens, int pages, struct error *error)
{
    const size_t element = dtype == KVF_KERNEL_DTYPE_F32 ? 4 : 2;
    const size_t head_bytes = (size_t)shape->head_dim * element;
    const size_t token_bytes = (size_t)shape->kv_heads * head_bytes;
    const size_t page_bytes = (size_t)page_tokens * token_bytes;
    const size_t half = ((size_t)pages + 1) * page_bytes; /* k or v of one layer */
    struct paged *p = calloc(1, sizeof *p);

    if (!p)
        goto out_of_memory;
    p->backend = (struct kv_backend){ begin, append, attend };
    p->shape = *shape;
    p->threads = threads;
    p->page_bytes = page_bytes;
    p->attention = (kvf_kernel_attention){ .struct_size = sizeof p->attention, .heads = (uint32_t)shape->heads };
    p->layers = calloc((size_t)shape->layers, sizeof *p->layers);
    p->memory = malloc((size_t)shape->layers * 2 * half); /* the system gives it page by page, on the first write */
    if (!p->layers || !p->memory)
        goto out_of_memory;
    for (int l = 0; l < shape->layers; l++) {
        char *k = (char *)p->memory + (size_t)l * 2 * half;
        p->layers[l] = (kvf_kernel_pages){
            .struct_size = sizeof p->layers[l], .dtype = dtype, .page_tokens = (uint32_t)page_tokens,
            .n_pages = (uint32_t)pages, .kv_heads = (uint32_t)shape->kv_heads, .head_dim = (uint32_t)shape->head_dim,
            .k = k, .v = k + half, .k_page_stride = page_bytes, .k_token_stride = token_bytes,
            .k_head_stride = head_bytes,
        };
    }
    return &p->backend;

out_of_memory:
    if (p)
        kv_paged_free(&p->backend);
    fail(error, "pages: out of memory for %d pages of %d tokens", pages, page_tokens);
    return NULL;
}

void kv_paged_free(struct kv_backend *backend)
{
    struct paged *p = (struct paged *)backend;
    if (!p)
        return;
    free(p->layers);
    free(p->memory);
    free(p->scratch);
    free(p);
}

void kv_paged_set_batch(struct kv_backend *backend, const struct kv_paged_batch *batch)
{
    ((struct paged *)backend)->batch = *batch;
}

const kvf_kernel_pages *kv_paged_layer(const struct kv_backend *backend, int layer)
{
    return &((const struct paged *)backend)->layers[layer];
}

size_t kv_paged_page_bytes(const struct kv_backend *backend)
{
    const struct paged *p = (const struct paged *)backend;
    return p->page_bytes * 2 * (size_t)p->shape.layers;
}
