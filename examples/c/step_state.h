/* The inside of a cache managed by kvfolio: step.c has the steps, step_make.c makes it and says how full it is. */
#ifndef ENGINE_STEP_STATE_H
#define ENGINE_STEP_STATE_H

#include "kv_paged.h"
#include "step.h"

struct step {
    struct cache cache; /* first: a pointer to it is a pointer to us */
    struct step_config config;
    kvf_cache *kvf;
    void *memory;       /* what kvf lives in */
    kvf_tick tick;      /* one a step */
    double seconds;     /* spent in calls of kvfolio */
    long long evicted;

    /* The step at hand, in the order of add. */
    kvf_seq *sequences; /* [max_sequences] */
    int n_sequences;
    int32_t *tokens;    /* [max_rows] */
    struct row_desc *rows;
    int n_rows;

    /* What kernels read. */
    int64_t *slots;     /* [max_rows] */
    int32_t *positions; /* [max_rows] */
    int32_t *tables;    /* [n_sequences][stride], as long as needed */
    size_t tables_cap;
    int stride;
    kvf_page_copy *copies; /* [max_sequences] */
    kvf_kernel_copy *kernel_copies;
    int n_copies;
    kvf_accept *accepts;   /* [max_sequences] */
};

/* The calls of struct cache that belong to steps. */
extern const struct cache step_calls;

#endif
