/* kvf_fuzz_calls.h - what the labels of a scenario stand for, and one call for each op */
#ifndef KVF_FUZZ_CALLS_H
#define KVF_FUZZ_CALLS_H

#include "kvf_fuzz_bytes.h"

/* A handle that no call has given yet. */
#define KVF_FUZZ_UNSET 0xEEEEEEEEEEEEEEEEull

typedef struct kvf_fuzz_sequence {
    kvf_seq handle;
    uint32_t live;    /* closing ones included */
    uint32_t closing; /* closed while in the open plan */
} kvf_fuzz_sequence;

typedef struct kvf_fuzz_ticket {
    kvf_ticket handle;
    kvf_tick deadline;
    uint32_t live, ns, n_spans;
    kvf_media_span spans[KVF_FUZZ_SPANS];
} kvf_fuzz_ticket;

typedef struct kvf_fuzz_holder {
    uint64_t handle; /* of a transfer or a lease */
    kvf_tick until;
    uint32_t live, ns;
} kvf_fuzz_holder;

typedef enum kvf_fuzz_plan { KVF_FUZZ_IDLE, KVF_FUZZ_BUILDING, KVF_FUZZ_FINISHED } kvf_fuzz_plan;

/* A cache and its labels. A label keeps its last handle, so that one that ended reaches the stale handle. */
typedef struct kvf_fuzz_world {
    kvf_cache *cache;
    const kvf_fuzz_spec *spec;
    kvf_tick tick;
    kvf_namespace namespaces[KVF_FUZZ_NAMESPACES];
    kvf_fuzz_sequence sequences[KVF_FUZZ_LABELS];
    kvf_fuzz_ticket tickets[KVF_FUZZ_LABELS];
    kvf_fuzz_holder transfers[KVF_FUZZ_LABELS], leases[KVF_FUZZ_LABELS];
    kvf_fuzz_plan plan;
    uint32_t n_planned;
    kvf_seq planned[KVF_FUZZ_LABELS]; /* in the order added */
    uint32_t counts[KVF_FUZZ_LABELS]; /* tokens of each */
    kvf_plan_report report; /* of the last finished plan */
    uint64_t events;        /* number of the last event read or lost */
    kvf_seq shown[KVF_FUZZ_CHILDREN];                          /* occupants of the caller's rows */
    uint64_t since[KVF_FUZZ_CHILDREN][KVF_FUZZ_GROUPS];        /* and the version of each */
    const char *fault;      /* the first thing that did not hold */
} kvf_fuzz_world;

/* Calls what the op says. A second meaning for a label in use is KVF_ERR_ARGUMENT and no call. */
kvf_status kvf_fuzz_call(kvf_fuzz_world *world, const kvf_fuzz_op *op);

/* The same for an op on plans, whose time is `tick`: in kvf_fuzz_plans.c. */
kvf_status kvf_fuzz_plan_call(kvf_fuzz_world *world, const kvf_fuzz_op *op, kvf_tick tick, kvf_shortage *shortage);

/* The same for an op on namespaces, and the namespace and the prompt that an op names: in kvf_fuzz_spaces.c. */
kvf_status kvf_fuzz_space_call(kvf_fuzz_world *world, const kvf_fuzz_op *op, kvf_shortage *shortage);
kvf_namespace kvf_fuzz_space(const kvf_fuzz_world *world, uint32_t ns);
kvf_prompt kvf_fuzz_prompt(const kvf_fuzz_world *world, const kvf_fuzz_op *op);

/* Shows rows or a ring, and compares them with dense rows: in kvf_fuzz_views.c. */
kvf_status kvf_fuzz_view(kvf_fuzz_world *world, const kvf_fuzz_op *op);

/* Whether a sequence is in the open plan. */
int kvf_fuzz_is_planned(const kvf_fuzz_world *world, kvf_seq handle);

/* Notes the time after a call that moves it; answers its status. */
kvf_status kvf_fuzz_advanced(kvf_fuzz_world *world, kvf_tick tick, kvf_status status);

/* Remembers what does not hold, unless something did not before. */
void kvf_fuzz_must(kvf_fuzz_world *world, int holds, const char *what);

#endif
