/* Making and ending a cache managed by kvfolio, and how full it is. */
#include "step_state.h"

#include "clock.h"

#include <stdlib.h>

static kvf_pool_stats pool_of(const struct step *s)
{
    kvf_pool_stats pool = { .struct_size = sizeof pool };
    kvf_pool_stats_read(s->kvf, 0, &pool);
    return pool;
}

static int step_has_room(struct cache *self, int from, int to)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    const kvf_pool_stats pool = pool_of(s);
    const int page = s->config.page_tokens;

    s->seconds += clock_seconds() - start;
    return (to + page - 1) / page - from / page <= (int)(pool.free_pages + pool.cached);
}

static void step_usage(struct cache *self, struct cache_usage *usage)
{
    struct step *s = (struct step *)self;
    const kvf_pool_stats pool = pool_of(s);
    kvf_stats stats = { .struct_size = sizeof stats };

    kvf_stats_read(s->kvf, &stats);
    *usage = (struct cache_usage){
        .page_tokens = s->config.page_tokens, .pages = (int)pool.pages, .used = (int)pool.used,
        .peak = (int)pool.peak_used, .page_bytes = kv_paged_page_bytes(s->cache.kv),
        .copies = (long long)stats.copied_pages, .evicted = s->evicted, .seconds = s->seconds,
    };
}

static void step_free(struct cache *self)
{
    struct step *s = (struct step *)self;
    if (!s)
        return;
    if (s->kvf)
        kvf_cache_deinit(s->kvf);
    kv_paged_free(s->cache.kv);
    free(s->memory);
    free(s->sequences);
    free(s->tokens);
    free(s->rows);
    free(s->slots);
    free(s->positions);
    free(s->tables);
    free(s->copies);
    free(s->kernel_copies);
    free(s->accepts);
    free(s);
}

/* One pool, one group: all layers of the model share one page table. */
static int init_manager(struct step *s, struct error *error)
{
    const struct step_config *c = &s->config;
    const kvf_pool_config pool = { .struct_size = sizeof pool, .pages = (uint32_t)c->pages };
    const kvf_group_config group = { .struct_size = sizeof group, .page_tokens = (uint32_t)c->page_tokens };
    const kvf_config config = {
        .struct_size = sizeof config, .abi_version = KVF_ABI_VERSION, .pools = &pool, .groups = &group, .n_pools = 1,
        .n_groups = 1, .sequences = (uint32_t)c->max_sequences, .tickets = 1,
        .table_chunks = (uint32_t)c->max_sequences * ((uint32_t)c->pages / 32 + 2),
        .plan_tokens = (uint32_t)c->max_rows,
    };
    uint32_t field = 0;
    size_t bytes, align;
    kvf_status status;

    if (kvf_config_check(&config, &field) != KVF_OK)
        return fail(error, "kvfolio cannot use %d pages of %d tokens for %d sequences (field %u of its configuration)",
                    c->pages, c->page_tokens, c->max_sequences, field);
    status = kvf_cache_required_size(&config, &bytes, &align);
    if (status != KVF_OK)
        return fail(error, "sizing the cache: %s", kvf_status_text(status));
    s->memory = aligned_alloc(align, (bytes + align - 1) / align * align);
    if (!s->memory)
        return fail(error, "out of memory for %zu bytes of kvfolio", bytes);
    status = kvf_cache_init(s->memory, bytes, &config, &s->kvf);
    return status == KVF_OK ? 0 : fail(error, "making the cache: %s", kvf_status_text(status));
}

struct cache *step_new(const struct step_config *config, const struct model_shape *shape, struct threads *threads,
                       struct error *error)
{
    const size_t n = (size_t)config->max_sequences, rows = (size_t)config->max_rows;
    struct step *s = calloc(1, sizeof *s);

    if (!s) {
        fail(error, "out of memory");
        return NULL;
    }
    s->cache = step_calls;
    s->cache.has_room = step_has_room;
    s->cache.usage = step_usage;
    s->cache.free = step_free;
    s->config = *config;
    s->sequences = calloc(n, sizeof *s->sequences);
    s->tokens = calloc(rows, sizeof *s->tokens);
    s->rows = calloc(rows, sizeof *s->rows);
    s->slots = calloc(rows, sizeof *s->slots);
    s->positions = calloc(rows, sizeof *s->positions);
    s->copies = calloc(n, sizeof *s->copies);
    s->kernel_copies = calloc(n, sizeof *s->kernel_copies);
    s->accepts = calloc(n, sizeof *s->accepts);
    if (!s->sequences || !s->tokens || !s->rows || !s->slots || !s->positions || !s->copies ||
        !s->kernel_copies || !s->accepts) {
        fail(error, "out of memory for %d sequences and %d rows", config->max_sequences, config->max_rows);
    } else if (init_manager(s, error) == 0) {
        s->cache.kv = kv_paged_new(shape, threads, config->dtype, config->page_tokens, config->pages, error);
        if (s->cache.kv)
            return &s->cache;
    }
    step_free(&s->cache);
    return NULL;
}

kvf_cache *step_manager(struct cache *cache)
{
    return ((struct step *)cache)->kvf;
}

struct step_view step_view(struct cache *cache)
{
    struct step *s = (struct step *)cache;
    return (struct step_view){ s->tables, s->n_sequences, s->stride, s->slots, s->n_rows, s->kernel_copies,
                               s->n_copies };
}
