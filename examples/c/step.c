/*
 * A step of the engine: all calls of kvfolio that it needs. (step_make.c makes the cache and reads its statistics.)
 *
 *     a new request   kvf_prefix_match, kvf_seq_open_ticket              open
 *     each step       kvf_plan_begin                                     begin
 *                     kvf_plan_add, once for each sequence               add
 *                     kvf_plan_finish, kvf_plan_copies,                  finish
 *                     kvf_table_slots, kvf_table_dense
 *                     the model: copies, then writes, then attention     engine_forward with kv_paged.c
 *                     kvf_plan_commit                                    commit
 *     n samples       kvf_seq_fork                                       fork
 *     at the end, or to make room for others:  kvf_seq_close             close
 *
 * kvfolio hands out page ids and slots; it never sees a key or a value. A drafted token that turns out wrong is one
 * that commit does not accept.
 */
#include "step_state.h"

#include "clock.h"

#include <stdlib.h>

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

static kvf_prompt prompt_of(const int32_t *tokens, int n)
{
    return (kvf_prompt){ .struct_size = sizeof(kvf_prompt), .n_tokens = (uint32_t)n,
                         .tokens = (const kvf_token *)tokens };
}

static int step_cached(struct cache *self, const int32_t *tokens, int n)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    const kvf_prompt prompt = prompt_of(tokens, n);
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
    const kvf_prompt prompt = prompt_of(tokens, n);
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
    s->seconds += clock_seconds() - start;
    return check(status, "beginning a plan", error);
}

static enum cache_answer step_add(struct cache *self, uint64_t sequence, const int32_t *tokens, int n, int wanted,
                                  struct error *error)
{
    struct step *s = (struct step *)self;
    double start;
    kvf_status status;

    if (s->n_sequences == s->config.max_sequences || n > s->config.max_rows - s->n_rows) {
        fail(error, "a step has at most %d sequences and %d tokens", s->config.max_sequences, s->config.max_rows);
        return CACHE_FAILED;
    }
    start = clock_seconds();
    status = kvf_plan_add(s->kvf, sequence, (uint32_t)n, (const kvf_token *)tokens, NULL);
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

/* Exports page tables as wide as the longest row. */
static kvf_status export_tables(struct step *s)
{
    size_t needed;
    uint32_t pages;

    s->stride = 1;
    for (int i = 0; i < s->n_sequences; i++) {
        const kvf_status status = kvf_seq_pages(s->kvf, s->sequences[i], 0, &pages);
        if (status != KVF_OK)
            return status;
        if ((int)pages > s->stride)
            s->stride = (int)pages;
    }
    needed = (size_t)s->n_sequences * (size_t)s->stride;
    if (needed > s->tables_cap) {
        int32_t *tables = realloc(s->tables, 2 * needed * sizeof *tables);
        if (!tables)
            return KVF_ERR_MEMORY;
        s->tables = tables;
        s->tables_cap = 2 * needed;
    }
    return kvf_table_dense(s->kvf, 0, s->sequences, (size_t)s->n_sequences, (uint32_t)s->stride, 0, s->tables,
                           s->tables_cap);
}

static int step_finish(struct cache *self, struct cache_batch *batch, struct error *error)
{
    struct step *s = (struct step *)self;
    const double start = clock_seconds();
    kvf_plan_report report = { .struct_size = sizeof report };
    kvf_status status = kvf_plan_finish(s->kvf, &report);
    size_t n_copies = 0, n_slots = 0;

    if (status == KVF_OK)
        status = kvf_plan_copies(s->kvf, s->copies, (size_t)s->config.max_sequences, &n_copies);
    if (status == KVF_OK)
        status = kvf_table_slots(s->kvf, 0, s->slots, s->positions, (size_t)s->config.max_rows, &n_slots);
    if (status == KVF_OK)
        status = export_tables(s);
    s->seconds += clock_seconds() - start;
    if (check(status, "finishing a plan", error) != 0)
        return -1;

    for (int i = 0; i < s->n_rows; i++)
        s->rows[i].position = s->positions[i];
    s->evicted += report.evicted;
    s->n_copies = (int)n_copies;
    for (size_t i = 0; i < n_copies; i++)
        s->kernel_copies[i] = (kvf_kernel_copy){ s->copies[i].source, s->copies[i].target, s->copies[i].tokens };
    kv_paged_set_batch(s->cache.kv, &(struct kv_paged_batch){
        .copies = s->kernel_copies, .n_copies = s->n_copies, .slots = s->slots, .tables = s->tables,
        .table_rows = s->n_sequences, .table_stride = s->stride,
    });
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
    .add = step_add, .finish = step_finish, .commit = step_commit, .abort = step_abort,
};
