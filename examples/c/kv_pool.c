/* Memory of pages of one layout. */
#include "kv_pool.h"

#include <stdlib.h>

/*
 * NVFP4 has one f32 for a layer's keys and one for its values, fixed before the first page. Scales of blocks are FP8
 * relative to it, so with 1/16 blocks whose largest value is from 0.006 to 168 are coded as well as any: there is
 * nothing to calibrate for keys and values of ordinary models.
 */
static const float tensor_scale = 1.0f / 16;

int kv_pool_init(struct kv_pool *pool, const kvf_page_layout *layout, int pages, struct error *error)
{
    const uint32_t k = layout->k.static_scales, v = layout->v.static_scales;
    const size_t scales = (size_t)layout->layers * (k > v ? k : v);
    const size_t bytes = ((size_t)pages + 1) * layout->page_bytes;

    *pool = (struct kv_pool){ .layout = layout, .pages = pages };
    pool->memory = aligned_alloc(128, (bytes + 127) / 128 * 128);
    pool->scales = scales > 0 ? malloc(scales * sizeof *pool->scales) : NULL;
    if (!pool->memory || (scales > 0 && !pool->scales)) {
        kv_pool_free(pool);
        return fail(error, "pages: out of memory for %d pages of %llu bytes", pages,
                    (unsigned long long)layout->page_bytes);
    }
    for (size_t i = 0; i < scales; i++)
        pool->scales[i] = tensor_scale;
    return 0;
}

void kv_pool_free(struct kv_pool *pool)
{
    free(pool->memory);
    free(pool->scales);
    pool->memory = NULL;
    pool->scales = NULL;
}

static uint32_t dtype_of(uint32_t element)
{
    return element == KVF_ELEMENT_F32   ? KVF_KERNEL_DTYPE_F32
           : element == KVF_ELEMENT_F16 ? KVF_KERNEL_DTYPE_F16
                                        : KVF_KERNEL_DTYPE_BF16;
}

kvf_kernel_pages kv_pool_exact(const struct kv_pool *pool, int layer)
{
    const kvf_page_layout *l = pool->layout;
    char *base = (char *)pool->memory + (size_t)layer * l->layer_bytes;

    return (kvf_kernel_pages){
        .struct_size = sizeof(kvf_kernel_pages), .dtype = dtype_of(l->k.format.element), .page_tokens = l->page_tokens,
        .n_pages = (uint32_t)pool->pages, .kv_heads = l->kv_heads, .head_dim = l->k.dim, .k = base + l->k.codes,
        .v = base + l->v.codes, .k_page_stride = l->page_bytes, .k_token_stride = l->k.codes_block,
        .k_head_stride = l->k.codes_head, .v_page_stride = l->page_bytes, .v_token_stride = l->v.codes_block,
        .v_head_stride = l->v.codes_head,
    };
}

kvf_kernel_quant kv_pool_quant(const struct kv_pool *pool, int layer)
{
    return (kvf_kernel_quant){
        .struct_size = sizeof(kvf_kernel_quant), .n_pages = (uint32_t)pool->pages, .layout = pool->layout,
        .base = pool->memory, .layer = (uint32_t)layer, .k_scales = pool->scales, .v_scales = pool->scales,
    };
}
