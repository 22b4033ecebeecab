/* A tiny llama with random weights, for programs that must run where no model file is. */
#include "model.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>

int model_random(struct model *model, unsigned long long seed, struct error *error)
{
    const struct model_shape shape = {
        .dim = 64, .hidden = 172, .layers = 2, .heads = 4, .kv_heads = 2, .head_dim = 64, .vocab = 256,
        .context = 4096, .rope_theta = 10000.0f, .norm_eps = 1e-5f,
    };
    const float amplitude = sqrtf(3.0f / (float)shape.dim); /* uniform with variance 1/dim keeps activations near 1 */
    size_t count;

    *model = (struct model){ .shape = shape };
    if (model_check_shape(model, error) != 0)
        return -1;
    count = model_f32_count(&shape);
    model->weights = malloc(count * sizeof *model->weights);
    if (!model->weights) {
        model_free(model);
        return fail(error, "random model: out of memory for %zu floats", count);
    }
    for (size_t i = 0; i < count; i++)
        model->weights[i] = amplitude * (2.0f * random_unit(seed, i) - 1.0f);
    model_point_f32(model, model->weights);

    /* Norm weights of 1, and embeddings of size 1 like what the layers add to them. */
    for (int l = 0; l < shape.layers; l++) {
        for (int i = 0; i < shape.dim; i++) {
            model->weights[model->layers[l].attn_norm - model->weights + i] = 1.0f;
            model->weights[model->layers[l].ffn_norm - model->weights + i] = 1.0f;
        }
    }
    for (int i = 0; i < shape.dim; i++)
        model->weights[model->final_norm - model->weights + i] = 1.0f;
    for (int i = 0; i < shape.vocab * shape.dim; i++)
        model->weights[i] *= 8.0f * amplitude;
    return 0;
}
