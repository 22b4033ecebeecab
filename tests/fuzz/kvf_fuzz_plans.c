/* kvf_fuzz_plans.c - the calls that make and end plans, and what a finished plan must say */
#include <string.h>

#include "kvf_fuzz_calls.h"

enum { ROW = KVF_FUZZ_TOKENS, NEAR = 256 };

int kvf_fuzz_is_planned(const kvf_fuzz_world *world, kvf_seq handle)
{
    uint32_t i;
    for (i = 0; i < world->n_planned; i++)
        if (world->planned[i] == handle)
            return 1;
    return 0;
}

static kvf_status begin(kvf_fuzz_world *world, kvf_tick tick)
{
    kvf_status status = kvf_fuzz_advanced(world, tick, kvf_plan_begin(world->cache, tick));
    if (status == KVF_OK)
        world->plan = KVF_FUZZ_BUILDING;
    return status;
}

/* A list of another length than the count cannot be said in this interface. */
static kvf_status add(kvf_fuzz_world *world, const kvf_fuzz_op *op, kvf_shortage *shortage)
{
    kvf_seq seq = world->sequences[op->seq].handle;
    kvf_status status;

    if (op->has_tokens && op->n_tokens != op->count)
        return KVF_ERR_ARGUMENT;
    status = kvf_plan_add(world->cache, seq, op->count, op->has_tokens ? op->tokens : NULL, shortage);
    if (status == KVF_OK) {
        world->planned[world->n_planned] = seq;
        world->counts[world->n_planned++] = op->count;
    }
    return status;
}

/* The pool of a copy's target: a seal takes a page from one pool to another. */
static uint32_t target_pool(const kvf_group_config *group, const kvf_page_copy *copy)
{
    return copy->seals ? group->sealed_pool - 1 : group->pool;
}

/* Copies are between pages of one pool, or full ones to the sealed pool, and never onto a source. */
static void check_copies(kvf_fuzz_world *world)
{
    static kvf_page_copy copies[ROW];
    const kvf_config *config = &world->spec->config;
    size_t n = 0, i, k;

    if (world->report.copies > ROW)
        return;
    kvf_fuzz_must(world, kvf_plan_copies(world->cache, copies, ROW, &n) == KVF_OK && n == world->report.copies,
                  "a finished plan lists its copies");
    for (i = 0; i < n; i++) {
        const kvf_group_config *group = &config->groups[copies[i].group % config->n_groups];
        uint32_t pages = config->pools[group->pool].pages;

        kvf_fuzz_must(world, copies[i].group < config->n_groups && copies[i].seals <= (group->sealed_pool != 0),
                      "a copy is of a group, and seals where pages are sealed");
        if (world->fault != NULL)
            return;
        kvf_fuzz_must(world, copies[i].source >= 1 && copies[i].source <= pages && copies[i].target >= 1 &&
                      copies[i].target <= config->pools[target_pool(group, &copies[i])].pages,
                      "a copy is between pages of its group");
        kvf_fuzz_must(world, copies[i].tokens >= 1 && copies[i].tokens <= group->page_tokens &&
                      (!copies[i].seals || copies[i].tokens == group->page_tokens), "a copy is of 1 to P tokens");
    }
    for (i = 0; i < n && world->fault == NULL; i++)
        for (k = 0; k < n && k < NEAR; k++)
            kvf_fuzz_must(world, copies[k].source != copies[i].target || config->groups[copies[k].group].pool !=
                          target_pool(&config->groups[copies[i].group], &copies[i]), "no copy overwrites a source");
}

/* Each token has a slot of its own, at the offset that its position says. */
static void check_slots(kvf_fuzz_world *world, uint32_t index)
{
    static int64_t slots[ROW];
    static int32_t positions[ROW];
    const kvf_group_config *group = &world->spec->config.groups[index];
    uint32_t pages = world->spec->config.pools[group->pool].pages, tokens = group->page_tokens;
    size_t n = 0, i, k;

    if (world->report.tokens > ROW)
        return;
    kvf_fuzz_must(world, kvf_table_slots(world->cache, index, slots, positions, ROW, &n) == KVF_OK &&
                  n == world->report.tokens, "a finished plan has a slot for each token");
    kvf_fuzz_must(world, n == ROW || (slots[n] == -1 && positions[n] == 0 && slots[ROW - 1] == -1),
                  "behind the tokens slots say: do not write");
    for (i = 0; i < n && world->fault == NULL; i++) {
        kvf_fuzz_must(world, slots[i] >= tokens && (uint64_t)slots[i] / tokens <= pages, "a slot is in a page");
        kvf_fuzz_must(world, (uint64_t)slots[i] % tokens == (uint32_t)positions[i] % tokens,
                      "a slot is at its position's offset");
        for (k = i > NEAR ? i - NEAR : 0; k < i; k++)
            kvf_fuzz_must(world, slots[k] != slots[i], "no two tokens share a slot");
    }
}

static kvf_status finish(kvf_fuzz_world *world)
{
    kvf_plan_report report;
    kvf_status status;
    uint32_t tokens = 0, i;

    memset(&report, 0, sizeof report);
    report.struct_size = sizeof report;
    status = kvf_plan_finish(world->cache, &report);
    if (status != KVF_OK)
        return status;
    world->plan = KVF_FUZZ_FINISHED;
    world->report = report;
    for (i = 0; i < world->n_planned; i++)
        tokens += world->counts[i];
    kvf_fuzz_must(world, report.sequences == world->n_planned && report.tokens == tokens,
                  "a finished plan has what was added");
    check_copies(world);
    for (i = 0; i < world->spec->config.n_groups; i++)
        check_slots(world, i);
    return status;
}

/* Closes that waited for the plan have been carried out. */
static kvf_status ended(kvf_fuzz_world *world, kvf_status status)
{
    uint32_t i;

    if (status != KVF_OK)
        return status;
    world->plan = KVF_FUZZ_IDLE;
    world->n_planned = 0;
    for (i = 0; i < KVF_FUZZ_LABELS; i++) {
        world->sequences[i].live &= !world->sequences[i].closing;
        world->sequences[i].closing = 0;
    }
    return status;
}

/* The last entry stands for the rest of the plan, and without any everything is accepted. */
static kvf_status commit(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    static const kvf_fuzz_accept all = {{0, 0}, {0, 0}, 0, 0, 0};
    kvf_accept accepts[KVF_FUZZ_ACCEPTS];
    uint32_t n = op->n_accepts > world->n_planned ? op->n_accepts : world->n_planned, i;

    for (i = 0; i < n; i++) {
        uint32_t from = i < op->n_accepts ? i : op->n_accepts - 1;
        const kvf_fuzz_accept *accept = op->n_accepts == 0 ? &all : &op->accepts[from];
        uint32_t count = i < world->n_planned ? world->counts[i] : 0;
        accepts[i].accepted = accept->accepted.some ? accept->accepted.value : count;
        accepts[i].verified = accept->verified.some ? accept->verified.value : accepts[i].accepted;
        accepts[i].tokens = accept->has_tokens ? op->tokens + accept->first : NULL;
        if (accept->has_tokens && accept->n_tokens != accepts[i].accepted && world->plan == KVF_FUZZ_FINISHED)
            return KVF_ERR_ARGUMENT; /* it cannot be said in this interface */
    }
    return ended(world, kvf_plan_commit(world->cache, accepts, n));
}

/* A plan of one sequence up to finish. */
static kvf_status reserve(kvf_fuzz_world *world, const kvf_fuzz_op *op, kvf_shortage *shortage)
{
    kvf_status status = begin(world, world->tick);

    if (status != KVF_OK)
        return status;
    status = add(world, op, shortage);
    if (status == KVF_OK)
        return finish(world);
    kvf_fuzz_must(world, ended(world, kvf_plan_cancel(world->cache)) == KVF_OK,
                  "a plan that is built can be cancelled");
    return status;
}

kvf_status kvf_fuzz_plan_call(kvf_fuzz_world *world, const kvf_fuzz_op *op, kvf_tick tick, kvf_shortage *shortage)
{
    switch (op->kind) {
    case KVF_FUZZ_BEGIN: return begin(world, tick);
    case KVF_FUZZ_ADD: return add(world, op, shortage);
    case KVF_FUZZ_FINISH: return finish(world);
    case KVF_FUZZ_CANCEL: return ended(world, kvf_plan_cancel(world->cache));
    case KVF_FUZZ_ABORT: return ended(world, kvf_plan_abort(world->cache));
    case KVF_FUZZ_COMMIT: return commit(world, op);
    case KVF_FUZZ_RESERVE: return reserve(world, op, shortage);
    default:
        return kvf_seq_append(world->cache, world->sequences[op->seq].handle, op->tokens, op->n_tokens, NULL, shortage);
    }
}
