/* A llama-style model: what all loaders share. */
#include "model.h"

#include <stdlib.h>

static int within(struct error *error, const char *name, int value, int low, int high)
{
    if (value < low || value > high)
        return fail(error, "model: %s is %d, not in %d..%d", name, value, low, high);
    return 0;
}

int model_check_shape(struct model *model, struct error *error)
{
    const struct model_shape *s = &model->shape;

    if (within(error, "dim", s->dim, 16, MATMUL_MAX_COLS) || within(error, "hidden", s->hidden, 1, MATMUL_MAX_COLS) ||
        within(error, "layers", s->layers, 1, 1024) || within(error, "heads", s->heads, 1, 1024) ||
        within(error, "kv_heads", s->kv_heads, 1, s->heads) || within(error, "head_dim", s->head_dim, 2, 1024) ||
        within(error, "heads * head_dim", s->heads * s->head_dim, 2, MATMUL_MAX_COLS) ||
        within(error, "vocab", s->vocab, 1, 1 << 20) || within(error, "context", s->context, 1, 1 << 24))
        return -1;
    if (s->heads % s->kv_heads != 0)
        return fail(error, "model: %d heads are no multiple of %d kv_heads", s->heads, s->kv_heads);
    if (s->head_dim % 2 != 0)
        return fail(error, "model: head_dim %d is odd", s->head_dim);
    if (s->dim % MATMUL_LANES != 0 || s->heads * s->head_dim % MATMUL_LANES != 0)
        return fail(error, "model: dim %d and heads * head_dim %d must be multiples of %d", s->dim,
                    s->heads * s->head_dim, MATMUL_LANES);
    if (!(s->rope_theta > 0.0f && s->rope_theta < 1e30f))
        return fail(error, "model: rope theta %g is not positive and finite", (double)s->rope_theta);
    if (!(s->norm_eps >= 0.0f && s->norm_eps < 1.0f))
        return fail(error, "model: RMSNorm eps %g is not in 0..1", (double)s->norm_eps);

    model->layers = calloc((size_t)s->layers, sizeof *model->layers);
    if (!model->layers)
        return fail(error, "model: out of memory for %d layers", s->layers);
    return 0;
}

size_t model_f32_count(const struct model_shape *s)
{
    const size_t dim = (size_t)s->dim, hidden = (size_t)s->hidden, layers = (size_t)s->layers;
    const size_t q = (size_t)(s->heads * s->head_dim), kv = (size_t)(s->kv_heads * s->head_dim);

    return (size_t)s->vocab * dim + dim + layers * (2 * dim + 2 * q * dim + 2 * kv * dim + 3 * hidden * dim);
}

/* Takes a [rows][cols] matrix from the run at *weights. */
static struct matrix take(const float **weights, int rows, int cols)
{
    const struct matrix matrix = { *weights, TENSOR_F32, rows, cols };
    *weights += (size_t)rows * (size_t)cols;
    return matrix;
}

void model_point_f32(struct model *model, const float *weights)
{
    const struct model_shape *s = &model->shape;
    const int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    struct layer *layers = model->layers;
    int l;

    model->head = model->embedding = take(&weights, s->vocab, s->dim);
    for (l = 0; l < s->layers; l++)
        layers[l].attn_norm = take(&weights, 1, s->dim).data;
    for (l = 0; l < s->layers; l++)
        layers[l].wq = take(&weights, q, s->dim);
    for (l = 0; l < s->layers; l++)
        layers[l].wk = take(&weights, kv, s->dim);
    for (l = 0; l < s->layers; l++)
        layers[l].wv = take(&weights, kv, s->dim);
    for (l = 0; l < s->layers; l++)
        layers[l].wo = take(&weights, s->dim, q);
    for (l = 0; l < s->layers; l++)
        layers[l].ffn_norm = take(&weights, 1, s->dim).data;
    for (l = 0; l < s->layers; l++)
        layers[l].gate = take(&weights, s->hidden, s->dim);
    for (l = 0; l < s->layers; l++)
        layers[l].down = take(&weights, s->dim, s->hidden);
    for (l = 0; l < s->layers; l++)
        layers[l].up = take(&weights, s->hidden, s->dim);
    model->final_norm = take(&weights, 1, s->dim).data;
}

void model_free(struct model *model)
{
    free(model->layers);
    free(model->weights);
    file_unmap(&model->file);
    *model = (struct model){ 0 };
}
