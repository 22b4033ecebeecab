/*
 * Continuous batching: many requests over one model and one cache.
 *
 * Each step takes one token of every request that is generating, with drafts behind it, and up to `chunk` tokens of
 * prompts. Requests wait until the cache has room; when it runs short, the youngest gives its place up and begins
 * again later, with what is still cached of it.
 */
#ifndef ENGINE_SCHEDULER_H
#define ENGINE_SCHEDULER_H

#include "cache.h"
#include "forward.h"
#include "sampler.h"

enum request_state { REQUEST_WAITING, REQUEST_RUNNING, REQUEST_DONE };

enum request_end {
    END_NONE,
    END_TOKEN,   /* the model ended its turn */
    END_LENGTH,  /* max_new tokens were made, or the model's context is full */
    END_NO_ROOM  /* the cache could not hold it even alone */
};

/* One text in the making. The first fields are the scheduler's answer to scheduler_submit. */
struct request {
    int id;        /* from 0, in the order of submission; samples of one prompt follow the first */
    int sample;    /* 0 for the first of its prompt */
    int prompt_id; /* id of the first sample */
    enum request_state state;
    enum request_end end;

    int32_t *tokens; /* prompt, then what was made */
    int n_prompt, n_tokens;
    int max_new;
    int samples;     /* texts to make of this prompt; forks when the prompt is computed */
    struct sampling sampling;

    uint64_t sequence;
    int len;         /* tokens in the cache */
    int hit;         /* tokens that the cache had when it was first admitted */
    int admitted;    /* times */

    int planned;     /* place in the step at hand, -1 if none */
    int count;       /* tokens in it */
    int drafted;     /* of these, drafts */
};

struct scheduler_config {
    int max_running; /* requests at a time */
    int chunk;       /* prompt tokens a step */
    int draft;       /* drafted tokens a request and step, 0 = none */
    int context;     /* positions */
    int page_tokens; /* prefixes are shared in whole pages; 0 = not at all */
    int32_t end;     /* the token that ends a turn, -1 if none */

    /* Called for every token made, and once with -1 when the request is done. */
    void (*on_token)(void *user, const struct request *request, int32_t token);
    void *user;
};

struct scheduler_counts {
    long long steps;
    long long hit_tokens;      /* tokens that were not computed because the cache had them */
    long long computed_tokens; /* tokens computed and kept */
    long long made_tokens;
    long long drafted, accepted;
    long long preempted, forked;
    int most_running;
    double seconds;            /* of steps */
};

struct scheduler;

/* Model, engine and cache are borrowed; the engine takes scheduler_rows(config) rows. NULL and a reason on failure. */
struct scheduler *scheduler_new(const struct scheduler_config *config, const struct model *model,
                                struct engine *engine, struct cache *cache, struct error *error);
void scheduler_free(struct scheduler *scheduler);

/* Rows of the largest step. */
int scheduler_rows(const struct scheduler_config *config);

/* Adds a request; the tokens are copied. Returns its id, -1 if it can never be served. */
int scheduler_submit(struct scheduler *scheduler, const int32_t *tokens, int n, int max_new, int samples,
                     const struct sampling *sampling, struct error *error);

/* Does one step. Returns 1 while requests are left, 0 when all are done, -1 on failure. */
int scheduler_step(struct scheduler *scheduler, struct error *error);

/* Request `id`, valid until the next call. */
const struct request *scheduler_request(const struct scheduler *scheduler, int id);
int scheduler_requests(const struct scheduler *scheduler);

const struct scheduler_counts *scheduler_counts(const struct scheduler *scheduler);

#endif
