/*
 * A step over streams: the calls of kvfolio that it needs. (streams_evict.c has those that evict, streams_make.c makes
 * the cache.)
 *
 *     a new chat      kvf_seq_open, once for each stream                         open
 *     each step       kvf_plan_begin                                             begin
 *                     kvf_plan_add_batch, of all streams that need new slots     add
 *                     kvf_plan_finish, kvf_stream_append, kvf_table_dense        finish
 *                     the model: writes, then attention                          engine_forward with streams_kv.c
 *                     kvf_plan_commit, then eviction                             commit
 *     at the end      kvf_seq_close                                              close
 *
 * The ids of tokens are never told: what was evicted cannot be found by another chat.
 */
#include "streams_state.h"

#include "clock.h"

#include <stdlib.h>
#include <string.h>

static int check(kvf_status status, const char *what, struct error *error)
{
    return status == KVF_OK ? 0 : fail(error, "kvfolio: %s: %s (%s)", what, kvf_status_text(status),
                                       kvf_status_name(status));
}

static int none_cached(struct cache *self, const int32_t *tokens, int n)
{
    (void)self, (void)tokens, (void)n;
    return 0;
}

/* ---- A chat begins and ends ---- */

static int streams_close(struct cache *self, uint64_t sequence, enum cache_close how, struct error *error)
{
    struct streams *s = (struct streams *)self;
    struct streams_chat *c = &s->chats[sequence];
    kvf_status status = KVF_OK;
    (void)how;

    streams_count(s, (int)sequence, &s->ended);
    for (int i = 0; i < s->n && status == KVF_OK; i++)
        status = kvf_seq_close(s->kvf, c->sequences[i], KVF_CLOSE_DISCARD);
    s->reserved -= c->columns * s->n;
    free(c->features);
    c->features = NULL;
    c->open = 0;
    return check(status, "closing a stream", error);
}

/* All streams of a chat, with nothing in them. */
static int open_streams(struct streams *s, int chat, struct error *error)
{
    struct streams_chat *c = &s->chats[chat];
    const int channels = evict_channels(&c->policy) + s->config.meter;
    const size_t floats = (size_t)channels * (size_t)s->slots;
    kvf_status status = KVF_OK;

    c->features = calloc((size_t)s->n * floats, sizeof *c->features);
    if (!c->features)
        return fail(error, "streams: out of memory for scores");
    for (int i = 0; i < s->n; i++) {
        const size_t at = (size_t)chat * (size_t)s->n + (size_t)i;
        c->streams[i] = (kvf_stream){
            .struct_size = sizeof(kvf_stream), .page_tokens = s->pages.page_tokens,
            .columns = (uint32_t)s->config.columns, .channels = (uint32_t)channels,
            .valid = s->valid + at * (size_t)s->config.columns, .positions = s->positions + at * (size_t)s->slots,
            .features = c->features + (size_t)i * floats,
        };
        memset(c->streams[i].valid, 0, (size_t)s->config.columns * sizeof *c->streams[i].valid);
        c->lengths[i] = 0;
        c->cuts[i] = (struct streams_cut){ 0, 0 };
        status = status == KVF_OK ? kvf_seq_open(s->kvf, NULL, &c->sequences[i], NULL) : status;
    }
    return check(status, "opening a stream", error);
}

/* A chat is let in only where the most pages that it can ever need are there: it never has to give way. */
static enum cache_answer streams_open(struct cache *self, const int32_t *tokens, int n, uint64_t *sequence, int *hit,
                                      struct error *error)
{
    struct streams *s = (struct streams *)self;
    const int columns = evict_columns(&s->policy, (int)s->pages.page_tokens, s->config.chunk, s->config.longest);
    int chat = 0;
    (void)tokens, (void)n;

    while (chat < s->config.max_sequences && s->chats[chat].open)
        chat++;
    if (columns > s->config.columns || columns * s->n > s->config.pages)
        return CACHE_NEVER;
    if (chat == s->config.max_sequences || s->reserved + columns * s->n > s->config.pages)
        return CACHE_RETRY;
    s->chats[chat].policy = s->policy;
    s->chats[chat].columns = columns;
    s->chats[chat].len = 0;
    if (open_streams(s, chat, error) != 0)
        return CACHE_FAILED;
    s->chats[chat].open = 1;
    s->reserved += columns * s->n;
    *sequence = (uint64_t)chat;
    *hit = 0;
    return CACHE_OK;
}

/* Scores would have to be copied too: samples compute their prompt themselves. */
static enum cache_answer no_fork(struct cache *self, uint64_t sequence, uint64_t *children, int n, struct error *error)
{
    (void)self, (void)sequence, (void)children, (void)n, (void)error;
    return CACHE_RETRY;
}

static int has_room(struct cache *self, int from, int to)
{
    (void)self, (void)from, (void)to;
    return 1; /* open has seen to it */
}

/* ---- A step ---- */

static int streams_begin(struct cache *self, struct error *error)
{
    struct streams *s = (struct streams *)self;

    s->n_chats = s->n_rows = s->n_items = 0;
    return check(kvf_plan_begin(s->kvf, ++s->tick), "beginning a plan", error);
}

/* Where a token's place is made before it attends, tokens come one by one once the budget is full. */
static int streams_run(struct cache *self, uint64_t sequence, int n)
{
    struct streams *s = (struct streams *)self;
    const struct streams_chat *c = &s->chats[sequence];
    const int most = n < s->config.chunk ? n : s->config.chunk;
    const int left = c->policy.budget - c->len;

    if (!c->policy.before || c->policy.kind == EVICT_NONE || most <= left)
        return most;
    return left > 0 ? left : 1;
}

static enum cache_answer streams_add(struct cache *self, uint64_t sequence, const int32_t *tokens, int n, int wanted,
                                     struct error *error)
{
    struct streams *s = (struct streams *)self;
    const double start = clock_seconds();
    struct streams_chat *c = &s->chats[sequence];
    const int first = s->n_items;
    size_t added = 0;
    kvf_status status;

    if (n > s->config.max_rows - s->n_rows || n > streams_run(self, sequence, n)) {
        fail(error, "streams: %d tokens are too many for a step", n);
        return CACHE_FAILED;
    }
    for (int i = 0; i < s->n; i++) {
        const kvf_stream *of = &c->streams[i];
        const int holes = c->policy.removal == KVF_REMOVE_REPLACE ? (int)(of->rows - of->live) : 0;
        if (n > holes)
            s->items[s->n_items++] = (kvf_plan_item){ .seq = c->sequences[i], .count = (uint32_t)(n - holes) };
    }
    status = kvf_plan_add_batch(s->kvf, s->items + first, (size_t)(s->n_items - first), s->statuses, &added, NULL);
    if (status == KVF_OK && added < (size_t)(s->n_items - first))
        status = KVF_ERR_INTERNAL; /* its pages were reserved; abort cancels the plan */
    s->seconds += clock_seconds() - start;
    if (check(status, "adding to a plan", error) != 0)
        return CACHE_FAILED;
    c->count = n;
    c->first = s->n_rows;
    for (int i = 0; i < n; i++) {
        s->tokens[s->n_rows] = tokens[i];
        s->rows[s->n_rows++] = (struct row_desc){ (int32_t)sequence, c->len + i, i >= n - wanted };
    }
    s->step_chats[s->n_chats++] = (int)sequence;
    return CACHE_OK;
}

/* Gives the new tokens of a chat their slots, in streams and in what kernels read. */
static kvf_status place(struct streams *s, int chat)
{
    struct streams_chat *c = &s->chats[chat];
    const size_t columns = (size_t)s->config.columns, heads = (size_t)s->shape.kv_heads;
    const uint32_t page = s->pages.page_tokens;
    const uint32_t how = c->policy.removal == KVF_REMOVE_REPLACE ? KVF_PLACE_REUSE : KVF_PLACE_BEHIND;
    int32_t *table = s->tables + (size_t)chat * (size_t)s->n * columns;
    kvf_status status = kvf_table_dense(s->kvf, 0, c->sequences, (size_t)s->n, (uint32_t)columns, 0, table,
                                        (size_t)s->n * columns);

    for (int i = 0; i < s->n && status == KVF_OK; i++, table += columns) {
        uint32_t *slots = s->new_slots;
        status = kvf_stream_append(&c->streams[i], (uint32_t)c->count, how, slots, NULL);
        for (int j = 0; j < c->count && status == KVF_OK; j++) {
            const size_t row = (size_t)(i / (int)heads) * (size_t)s->config.max_rows + (size_t)(c->first + j);
            s->write[row * heads + (size_t)i % heads] =
                (int64_t)table[slots[j] / page] * page + slots[j] % page;
            s->places[row * heads + (size_t)i % heads] = slots[j];
        }
        c->lengths[i] = c->streams[i].rows;
    }
    return status;
}

static int streams_finish(struct cache *self, struct cache_batch *batch, struct error *error)
{
    struct streams *s = (struct streams *)self;
    const double start = clock_seconds();
    kvf_pool_stats pool = { .struct_size = sizeof pool };
    kvf_status status = kvf_plan_finish(s->kvf, NULL);
    int failed;

    for (int i = 0; i < s->n_chats && status == KVF_OK; i++)
        status = place(s, s->step_chats[i]);
    if (status == KVF_OK)
        status = kvf_pool_stats_read(s->kvf, 0, &pool);
    s->peak = (int)pool.used > s->peak ? (int)pool.used : s->peak;
    failed = check(status, "finishing a plan", error) != 0 || streams_evict(s, 1, error) != 0;
    s->seconds += clock_seconds() - start;
    *batch = (struct cache_batch){ s->tokens, s->rows, s->n_rows };
    return failed ? -1 : 0;
}

/* Nothing is taken back here: scores have seen every token of the step. */
static int streams_commit(struct cache *self, const int32_t *accepted, struct error *error)
{
    struct streams *s = (struct streams *)self;
    const double start = clock_seconds();
    int failed;

    for (int i = 0; i < s->n_chats; i++) {
        struct streams_chat *c = &s->chats[s->step_chats[i]];
        if (accepted[i] != c->count)
            return fail(error, "streams: drafts cannot be taken back where tokens are evicted");
        c->len += c->count;
    }
    for (int i = 0; i < s->n_items; i++)
        s->accepts[i] = (kvf_accept){ .accepted = s->items[i].count, .verified = s->items[i].count };
    failed = check(kvf_plan_commit(s->kvf, s->accepts, (size_t)s->n_items), "committing a plan", error) != 0 ||
             streams_score(s, error) != 0 || streams_evict(s, 0, error) != 0 || streams_tidy(s, error) != 0;
    s->seconds += clock_seconds() - start;
    return failed ? -1 : 0;
}

/* After finish tokens may have gone already: the chats of such a step can only be closed. */
static void streams_abort(struct cache *self)
{
    struct streams *s = (struct streams *)self;
    if (kvf_plan_cancel(s->kvf) != KVF_OK)
        kvf_plan_abort(s->kvf);
}

const struct cache streams_calls = {
    .cached = none_cached, .open = streams_open, .fork = no_fork, .close = streams_close, .has_room = has_room,
    .begin = streams_begin, .run = streams_run, .add = streams_add, .finish = streams_finish,
    .commit = streams_commit, .abort = streams_abort,
};
