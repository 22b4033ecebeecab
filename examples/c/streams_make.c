/* Making and ending a cache of streams, and how full it is. */
#include "streams_state.h"

#include <stdlib.h>

static void streams_free(struct cache *self)
{
    struct streams *s = (struct streams *)self;

    if (!s)
        return;
    if (s->kvf)
        kvf_cache_deinit(s->kvf);
    kv_pool_free(&s->pool);
    for (int i = 0; s->chats && i < s->config.max_sequences; i++) {
        free(s->chats[i].sequences);
        free(s->chats[i].lengths);
        free(s->chats[i].streams);
        free(s->chats[i].features);
        free(s->chats[i].cuts);
    }
    for (int i = 0; s->work && i < threads_count(s->threads); i++) {
        free(s->work[i].scores);
        free(s->work[i].keep);
        free(s->work[i].runs);
        free(s->work[i].moves);
    }
    free(s->memory);
    free(s->chats);
    free(s->tables);
    free(s->valid);
    free(s->positions);
    free(s->new_slots);
    free(s->dead);
    free(s->step_chats);
    free(s->tokens);
    free(s->rows);
    free(s->write);
    free(s->places);
    free(s->items);
    free(s->accepts);
    free(s->statuses);
    free(s->scratch);
    free(s->work);
    free(s);
}

/* A manager of one group and no index: as many sequences as there are streams. */
static int init_manager(struct streams *s, struct error *error)
{
    const uint32_t rows = (uint32_t)s->config.max_sequences * (uint32_t)s->n;
    const kvf_pool_config pool = { .struct_size = sizeof pool, .pages = (uint32_t)s->config.pages };
    const kvf_group_config group = { .struct_size = sizeof group, .page_tokens = s->pages.page_tokens };
    const kvf_config config = {
        .struct_size = sizeof config, .abi_version = KVF_ABI_VERSION, .pools = &pool, .groups = &group, .n_pools = 1,
        .n_groups = 1, .sequences = rows, .index = KVF_INDEX_NONE,
        .table_chunks = rows * ((uint32_t)s->config.columns / 32 + 3),
    };
    uint32_t field = 0;
    size_t bytes, align;
    kvf_status status;

    if (kvf_config_check(&config, &field) != KVF_OK)
        return fail(error, "kvfolio cannot use %d pages for %u streams (field %u of its configuration)",
                    s->config.pages, (unsigned)rows, (unsigned)field);
    status = kvf_cache_required_size(&config, &bytes, &align);
    if (status == KVF_OK)
        s->memory = aligned_alloc(align, (bytes + align - 1) / align * align);
    if (status == KVF_OK && !s->memory)
        return fail(error, "out of memory for %zu bytes of kvfolio", bytes);
    if (status == KVF_OK)
        status = kvf_cache_init(s->memory, bytes, &config, &s->kvf);
    return status == KVF_OK ? 0 : fail(error, "making the cache: %s", kvf_status_text(status));
}

static int make_work(struct streams *s)
{
    const size_t slots = (size_t)s->slots, group = (size_t)(s->shape.heads / s->shape.kv_heads);
    const int threads = threads_count(s->threads);

    s->work = calloc((size_t)threads, sizeof *s->work);
    for (int i = 0; s->work && i < threads; i++) {
        struct streams_work *work = &s->work[i];
        work->scores = calloc((3 + group) * slots + (size_t)s->shape.head_dim, sizeof *work->scores);
        work->keep = calloc((size_t)s->config.columns, sizeof *work->keep);
        work->runs = calloc(slots, sizeof *work->runs);
        work->moves = calloc(slots, sizeof *work->moves);
        if (!work->scores || !work->keep || !work->runs || !work->moves)
            return -1;
        work->norms = work->scores + slots;
        work->dots = work->norms + slots;
        work->probabilities = work->dots + slots;
        work->sum = work->probabilities + group * slots;
    }
    return s->work ? 0 : -1;
}

static int make_arrays(struct streams *s)
{
    const size_t chats = (size_t)s->config.max_sequences, n = (size_t)s->n, rows = chats * n;
    const size_t columns = (size_t)s->config.columns, batch = (size_t)s->config.max_rows;

    s->chats = calloc(chats, sizeof *s->chats);
    s->tables = calloc(rows * columns, sizeof *s->tables);
    s->valid = calloc(rows * columns, sizeof *s->valid);
    s->positions = calloc(rows * (size_t)s->slots, sizeof *s->positions);
    s->new_slots = calloc((size_t)s->config.chunk, sizeof *s->new_slots);
    s->dead = calloc(columns, sizeof *s->dead);
    s->step_chats = calloc(chats, sizeof *s->step_chats);
    s->tokens = calloc(batch, sizeof *s->tokens);
    s->rows = calloc(batch, sizeof *s->rows);
    s->write = calloc((size_t)s->shape.layers * batch * (size_t)s->shape.kv_heads, sizeof *s->write);
    s->places = calloc((size_t)s->shape.layers * batch * (size_t)s->shape.kv_heads, sizeof *s->places);
    s->items = calloc(rows, sizeof *s->items);
    s->accepts = calloc(rows, sizeof *s->accepts);
    s->statuses = calloc(rows, sizeof *s->statuses);
    s->scratch = malloc((size_t)threads_count(s->threads) * s->scratch_floats * sizeof *s->scratch);
    if (!s->chats || !s->tables || !s->valid || !s->positions || !s->new_slots || !s->dead || !s->step_chats ||
        !s->tokens || !s->rows || !s->write || !s->places || !s->items || !s->accepts || !s->statuses || !s->scratch ||
        make_work(s) != 0)
        return -1;
    for (size_t i = 0; i < chats; i++) {
        s->chats[i].sequences = calloc(n, sizeof *s->chats[i].sequences);
        s->chats[i].lengths = calloc(n, sizeof *s->chats[i].lengths);
        s->chats[i].streams = calloc(n, sizeof *s->chats[i].streams);
        s->chats[i].cuts = calloc(n, sizeof *s->chats[i].cuts);
        if (!s->chats[i].cuts || !s->chats[i].sequences || !s->chats[i].lengths || !s->chats[i].streams)
            return -1;
    }
    return 0;
}

/* Pages of one head of one layer. */
static int make_pages(struct streams *s, struct error *error)
{
    struct model_shape one = s->shape;

    one.layers = one.kv_heads = 1;
    one.heads = s->shape.heads / s->shape.kv_heads;
    if (s->config.page_tokens > 64)
        return fail(error, "streams: pages of at most 64 tokens, one bit each, not %d", s->config.page_tokens);
    if (kv_groups_make(&s->one, &one, &s->config.kv, s->config.page_tokens, error) != 0)
        return -1;
    if (evict_check(&s->config.policy, &s->one.groups[0].layout, error) != 0)
        return -1;
    if (s->one.n != 1 || s->one.groups[0].format->kind != KV_EXACT)
        return fail(error, "streams: attention that is looked at reads f32, f16 or bf16, not %s",
                    s->one.groups[0].format->name);
    if (kv_pool_init(&s->pool, &s->one.groups[0].layout, s->config.pages, error) != 0)
        return -1;
    s->pages = kv_pool_exact(&s->pool, 0);
    s->slots = s->config.columns * s->one.page_tokens;
    s->attention = (kvf_kernel_attention){ .struct_size = sizeof s->attention, .heads = (uint32_t)one.heads };
    return kvf_cpu_attention_slots_scratch(1, &s->attention, (uint32_t)s->slots, &s->scratch_floats) == KVF_KERNEL_OK
               ? 0 : fail(error, "streams: rows of %d slots are too long", s->slots);
}

static void usage(struct cache *self, struct cache_usage *usage)
{
    struct streams *s = (struct streams *)self;
    kvf_pool_stats pool = { .struct_size = sizeof pool };

    kvf_pool_stats_read(s->kvf, 0, &pool);
    *usage = (struct cache_usage){
        .page_tokens = s->one.page_tokens, .pages = s->config.pages, .used = (int)pool.used, .peak = (int)s->peak,
        .peak_bytes = (size_t)s->peak * s->one.groups[0].layout.page_bytes,
        .peak_f16_bytes = (size_t)s->peak * (size_t)s->one.page_tokens * kv_groups_f16_token(&s->one, 1),
        .seconds = s->seconds,
    };
}

struct cache *streams_new(const struct streams_config *config, const struct model_shape *shape,
                          struct threads *threads, struct error *error)
{
    struct streams *s = calloc(1, sizeof *s);

    if (!s) {
        fail(error, "out of memory");
        return NULL;
    }
    s->cache = streams_calls;
    s->cache.kv = &s->backend;
    s->cache.usage = usage;
    s->cache.free = streams_free;
    s->backend = streams_backend;
    s->config = *config;
    s->policy = config->policy;
    s->shape = *shape;
    s->threads = threads;
    s->n = shape->layers * shape->kv_heads;
    if (make_pages(s, error) == 0) {
        if (make_arrays(s) != 0)
            fail(error, "out of memory for %d chats of %d streams", config->max_sequences, s->n);
        else if (init_manager(s, error) == 0)
            return &s->cache;
    }
    streams_free(&s->cache);
    return NULL;
}

int streams_policy(struct cache *cache, const struct evict_policy *policy, struct error *error)
{
    struct streams *s = (struct streams *)cache;

    if (evict_check(policy, &s->one.groups[0].layout, error) != 0)
        return -1;
    s->policy = *policy;
    return 0;
}

void streams_count(const struct streams *s, int chat, struct streams_usage *usage)
{
    const uint32_t page = s->pages.page_tokens;

    for (int i = 0; i < s->n; i++) {
        const kvf_stream *of = stream_of(s, chat, i);
        usage->streams++;
        usage->seen += of->seen;
        usage->live += of->live;
        usage->rows += of->rows;
        usage->pages += (of->rows + page - 1) / page;
        usage->needed += (of->live + page - 1) / page;
        usage->cuts += s->chats[chat].cuts[i].n;
        usage->mass += s->chats[chat].cuts[i].mass;
        if (s->chats[chat].cuts[i].mass > usage->greatest * (double)s->chats[chat].cuts[i].n) {
            usage->greatest = s->chats[chat].cuts[i].mass / (double)s->chats[chat].cuts[i].n;
            usage->stream = i;
        }
    }
}

void streams_usage(struct cache *cache, int ended, struct streams_usage *usage)
{
    struct streams *s = (struct streams *)cache;

    *usage = ended ? s->ended : (struct streams_usage){ 0 };
    for (int chat = 0; !ended && chat < s->config.max_sequences; chat++) {
        if (s->chats[chat].open)
            streams_count(s, chat, usage);
    }
    usage->evicted = s->evicted;
    usage->moved = s->moved;
}

struct streams_view streams_view(struct cache *cache, uint64_t sequence, int layer, int head)
{
    struct streams *s = (struct streams *)cache;
    const int stream = layer * s->shape.kv_heads + head;
    const size_t row = (size_t)sequence * (size_t)s->n + (size_t)stream;

    return (struct streams_view){ stream_of(s, (int)sequence, stream), s->tables + row * (size_t)s->config.columns,
                                  s->pages, s->attention };
}

kvf_cache *streams_manager(struct cache *cache)
{
    return ((struct streams *)cache)->kvf;
}

int streams_compact(struct cache *cache, uint64_t sequence, struct error *error)
{
    return streams_close_holes((struct streams *)cache, (int)sequence, error);
}

void streams_watch(struct cache *cache, const struct streams_watch *watch)
{
    ((struct streams *)cache)->watch = *watch;
}
