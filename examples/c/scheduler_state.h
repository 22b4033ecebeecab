/* The scheduler's inside: scheduler.c has requests and what the model says, scheduler_plan.c who gets room. */
#ifndef ENGINE_SCHEDULER_STATE_H
#define ENGINE_SCHEDULER_STATE_H

#include "scheduler.h"

struct scheduler {
    struct scheduler_config config;
    const struct model *model;
    struct engine *engine;
    struct cache *cache;
    struct sampler *sampler;
    float *logits;             /* [max_running * (1 + draft)][vocab] */
    struct request **requests; /* [n_requests], by id: the oldest first */
    int n_requests;
    int n_running;
    struct request **plan;     /* [max_running] the step at hand, in the order of add */
    int *first_logits;         /* [max_running] first row of logits of each */
    int32_t *accepted;         /* [max_running] */
    int n_plan;
    struct scheduler_counts counts;
};

/* Moves a request into the cache, where it has `len` tokens. */
void scheduler_enter(struct scheduler *s, struct request *r, uint64_t sequence, int len);

/* Takes a running request out of the cache. */
int scheduler_leave(struct scheduler *s, struct request *r, enum request_state next, struct error *error);

/* Gives up a request that could not even run alone. */
int scheduler_give_up(struct scheduler *s, struct request *r, struct error *error);

/* Admits waiting requests, the oldest first; one that waits for a prefix does not hold up those behind it. */
int scheduler_admit(struct scheduler *s, struct error *error);

/* Fills the plan of a step that has begun. */
int scheduler_plan(struct scheduler *s, struct error *error);

#endif
