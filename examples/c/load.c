/* A model and its tokenizer, by the name a user types. */
#include "load.h"

#include "gguf.h"

#include <stdio.h>
#include <string.h>

static int load_gguf(struct loaded *loaded, const char *path, struct error *error)
{
    struct gguf *gguf = gguf_open(path, error);
    int status = -1;

    if (!gguf)
        return -1;
    loaded->tokenizer = tokenizer_from_gguf(gguf, error);
    if (loaded->tokenizer)
        status = model_load_gguf(&loaded->model, gguf, error);
    gguf_close(gguf);
    return status;
}

static int load_llama2c(struct loaded *loaded, const char *path, struct error *error)
{
    const char *slash = strrchr(path, '/');
    char tokenizer[4096];

    if (snprintf(tokenizer, sizeof tokenizer, "%.*stok512.bin", slash ? (int)(slash - path + 1) : 0, path) >=
        (int)sizeof tokenizer)
        return fail(error, "the path of the model is too long");
    if (model_load_llama2c(&loaded->model, path, error) != 0)
        return -1;
    loaded->tokenizer = tokenizer_load_llama2c(tokenizer, loaded->model.shape.vocab, error);
    return loaded->tokenizer ? 0 : -1;
}

int load(struct loaded *loaded, const char *name, struct error *error)
{
    const size_t length = strlen(name);
    int status;

    *loaded = (struct loaded){ 0 };
    if (strcmp(name, "random") == 0) {
        loaded->tokenizer = tokenizer_bytes(error);
        status = loaded->tokenizer ? model_random(&loaded->model, 1, error) : -1;
    } else if (length > 5 && strcmp(name + length - 5, ".gguf") == 0) {
        status = load_gguf(loaded, name, error);
    } else {
        status = load_llama2c(loaded, name, error);
    }
    if (status == 0 && tokenizer_vocab(loaded->tokenizer) != loaded->model.shape.vocab)
        status = fail(error, "the tokenizer has %d ids, the model %d", tokenizer_vocab(loaded->tokenizer),
                      loaded->model.shape.vocab);
    if (status != 0)
        unload(loaded);
    return status;
}

void unload(struct loaded *loaded)
{
    model_free(&loaded->model);
    tokenizer_free(loaded->tokenizer);
    *loaded = (struct loaded){ 0 };
}
