/* A cache for the scheduler, managed by kvfolio. */
#ifndef ENGINE_STEP_H
#define ENGINE_STEP_H

#include "cache.h"
#include "kv_groups.h"
#include "kvfolio.h"
#include "kvfolio_kernels.h"
#include "model.h"
#include "threads.h"

struct step_config {
    int page_tokens;   /* tokens a page, a power of two, 1 to 256; 0 = what the format needs */
    int pages;         /* pages of each group, of sealed ones where there are such */
    int max_sequences; /* sequences at a time */
    int max_rows;      /* tokens a step */
    struct kv_spec kv; /* how keys and values are kept */
};

/* Allocates page memory and the manager of it; `threads` is borrowed. NULL and a reason on failure. */
struct cache *step_new(const struct step_config *config, const struct model_shape *shape, struct threads *threads,
                       struct error *error);

/* For the checks: the manager behind a cache, and the step's tables as the kernels will read them. */
kvf_cache *step_manager(struct cache *cache);

struct step_view {
    int32_t *tables; /* [rows][stride] */
    int rows, stride;
    int64_t *slots;  /* [tokens] */
    int tokens;
    kvf_kernel_copy *copies; /* [n_copies] */
    int n_copies;
};
struct step_view step_view(struct cache *cache, int group);

#endif
