/* Policies: one table of names, and the rules they have in common. */
#include "evict.h"

#include <string.h>

enum { SINKS = 4 };

static const char *const names[EVICT_KINDS] = { "none", "window", "streaming", "random", "h2o",
                                                "tova", "snapkv", "keydiff",   "knorm",  "learned" };
static const char *const removals[] = { "hole", "replace", "compact" };

const char evict_names[] = "h2o, streaming, window, random, tova, snapkv, keydiff, knorm or learned";
const char evict_removal_names[] = "hole, replace or compact";

const char *evict_kind_name(enum evict_kind kind)
{
    return names[kind];
}

int evict_removal_named(const char *name)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(removals[i], name) == 0)
            return i;
    }
    return -1;
}

struct evict_policy evict_policy_named(const char *name, int budget)
{
    struct evict_policy p = { .budget = budget, .sinks = SINKS, .recent = 1, .removal = KVF_REMOVE_COMPACT, .seed = 1 };
    const int half = budget > 1 ? budget / 2 : 1;

    for (int i = 1; i < EVICT_KINDS; i++) {
        if (strcmp(names[i], name) == 0)
            p.kind = (enum evict_kind)i;
    }
    if (p.kind == EVICT_WINDOW)
        p.sinks = 0;
    else if (p.kind == EVICT_SNAPKV)
        p.recent = half < EVICT_LOOK ? half : EVICT_LOOK;
    else if (p.kind != EVICT_STREAMING && p.kind != EVICT_TOVA)
        p.recent = half;
    p.per_layer = p.kind == EVICT_TOVA;
    p.slack = evict_scores_anew(&p) && p.kind != EVICT_RANDOM ? EVICT_SLACK : 0;
    return p;
}

int evict_scores_anew(const struct evict_policy *p)
{
    return p->kind == EVICT_RANDOM || p->kind >= EVICT_SNAPKV;
}

int evict_is_due(const struct evict_policy *p, uint32_t live)
{
    return p->kind != EVICT_NONE && live > (uint32_t)(p->budget + p->slack);
}

void evict_guard(const struct evict_policy *p, kvf_protected *guarded)
{
    *guarded = (kvf_protected){ .struct_size = sizeof *guarded, .sinks = (uint32_t)p->sinks,
                                .recent = (uint32_t)p->recent, .n_pins = p->pin.end > p->pin.start, .pins = &p->pin };
}

int evict_check(const struct evict_policy *p, const kvf_page_layout *layout, struct error *error)
{
    kvf_protected guarded;
    uint32_t tokens = 0, reason = 0;

    if (p->kind == EVICT_NONE)
        return 0;
    evict_guard(p, &guarded);
    if (kvf_evict_check(layout, p->removal, KVF_POSITION_ABSOLUTE, &reason) != KVF_OK)
        return fail(error, "eviction by %s: %s", removals[p->removal], kvf_evict_reason_text(reason));
    if (kvf_evict_protected_tokens(&guarded, &tokens, &reason) != KVF_OK)
        return fail(error, "eviction: %s", kvf_evict_reason_text(reason));
    if (p->kind == EVICT_LEARNED && !p->weights)
        return fail(error, "eviction: the learned policy needs weights");
    if (p->kind == EVICT_LEARNED && p->removal == KVF_REMOVE_REPLACE)
        return fail(error, "eviction: the learned policy goes by the order of tokens, which replacing does not keep");
    if (p->budget < 1 || tokens > (uint32_t)p->budget)
        return fail(error, "eviction: %s: %d for %u", kvf_evict_reason_text(KVF_EVICT_BUDGET), p->budget,
                    (unsigned)tokens);
    return 0;
}

int evict_closes(const struct evict_policy *p, const kvf_stream *stream)
{
    uint32_t sparse = 0;

    if (p->removal == KVF_REMOVE_COMPACT) /* all of the row moves at most, once for a page's worth of tokens */
        return stream->rows - stream->live >= stream->page_tokens;
    if (p->removal == KVF_REMOVE_HOLE && kvf_stream_is_sparse(stream, 50, &sparse, NULL) != KVF_OK)
        return 1; /* closing them says what is wrong */
    return (int)sparse;
}

int evict_columns(const struct evict_policy *p, int page_tokens, int chunk, int most)
{
    const int all = (most + page_tokens - 1) / page_tokens;
    const int slots = p->budget + p->slack + chunk + page_tokens;
    int columns;

    if (p->kind == EVICT_NONE)
        return all;
    /* Replaced: no holes beyond a chunk. Compacted: less than a page of them. Holes: as many as live slots. */
    columns = ((p->removal == KVF_REMOVE_HOLE ? 2 * slots : slots) + page_tokens - 1) / page_tokens + 1;
    return columns < all ? columns : all;
}

int evict_channels(const struct evict_policy *p)
{
    return p->kind == EVICT_SNAPKV ? 1 + EVICT_LOOK : p->kind == EVICT_LEARNED ? LEARNED_CHANNELS : 1;
}
