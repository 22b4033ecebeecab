/*
 * Keys, values and attention of streams: kvf_cpu_append and kvf_cpu_attention_slots over pages of one KV head each.
 *
 * A head's queries go one after the other, since their attention is added up for the policy; heads spread over threads.
 */
#include "streams_state.h"

static int begin(struct kv_backend *self, const struct row_desc *rows, int n, struct error *error)
{
    struct streams *s = (struct streams *)((char *)self - offsetof(struct streams, backend));
    return rows == s->rows && n == s->n_rows ? 0 : fail(error, "streams: another batch than that of the step");
}

static int append(struct kv_backend *self, int layer, const float *k, const float *v, int n, struct error *error)
{
    struct streams *s = (struct streams *)((char *)self - offsetof(struct streams, backend));
    const size_t heads = (size_t)s->shape.kv_heads;
    const int64_t *slots = s->write + (size_t)layer * (size_t)s->config.max_rows * heads;
    const int32_t status = kvf_cpu_append(&s->pages, k, v, slots, (uint32_t)n * (uint32_t)heads);

    if (status != KVF_KERNEL_OK)
        return fail(error, "streams: append: %s", kvf_kernel_status_name(status));
    streams_written(s, layer, k, v);
    return streams_check(s, "lengths of keys and values", error);
}

void streams_row(const struct streams *s, int chat, int stream, struct streams_row *row)
{
    const size_t at = (size_t)chat * (size_t)s->n + (size_t)stream, columns = (size_t)s->config.columns;

    row->used = stream_of(s, chat, stream)->rows;
    row->table = (kvf_kernel_table){ .struct_size = sizeof row->table, .rows = 1, .stride = (uint32_t)columns,
                                     .entries = s->tables + at * columns };
    row->slots = (kvf_kernel_slots){ .struct_size = sizeof row->slots, .valid = s->valid + at * columns,
                                     .positions = (const int32_t *)(s->positions + at * (size_t)s->slots),
                                     .used = &row->used };
}

/* One query of one stream. */
static int32_t attend_one(struct streams *s, int chat, int head, int i, const struct streams_row *row, int worker)
{
    const int group = s->shape.heads / s->shape.kv_heads, stream = s->layer * s->shape.kv_heads + head;
    const size_t at = ((size_t)i * (size_t)s->shape.heads + (size_t)(head * group)) * (size_t)s->shape.head_dim;
    static const int32_t only_row = 0;
    const kvf_kernel_queries queries = {
        .struct_size = sizeof queries, .n = 1, .q = s->q + at, .positions = &s->rows[i].position, .out = s->out + at,
        .table_rows = &only_row,
    };
    const kvf_kernel_work work = {
        .struct_size = sizeof work, .row_end = 1, .head_end = (uint32_t)group,
        .scratch = s->scratch + (size_t)worker * s->scratch_floats, .scratch_floats = s->scratch_floats,
    };
    kvf_kernel_scores scores = { .struct_size = sizeof scores, .slots = (uint32_t)s->slots };
    int32_t status;

    scores.sums = streams_sums(s, chat, stream, s->rows[i].position, &scores.reduce, &scores.flags);
    if (s->watch.tell || s->config.meter)
        scores.probabilities = s->work[worker].probabilities;
    status = kvf_cpu_attention_slots(&s->pages, &row->table, &row->slots, &s->attention, &queries,
                                     scores.sums || scores.probabilities ? &scores : NULL, &work);
    if (status == KVF_KERNEL_OK)
        streams_attended(s, chat, stream, &s->work[worker]);
    if (status == KVF_KERNEL_OK && s->watch.tell) {
        const struct streams_view view = { stream_of(s, chat, stream), row->table.entries, s->pages, s->attention };
        s->watch.tell(s->watch.user, &view, chat, stream, s->rows[i].position, scores.probabilities, s->slots);
    }
    return status;
}

/* Items are (chat of the step, kv head) pairs. */
static void attend_range(void *context, int first, int last, int worker)
{
    struct streams *s = context;
    const int heads = s->shape.kv_heads;

    for (int item = first; item < last; item++) {
        const int chat = s->step_chats[item / heads], head = item % heads;
        const struct streams_chat *c = &s->chats[chat];
        struct streams_row row;

        streams_row(s, chat, s->layer * heads + head, &row);
        for (int i = c->first; i < c->first + c->count; i++)
            streams_failed(s, attend_one(s, chat, head, i, &row, worker), 1);
    }
}

static int attend(struct kv_backend *self, int layer, const float *q, float *out, int n, struct error *error)
{
    struct streams *s = (struct streams *)((char *)self - offsetof(struct streams, backend));
    (void)n;
    s->layer = layer;
    s->q = q;
    s->out = out;
    parallel_for(s->threads, s->n_chats * s->shape.kv_heads, 1, attend_range, s);
    return streams_check(s, "attention", error);
}

void streams_failed(struct streams *s, int32_t status, int is_kernel)
{
    if (status != 0) {
        atomic_store(&s->is_kernel, is_kernel);
        atomic_store(&s->status, status);
    }
}

int streams_check(struct streams *s, const char *what, struct error *error)
{
    const int32_t status = atomic_exchange(&s->status, 0);

    if (status == 0)
        return 0;
    return fail(error, "streams: %s: %s", what,
                atomic_load(&s->is_kernel) ? kvf_kernel_status_name(status) : kvf_status_name(status));
}

const struct kv_backend streams_backend = { begin, append, attend };
