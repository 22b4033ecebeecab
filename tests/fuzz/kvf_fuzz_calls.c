/*
 * kvf_fuzz_calls.c - the call of each op
 *
 * Handles that a call gives begin as KVF_FUZZ_UNSET, and must still be that after a refusal: a call that fails writes nothing.
 */
#include <string.h>

#include "kvf_fuzz_calls.h"

enum { EVENTS = 64 };

static kvf_shortage shortage;

void kvf_fuzz_must(kvf_fuzz_world *world, int holds, const char *what)
{
    if (!holds && world->fault == NULL)
        world->fault = what;
}

static kvf_tick resolved(const kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    if (op->is_absolute)
        return op->time;
    return op->time > UINT64_MAX - world->tick ? UINT64_MAX : world->tick + op->time;
}

static uint32_t position(const kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_seq_info info;

    if (!op->back)
        return op->position;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    if (kvf_seq_info_read(world->cache, world->sequences[op->seq].handle, &info) != KVF_OK)
        return 0;
    return info.len > op->position ? info.len - op->position : 0;
}

/* --- sequences and tickets --- */

/* Gives a label its new handle. */
static kvf_status opened(kvf_fuzz_world *world, uint32_t label, kvf_status status, kvf_seq handle)
{
    kvf_fuzz_sequence *seq = &world->sequences[label];

    kvf_fuzz_must(world, (status == KVF_OK) == (handle != KVF_FUZZ_UNSET), "a refused open writes no handle");
    if (status == KVF_OK) {
        seq->handle = handle;
        seq->live = 1;
        seq->closing = 0;
    }
    return status;
}

static kvf_status open_sequence(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_fuzz_ticket *ticket = &world->tickets[op->ticket];
    kvf_open_params params;
    kvf_seq handle = KVF_FUZZ_UNSET;
    kvf_status status;

    if (world->sequences[op->seq].live)
        return KVF_ERR_ARGUMENT;
    memset(&params, 0, sizeof params);
    params.struct_size = sizeof params;
    params.eviction_class = op->eviction_class;
    if (op->kind == KVF_FUZZ_OPEN) {
        params.ns = kvf_fuzz_space(world, op->ns);
        params.spans = op->spans;
        params.n_spans = op->n_spans;
        status = kvf_seq_open(world->cache, &params, &handle, &shortage);
    } else {
        params.spans = ticket->spans;
        params.n_spans = ticket->n_spans;
        status = kvf_seq_open_ticket(world->cache, ticket->handle, &params, &handle, &shortage);
        ticket->live &= status != KVF_OK;
    }
    return opened(world, op->seq, status, handle);
}

static kvf_status fork_sequence(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_seq handles[KVF_FUZZ_CHILDREN];
    kvf_status status;
    uint32_t i, k;

    for (i = 0; i < op->n_children; i++) {
        handles[i] = KVF_FUZZ_UNSET;
        if (world->sequences[op->children[i]].live)
            return KVF_ERR_ARGUMENT;
        for (k = 0; k < i; k++)
            if (op->children[k] == op->children[i])
                return KVF_ERR_ARGUMENT;
    }
    status = kvf_seq_fork(world->cache, world->sequences[op->seq].handle, position(world, op), handles, op->n_children,
                          &shortage);
    for (i = 0; i < op->n_children; i++)
        opened(world, op->children[i], status, handles[i]);
    return status;
}

static kvf_status close_sequence(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_fuzz_sequence *seq = &world->sequences[op->seq];
    int waits = kvf_fuzz_is_planned(world, seq->handle);
    kvf_status status =
        kvf_seq_close(world->cache, seq->handle, op->flag ? KVF_CLOSE_DISCARD : KVF_CLOSE_KEEP);

    if (status == KVF_OK) {
        seq->live = seq->closing = (uint32_t)waits;
        kvf_fuzz_must(world, kvf_seq_verify(world->cache, seq->handle, 0) == KVF_ERR_STALE,
                      "a closed sequence is stale");
    }
    return status;
}

static kvf_status match(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_fuzz_ticket *ticket = &world->tickets[op->ticket];
    kvf_prompt prompt = kvf_fuzz_prompt(world, op);
    kvf_tick deadline = op->timed ? resolved(world, op) : KVF_NO_DEADLINE;
    kvf_ticket handle = KVF_FUZZ_UNSET;
    uint32_t seen = UINT32_MAX, hit = UINT32_MAX;
    kvf_status status, looked = kvf_prefix_lookup(world->cache, &prompt, op->count, &seen);

    if (op->kind == KVF_FUZZ_LOOKUP)
        return looked;
    if (ticket->live)
        return KVF_ERR_ARGUMENT;
    status = kvf_prefix_match(world->cache, &prompt, op->count, deadline, &handle, &hit, &shortage);
    kvf_fuzz_must(world, (status == KVF_OK) == (handle != KVF_FUZZ_UNSET), "a refused match writes no ticket");
    if (status != KVF_OK)
        return status;
    kvf_fuzz_must(world, looked == KVF_OK && hit == seen, "a match finds what a lookup found");
    kvf_fuzz_must(world, hit <= op->count && hit <= op->n_tokens, "a hit is within its limit");
    ticket->handle = handle;
    ticket->deadline = deadline;
    ticket->live = 1;
    ticket->ns = op->ns;
    ticket->n_spans = op->n_spans;
    memcpy(ticket->spans, op->spans, op->n_spans * sizeof *op->spans);
    return status;
}

static kvf_status drop(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_status status = kvf_prefix_drop(world->cache, world->tickets[op->ticket].handle);
    world->tickets[op->ticket].live &= status != KVF_OK;
    return status;
}

/* --- time --- */

kvf_status kvf_fuzz_advanced(kvf_fuzz_world *world, kvf_tick tick, kvf_status status)
{
    uint32_t i;

    if (status != KVF_OK || tick == world->tick)
        return status; /* nothing ends before time moves on */
    world->tick = tick;
    for (i = 0; i < KVF_FUZZ_LABELS; i++) {
        world->tickets[i].live &= world->tickets[i].deadline >= tick;
        world->leases[i].live &= world->leases[i].until >= tick;
    }
    return status;
}

static kvf_status take_lease(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_fuzz_holder *lease = &world->leases[op->lease];
    kvf_tick until = resolved(world, op);
    kvf_seq seq = world->sequences[op->seq].handle;
    kvf_seq_info info;
    kvf_lease handle = KVF_FUZZ_UNSET;
    kvf_status status;
    uint32_t i;

    if (lease->live)
        return KVF_ERR_ARGUMENT;
    status = kvf_retain_lease(world->cache, seq, op->count, until, &handle, &shortage);
    kvf_fuzz_must(world, (status == KVF_OK) == (handle != KVF_FUZZ_UNSET), "a refused lease writes no handle");
    if (status != KVF_OK)
        return status;
    memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    kvf_fuzz_must(world, kvf_seq_info_read(world->cache, seq, &info) == KVF_OK, "a leased sequence is there");
    for (i = 0; i < world->spec->n_namespaces; i++)
        if (world->namespaces[i] == info.ns)
            lease->ns = i;
    lease->handle = handle;
    lease->until = until;
    lease->live = 1;
    return status;
}

/* --- transfers, order, events --- */

static kvf_status begin_io(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_fuzz_holder *transfer = &world->transfers[op->transfer];
    kvf_transfer handle = KVF_FUZZ_UNSET;
    kvf_status status;

    if (transfer->live)
        return KVF_ERR_ARGUMENT;
    status = op->flag ? kvf_io_begin_ticket(world->cache, world->tickets[op->ticket].handle, op->begin, op->end,
                                            op->direction, &handle, &shortage)
                      : kvf_io_begin_seq(world->cache, world->sequences[op->seq].handle, op->begin, op->end,
                                         op->direction, &handle, &shortage);
    kvf_fuzz_must(world, (status == KVF_OK) == (handle != KVF_FUZZ_UNSET), "a refused transfer writes no handle");
    if (status == KVF_OK) {
        transfer->handle = handle;
        transfer->live = 1;
    }
    return status;
}

/* Asks for a transfer of nothing, which is refused: as stale if the ticket has ended, else for its range. */
static uint32_t is_stale(const kvf_fuzz_world *world, const kvf_fuzz_ticket *ticket)
{
    kvf_transfer handle;
    return kvf_io_begin_ticket(world->cache, ticket->handle, 1, 0, KVF_IO_STORE, &handle, NULL) == KVF_ERR_STALE;
}

/* A load that failed ends the tickets of what it loaded. */
static kvf_status end_io(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_fuzz_holder *transfer = &world->transfers[op->transfer];
    kvf_status status = kvf_io_end(world->cache, transfer->handle, op->flag ? KVF_IO_FAILED : KVF_IO_OK);
    uint32_t i;

    kvf_fuzz_must(world, (status == KVF_OK) == (transfer->live == 1), "a transfer ends once");
    transfer->live &= status != KVF_OK;
    for (i = 0; i < KVF_FUZZ_LABELS && status == KVF_OK && op->flag; i++)
        world->tickets[i].live &= !is_stale(world, &world->tickets[i]);
    return status;
}

static kvf_status end_lease(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_status status = kvf_retain_end(world->cache, world->leases[op->lease].handle);
    world->leases[op->lease].live &= status != KVF_OK;
    return status;
}

static kvf_status remove_pages(kvf_cache *cache, kvf_seq seq, const kvf_fuzz_op *op)
{
    uint32_t columns[8], bit;
    size_t n = 0;

    for (bit = 0; bit < 8; bit++)
        if (op->group >> bit & 1)
            columns[n++] = op->count + bit;
    return kvf_seq_remove_pages(cache, seq, columns, n);
}

static kvf_status evict(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    uint32_t freed = UINT32_MAX;
    kvf_status status = kvf_cache_evict(world->cache, op->pool, op->count, &freed);

    kvf_fuzz_must(world, (status == KVF_OK) == (freed != UINT32_MAX), "a refused eviction writes no number");
    kvf_fuzz_must(world, status != KVF_OK || freed <= op->count, "eviction frees no more than asked");
    return status;
}

static kvf_status publish(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    uint32_t published = UINT32_MAX;
    kvf_status status = kvf_prefix_publish(world->cache, op->count, &published);

    kvf_fuzz_must(world, status != KVF_OK || published <= op->count, "publishing keeps its budget");
    return status;
}

static kvf_status reorder(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_prompt prompt = kvf_fuzz_prompt(world, op);
    uint32_t tokens = UINT32_MAX;

    if (op->kind == KVF_FUZZ_MOVE)
        return kvf_retain_move(world->cache, &prompt, op->flag ? KVF_MOVE_HOT : KVF_MOVE_COLD, &tokens);
    return kvf_retain_set_class(world->cache, &prompt, op->eviction_class, &tokens);
}

/* Numbers of events have no gaps but for those that were lost. */
static kvf_status drain(kvf_fuzz_world *world)
{
    static kvf_event events[EVENTS];
    uint64_t lost = 0;
    size_t n, i;
    kvf_status status;

    do {
        status = kvf_events_read(world->cache, events, EVENTS, &n, &lost);
        if (status != KVF_OK)
            return status;
        world->events += lost;
        for (i = 0; i < n; i++)
            kvf_fuzz_must(world, events[i].number == ++world->events, "events are numbered without gaps");
    } while (n > 0);
    return status;
}

kvf_status kvf_fuzz_call(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    kvf_cache *cache = world->cache;
    kvf_seq seq = world->sequences[op->seq].handle;
    kvf_status status;

    memset(&shortage, 0xEE, sizeof shortage);
    shortage.struct_size = sizeof shortage;
    switch (op->kind) {
    case KVF_FUZZ_OPEN:
    case KVF_FUZZ_OPEN_TICKET: status = open_sequence(world, op); break;
    case KVF_FUZZ_FORK: status = fork_sequence(world, op); break;
    case KVF_FUZZ_TRUNCATE: status = kvf_seq_truncate(cache, seq, position(world, op)); break;
    case KVF_FUZZ_CLOSE: status = close_sequence(world, op); break;
    case KVF_FUZZ_VERIFY: status = kvf_seq_verify(cache, seq, position(world, op)); break;
    case KVF_FUZZ_ADD_SPANS: status = kvf_seq_add_spans(cache, seq, op->spans, op->n_spans, &shortage); break;
    case KVF_FUZZ_PUBLISH: status = publish(world, op); break;
    case KVF_FUZZ_LOOKUP:
    case KVF_FUZZ_MATCH: status = match(world, op); break;
    case KVF_FUZZ_DROP: status = drop(world, op); break;
    case KVF_FUZZ_EVICT: status = evict(world, op); break;
    case KVF_FUZZ_IO_BEGIN: status = begin_io(world, op); break;
    case KVF_FUZZ_IO_END: status = end_io(world, op); break;
    case KVF_FUZZ_ADVANCE:
        status = kvf_fuzz_advanced(world, resolved(world, op), kvf_cache_advance(cache, resolved(world, op)));
        break;
    case KVF_FUZZ_LEASE: status = take_lease(world, op); break;
    case KVF_FUZZ_END_LEASE: status = end_lease(world, op); break;
    case KVF_FUZZ_SET_CLASS:
    case KVF_FUZZ_MOVE: status = reorder(world, op); break;
    case KVF_FUZZ_SET_QUOTA:
        status = kvf_namespace_set_quota(cache, kvf_fuzz_space(world, op->ns), op->pool, op->count, &shortage);
        break;
    case KVF_FUZZ_CLEAR:
    case KVF_FUZZ_CLOSE_SPACE:
    case KVF_FUZZ_OPEN_SPACE: status = kvf_fuzz_space_call(world, op, &shortage); break;
    case KVF_FUZZ_EXPORT:
    case KVF_FUZZ_RING: status = kvf_fuzz_view(world, op); break;
    case KVF_FUZZ_REMOVE: status = remove_pages(cache, seq, op); break;
    case KVF_FUZZ_SEAL: status = kvf_plan_seal(cache, seq, op->group, op->count, &shortage); break;
    case KVF_FUZZ_DRAIN: status = drain(world); break;
    case KVF_FUZZ_CHECK: status = KVF_OK; break;
    default: status = kvf_fuzz_plan_call(world, op, resolved(world, op), &shortage); break;
    }
    if (!kvf_status_is_capacity(status))
        kvf_fuzz_must(world, shortage.resource == 0xEEEEEEEE, "only a shortage is described");
    else if (op->kind != KVF_FUZZ_PUBLISH)
        kvf_fuzz_must(world, shortage.resource <= KVF_RESOURCE_QUOTA, "a shortage names what is short");
    return status;
}
