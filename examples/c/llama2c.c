/* Loads the llama2.c "v0" model format (stories260K.bin): little endian, f32 only. */
#include "model.h"

#include <stdint.h>
#include <string.h>

int model_load_llama2c(struct model *model, const char *path, struct error *error)
{
    struct { int32_t dim, hidden, layers, heads, kv_heads, vocab, seq_len; } header;
    struct model_shape *s = &model->shape;
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t floats, available;

    *model = (struct model){ 0 };
    if (file_map(&model->file, path, error) != 0)
        return -1;
    if (model->file.size < sizeof header) {
        fail(error, "%s: %zu bytes are too short for a llama2.c header", name, model->file.size);
        goto bad;
    }
    memcpy(&header, model->file.data, sizeof header);
    if (header.vocab <= 0) {
        fail(error, "%s: vocab %d: models with a head of their own are not supported", name, header.vocab);
        goto bad;
    }
    if (header.heads <= 0 || header.dim % header.heads != 0) {
        fail(error, "%s: dim %d is no multiple of %d heads", name, header.dim, header.heads);
        goto bad;
    }
    *s = (struct model_shape){
        .dim = header.dim, .hidden = header.hidden, .layers = header.layers, .heads = header.heads,
        .kv_heads = header.kv_heads, .head_dim = header.dim / header.heads, .vocab = header.vocab,
        .context = header.seq_len, .rope_theta = 10000.0f, .norm_eps = 1e-5f,
    };
    if (model_check_shape(model, error) != 0)
        goto bad;

    /* After the tensors the format has two RoPE tables nobody reads; a file without them is as good. */
    floats = model_f32_count(s);
    available = (model->file.size - sizeof header) / sizeof(float);
    if (available < floats) {
        fail(error, "%s: holds %zu floats, the shape in its header needs %zu", name, available, floats);
        goto bad;
    }
    model_point_f32(model, (const float *)(const void *)(model->file.data + sizeof header));
    return 0;

bad:
    model_free(model);
    return -1;
}
