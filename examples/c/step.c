/*
 * A step of the engine: all calls of kvfolio that it needs. (step_groups.c has those for each group of layers;
 * step_make.c makes the cache and reads its statistics.)
 *
 *     a new request   kvf_prefix_match, kvf_seq_open_ticket              open
 *     each step       kvf_plan_begin                                     begin
 *                     kvf_plan_add, once for each sequence,              add
 *                     kvf_plan_seal for pages that are due
 *                     kvf_plan_finish, kvf_plan_copies,                  finish
 *                     kvf_table_slots, kvf_table_dense
 *                     the model: copies, seals, writes, then attention   engine_forward with kv_paged.c
 *                     kvf_plan_commit                                    commit
 *     n samples       kvf_seq_fork                                       fork
 *     at the end, or to make room for others:  kvf_seq_close             close
 *
 * kvfolio hands out page ids and slots; it never sees a key or a value. A drafted token that turns out wrong is one
 * that commit does not accept.
 */
#include "step_state.h"

#include "clock.h"

/* What the engine does about a status. */
static enum cache_answer answer(kvf_status status, const char *what, struct error *error)
{
    switch (status) {
    case KVF_OK:
        return CACHE_OK;
    case KVF_RETRY:
        return CACHE_RETRY;
    case KVF_PENDING:
        return CACHE_PENDING;
    case KVF_NEVER:
        return CACHE_NEVER;
    default:
        fail(error, "kvfolio: %s: %s (%s)", what, kvf_status_text(status), kvf_status_name(status));
        return CACHE_FAILED;
    }
}

static int check(kvf_status status, const char *what, struct error *error)
{
    if (answer(status, what, error) == CACHE_OK)
        return 0;
    return status == KVF_RETRY || status == KVF_PENDING || status == KVF_NEVER
               ? fail(error, "kvfolio: %s: %s", what, kvf_status_text(status))
               : -1;
}

/* ---- A request begins ---- */

static kvf_prompt prompt_of(const struct step *s, const int32_t *tokens, int n)
{
    return (kvf_prompt){ .struct_size = sizeof(kvf_prompt), .n_tokens = (uint32_t)n,
                         .tokens = (const kvf_token *)tokens, .ns = s->ns };
}

static int step_cached(struct cache *self, const int32_t *tokens, int n)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    const kvf_prompt prompt = prompt_of(s, tokens, n);
    uint32_t hit = 0;

    kvf_prefix_lookup(s->kvf, &prompt, (uint32_t)n - 1, &hit);
    s->seconds += clock_seconds() - start;
    return (int)hit;
}

/* The last token is always computed, since its logits are wanted: so a match is asked for one token less. */
static enum cache_answer step_open(struct cache *self, const int32_t *tokens, int n, uint64_t *sequence, int *hit,
                                   struct error *error)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    const kvf_prompt prompt = prompt_of(s, tokens, n);
    kvf_ticket ticket;
    uint32_t found;
    kvf_status status = kvf_prefix_match(s->kvf, &prompt, (uint32_t)n - 1, KVF_NO_DEADLINE, &ticket, &found, NULL);

    if (status == KVF_OK) {
        status = kvf_seq_open_ticket(s->kvf, ticket, NULL, sequence, NULL);
        if (status == KVF_OK)
            *hit = (int)found;
        else
            kvf_prefix_drop(s->kvf, ticket);
    }
    s->seconds += clock_seconds() - start;
    return answer(status, "opening a sequence", error);
}

static enum cache_answer step_fork(struct cache *self, uint64_t sequence, uint64_t *children, int n,
                                   struct error *error)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    kvf_seq_info info = { .struct_size = sizeof info };
    kvf_status status = kvf_seq_info_read(s->kvf, sequence, &info);

    if (status == KVF_OK)
        status = kvf_seq_fork(s->kvf, sequence, info.len, children, (size_t)n, NULL);
    s->seconds += clock_seconds() - start;
    return answer(status, "forking a sequence", error);
}

/* ---- A step ---- */

static int step_begin(struct cache *self, struct error *error)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    const kvf_status status = kvf_plan_begin(s->kvf, ++s->tick);

    s->n_sequences = s->n_rows = 0;
    for (int g = 0; g < s->groups.n; g++)
        s->parts[g].promised = 0;
    s->seconds += clock_seconds() - start;
    return check(status, "beginning a plan", error);
}

/* Tokens of a sequence: the position of its next one. */
static int length_of(const struct step *s, kvf_seq sequence)
{
    kvf_seq_info info = { .struct_size = sizeof info };
    return kvf_seq_info_read(s->kvf, sequence, &info) == KVF_OK ? (int)info.len : 0;
}

static int step_run(struct cache *self, uint64_t sequence, int n)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    const int run = kv_groups_run(&s->groups, length_of(s, sequence), n);

    s->seconds += clock_seconds() - start;
    return run;
}

static enum cache_answer step_add(struct cache *self, uint64_t sequence, const int32_t *tokens, int n, int wanted,
                                  struct error *error)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    const int len = length_of(s, sequence);
    kvf_status status;

    if (s->n_sequences == s->config.max_sequences || n > s->config.max_rows - s->n_rows) {
        fail(error, "a step has at most %d sequences and %d tokens", s->config.max_sequences, s->config.max_rows);
        return CACHE_FAILED;
    }
    if (n > kv_groups_run(&s->groups, len, n)) {
        fail(error, "%d tokens at once do not read the same pages as sealed", n);
        return CACHE_FAILED;
    }
    status = step_can_seal(s, sequence, len)
                 ? kvf_plan_add(s->kvf, sequence, (uint32_t)n, (const kvf_token *)tokens, NULL) : KVF_RETRY;
    if (status == KVF_OK && step_seal(s, sequence, len) != KVF_OK)
        status = KVF_ERR_INTERNAL; /* there was room for it */
    s->seconds += clock_seconds() - start;
    if (status != KVF_OK)
        return answer(status, "adding to a plan", error);

    for (int i = 0; i < n; i++) {
        s->tokens[s->n_rows] = tokens[i];
        s->rows[s->n_rows++] = (struct row_desc){ .sequence = s->n_sequences, .want_logits = i >= n - wanted };
    }
    s->sequences[s->n_sequences++] = sequence;
    return CACHE_OK;
}

static int step_finish(struct cache *self, struct cache_batch *batch, struct error *error)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    kvf_plan_report report = { .struct_size = sizeof report };
    kvf_status status = kvf_plan_finish(s->kvf, &report);

    if (status == KVF_OK)
        status = step_export(s);
    s->seconds += clock_seconds() - start;
    if (check(status, "finishing a plan", error) != 0)
        return -1;

    for (int i = 0; i < s->n_rows; i++)
        s->rows[i].position = s->positions[i];
    s->evicted += report.evicted;
    kv_paged_set_batch(s->cache.kv, &(struct kv_paged_batch){ s->kernel_parts, s->n_sequences });
    *batch = (struct cache_batch){ s->tokens, s->rows, s->n_rows };
    return 0;
}

/* Every accepted token is final here; an engine that accepts before it knows the results would verify fewer. */
static int step_commit(struct cache *self, const int32_t *accepted, struct error *error)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    kvf_status status;

    for (int i = 0; i < s->n_sequences; i++)
        s->accepts[i] = (kvf_accept){ .accepted = (uint32_t)accepted[i], .verified = (uint32_t)accepted[i] };
    status = kvf_plan_commit(s->kvf, s->accepts, (size_t)s->n_sequences);
    s->seconds += clock_seconds() - start;
    return check(status, "committing a plan", error);
}

static void step_abort(struct cache *self)
{
    struct step *s = (struct step *)self;
    if (kvf_plan_cancel(s->kvf) != KVF_OK)
        kvf_plan_abort(s->kvf);
}

/* ---- A request ends ---- */

static int step_close(struct cache *self, uint64_t sequence, enum cache_close how, struct error *error)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    const kvf_status status = kvf_seq_close(s->kvf, sequence,
                                            how == CACHE_KEEP ? KVF_CLOSE_KEEP : KVF_CLOSE_DISCARD);
    s->seconds += clock_seconds() - start;
    return check(status, "closing a sequence", error);
}

const struct cache step_calls = {
    .cached = step_cached, .open = step_open, .fork = step_fork, .close = step_close, .begin = step_begin,
    .run = step_run, .add = step_add, .finish = step_finish, .commit = step_commit, .abort = step_abort,
};
