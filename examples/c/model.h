/*
 * A llama-style model: RMSNorm, RoPE on adjacent pairs, grouped-query attention, SwiGLU, no biases.
 *
 * A loader fills the struct; forward.c is the only reader of the weights. Every loader ends with model_check_shape(),
 * so a model that exists satisfies the constraints written beside the fields.
 */
#ifndef ENGINE_MODEL_H
#define ENGINE_MODEL_H

#include "error.h"
#include "file.h"
#include "matmul.h"

struct model_shape {
    int dim;       /* width of the residual stream, a multiple of 16, at most 16384 */
    int hidden;    /* width of the SwiGLU layer, at most 16384 */
    int layers;    /* at most 1024 */
    int heads;     /* query heads; a multiple of kv_heads */
    int kv_heads;  /* query head h reads key/value head h / (heads / kv_heads) */
    int head_dim;  /* even, at most 1024; heads * head_dim is a multiple of 16 and at most 16384 */
    int vocab;     /* at most 2^20 */
    int context;   /* positions the model was trained for; larger ones are computed, not meaningful */
    float rope_theta;
    float norm_eps;
};

struct layer {
    const float *attn_norm; /* [dim] */
    const float *ffn_norm;  /* [dim] */
    struct matrix wq;       /* [heads*head_dim][dim] */
    struct matrix wk;       /* [kv_heads*head_dim][dim] */
    struct matrix wv;       /* [kv_heads*head_dim][dim] */
    struct matrix wo;       /* [dim][heads*head_dim] */
    struct matrix gate;     /* [hidden][dim] */
    struct matrix up;       /* [hidden][dim] */
    struct matrix down;     /* [dim][hidden] */
};

struct model {
    struct model_shape shape;
    struct matrix embedding; /* [vocab][dim] */
    struct matrix head;      /* [vocab][dim], the embedding again where the head is tied */
    const float *final_norm; /* [dim] */
    struct layer *layers;    /* [layers], owned */

    struct file file;        /* what the weights point into, owned; empty when `weights` is used */
    float *weights;          /* the same for a model built in memory */
};

struct gguf;

/* Loads a model from an open GGUF file and takes over its mapping: the GGUF may be closed before the model. */
int model_load_gguf(struct model *model, struct gguf *gguf, struct error *error);

/* Loads the llama2.c "v0" format: a header of seven i32, then f32 matrices. */
int model_load_llama2c(struct model *model, const char *path, struct error *error);

/* Random weights: dim 64, 2 layers, 4 heads of 64, 2 kv heads, vocab 256. Same seed, same weights. */
int model_random(struct model *model, unsigned long long seed, struct error *error);

/* Frees what the model owns; harmless on a zeroed struct. */
void model_free(struct model *model);

/* For loaders: checks the constraints above, and allocates `layers`. */
int model_check_shape(struct model *model, struct error *error);

/*
 * For loaders of one run of f32 tensors in llama2.c's order: points every tensor into `weights`.
 * The counterpart, model_f32_count, says how many floats that is.
 */
void model_point_f32(struct model *model, const float *weights);
size_t model_f32_count(const struct model_shape *shape);

#endif
