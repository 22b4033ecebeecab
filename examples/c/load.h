/* A model and its tokenizer, by the name a user types. */
#ifndef ENGINE_LOAD_H
#define ENGINE_LOAD_H

#include "error.h"
#include "model.h"
#include "tokenizer.h"

struct loaded {
    struct model model;
    struct tokenizer *tokenizer;
};

/*
 * Loads `name`: a path that ends in ".gguf"; any other path as a llama2.c model with tok512.bin beside it; or "random"
 * for a tiny model with random weights whose ids are bytes.
 */
int load(struct loaded *loaded, const char *name, struct error *error);

/* Frees both; harmless on a zeroed struct. */
void unload(struct loaded *loaded);

#endif
