/* The forward pass, layer by layer. Nothing here knows where keys and values are kept. */
#include "forward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct engine {
    const struct model *model;
    struct threads *threads;
    int max_rows;
    int hidden_stride; /* padded(hidden) */

    /* Activations, [max_rows][width] each. Padding beyond a width is zero from the start and never written. */
    float *x;      /* [dim] the residual stream */
    float *normed; /* [dim] */
    float *q;      /* [heads*head_dim] */
    float *k;      /* [kv_heads*head_dim] */
    float *v;      /* [kv_heads*head_dim] */
    float *mixed;  /* [heads*head_dim] what attention returns */
    float *delta;  /* [dim] what a block adds to x */
    float *gate;   /* [hidden_stride] */
    float *up;     /* [hidden_stride] */
    float *angles; /* [head_dim/2][2] cosine and sine of each RoPE pair */
    double *turns; /* [head_dim/2] theta^(-2i/head_dim), one row for all */

    /* The batch at hand, for the loop bodies. */
    const int32_t *tokens;
    const struct row_desc *rows;
    const float *norm_weight;
};

static float *rows_of(int max_rows, int width)
{
    const size_t bytes = (size_t)max_rows * (size_t)width * sizeof(float);
    float *rows = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (rows)
        memset(rows, 0, bytes);
    return rows;
}

struct engine *engine_new(const struct model *model, struct threads *threads, int max_rows, struct error *error)
{
    const struct model_shape *s = &model->shape;
    const int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim, pairs = s->head_dim / 2;
    struct engine *e = max_rows >= 1 && max_rows <= 1 << 16 ? calloc(1, sizeof *e) : NULL;

    if (!e) {
        fail(error, "engine: cannot hold %d rows", max_rows);
        return NULL;
    }
    e->model = model;
    e->threads = threads;
    e->max_rows = max_rows;
    e->hidden_stride = padded(s->hidden);
    e->x = rows_of(max_rows, s->dim);
    e->normed = rows_of(max_rows, s->dim);
    e->q = rows_of(max_rows, q);
    e->k = rows_of(max_rows, kv);
    e->v = rows_of(max_rows, kv);
    e->mixed = rows_of(max_rows, q);
    e->delta = rows_of(max_rows, s->dim);
    e->gate = rows_of(max_rows, e->hidden_stride);
    e->up = rows_of(max_rows, e->hidden_stride);
    e->angles = rows_of(max_rows, 2 * pairs);
    e->turns = malloc((size_t)pairs * sizeof *e->turns);
    if (!e->x || !e->normed || !e->q || !e->k || !e->v || !e->mixed || !e->delta || !e->gate || !e->up || !e->angles ||
        !e->turns) {
        fail(error, "engine: out of memory for %d rows", max_rows);
        engine_free(e);
        return NULL;
    }
    for (int i = 0; i < pairs; i++)
        e->turns[i] = pow(s->rope_theta, -2.0 * i / s->head_dim);
    return e;
}

void engine_free(struct engine *e)
{
    if (!e)
        return;
    free(e->x);
    free(e->normed);
    free(e->q);
    free(e->k);
    free(e->v);
    free(e->mixed);
    free(e->delta);
    free(e->gate);
    free(e->up);
    free(e->angles);
    free(e->turns);
    free(e);
}

/* ---- Per-row steps: bodies of parallel_for over rows ---- */

/* x = embedding[token], and the row's RoPE angles, computed in double since positions are large. */
static void start_rows(void *context, int begin, int end, int worker)
{
    struct engine *e = context;
    const struct model_shape *s = &e->model->shape;
    (void)worker;

    for (int row = begin; row < end; row++) {
        float *angles = e->angles + (size_t)row * (size_t)s->head_dim;
        matrix_row(&e->model->embedding, e->tokens[row], e->x + (size_t)row * (size_t)s->dim);
        for (int i = 0; i < s->head_dim / 2; i++) {
            const double angle = e->rows[row].position * e->turns[i];
            angles[2 * i] = (float)cos(angle);
            angles[2 * i + 1] = (float)sin(angle);
        }
    }
}

/* out[dim] = x * weight / sqrt(mean(x^2) + eps). */
static void rms_norm(const float *x, const float *weight, int dim, float eps, float *out)
{
    double squares = 0.0;
    float scale;

    for (int i = 0; i < dim; i++)
        squares += (double)x[i] * (double)x[i];
    scale = (float)(1.0 / sqrt(squares / dim + (double)eps));
    for (int i = 0; i < dim; i++)
        out[i] = x[i] * scale * weight[i];
}

static void norm_rows(void *context, int begin, int end, int worker)
{
    struct engine *e = context;
    const struct model_shape *s = &e->model->shape;
    (void)worker;

    for (int row = begin; row < end; row++) {
        const size_t at = (size_t)row * (size_t)s->dim;
        rms_norm(e->x + at, e->norm_weight, s->dim, s->norm_eps, e->normed + at);
    }
}

/* Turns each adjacent pair (2i, 2i+1) of each head by the row's angle i. */
static void rope(float *vectors, int heads, int head_dim, const float *angles)
{
    for (int h = 0; h < heads; h++, vectors += head_dim) {
        for (int i = 0; i < head_dim; i += 2) {
            const float a = vectors[i], b = vectors[i + 1], c = angles[i], s = angles[i + 1];
            vectors[i] = a * c - b * s;
            vectors[i + 1] = a * s + b * c;
        }
    }
}

static void rope_rows(void *context, int begin, int end, int worker)
{
    struct engine *e = context;
    const struct model_shape *s = &e->model->shape;
    (void)worker;

    for (int row = begin; row < end; row++) {
        const float *angles = e->angles + (size_t)row * (size_t)s->head_dim;
        rope(e->q + (size_t)row * (size_t)(s->heads * s->head_dim), s->heads, s->head_dim, angles);
        rope(e->k + (size_t)row * (size_t)(s->kv_heads * s->head_dim), s->kv_heads, s->head_dim, angles);
    }
}

/* gate = silu(gate) * up. */
static void swiglu_rows(void *context, int begin, int end, int worker)
{
    struct engine *e = context;
    const int hidden = e->model->shape.hidden;
    (void)worker;

    for (int row = begin; row < end; row++) {
        float *gate = e->gate + (size_t)row * (size_t)e->hidden_stride;
        const float *up = e->up + (size_t)row * (size_t)e->hidden_stride;
        for (int i = 0; i < hidden; i++)
            gate[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
    }
}

/* x += delta. */
static void add_rows(void *context, int begin, int end, int worker)
{
    struct engine *e = context;
    const size_t dim = (size_t)e->model->shape.dim;
    (void)worker;

    for (size_t i = (size_t)begin * dim; i < (size_t)end * dim; i++)
        e->x[i] += e->delta[i];
}

/* ---- The pass ---- */

static void each_row(struct engine *e, int n, range_body body)
{
    parallel_for(e->threads, n, 4, body, e);
}

static void norm(struct engine *e, int n, const float *weight)
{
    e->norm_weight = weight;
    each_row(e, n, norm_rows);
}

/* x += attention(norm(x)). */
static int attention_block(struct engine *e, struct kv_backend *kv, int l, int n, struct error *error)
{
    const struct model_shape *s = &e->model->shape;
    const struct layer *layer = &e->model->layers[l];
    const size_t dim = (size_t)s->dim, q = (size_t)(s->heads * s->head_dim);
    const size_t kv_dim = (size_t)(s->kv_heads * s->head_dim);

    norm(e, n, layer->attn_norm);
    matmul(e->threads, &layer->wq, e->normed, dim, n, e->q, q);
    matmul(e->threads, &layer->wk, e->normed, dim, n, e->k, kv_dim);
    matmul(e->threads, &layer->wv, e->normed, dim, n, e->v, kv_dim);
    each_row(e, n, rope_rows);
    if (kv->append(kv, l, e->k, e->v, n, error) != 0 || kv->attend(kv, l, e->q, e->mixed, n, error) != 0)
        return -1;
    matmul(e->threads, &layer->wo, e->mixed, q, n, e->delta, dim);
    each_row(e, n, add_rows);
    return 0;
}

/* x += down(silu(gate(norm(x))) * up(norm(x))). */
static void ffn_block(struct engine *e, int l, int n)
{
    const struct layer *layer = &e->model->layers[l];
    const size_t dim = (size_t)e->model->shape.dim, hidden = (size_t)e->hidden_stride;

    norm(e, n, layer->ffn_norm);
    matmul(e->threads, &layer->gate, e->normed, dim, n, e->gate, hidden);
    matmul(e->threads, &layer->up, e->normed, dim, n, e->up, hidden);
    each_row(e, n, swiglu_rows);
    matmul(e->threads, &layer->down, e->gate, hidden, n, e->delta, dim);
    each_row(e, n, add_rows);
}

/* Moves the rows that want logits to the front of x and returns their number. */
static int keep_wanted_rows(struct engine *e, int n)
{
    const size_t dim = (size_t)e->model->shape.dim;
    int wanted = 0;

    for (int row = 0; row < n; row++) {
        if (!e->rows[row].want_logits)
            continue;
        if (wanted != row)
            memcpy(e->x + (size_t)wanted * dim, e->x + (size_t)row * dim, dim * sizeof *e->x);
        wanted++;
    }
    return wanted;
}

static int check_batch(const struct engine *e, const int32_t *tokens, const struct row_desc *rows, int n,
                       const float *logits, struct error *error)
{
    if (n < 1 || n > e->max_rows)
        return fail(error, "forward: %d rows, not in 1..%d", n, e->max_rows);
    for (int row = 0; row < n; row++) {
        if (tokens[row] < 0 || tokens[row] >= e->model->shape.vocab)
            return fail(error, "forward: row %d has token %d, not in 0..%d", row, (int)tokens[row],
                        e->model->shape.vocab - 1);
        if (rows[row].position < 0)
            return fail(error, "forward: row %d has position %d", row, (int)rows[row].position);
        if (rows[row].want_logits && !logits)
            return fail(error, "forward: row %d wants logits, but there is no room for any", row);
    }
    return 0;
}

int engine_forward(struct engine *e, struct kv_backend *kv, const int32_t *tokens, const struct row_desc *rows,
                   int n_rows, float *logits, struct error *error)
{
    const struct model *model = e->model;
    const size_t dim = (size_t)model->shape.dim;
    int wanted;

    if (check_batch(e, tokens, rows, n_rows, logits, error) != 0 || kv->begin(kv, rows, n_rows, error) != 0)
        return -1;
    e->tokens = tokens;
    e->rows = rows;
    each_row(e, n_rows, start_rows);
    for (int l = 0; l < model->shape.layers; l++) {
        if (attention_block(e, kv, l, n_rows, error) != 0)
            return -1;
        ffn_block(e, l, n_rows);
    }
    wanted = keep_wanted_rows(e, n_rows);
    if (wanted > 0) {
        norm(e, wanted, model->final_norm);
        matmul(e->threads, &model->head, e->normed, dim, wanted, logits, (size_t)model->shape.vocab);
    }
    return 0;
}
