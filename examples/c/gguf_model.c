/* Fills a model from the metadata and tensors of a GGUF file with architecture "llama". */
#include "gguf.h"
#include "model.h"

#include <stdio.h>
#include <string.h>

static int read_shape(const struct gguf *g, struct model_shape *s, struct error *error)
{
    struct gguf_string architecture;
    int rope_dims;

    if (gguf_get_string(g, "general.architecture", &architecture, error) != 0)
        return -1;
    if (architecture.size != 5 || memcmp(architecture.data, "llama", 5) != 0)
        return fail(error, "gguf: architecture '%.*s' is not llama",
                    architecture.size < 32 ? (int)architecture.size : 32, architecture.data);
    if (gguf_int(g, "llama.embedding_length", &s->dim, error) != 0 ||
        gguf_int(g, "llama.feed_forward_length", &s->hidden, error) != 0 ||
        gguf_int(g, "llama.block_count", &s->layers, error) != 0 ||
        gguf_int(g, "llama.attention.head_count", &s->heads, error) != 0 ||
        gguf_int(g, "llama.context_length", &s->context, error) != 0 ||
        gguf_float(g, "llama.attention.layer_norm_rms_epsilon", &s->norm_eps, error) != 0)
        return -1;
    if (s->heads <= 0 || s->dim <= 0 || s->dim % s->heads != 0)
        return fail(error, "gguf: embedding length %d is no multiple of %d heads", s->dim, s->heads);

    /* What the file may leave out. */
    s->kv_heads = s->heads;
    s->head_dim = s->dim / s->heads;
    s->rope_theta = 10000.0f;
    if (gguf_has(g, "llama.attention.head_count_kv") &&
        gguf_int(g, "llama.attention.head_count_kv", &s->kv_heads, error) != 0)
        return -1;
    if (gguf_has(g, "llama.attention.key_length") &&
        gguf_int(g, "llama.attention.key_length", &s->head_dim, error) != 0)
        return -1;
    if (gguf_has(g, "llama.rope.freq_base") && gguf_float(g, "llama.rope.freq_base", &s->rope_theta, error) != 0)
        return -1;
    rope_dims = s->head_dim;
    if (gguf_has(g, "llama.rope.dimension_count") && gguf_int(g, "llama.rope.dimension_count", &rope_dims, error) != 0)
        return -1;
    if (rope_dims != s->head_dim || gguf_has_tensor(g, "rope_freqs.weight"))
        return fail(error, "gguf: partial or scaled RoPE is not supported");
    return gguf_tensor_rows(g, "token_embd.weight", &s->vocab, error);
}

static int norm_weight(const struct gguf *g, const char *name, int dim, const float **weight, struct error *error)
{
    struct matrix matrix;
    if (gguf_matrix(g, name, 1, dim, &matrix, error) != 0)
        return -1;
    if (matrix.type != TENSOR_F32)
        return fail(error, "gguf: tensor '%s' is not F32", name);
    *weight = matrix.data;
    return 0;
}

static int read_layer(const struct gguf *g, const struct model_shape *s, int l, struct layer *layer,
                      struct error *error)
{
    const int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    const struct { const char *name; int rows, cols; struct matrix *matrix; } matrices[] = {
        { "attn_q", q, s->dim, &layer->wq },          { "attn_k", kv, s->dim, &layer->wk },
        { "attn_v", kv, s->dim, &layer->wv },         { "attn_output", s->dim, q, &layer->wo },
        { "ffn_gate", s->hidden, s->dim, &layer->gate }, { "ffn_up", s->hidden, s->dim, &layer->up },
        { "ffn_down", s->dim, s->hidden, &layer->down },
    };
    char name[64];

    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        snprintf(name, sizeof name, "blk.%d.%s.weight", l, matrices[i].name);
        if (gguf_matrix(g, name, matrices[i].rows, matrices[i].cols, matrices[i].matrix, error) != 0)
            return -1;
    }
    snprintf(name, sizeof name, "blk.%d.attn_norm.weight", l);
    if (norm_weight(g, name, s->dim, &layer->attn_norm, error) != 0)
        return -1;
    snprintf(name, sizeof name, "blk.%d.ffn_norm.weight", l);
    return norm_weight(g, name, s->dim, &layer->ffn_norm, error);
}

int model_load_gguf(struct model *model, struct gguf *g, struct error *error)
{
    struct model_shape *s = &model->shape;

    *model = (struct model){ 0 };
    if (read_shape(g, s, error) != 0 || model_check_shape(model, error) != 0)
        return -1;
    if (gguf_matrix(g, "token_embd.weight", s->vocab, s->dim, &model->embedding, error) != 0)
        goto bad;
    model->head = model->embedding;
    if (gguf_has_tensor(g, "output.weight") &&
        gguf_matrix(g, "output.weight", s->vocab, s->dim, &model->head, error) != 0)
        goto bad;
    if (norm_weight(g, "output_norm.weight", s->dim, &model->final_norm, error) != 0)
        goto bad;
    for (int l = 0; l < s->layers; l++)
        if (read_layer(g, s, l, &model->layers[l], error) != 0)
            goto bad;
    model->file = gguf_take_file(g);
    return 0;

bad:
    model_free(model);
    return -1;
}
