/* Continuous batching: requests, steps, and what the model says. */
#include "scheduler_state.h"

#include "clock.h"

#include <stdlib.h>
#include <string.h>

int scheduler_rows(const struct scheduler_config *config)
{
    return config->max_running * (1 + config->draft) + config->chunk;
}

struct scheduler *scheduler_new(const struct scheduler_config *config, const struct model *model,
                                struct engine *engine, struct cache *cache, struct error *error)
{
    const size_t n = (size_t)config->max_running;
    const size_t logits = n * (size_t)(1 + config->draft) * (size_t)model->shape.vocab;
    struct scheduler *s = calloc(1, sizeof *s);

    if (s) {
        s->config = *config;
        s->model = model;
        s->engine = engine;
        s->cache = cache;
        s->sampler = sampler_new(model->shape.vocab, error);
        s->logits = malloc(logits * sizeof *s->logits);
        s->plan = calloc(n, sizeof *s->plan);
        s->first_logits = calloc(n, sizeof *s->first_logits);
        s->accepted = calloc(n, sizeof *s->accepted);
        if (s->sampler && s->logits && s->plan && s->first_logits && s->accepted)
            return s;
    }
    scheduler_free(s);
    fail(error, "out of memory for %d requests at a time", config->max_running);
    return NULL;
}

void scheduler_free(struct scheduler *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_requests; i++) {
        free(s->requests[i]->tokens);
        free(s->requests[i]);
    }
    free(s->requests);
    sampler_free(s->sampler);
    free(s->logits);
    free(s->plan);
    free(s->first_logits);
    free(s->accepted);
    free(s);
}

/* ---- Requests ---- */

static struct request *new_request(struct scheduler *s, const int32_t *tokens, int n, int max_new)
{
    const size_t room = (size_t)n + (size_t)max_new + (size_t)s->config.draft + 1;
    struct request **all = realloc(s->requests, ((size_t)s->n_requests + 1) * sizeof *all);
    struct request *r = calloc(1, sizeof *r);

    if (all)
        s->requests = all;
    if (r)
        r->tokens = malloc(room * sizeof *r->tokens);
    if (!all || !r || !r->tokens) {
        free(r);
        return NULL;
    }
    memcpy(r->tokens, tokens, (size_t)n * sizeof *tokens);
    r->id = r->prompt_id = s->n_requests;
    r->n_prompt = r->n_tokens = n;
    r->max_new = max_new;
    r->samples = 1;
    r->planned = -1;
    s->requests[s->n_requests++] = r;
    return r;
}

int scheduler_submit(struct scheduler *s, const int32_t *tokens, int n, int max_new, int samples,
                     const struct sampling *sampling, struct error *error)
{
    struct request *r;

    if (n < 1)
        return fail(error, "an empty prompt");
    if (n >= s->config.context)
        return fail(error, "the prompt has %d tokens, the model reads at most %d", n, s->config.context - 1);
    if (max_new > s->config.context - n)
        max_new = s->config.context - n;
    r = new_request(s, tokens, n, max_new);
    if (!r)
        return fail(error, "out of memory for a request");
    r->samples = samples;
    r->sampling = *sampling;
    return r->id;
}

const struct request *scheduler_request(const struct scheduler *s, int id)
{
    return s->requests[id];
}

int scheduler_requests(const struct scheduler *s)
{
    return s->n_requests;
}

const struct scheduler_counts *scheduler_counts(const struct scheduler *s)
{
    return &s->counts;
}

static void tell(const struct scheduler *s, const struct request *r, int32_t token)
{
    if (s->config.on_token)
        s->config.on_token(s->config.user, r, token);
}

int scheduler_leave(struct scheduler *s, struct request *r, enum request_state next, struct error *error)
{
    r->state = next;
    r->len = 0;
    s->n_running--;
    if (next == REQUEST_DONE)
        tell(s, r, -1);
    return s->cache->close(s->cache, r->sequence, CACHE_KEEP, error);
}

int scheduler_give_up(struct scheduler *s, struct request *r, struct error *error)
{
    r->end = END_NO_ROOM;
    if (r->state == REQUEST_RUNNING)
        return scheduler_leave(s, r, REQUEST_DONE, error);
    r->state = REQUEST_DONE;
    tell(s, r, -1);
    return 0;
}

void scheduler_enter(struct scheduler *s, struct request *r, uint64_t sequence, int len)
{
    r->state = REQUEST_RUNNING;
    r->sequence = sequence;
    r->len = len;
    r->admitted++;
    if (++s->n_running > s->counts.most_running)
        s->counts.most_running = s->n_running;
}

/* ---- What the model said ---- */

/* Takes the next token of r from a row of logits. */
static int32_t take(struct scheduler *s, struct request *r, int row)
{
    const float *logits = s->logits + (size_t)row * (size_t)s->model->shape.vocab;
    const int32_t token = sampler_draw(s->sampler, logits, &r->sampling, (uint64_t)r->n_tokens);

    r->tokens[r->n_tokens++] = token;
    s->counts.made_tokens++;
    if (token == s->config.end)
        r->end = END_TOKEN;
    else if (r->n_tokens - r->n_prompt >= r->max_new)
        r->end = END_LENGTH;
    tell(s, r, token);
    return token;
}

/* Takes tokens as long as they are the drafted ones, and one more. Returns the tokens that the cache shall keep. */
static int accept(struct scheduler *s, struct request *r, int row)
{
    int kept = r->count;

    if (r->len + r->count < r->n_tokens)
        return kept;
    for (int i = 0;; i++, kept++) {
        const int32_t draft = i < r->drafted ? r->tokens[r->n_tokens] : -1;
        if (take(s, r, row + i) != draft || r->end != END_NONE)
            break;
    }
    s->counts.drafted += r->drafted;
    s->counts.accepted += kept - r->count;
    return kept;
}

/* Makes the other samples of r from the prompt just computed; those for which there is no place will wait. */
static int fork_samples(struct scheduler *s, struct request *r, int row, struct error *error)
{
    const int n = r->samples - 1;
    const int fits = s->n_running + n <= s->config.max_running;
    uint64_t *children = calloc((size_t)n, sizeof *children);
    const enum cache_answer answer = !children ? CACHE_FAILED
                                     : fits    ? s->cache->fork(s->cache, r->sequence, children, n, error)
                                               : CACHE_RETRY;
    int status = answer != CACHE_FAILED ? 0 : children ? -1 : fail(error, "out of memory for %d samples", n);

    for (int i = 0; i < n && status == 0; i++) {
        struct request *child = new_request(s, r->tokens, r->n_prompt, r->max_new);
        if (!child) {
            status = fail(error, "out of memory for a sample");
            break;
        }
        child->prompt_id = r->id;
        child->sample = i + 1;
        child->sampling = r->sampling;
        child->sampling.seed += (uint64_t)child->sample;
        if (answer != CACHE_OK)
            continue;
        child->hit = r->n_prompt;
        scheduler_enter(s, child, children[i], r->n_prompt);
        s->counts.hit_tokens += r->n_prompt;
        s->counts.forked++;
        take(s, child, row);
        if (child->end != END_NONE)
            status = scheduler_leave(s, child, REQUEST_DONE, error);
    }
    free(children);
    r->samples = 1;
    return status;
}

static int run_plan(struct scheduler *s, struct error *error)
{
    struct cache_batch batch;
    int row = 0;

    if (s->cache->finish(s->cache, &batch, error) != 0)
        return -1;
    if (engine_forward(s->engine, s->cache->kv, batch.tokens, batch.rows, batch.n, s->logits, error) != 0) {
        s->cache->abort(s->cache);
        return -1;
    }
    for (int i = 0; i < s->n_plan; i++) {
        struct request *r = s->plan[i];
        const int completes = r->len + r->count == r->n_tokens;
        s->first_logits[i] = row;
        s->accepted[i] = accept(s, r, row);
        s->counts.computed_tokens += s->accepted[i];
        row += completes ? 1 + r->drafted : 0;
    }
    if (s->cache->commit(s->cache, s->accepted, error) != 0)
        return -1;
    for (int i = 0; i < s->n_plan; i++) {
        struct request *r = s->plan[i];
        r->len += s->accepted[i];
        if (r->samples > 1 && r->len >= r->n_prompt && fork_samples(s, r, s->first_logits[i], error) != 0)
            return -1;
        if (r->end != END_NONE && scheduler_leave(s, r, REQUEST_DONE, error) != 0)
            return -1;
    }
    return 0;
}

int scheduler_step(struct scheduler *s, struct error *error)
{
    const double start = clock_seconds();
    int left = 0;

    if (scheduler_admit(s, error) != 0 || s->cache->begin(s->cache, error) != 0)
        return -1;
    if (scheduler_plan(s, error) != 0) {
        s->cache->abort(s->cache);
        return -1;
    }
    if (s->n_plan == 0)
        s->cache->abort(s->cache);
    else if (run_plan(s, error) != 0)
        return -1;
    s->counts.steps += s->n_plan > 0;
    s->counts.seconds += clock_seconds() - start;
    for (int i = 0; i < s->n_requests; i++)
        left |= s->requests[i]->state != REQUEST_DONE;
    return left;
}
