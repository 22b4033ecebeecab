/*
 * A key/value cache in pages. It holds the memory and runs the kernels; which token lies in which page it is told for
 * each batch, by whoever manages the pages (step.c).
 */
#ifndef ENGINE_KV_PAGED_H
#define ENGINE_KV_PAGED_H

#include "kv.h"
#include "kvfolio_kernels.h"
#include "model.h"
#include "threads.h"

/* Where the next batch's tokens lie. Nothing is copied: the arrays must hold until the batch is computed. */
struct kv_paged_batch {
    const kvf_kernel_copy *copies; /* [n_copies], run before anything is written */
    int n_copies;
    const int64_t *slots;          /* [rows of the batch] page * P + offset */
    const int32_t *tables;         /* [table_rows][table_stride] page ids; row_desc.sequence is the table row */
    int table_rows;
    int table_stride;
};

/*
 * Allocates `pages` pages of `page_tokens` tokens, ids 1..pages, and the NULL page 0 in front of them, for every
 * layer; `dtype` is KVF_KERNEL_DTYPE_*. `threads` is borrowed. NULL and a reason on failure.
 */
struct kv_backend *kv_paged_new(const struct model_shape *shape, struct threads *threads, uint32_t dtype,
                                int page_tokens, int pages, struct error *error);

/* Frees it; harmless on NULL. */
void kv_paged_free(struct kv_backend *backend);

/* Says where the tokens of the next engine_forward lie. */
void kv_paged_set_batch(struct kv_backend *backend, const struct kv_paged_batch *batch);

/* The pages of a layer, for programs that look at them or write them. */
const kvf_kernel_pages *kv_paged_layer(const struct kv_backend *backend, int layer);

/* Bytes of one page over all layers, keys and values together. */
size_t kv_paged_page_bytes(const struct kv_backend *backend);

#endif
