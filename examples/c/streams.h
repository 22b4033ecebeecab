/*
 * A cache for the scheduler that keeps a part of each text: a table of its own for every KV head of every layer, since
 * each head keeps other tokens.
 *
 * A stream is one KV head of one layer of one chat: a sequence of kvfolio whose pages hold P tokens of that head, and
 * beside it a kvf_stream that says which slots of the row are live, at which positions, and how well they scored.
 */
#ifndef ENGINE_STREAMS_H
#define ENGINE_STREAMS_H

#include "cache.h"
#include "evict.h"
#include "kv_groups.h"
#include "kvfolio.h"
#include "kvfolio_kernels.h"
#include "model.h"
#include "threads.h"

struct streams_config {
    int page_tokens;   /* P, 1 to 64; 0 = 16 */
    int pages;         /* pages of one head of one layer, of all chats together */
    int columns;       /* pages of a row at most, see evict_columns */
    int max_sequences; /* chats at a time */
    int max_rows;      /* tokens a step */
    int chunk;         /* tokens of a chat in a step at most */
    int longest;       /* tokens of a chat at most, evicted ones included */
    struct kv_spec kv; /* f32, f16 or bf16 */
    struct evict_policy policy; /* of chats, until streams_policy says otherwise */
    int meter;         /* 1 = measures what is lost, see streams_usage */
};

/* Allocates pages and their manager; `threads` is borrowed. NULL and a reason on failure. */
struct cache *streams_new(const struct streams_config *config, const struct model_shape *shape,
                          struct threads *threads, struct error *error);

/* What chats that are opened from now on keep. -1 and a reason where that makes no sense. */
int streams_policy(struct cache *cache, const struct evict_policy *policy, struct error *error);

/* How much is kept, over all streams of some chats. */
struct streams_usage {
    long long streams, seen;  /* streams, and tokens that they were given */
    long long live, rows;     /* tokens that they keep, and slots in use: the difference are holes */
    long long pages, needed;  /* pages in use, and pages that the tokens would fill without a hole */
    long long evicted, moved; /* of all chats so far: tokens that went, and tokens that moved to close holes */

    /* With a meter: of the attention of the last query, what it had just paid to tokens that then went. */
    long long cuts;        /* evictions from a stream */
    double mass, greatest; /* summed over these; and the greatest mean of a stream */
    int stream;            /* which one that is */
};

/* Of all chats that are open; or, with `ended`, of all that were closed, as they were then. */
void streams_usage(struct cache *cache, int ended, struct streams_usage *usage);

/* For the checks: a stream, its row of pages and the memory of these. */
struct streams_view {
    const kvf_stream *stream;
    const int32_t *table; /* [columns] */
    kvf_kernel_pages pages;
    kvf_kernel_attention attention;
};
struct streams_view streams_view(struct cache *cache, uint64_t sequence, int layer, int head);
kvf_cache *streams_manager(struct cache *cache);

/* Closes all holes of a chat now. */
int streams_compact(struct cache *cache, uint64_t sequence, struct error *error);

/*
 * For the checks: tell is called for every query and stream, by several threads for different streams, with what its
 * heads paid attention to: [heads / kv_heads][slots].
 */
struct streams_watch {
    void *user;
    void (*tell)(void *user, const struct streams_view *view, int chat, int stream, int position,
                 const float *probabilities, int slots);
};
void streams_watch(struct cache *cache, const struct streams_watch *watch);

#endif
