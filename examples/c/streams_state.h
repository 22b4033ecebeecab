/* What the files streams*.c share. */
#ifndef ENGINE_STREAMS_STATE_H
#define ENGINE_STREAMS_STATE_H

#include "kv_pool.h"
#include "streams.h"

#include <stdatomic.h>

/* What the evictions of a stream took from the last query's attention. */
struct streams_cut {
    long long n;
    double mass;
};

/* One text. Its number of streams is that of KV heads of all layers, layer by layer. */
struct streams_chat {
    int open;
    struct evict_policy policy;
    int columns;         /* pages of a row at most */
    int len;             /* tokens so far, evicted ones included */
    kvf_seq *sequences;  /* [n] */
    uint32_t *lengths;   /* [n] rows that each sequence has room for */
    kvf_stream *streams; /* [n] */
    float *features;     /* of all streams */
    struct streams_cut *cuts; /* [n] */

    /* The step at hand. */
    int count, first;    /* tokens, and the first one's row of the batch */
};

struct streams {
    struct cache cache;        /* first: a pointer to it is a pointer to us */
    struct kv_backend backend;
    struct streams_config config;
    struct model_shape shape;
    struct kv_groups one;      /* one head of one layer */
    struct kv_pool pool;
    struct threads *threads;
    struct evict_policy policy; /* of chats to come */
    struct streams_watch watch;
    int n;                     /* streams of a chat */
    int slots;                 /* of a row */

    void *memory;
    kvf_cache *kvf;
    uint64_t tick;
    int reserved;              /* pages that open chats may need */
    double seconds;
    long long evicted, moved, peak;
    struct streams_usage ended; /* of chats that were closed */

    struct streams_chat *chats; /* [max_sequences] */
    /* Row chat * n + stream: */
    int32_t *tables;            /* [rows][columns] */
    uint64_t *valid;            /* [rows][columns] */
    uint32_t *positions;        /* [rows][slots] */
    uint32_t *new_slots;        /* [chunk] of the stream at hand */
    uint32_t *dead;             /* [columns] likewise */

    /* The step at hand. */
    int n_chats;
    int *step_chats;            /* [max_sequences] */
    int n_rows;
    int32_t *tokens;            /* [max_rows] */
    struct row_desc *rows;      /* [max_rows] `sequence` is the chat */
    int64_t *write;             /* [layers][max_rows][kv heads] slots of the new tokens */
    uint32_t *places;           /* likewise, in their rows */
    kvf_plan_item *items;       /* [max_sequences * n] */
    kvf_accept *accepts;
    kvf_status *statuses;
    int n_items;

    kvf_kernel_pages pages;
    kvf_kernel_attention attention;
    float *scratch;             /* [threads][scratch_floats] */
    uint64_t scratch_floats;
    struct streams_work *work;  /* [threads] */

    /* The attend call at hand. */
    int layer;
    const float *q;
    float *out;
    atomic_int status;          /* the first failure of a call in a thread */
    atomic_int is_kernel;       /* 1 = it is a kernel's */
    atomic_llong gone, shifted; /* tokens evicted and moved in this step */
};

/* What a thread needs for one stream at a time. */
struct streams_work {
    float *scores, *norms, *dots; /* [slots] */
    float *sum;                   /* [head_dim] */
    float *probabilities;         /* [heads / kv_heads][slots] */
    uint64_t *keep;               /* [columns] */
    kvf_slot_move *runs;          /* [slots] */
    kvf_kernel_move *moves;       /* [slots] */
};

/* A row of a chat as kernels read it. */
struct streams_row {
    kvf_kernel_table table;
    kvf_kernel_slots slots;
    uint32_t used;
};
void streams_row(const struct streams *s, int chat, int stream, struct streams_row *row);

static inline kvf_stream *stream_of(const struct streams *s, int chat, int stream)
{
    return &s->chats[chat].streams[stream];
}

/* A channel of a stream's features: 0 is the score. */
static inline float *channel_of(const struct streams *s, const kvf_stream *stream, int channel)
{
    return stream->features + (size_t)channel * (size_t)s->slots;
}

/* The channel with the last query's attention, summed over the heads of a group, where there is a meter. */
static inline float *metered(const struct streams *s, const kvf_stream *stream)
{
    return channel_of(s, stream, (int)stream->channels - 1);
}

/* Adds what a chat keeps, and has lost. */
void streams_count(const struct streams *s, int chat, struct streams_usage *usage);

/* Where the attention of a query at `position` is added up; NULL if the policy does not look. */
float *streams_sums(const struct streams *s, int chat, int stream, int position, uint32_t *reduce, uint32_t *flags);

/* Once a query has attended, and once keys and values [max_rows][kv heads][dim] of a layer are written: for the policy. */
void streams_attended(const struct streams *s, int chat, int stream, const struct streams_work *work);
void streams_written(struct streams *s, int layer, const float *k, const float *v);

/* Scores the tokens of the chats of a step, where the policy needs it now. */
int streams_score(struct streams *s, struct error *error);

/* Evicts in the chats of a step: in all that have `before` set, or in all that have not. */
int streams_evict(struct streams *s, int before, struct error *error);

/* Closes holes and gives pages back: where it is due in the chats of a step, or all holes of one chat. */
int streams_tidy(struct streams *s, struct error *error);
int streams_close_holes(struct streams *s, int chat, struct error *error);

/* The backend's functions, and the first failure of a parallel loop. */
extern const struct kv_backend streams_backend;
void streams_failed(struct streams *s, int32_t status, int is_kernel);
int streams_check(struct streams *s, const char *what, struct error *error);

extern const struct cache streams_calls;

#endif
