/*
 * A key/value cache in pages.
 *
 * Page tables are read where the manager wrote them. Attention is kvf_cpu_attention or, where pages are quantised,
 * kvf_cpu_quant_attention: one query row and one group of heads a call, so that rows and heads spread over the threads.
 */
#include "kv_paged.h"

#include <stdatomic.h>
#include <stdlib.h>

/* How the kernels see one layer of the model. */
struct view {
    enum kv_kind kind;
    kvf_kernel_pages exact; /* exact and sealed formats */
    kvf_kernel_quant quant; /* direct and sealed formats */
};

struct paged {
    struct kv_backend backend; /* first: a pointer to it is a pointer to us */
    const struct kv_groups *groups;
    struct threads *threads;
    struct kv_pool pools[KV_GROUPS][2]; /* pages, and sealed pages */
    struct view *views;        /* [layers] */
    kvf_kernel_attention attention;
    float *scratch;            /* [threads][scratch_floats], grown when a batch has longer tables */
    uint64_t scratch_floats;
    float *encode;             /* [encode_floats], for rows that are quantised */
    uint64_t encode_floats;

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

static const struct kv_paged_part *part_of(const struct paged *p, int layer)
{
    return &p->batch.parts[p->groups->group_of[layer]];
}

/* Makes room for attention over the batch's tables in every thread. */
static int reserve_scratch(struct paged *p, struct error *error)
{
    uint64_t most = 0;
    float *scratch;

    for (int l = 0; l < p->groups->shape.layers; l++) {
        const uint32_t tokens = (uint32_t)(part_of(p, l)->table_stride * p->groups->page_tokens);
        uint64_t floats;
        const int32_t status =
            p->views[l].kind == KV_EXACT
                ? kvf_cpu_attention_scratch((uint32_t)p->groups->shape.kv_heads, &p->attention, tokens, &floats)
                : kvf_cpu_quant_attention_scratch(&p->views[l].quant, &p->attention, tokens, &floats);
        if (check(status, "scratch", error) != 0)
            return -1;
        most = floats > most ? floats : most;
    }
    if (most <= p->scratch_floats)
        return 0;
    scratch = malloc((size_t)threads_count(p->threads) * most * sizeof *scratch);
    if (!scratch)
        return fail(error, "pages: out of memory for attention");
    free(p->scratch);
    p->scratch = scratch;
    p->scratch_floats = most;
    return 0;
}

/* Copies and seals of one layer. */
static int prepare(struct paged *p, int layer, struct error *error)
{
    const struct view *view = &p->views[layer];
    const struct kv_paged_part *part = part_of(p, layer);

    if (part->n_copies > 0 &&
        check(view->kind == KV_DIRECT ? kvf_cpu_quant_copy_pages(&view->quant, part->copies, (uint32_t)part->n_copies)
                                      : kvf_cpu_copy_pages(&view->exact, part->copies, (uint32_t)part->n_copies),
              "copy", error) != 0)
        return -1;
    if (part->n_seals == 0)
        return 0;
    return check(kvf_cpu_quant_seal(&view->exact, &view->quant, KVF_KERNEL_NONFINITE_REJECT, part->seals,
                                    (uint32_t)part->n_seals, p->encode, p->encode_floats), "seal", error);
}

/* Runs the batch's copies and seals: after this, pages may be written. */
static int begin(struct kv_backend *self, const struct row_desc *rows, int n, struct error *error)
{
    struct paged *p = (struct paged *)self;

    for (int i = 0; i < n; i++) {
        if (rows[i].sequence < 0 || rows[i].sequence >= p->batch.table_rows)
            return fail(error, "pages: row %d names table row %d of %d", i, (int)rows[i].sequence,
                        p->batch.table_rows);
    }
    if (reserve_scratch(p, error) != 0)
        return -1;
    for (int l = 0; l < p->groups->shape.layers; l++) {
        if (prepare(p, l, error) != 0)
            return -1;
    }
    p->rows = rows;
    return 0;
}

static int append(struct kv_backend *self, int layer, const float *k, const float *v, int n, struct error *error)
{
    struct paged *p = (struct paged *)self;
    const struct view *view = &p->views[layer];
    const int64_t *slots = part_of(p, layer)->slots;

    if (view->kind != KV_DIRECT)
        return check(kvf_cpu_append(&view->exact, k, v, slots, (uint32_t)n), "append", error);
    return check(kvf_cpu_quant_append(&view->quant, KVF_KERNEL_NONFINITE_REJECT, k, v, slots, (uint32_t)n, p->encode,
                                      p->encode_floats), "append", error);
}

/* Items are (row, kv head) pairs. */
static void attend_range(void *context, int first, int last, int worker)
{
    struct paged *p = context;
    const struct view *view = &p->views[p->layer];
    const struct kv_paged_part *part = part_of(p, p->layer);
    const int kv_heads = p->groups->shape.kv_heads, group = p->groups->shape.heads / kv_heads;
    const size_t q_width = (size_t)(p->groups->shape.heads * p->groups->shape.head_dim);
    const kvf_kernel_split split = { .struct_size = sizeof split, .begin = part->sealed_begin,
                                     .end = part->sealed_end };
    const kvf_kernel_table table = {
        .struct_size = sizeof table, .rows = (uint32_t)p->batch.table_rows,
        .stride = (uint32_t)part->table_stride, .entries = part->tables,
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
        const int status =
            view->kind == KV_EXACT
                ? kvf_cpu_attention(&view->exact, &table, &p->attention, &queries, &work)
                : kvf_cpu_quant_attention(view->kind == KV_SEALED ? &view->exact : NULL, &view->quant,
                                          &split, &table, &p->attention, &queries, &work);
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
    parallel_for(p->threads, n * p->groups->shape.kv_heads, 1, attend_range, p);
    return check(atomic_load(&p->status), "attention", error);
}

/* The pools of a group. */
static int make_pools(struct paged *p, int g, int pages, int sealed, struct error *error)
{
    const struct kv_group *group = &p->groups->groups[g];
    uint64_t floats = 0;

    if (group->format->kind != KV_EXACT) {
        if (check(kvf_cpu_quant_scratch(&group->layout, &floats), "scratch", error) != 0)
            return -1;
        p->encode_floats = floats > p->encode_floats ? floats : p->encode_floats;
    }
    if (group->format->kind != KV_SEALED)
        return kv_pool_init(&p->pools[g][0], &group->layout, pages, error);
    if (kv_pool_init(&p->pools[g][0], &group->exact, pages, error) != 0)
        return -1;
    return kv_pool_init(&p->pools[g][1], &group->layout, sealed, error);
}

static struct view view_of(const struct paged *p, int layer)
{
    const int g = p->groups->group_of[layer], place = p->groups->place_of[layer];
    const struct kv_format *format = p->groups->groups[g].format;
    struct view view = { .kind = format->kind };

    if (format->kind == KV_DIRECT)
        view.quant = kv_pool_quant(&p->pools[g][0], place);
    else
        view.exact = kv_pool_exact(&p->pools[g][0], place);
    if (format->kind == KV_SEALED)
        view.quant = kv_pool_quant(&p->pools[g][1], place);
    return view;
}

struct kv_backend *kv_paged_new(const struct kv_groups *groups, struct threads *threads, const int *pages,
                                const int *sealed, struct error *error)
{
    struct paged *p = calloc(1, sizeof *p);

    if (!p)
        goto out_of_memory;
    p->backend = (struct kv_backend){ begin, append, attend };
    p->groups = groups;
    p->threads = threads;
    p->attention = (kvf_kernel_attention){ .struct_size = sizeof p->attention,
                                           .heads = (uint32_t)groups->shape.heads };
    for (int g = 0; g < groups->n; g++) {
        if (make_pools(p, g, pages[g], sealed[g], error) != 0) {
            kv_paged_free(&p->backend);
            return NULL;
        }
    }
    p->views = calloc((size_t)groups->shape.layers, sizeof *p->views);
    p->encode = malloc((p->encode_floats + 1) * sizeof *p->encode);
    if (!p->views || !p->encode)
        goto out_of_memory;
    for (int l = 0; l < groups->shape.layers; l++)
        p->views[l] = view_of(p, l);
    return &p->backend;

out_of_memory:
    if (p)
        kv_paged_free(&p->backend);
    fail(error, "pages: out of memory");
    return NULL;
}

void kv_paged_free(struct kv_backend *backend)
{
    struct paged *p = (struct paged *)backend;
    if (!p)
        return;
    for (int g = 0; g < KV_GROUPS; g++) {
        kv_pool_free(&p->pools[g][0]);
        kv_pool_free(&p->pools[g][1]);
    }
    free(p->views);
    free(p->encode);
    free(p->scratch);
    free(p);
}

void kv_paged_set_batch(struct kv_backend *backend, const struct kv_paged_batch *batch)
{
    ((struct paged *)backend)->batch = *batch;
}

const kvf_kernel_pages *kv_paged_layer(const struct kv_backend *backend, int layer)
{
    return &((const struct paged *)backend)->views[layer].exact;
}

const struct kv_pool *kv_paged_pool(const struct kv_backend *backend, int group, int sealed)
{
    return &((const struct paged *)backend)->pools[group][sealed];
}
