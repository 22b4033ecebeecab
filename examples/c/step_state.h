/*
 * The inside of a cache managed by kvfolio: step.c has the steps, step_groups.c what each group of layers needs in a
 * step, step_make.c makes it and says how full it is.
 */
#ifndef ENGINE_STEP_STATE_H
#define ENGINE_STEP_STATE_H

#include "kv_paged.h"
#include "step.h"

/* One group of layers: its pools, and what kernels read in the step at hand. */
struct step_group {
    int pool;           /* of its pages */
    int sealed_pool;    /* of its sealed pages, -1 if there are none */
    int promised;       /* sealed pages that the step takes */
    int64_t *slots;     /* [max_rows] */
    int32_t *tables;    /* [n_sequences][stride], as long as needed */
    size_t tables_cap;
    int stride;
    uint32_t *sealed_begin; /* [max_sequences] first column of each row that is sealed, or will be */
    uint32_t *sealed_end;   /* one past the last */
    kvf_kernel_copy *copies; /* [copies_cap] */
    int n_copies;
    kvf_kernel_seal *seals;  /* [copies_cap] */
    int n_seals;
};

struct step {
    struct cache cache; /* first: a pointer to it is a pointer to us */
    struct step_config config;
    struct kv_groups groups;
    kvf_cache *kvf;
    void *memory;       /* what kvf lives in */
    kvf_namespace ns;   /* that of the pages' format */
    kvf_tick tick;      /* one a step */
    double seconds;     /* spent in calls of kvfolio */
    long long evicted;
    int n_pools;
    int pools[2 * KV_GROUPS];    /* pages of each */
    int peak;                    /* most pages in use, over all pools */
    uint64_t peak_bytes;         /* most bytes of pages in use */
    uint64_t peak_f16_bytes;     /* what these pages would take in f16 */

    /* The step at hand, in the order of add. */
    kvf_seq *sequences; /* [max_sequences] */
    int n_sequences;
    int32_t *tokens;    /* [max_rows] */
    struct row_desc *rows;
    int n_rows;
    int32_t *positions; /* [max_rows] */
    kvf_accept *accepts;   /* [max_sequences] */
    kvf_page_copy *copies; /* [copies_cap] */
    size_t copies_cap;
    struct step_group parts[KV_GROUPS];
    struct kv_paged_part kernel_parts[KV_GROUPS];
};

/* The calls of struct cache that belong to steps. */
extern const struct cache step_calls;

/* Whether there are sealed pages for what a sequence of `len` tokens is to seal in this step. */
int step_can_seal(const struct step *s, kvf_seq sequence, int len);

/* Promises these pages; the sequence is in the plan. */
kvf_status step_seal(struct step *s, kvf_seq sequence, int len);

/* What kernels read of each group: copies, seals, slots, tables, boundaries. The plan is finished. */
kvf_status step_export(struct step *s);

kvf_pool_stats step_pool(const struct step *s, int pool);

#endif
