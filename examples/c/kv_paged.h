/*
 * A key/value cache in pages. It holds the memory and runs the kernels; which token lies in which page it is told for
 * each batch, by whoever manages the pages (step.c).
 */
#ifndef ENGINE_KV_PAGED_H
#define ENGINE_KV_PAGED_H

#include "kv.h"
#include "kv_groups.h"
#include "kv_pool.h"
#include "kvfolio_kernels.h"
#include "threads.h"

/* Where the next batch's tokens lie in one group. */
struct kv_paged_part {
    const kvf_kernel_copy *copies; /* [n_copies], run before anything is written */
    int n_copies;
    const kvf_kernel_seal *seals;  /* [n_seals], run after the copies: full pages that become sealed ones */
    int n_seals;
    const int64_t *slots;          /* [rows of the batch] page * P + offset */
    const int32_t *tables;         /* [table_rows][table_stride] page ids */
    int table_stride;
    const uint32_t *sealed_begin;  /* [table_rows] first column that is a sealed page, */
    const uint32_t *sealed_end;    /* and one past the last; NULL if there are none */
};

/* row_desc.sequence is the table row. Nothing is copied: the arrays must hold until the batch is computed. */
struct kv_paged_batch {
    const struct kv_paged_part *parts; /* [groups] */
    int table_rows;
};

/*
 * Allocates pages[g] pages for each group, ids from 1 on, and the NULL page 0 in front of them; and sealed[g] sealed
 * pages where a group has such. `groups` and `threads` are borrowed. NULL and a reason on failure.
 */
struct kv_backend *kv_paged_new(const struct kv_groups *groups, struct threads *threads, const int *pages,
                                const int *sealed, struct error *error);

/* Frees it; harmless on NULL. */
void kv_paged_free(struct kv_backend *backend);

/* Says where the tokens of the next engine_forward lie. */
void kv_paged_set_batch(struct kv_backend *backend, const struct kv_paged_batch *batch);

/* The exact pages of a layer, for programs that look at them or write them. */
const kvf_kernel_pages *kv_paged_layer(const struct kv_backend *backend, int layer);

/* The pages, or the sealed pages, of a group. */
const struct kv_pool *kv_paged_pool(const struct kv_backend *backend, int group, int sealed);

#endif
