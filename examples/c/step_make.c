/* Making and ending a cache managed by kvfolio, and how full it is. */
#include "step_state.h"

#include "clock.h"

#include <stdlib.h>

/* Pages that tokens `from` to `to` - 1 need in each pool, against what is free or can be evicted. */
static int step_has_room(struct cache *self, int from, int to)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    const int page = s->groups.page_tokens, pages = (to + page - 1) / page - from / page;
    int fits = 1;

    for (int g = 0; g < s->groups.n; g++) {
        const struct kv_group *group = &s->groups.groups[g];
        const struct step_group *part = &s->parts[g];
        const kvf_pool_stats pool = step_pool(s, part->pool);
        const int open = kv_group_open_pages(&s->groups, group);
        const int need = part->sealed_pool < 0 || pages < open ? pages : open;
        fits &= need <= (int)(pool.free_pages + pool.cached);
        if (part->sealed_pool >= 0) {
            const kvf_pool_stats sealed = step_pool(s, part->sealed_pool);
            const int sinks = kv_group_sinks(&s->groups, group), first = from / page > sinks ? from / page : sinks;
            fits &= kv_group_sealed_at(&s->groups, group, to) - first <= (int)(sealed.free_pages + sealed.cached);
        }
    }
    s->seconds += clock_seconds() - start;
    return fits;
}

static void step_usage(struct cache *self, struct cache_usage *usage)
{
    struct step *s = (struct step *)self;
    kvf_stats stats = { .struct_size = sizeof stats };

    kvf_stats_read(s->kvf, &stats);
    *usage = (struct cache_usage){
        .page_tokens = s->groups.page_tokens, .peak = s->peak, .peak_bytes = s->peak_bytes,
        .peak_f16_bytes = s->peak_f16_bytes, .copies = (long long)stats.copied_pages, .evicted = s->evicted,
        .seconds = s->seconds, .planned_tokens = KV_PLANNED, .token_bytes = kv_groups_token_bytes(&s->groups),
        .f16_token_bytes = (int)kv_groups_f16_token(&s->groups, s->groups.shape.layers),
    };
    for (int i = 0; i < s->n_pools; i++) {
        const kvf_pool_stats pool = step_pool(s, i);
        usage->pages += (int)pool.pages;
        usage->used += (int)pool.used;
    }
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
    free(s->positions);
    free(s->copies);
    free(s->accepts);
    for (int g = 0; g < s->groups.n; g++) {
        free(s->parts[g].slots);
        free(s->parts[g].tables);
        free(s->parts[g].sealed_begin);
        free(s->parts[g].sealed_end);
        free(s->parts[g].copies);
        free(s->parts[g].seals);
    }
    free(s);
}

/*
 * A pool for each group, and a second one for sealed pages. Of pages that are not sealed yet each sequence needs only
 * a few; those of sinks stay cached for as many prompts again.
 */
static void choose_pools(struct step *s)
{
    for (int g = 0; g < s->groups.n; g++) {
        const struct kv_group *group = &s->groups.groups[g];
        const int open = kv_group_open_pages(&s->groups, group) + kv_group_sinks(&s->groups, group);

        s->parts[g].pool = s->n_pools;
        s->parts[g].sealed_pool = -1;
        s->pools[s->n_pools++] = s->config.pages;
        if (group->format->kind == KV_SEALED) {
            s->pools[s->n_pools - 1] = open * s->config.max_sequences;
            s->parts[g].sealed_pool = s->n_pools;
            s->pools[s->n_pools++] = s->config.pages;
        }
    }
}

static int init_manager(struct step *s, struct error *error)
{
    const struct step_config *c = &s->config;
    kvf_pool_config pools[2 * KV_GROUPS];
    kvf_group_config groups[KV_GROUPS];
    /* Every sequence may have rows as long as the pool. */
    const uint64_t chunks = (uint64_t)c->max_sequences * (uint64_t)s->groups.n * ((uint64_t)c->pages / 32 + 3);
    const kvf_namespace_key key = { .struct_size = sizeof key, .format = kv_groups_key(&s->groups) };
    const kvf_config config = {
        .struct_size = sizeof config, .abi_version = KVF_ABI_VERSION, .pools = pools, .groups = groups,
        .n_pools = (uint32_t)s->n_pools, .n_groups = (uint32_t)s->groups.n, .sequences = (uint32_t)c->max_sequences,
        .tickets = 1, .namespaces = 2,
        .table_chunks = (uint32_t)(chunks < UINT32_MAX ? chunks : UINT32_MAX),
        .plan_tokens = (uint32_t)c->max_rows, .plan_copies = (uint32_t)s->copies_cap,
    };
    uint32_t field = 0;
    size_t bytes, align;
    kvf_status status;

    for (int i = 0; i < s->n_pools; i++)
        pools[i] = (kvf_pool_config){ .struct_size = sizeof pools[i], .pages = (uint32_t)s->pools[i] };
    for (int g = 0; g < s->groups.n; g++)
        groups[g] = (kvf_group_config){
            .struct_size = sizeof groups[g], .page_tokens = (uint32_t)s->groups.page_tokens,
            .pool = (uint32_t)s->parts[g].pool, .sealed_pool = (uint32_t)(s->parts[g].sealed_pool + 1),
            .sinks = s->parts[g].sealed_pool < 0 ? 0 : (uint32_t)s->groups.sinks,
        };
    if (kvf_config_check(&config, &field) != KVF_OK)
        return fail(error, "kvfolio cannot use %d pages of %d tokens for %d sequences (field %u of its configuration)",
                    c->pages, s->groups.page_tokens, c->max_sequences, field);
    status = kvf_cache_required_size(&config, &bytes, &align);
    if (status != KVF_OK)
        return fail(error, "sizing the cache: %s", kvf_status_text(status));
    s->memory = aligned_alloc(align, (bytes + align - 1) / align * align);
    if (!s->memory)
        return fail(error, "out of memory for %zu bytes of kvfolio", bytes);
    status = kvf_cache_init(s->memory, bytes, &config, &s->kvf);
    if (status == KVF_OK)
        status = kvf_namespace_open(s->kvf, &key, &s->ns, NULL);
    return status == KVF_OK ? 0 : fail(error, "making the cache: %s", kvf_status_text(status));
}

/* What the kernels read of each group. */
static int make_parts(struct step *s)
{
    for (int g = 0; g < s->groups.n; g++) {
        struct step_group *part = &s->parts[g];
        part->slots = calloc((size_t)s->config.max_rows, sizeof *part->slots);
        part->sealed_begin = calloc((size_t)s->config.max_sequences, sizeof *part->sealed_begin);
        part->sealed_end = calloc((size_t)s->config.max_sequences, sizeof *part->sealed_end);
        part->copies = calloc(s->copies_cap, sizeof *part->copies);
        part->seals = calloc(s->copies_cap, sizeof *part->seals);
        if (!part->slots || !part->sealed_begin || !part->sealed_end || !part->copies || !part->seals)
            return -1;
    }
    return 0;
}

struct cache *step_new(const struct step_config *config, const struct model_shape *shape, struct threads *threads,
                       struct error *error)
{
    const size_t n = (size_t)config->max_sequences, rows = (size_t)config->max_rows;
    struct step *s = calloc(1, sizeof *s);
    int pages[KV_GROUPS], sealed[KV_GROUPS];

    if (!s) {
        fail(error, "out of memory");
        return NULL;
    }
    s->cache = step_calls;
    s->cache.has_room = step_has_room;
    s->cache.usage = step_usage;
    s->cache.free = step_free;
    s->config = *config;
    if (kv_groups_make(&s->groups, shape, &config->kv, config->page_tokens, error) != 0) {
        s->groups.n = 0;
        step_free(&s->cache);
        return NULL;
    }
    s->copies_cap = n * (size_t)s->groups.n * 4; /* a copy, a seal and its record, of each sequence and group */
    s->sequences = calloc(n, sizeof *s->sequences);
    s->tokens = calloc(rows, sizeof *s->tokens);
    s->rows = calloc(rows, sizeof *s->rows);
    s->positions = calloc(rows, sizeof *s->positions);
    s->copies = calloc(s->copies_cap, sizeof *s->copies);
    s->accepts = calloc(n, sizeof *s->accepts);
    choose_pools(s);
    for (int g = 0; g < s->groups.n; g++) {
        pages[g] = s->pools[s->parts[g].pool];
        sealed[g] = s->parts[g].sealed_pool < 0 ? 0 : s->pools[s->parts[g].sealed_pool];
    }
    if (!s->sequences || !s->tokens || !s->rows || !s->positions || !s->copies || !s->accepts || make_parts(s) != 0) {
        fail(error, "out of memory for %d sequences and %d rows", config->max_sequences, config->max_rows);
    } else if (init_manager(s, error) == 0) {
        s->cache.kv = kv_paged_new(&s->groups, threads, pages, sealed, error);
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

struct step_view step_view(struct cache *cache, int group)
{
    struct step *s = (struct step *)cache;
    struct step_group *part = &s->parts[group];
    return (struct step_view){ part->tables, s->n_sequences, part->stride, part->slots, s->n_rows, part->copies,
                               part->n_copies };
}
