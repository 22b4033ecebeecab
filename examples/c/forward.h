/* The forward pass: a batch of rows from any number of sequences, through all layers, to logits. */
#ifndef ENGINE_FORWARD_H
#define ENGINE_FORWARD_H

#include "error.h"
#include "kv.h"
#include "model.h"
#include "threads.h"

struct engine; /* a model's activations for up to max_rows rows; the weights stay shared */

/* Allocates activations. Model and threads are borrowed. NULL and a reason on failure. */
struct engine *engine_new(const struct model *model, struct threads *threads, int max_rows, struct error *error);

/* Frees it; harmless on NULL. */
void engine_free(struct engine *engine);

/*
 * Runs rows[n_rows], row i being token tokens[i]. 1 <= n_rows <= max_rows. Keys and values go to `kv`.
 *
 * logits receives [rows with want_logits][vocab] in row order, and may be NULL if there are none.
 * The logits of a row have the same bits for any batching and any number of threads, if the backend keeps its contract.
 * On failure the backend may hold keys and values of some layers of the batch, and logits are undefined.
 */
int engine_forward(struct engine *engine, struct kv_backend *kv, const int32_t *tokens, const struct row_desc *rows,
                   int n_rows, float *logits, struct error *error);

#endif
