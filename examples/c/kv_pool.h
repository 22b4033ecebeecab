/* Memory of pages of one layout, and how the kernels see it. */
#ifndef ENGINE_KV_POOL_H
#define ENGINE_KV_POOL_H

#include "error.h"
#include "kvfolio.h"
#include "kvfolio_kernels.h"

struct kv_pool {
    const kvf_page_layout *layout; /* borrowed */
    int pages;                     /* ids 1..pages; page 0 lies in front of them */
    void *memory;
    float *scales;                 /* those that lie outside pages, of K or of V */
};

/* Allocates the pages; -1 and a reason on failure. The system gives memory page by page, on the first write. */
int kv_pool_init(struct kv_pool *pool, const kvf_page_layout *layout, int pages, struct error *error);
void kv_pool_free(struct kv_pool *pool);

/* Layer `layer` of the layout: of exact pages, and of quantised ones. */
kvf_kernel_pages kv_pool_exact(const struct kv_pool *pool, int layer);
kvf_kernel_quant kv_pool_quant(const struct kv_pool *pool, int layer);

#endif
