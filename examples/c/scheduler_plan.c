/* Who gets room: admission, the plan of a step, and who gives way when pages are short. */
#include "scheduler_state.h"

#include "draft.h"

/* ---- Admission ---- */

/* Returns 1 iff a running request is about to compute a longer beginning of r than the cache has now. */
static int worth_waiting(struct scheduler *s, const struct request *r)
{
    const int page = s->config.page_tokens;

    for (int i = 0; i < s->n_requests && page > 0; i++) {
        const struct request *other = s->requests[i];
        const int most = (r->n_tokens - 1 < other->n_tokens ? r->n_tokens - 1 : other->n_tokens) / page * page;
        int common = 0;
        if (other->state != REQUEST_RUNNING)
            continue;
        while (common < most && r->tokens[common] == other->tokens[common])
            common++;
        common = common / page * page;
        if (common > other->len && common > s->cache->cached(s->cache, r->tokens, r->n_tokens))
            return 1;
    }
    return 0;
}

/* Tokens, in whole pages, that running requests are still going to need for what they have. */
static int promised(const struct scheduler *s)
{
    const int page = s->config.page_tokens > 0 ? s->config.page_tokens : 1;
    int tokens = 0;

    for (int i = 0; i < s->n_requests; i++) {
        const struct request *r = s->requests[i];
        if (r->state == REQUEST_RUNNING)
            tokens += (r->n_tokens + 1 + page - 1) / page * page - r->len / page * page;
    }
    return s->config.page_tokens > 0 ? tokens : 0;
}

int scheduler_admit(struct scheduler *s, struct error *error)
{
    for (int i = 0; i < s->n_requests && s->n_running < s->config.max_running; i++) {
        struct request *r = s->requests[i];
        enum cache_answer answer;
        uint64_t sequence;
        int hit;

        if (r->state != REQUEST_WAITING || worth_waiting(s, r))
            continue;
        answer = s->cache->open(s->cache, r->tokens, r->n_tokens, &sequence, &hit, error);
        if (answer == CACHE_FAILED)
            return -1;
        if (answer == CACHE_NEVER || (answer == CACHE_RETRY && s->n_running == 0)) {
            if (scheduler_give_up(s, r, error) != 0)
                return -1;
            continue;
        }
        if (answer != CACHE_OK)
            break;
        if (s->n_running > 0 && !s->cache->has_room(s->cache, hit, r->n_tokens + 1 + promised(s))) {
            if (s->cache->close(s->cache, sequence, CACHE_KEEP, error) != 0)
                return -1;
            break;
        }
        if (r->admitted == 0)
            r->hit = hit;
        s->counts.hit_tokens += hit;
        scheduler_enter(s, r, sequence, hit);
    }
    return 0;
}

/* ---- The plan ---- */

/* The youngest running request younger than r that is not in the plan, NULL if there is none. */
static struct request *victim_for(const struct scheduler *s, const struct request *r)
{
    for (int i = s->n_requests - 1; i > r->id; i--) {
        if (s->requests[i]->state == REQUEST_RUNNING && s->requests[i]->planned < 0)
            return s->requests[i];
    }
    return NULL;
}

/*
 * Adds r with its next tokens, as many as a step may take, and drafts if they fit; makes room by sending younger
 * requests back to wait.
 */
static int plan_request(struct scheduler *s, struct request *r, int count, int drafts, struct error *error)
{
    const int most = s->cache->run(s->cache, r->sequence, count + drafts);
    int completes;

    count = count < most ? count : most;
    drafts = drafts < most - count ? drafts : most - count;
    completes = r->len + count == r->n_tokens;
    for (;;) {
        struct request *victim;
        const enum cache_answer answer = s->cache->add(s->cache, r->sequence, r->tokens + r->len, count + drafts,
                                                       completes ? 1 + drafts : 0, error);
        if (answer == CACHE_OK) {
            r->planned = s->n_plan;
            r->count = count;
            r->drafted = drafts;
            s->plan[s->n_plan++] = r;
            return 0;
        }
        if (answer == CACHE_FAILED)
            return -1;
        if (drafts > 0) {
            drafts = 0; /* drafts are a luxury */
            continue;
        }
        if (answer == CACHE_NEVER)
            return scheduler_give_up(s, r, error);
        if (answer == CACHE_PENDING)
            return 0; /* it comes without anybody's loss: wait */
        victim = victim_for(s, r);
        if (!victim)
            return s->n_running > 1 ? 0 : scheduler_give_up(s, r, error); /* its turn comes when older ones end */
        s->counts.preempted++;
        if (scheduler_leave(s, victim, REQUEST_WAITING, error) != 0)
            return -1;
    }
}

/* Drafts for a request that is generating, at most as many as it may still make; none where it will be forked. */
static int draft_for(const struct scheduler *s, struct request *r)
{
    const int left = r->n_prompt + r->max_new - r->n_tokens - 1;
    const int k = s->config.draft < left ? s->config.draft : left;

    return k > 0 && r->samples == 1 ? draft_lookup(r->tokens, r->n_tokens, k, r->tokens + r->n_tokens) : 0;
}

int scheduler_plan(struct scheduler *s, struct error *error)
{
    int budget = s->config.chunk;

    s->n_plan = 0;
    for (int i = 0; i < s->n_requests; i++)
        s->requests[i]->planned = -1;
    for (int i = 0; i < s->n_requests; i++) {
        struct request *r = s->requests[i];
        if (r->state == REQUEST_RUNNING && r->len + 1 == r->n_tokens &&
            plan_request(s, r, 1, draft_for(s, r), error) != 0)
            return -1;
    }
    for (int i = 0; i < s->n_requests && budget > 0; i++) {
        struct request *r = s->requests[i];
        const int left = r->n_tokens - r->len;
        if (r->state != REQUEST_RUNNING || r->planned >= 0 || left < 2)
            continue;
        if (plan_request(s, r, left < budget ? left : budget, 0, error) != 0)
            return -1;
        if (r->planned >= 0)
            budget -= r->count;
    }
    return 0;
}
