/*
 * What goes: scores of tokens, kept sets, and the holes that are left.
 *
 *     kvf_evict_..._scores   from attention, from keys, by a network, or by chance       streams_score
 *     kvf_evict_keep_best    the budget's best tokens and what is protected              streams_evict
 *     kvf_stream_retain      makes holes of the others
 *     kvf_stream_plan_compaction, kvf_cpu_move_rows, kvf_stream_commit_compaction,       streams_tidy
 *     kvf_seq_truncate       close holes, and give the pages at the end of the row back
 *     kvf_stream_drop_dead_columns, kvf_seq_remove_pages   give pages back in which nothing is left
 */
#include "streams_state.h"

#include "random.h"

#include <string.h>

float *streams_sums(const struct streams *s, int chat, int stream, int position, uint32_t *reduce, uint32_t *flags)
{
    const kvf_stream *of = stream_of(s, chat, stream);

    switch (s->chats[chat].policy.kind) {
    case EVICT_H2O:
        *reduce = KVF_KERNEL_REDUCE_SUM;
        return channel_of(s, of, 0);
    case EVICT_TOVA:
        *reduce = KVF_KERNEL_REDUCE_MEAN;
        *flags = KVF_KERNEL_SCORES_STORE;
        return channel_of(s, of, 0);
    case EVICT_SNAPKV: /* one channel for each of the last queries */
        *reduce = KVF_KERNEL_REDUCE_MEAN;
        *flags = KVF_KERNEL_SCORES_STORE;
        return channel_of(s, of, 1 + position % EVICT_LOOK);
    case EVICT_LEARNED:
        *reduce = KVF_KERNEL_REDUCE_SUM;
        *flags = KVF_KERNEL_SCORES_STORE;
        return channel_of(s, of, LEARNED_LAST);
    default:
        return NULL;
    }
}

void streams_attended(const struct streams *s, int chat, int stream, const struct streams_work *work)
{
    const kvf_stream *of = stream_of(s, chat, stream);
    const int group = s->shape.heads / s->shape.kv_heads;

    for (uint32_t slot = 0; s->config.meter && slot < of->rows; slot++) {
        float sum = 0;
        for (int h = 0; h < group; h++)
            sum += work->probabilities[(size_t)h * (size_t)s->slots + slot];
        metered(s, of)[slot] = sum;
    }
    if (s->chats[chat].policy.kind != EVICT_LEARNED)
        return;
    for (uint32_t slot = 0; slot < of->rows; slot++)
        channel_of(s, of, LEARNED_SUM)[slot] += channel_of(s, of, LEARNED_LAST)[slot];
}

/* The lengths of a token's key and value, in one head. */
static int32_t measure_vectors(const struct streams *s, const kvf_stream *of, uint32_t slot, const float *k,
                               const float *v)
{
    const size_t dim = (size_t)s->shape.head_dim;
    const int32_t status = kvf_keysum_norm(k, dim, channel_of(s, of, LEARNED_KEY) + slot);

    return status == KVF_OK ? kvf_keysum_norm(v, dim, channel_of(s, of, LEARNED_VALUE) + slot) : status;
}

void streams_written(struct streams *s, int layer, const float *k, const float *v)
{
    const size_t heads = (size_t)s->shape.kv_heads, dim = (size_t)s->shape.head_dim;
    const uint32_t *places = s->places + (size_t)layer * (size_t)s->config.max_rows * heads;

    for (int i = 0; i < s->n_chats; i++) {
        const int chat = s->step_chats[i];
        const struct streams_chat *c = &s->chats[chat];
        if (c->policy.kind != EVICT_LEARNED)
            continue;
        for (size_t at = (size_t)c->first * heads; at < (size_t)(c->first + c->count) * heads; at++) {
            const kvf_stream *of = stream_of(s, chat, layer * (int)heads + (int)(at % heads));
            streams_failed(s, measure_vectors(s, of, places[at], k + at * dim, v + at * dim), 0);
        }
    }
}

/* ---- Scores ---- */

static int32_t snapkv(const struct streams *s, const kvf_stream *stream, float *scores, struct streams_work *work)
{
    memset(work->scores, 0, stream->rows * sizeof *work->scores);
    for (int look = 0; look < EVICT_LOOK; look++) {
        const float *seen = channel_of(s, stream, 1 + look);
        for (uint32_t slot = 0; slot < stream->rows; slot++)
            work->scores[slot] += seen[slot];
    }
    return kvf_evict_snapkv_scores(stream, work->scores, KVF_SMOOTH_AVERAGE, EVICT_SMOOTH, scores, NULL);
}

/* Scores of keys alone. */
static int32_t keys(struct streams *s, int chat, int stream, float *scores, struct streams_work *work, int *is_kernel)
{
    const kvf_stream *of = stream_of(s, chat, stream);
    const int is_knorm = s->chats[chat].policy.kind == EVICT_KNORM;
    kvf_kernel_keys ask = { .struct_size = sizeof ask, .slots = (uint32_t)s->slots };
    struct streams_row row;
    float norm = 0;
    int32_t status = 0;

    streams_row(s, chat, stream, &row);
    *is_kernel = 1;
    if (!is_knorm) {
        memset(work->sum, 0, (size_t)s->shape.head_dim * sizeof *work->sum);
        ask.unit_sums = work->sum;
        status = kvf_cpu_keys(&s->pages, &row.table, &row.slots, 0, 0, of->rows, &ask);
        ask.unit_sums = NULL;
        ask.vectors = work->sum;
        ask.dots = work->dots;
    }
    ask.norms = work->norms;
    if (status == KVF_KERNEL_OK)
        status = kvf_cpu_keys(&s->pages, &row.table, &row.slots, 0, 0, of->rows, &ask);
    if (status != KVF_KERNEL_OK)
        return status;
    *is_kernel = 0;
    if (is_knorm)
        return kvf_evict_knorm_scores(of, work->norms, scores, NULL);
    status = kvf_keysum_norm(work->sum, (size_t)s->shape.head_dim, &norm);
    return status == KVF_OK ? kvf_evict_keydiff_scores(of, work->dots, work->norms, norm, scores, NULL) : status;
}

static int32_t learned(const struct streams *s, int chat, int stream, float *scores)
{
    const kvf_stream *of = stream_of(s, chat, stream);
    const kvf_mlp mlp = evict_weights_of(s->chats[chat].policy.weights, stream / s->shape.kv_heads);
    const kvf_feature_inputs inputs = {
        .struct_size = sizeof inputs, .sum = channel_of(s, of, LEARNED_SUM), .last = channel_of(s, of, LEARNED_LAST),
        .key_norms = channel_of(s, of, LEARNED_KEY), .value_norms = channel_of(s, of, LEARNED_VALUE),
    };
    return kvf_evict_learned_scores(of, &mlp, &inputs, scores, NULL);
}

/* Writes channel 0 where attention has not written it already. */
static void score_range(void *context, int first, int last, int worker)
{
    struct streams *s = context;
    struct streams_work *work = &s->work[worker];

    for (int item = first; item < last; item++) {
        const int chat = s->step_chats[item / s->n], stream = item % s->n;
        const struct evict_policy *policy = &s->chats[chat].policy;
        const kvf_stream *of = stream_of(s, chat, stream);
        float *scores = channel_of(s, of, 0);
        int is_kernel = 0;
        int32_t status = 0;

        if (!evict_is_due(policy, of->live + (uint32_t)policy->before))
            continue; /* nothing is about to go */
        if (policy->kind == EVICT_RANDOM)
            status = kvf_evict_random_scores(of, policy->redraw ? random_bits(policy->seed, of->seen) : policy->seed,
                                             (uint64_t)stream, scores, NULL);
        else if (policy->kind == EVICT_SNAPKV)
            status = snapkv(s, of, scores, work);
        else if (policy->kind == EVICT_LEARNED)
            status = learned(s, chat, stream, scores);
        else if (policy->kind == EVICT_KEYDIFF || policy->kind == EVICT_KNORM)
            status = keys(s, chat, stream, scores, work, &is_kernel);
        streams_failed(s, status, is_kernel);
    }
}

/*
 * Whether a chat of the step is about to lose tokens by scores that attention has not written: most often none is, and
 * waking threads costs more than to ask.
 */
static int is_scoring_due(const struct streams *s)
{
    for (int i = 0; i < s->n_chats; i++) {
        const struct evict_policy *policy = &s->chats[s->step_chats[i]].policy;
        if (evict_scores_anew(policy) &&
            evict_is_due(policy, stream_of(s, s->step_chats[i], 0)->live + (uint32_t)policy->before))
            return 1;
    }
    return 0;
}

int streams_score(struct streams *s, struct error *error)
{
    if (!is_scoring_due(s))
        return 0;
    parallel_for(s->threads, s->n_chats * s->n, 1, score_range, s);
    return streams_check(s, "scoring", error);
}

/* ---- Kept sets ---- */

/* What stays of a stream; of all heads of its layer by the sum of their scores, if the policy wants it so. */
static int32_t choose(const struct streams *s, int chat, int stream, struct streams_work *work)
{
    const struct evict_policy *policy = &s->chats[chat].policy;
    const kvf_stream *of = stream_of(s, chat, stream);
    const float *scores = channel_of(s, of, 0);
    kvf_protected guarded;
    uint32_t kept;

    evict_guard(policy, &guarded);
    if (policy->kind == EVICT_WINDOW || policy->kind == EVICT_STREAMING)
        scores = NULL; /* the oldest go */
    if (policy->per_layer && scores) {
        memcpy(work->scores, scores, of->rows * sizeof *scores);
        for (int head = 1; head < s->shape.kv_heads; head++) {
            const float *more = channel_of(s, of + head, 0);
            for (uint32_t slot = 0; slot < of->rows; slot++)
                work->scores[slot] += more[slot];
        }
        scores = work->scores;
    }
    return kvf_evict_keep_best(of, scores, &guarded, (uint32_t)policy->budget, work->keep, &kept, NULL);
}

/* What the last query had paid to what a stream is about to lose. */
static int32_t measure(const struct streams *s, int chat, int stream, const uint64_t *keep)
{
    const kvf_stream *of = stream_of(s, chat, stream);
    struct streams_cut *cut = &s->chats[chat].cuts[stream];
    float mass = 0;
    const int32_t status = kvf_evict_mass_of_row(of, metered(s, of), keep, &mass, NULL);

    cut->n++;
    cut->mass += (double)mass / (s->shape.heads / s->shape.kv_heads);
    return status;
}

/* The heads of a layer, one by one or together. */
static int32_t evict_layer(struct streams *s, int chat, int layer, struct streams_work *work)
{
    const struct evict_policy *policy = &s->chats[chat].policy;
    const int heads = s->shape.kv_heads;
    long long gone = 0;
    int32_t status = KVF_OK;

    for (int head = 0; head < heads && status == KVF_OK; head++) {
        const int stream = layer * heads + head;
        kvf_stream *of = stream_of(s, chat, stream);
        const uint32_t live = of->live;
        if (!policy->per_layer || head == 0) /* else their slots are the same, and so is what they keep */
            status = choose(s, chat, stream, work);
        if (status == KVF_OK && s->config.meter)
            status = measure(s, chat, stream, work->keep);
        if (status == KVF_OK)
            status = kvf_stream_retain(of, work->keep, NULL);
        gone += live - of->live;
    }
    atomic_fetch_add(&s->gone, gone);
    return status;
}

/* Items are (chat of the step, layer) pairs. */
static void evict_range(void *context, int first, int last, int worker, int before)
{
    struct streams *s = context;
    const int layers = s->shape.layers, heads = s->shape.kv_heads;

    for (int item = first; item < last; item++) {
        const int chat = s->step_chats[item / layers], layer = item % layers;
        const struct evict_policy *policy = &s->chats[chat].policy;
        if (policy->before == before && evict_is_due(policy, stream_of(s, chat, layer * heads)->live))
            streams_failed(s, evict_layer(s, chat, layer, &s->work[worker]), 0);
    }
}

static void evict_before(void *context, int first, int last, int worker)
{
    evict_range(context, first, last, worker, 1);
}

static void evict_after(void *context, int first, int last, int worker)
{
    evict_range(context, first, last, worker, 0);
}

int streams_evict(struct streams *s, int before, struct error *error)
{
    atomic_store(&s->gone, 0);
    parallel_for(s->threads, s->n_chats * s->shape.layers, 1, before ? evict_before : evict_after, s);
    s->evicted += atomic_load(&s->gone);
    return streams_check(s, "eviction", error);
}

/* ---- Holes ---- */

static int32_t close_holes(struct streams *s, int chat, int stream, struct streams_work *work, int *is_kernel)
{
    kvf_stream *of = stream_of(s, chat, stream);
    kvf_compaction report = { .struct_size = sizeof report };
    struct streams_row row;
    size_t n_runs, n = 0;
    int32_t status = kvf_stream_plan_compaction(of, 1, work->runs, (size_t)s->slots, &n_runs, &report, NULL);

    *is_kernel = 0;
    if (status != KVF_OK)
        return status;
    streams_row(s, chat, stream, &row);
    for (size_t i = 0; i < n_runs; i++) {
        const uint32_t page = of->page_tokens;
        for (uint32_t j = 0; j < work->runs[i].count; j++) {
            const uint32_t from = work->runs[i].from + j, to = work->runs[i].to + j;
            work->moves[n++] = (kvf_kernel_move){ (uint32_t)row.table.entries[from / page], from % page,
                                                  (uint32_t)row.table.entries[to / page], to % page };
        }
    }
    *is_kernel = 1;
    status = kvf_cpu_move_rows(&s->pages, work->moves, (uint32_t)n);
    if (status != KVF_KERNEL_OK)
        return status;
    *is_kernel = 0;
    atomic_fetch_add(&s->shifted, (long long)n);
    return kvf_stream_commit_compaction(of, 1, NULL);
}

static void tidy_range(void *context, int first, int last, int worker)
{
    struct streams *s = context;

    for (int item = first; item < last; item++) {
        const int chat = s->step_chats[item / s->n], stream = item % s->n;
        int is_kernel = 0;
        int32_t status;

        if (!evict_closes(&s->chats[chat].policy, stream_of(s, chat, stream)))
            continue;
        status = close_holes(s, chat, stream, &s->work[worker], &is_kernel);
        streams_failed(s, status, is_kernel);
    }
}

/* Takes pages without a live token out of a row, wherever they are, and out of what kernels read. */
static kvf_status drop_dead(struct streams *s, int chat, int stream)
{
    struct streams_chat *c = &s->chats[chat];
    const size_t columns = (size_t)s->config.columns;
    int32_t *table = s->tables + ((size_t)chat * (size_t)s->n + (size_t)stream) * columns;
    size_t n = 0, kept = 0, gone = 0;
    kvf_status status = kvf_stream_drop_dead_columns(&c->streams[stream], s->dead, columns, &n, NULL);

    if (status != KVF_OK || n == 0)
        return status;
    for (size_t column = 0; column < columns; column++) {
        if (gone < n && s->dead[gone] == column)
            gone++;
        else
            table[kept++] = table[column];
    }
    c->lengths[stream] -= (uint32_t)n * s->pages.page_tokens;
    return kvf_seq_remove_pages(s->kvf, c->sequences[stream], s->dead, n);
}

/* Pages behind the rows that are left are free from now on, and with holes those that have no live token. */
static int give_back(struct streams *s, int chat, struct error *error)
{
    struct streams_chat *c = &s->chats[chat];

    for (int stream = 0; stream < s->n; stream++) {
        kvf_status status = c->policy.removal == KVF_REMOVE_HOLE ? drop_dead(s, chat, stream) : KVF_OK;
        if (status == KVF_OK && c->streams[stream].rows != c->lengths[stream]) {
            c->lengths[stream] = c->streams[stream].rows;
            status = kvf_seq_truncate(s->kvf, c->sequences[stream], c->lengths[stream]);
        }
        if (status != KVF_OK)
            return fail(error, "kvfolio: giving pages back: %s", kvf_status_text(status));
    }
    return 0;
}

/* Whether holes of any stream of the step are to be closed. */
static int is_tidying_due(const struct streams *s)
{
    for (int item = 0; item < s->n_chats * s->n; item++) {
        const int chat = s->step_chats[item / s->n];
        if (evict_closes(&s->chats[chat].policy, stream_of(s, chat, item % s->n)))
            return 1;
    }
    return 0;
}

int streams_tidy(struct streams *s, struct error *error)
{
    atomic_store(&s->shifted, 0);
    if (is_tidying_due(s))
        parallel_for(s->threads, s->n_chats * s->n, 8, tidy_range, s);
    s->moved += atomic_load(&s->shifted);
    if (streams_check(s, "compaction", error) != 0)
        return -1;
    for (int i = 0; i < s->n_chats; i++) {
        if (give_back(s, s->step_chats[i], error) != 0)
            return -1;
    }
    return 0;
}

int streams_close_holes(struct streams *s, int chat, struct error *error)
{
    atomic_store(&s->shifted, 0);
    for (int stream = 0; stream < s->n; stream++) {
        int is_kernel = 0;
        streams_failed(s, close_holes(s, chat, stream, &s->work[0], &is_kernel), is_kernel);
    }
    s->moved += atomic_load(&s->shifted);
    return streams_check(s, "compaction", error) == 0 ? give_back(s, chat, error) : -1;
}
