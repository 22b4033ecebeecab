/* Which tokens of a chat stay when there is no room for all: policies by name, and what each of them protects. */
#ifndef ENGINE_EVICT_H
#define ENGINE_EVICT_H

#include "error.h"
#include "evict_weights.h"
#include "kvfolio.h"

#include <stdint.h>

enum evict_kind {
    EVICT_NONE,      /* everything stays */
    EVICT_WINDOW,    /* the newest tokens */
    EVICT_STREAMING, /* the first tokens and the newest */
    EVICT_RANDOM,    /* tokens drawn by chance */
    EVICT_H2O,       /* what received most attention so far */
    EVICT_TOVA,      /* what the last query of all heads of a layer paid attention to */
    EVICT_SNAPKV,    /* what the last queries paid attention to, smoothed over neighbours */
    EVICT_KEYDIFF,   /* keys that point elsewhere than the others */
    EVICT_KNORM,     /* short keys */
    EVICT_LEARNED,   /* what a network expects to be paid attention to */
    EVICT_KINDS
};

enum {
    EVICT_SLACK = 15,  /* where all tokens are scored anew before some go: that is once in so many steps and one */
    EVICT_LOOK = 32,   /* SnapKV: queries that are looked at */
    EVICT_SMOOTH = 5   /* SnapKV: neighbours, by the mean */
};

struct evict_policy {
    enum evict_kind kind;
    int budget;       /* tokens that each KV head of a layer keeps, the newest included; 0 with EVICT_NONE only */
    int slack;        /* tokens above the budget that are let come before all of them go at once */
    int sinks;        /* first tokens that always stay */
    int recent;       /* newest tokens that always stay */
    int per_layer;    /* 1 = one kept set for all heads of a layer, by the sum of their scores */
    int before;       /* 1 = a token's place is made before it attends, 0 = after */
    int redraw;       /* random: 1 = drawn anew in each step, 0 = once for each token */
    uint32_t removal; /* KVF_REMOVE_* */
    uint64_t seed;
    kvf_pin pin;      /* positions that always stay; empty = none */
    const struct evict_weights *weights; /* learned: borrowed */
};

/* A policy by name with what it protects by default; EVICT_NONE if there is no such name. */
struct evict_policy evict_policy_named(const char *name, int budget);

const char *evict_kind_name(enum evict_kind kind);

/* Names for messages. */
extern const char evict_names[], evict_removal_names[];

/* KVF_REMOVE_* by name; -1 if there is no such name. */
int evict_removal_named(const char *name);

/* Whether scores are made of all tokens before some go; else attention adds them up, or the oldest go. */
int evict_scores_anew(const struct evict_policy *policy);

/* Whether a stream with so many live tokens is over what it may have. */
int evict_is_due(const struct evict_policy *policy, uint32_t live);

/* What no score can evict. `guarded` borrows from the policy. */
void evict_guard(const struct evict_policy *policy, kvf_protected *guarded);

/* Says whether a policy makes sense, and whether pages of a layout allow it. -1 and a reason. */
int evict_check(const struct evict_policy *policy, const kvf_page_layout *layout, struct error *error);

/* Columns of P tokens that a row needs at most, if up to `chunk` tokens come at once, and no more than `most` in all. */
int evict_columns(const struct evict_policy *policy, int page_tokens, int chunk, int most);

/* Whether the holes of a stream are to be closed now. */
int evict_closes(const struct evict_policy *policy, const kvf_stream *stream);

/* Learned: what is kept of each token beside its score. Attention is summed over the heads of a group. */
enum { LEARNED_SUM = 1, LEARNED_LAST, LEARNED_KEY, LEARNED_VALUE, LEARNED_CHANNELS };

/* Floats of each slot that move with its token. */
int evict_channels(const struct evict_policy *policy);

#endif
