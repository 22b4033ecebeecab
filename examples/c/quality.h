/* What formats of keys and values cost a model: many caches over one text, and what is compared. */
#ifndef ENGINE_QUALITY_H
#define ENGINE_QUALITY_H

#include "kv.h"
#include "kv_groups.h"
#include "load.h"
#include "threads.h"

#include <stdint.h>

enum { QUALITY_TOKENS = 1024, QUALITY_LANES = KV_FORMATS + 1 };

/* INT2 as the KIVI paper has it: R, G, and its name beside those of kv_format.h. */
enum { QUALITY_PAPER_RECENT = 128, QUALITY_PAPER_GROUP = 32 };
#define QUALITY_PAPER "kivi2-paper"

/* A text and the predictions that count. Tokens begin..begin + count of a file, predictions of from..count - 1. */
struct quality_text {
    const int32_t *tokens;
    int count, from;
};

/* What one format gave. */
struct quality_result {
    double nll;                       /* mean over the predictions */
    int greedy;                       /* predictions that are the likeliest token */
    uint64_t hashes[QUALITY_TOKENS];  /* of the logits that made each prediction */
};

/*
 * Runs the text through one cache for each of formats[n] in lockstep, `chunk` tokens of each a step. The caches are
 * managed by kvfolio, but for QUALITY_PAPER, and their rows are one batch of the model; n is at most QUALITY_LANES.
 */
int quality_run(const struct model *model, const char *const *formats, int n, const struct quality_text *text,
                int chunk, struct quality_result *results, struct error *error);

/* A backend that hands the rows of a batch to several: the first rows to the first one, and so on. */
struct quality_fan {
    struct kv_backend backend; /* first: a pointer to it is a pointer to us */
    int row_q, row_kv;         /* floats of a row of q, and of k */
    int n;
    struct kv_backend *to[QUALITY_LANES];
    int counts[QUALITY_LANES]; /* rows of the batch at hand */
};
void quality_fan_init(struct quality_fan *fan, const struct model_shape *shape);

/* The cache of QUALITY_PAPER, for one sequence; `threads` is borrowed. NULL and a reason on failure. */
struct kv_backend *quality_paper_new(const struct model_shape *shape, struct threads *threads, int capacity,
                                     struct error *error);
void quality_paper_free(struct kv_backend *backend);

/* Bytes of a token of a sequence, scales and what is exact, as f32, included. */
double quality_paper_bytes(const struct model_shape *shape, int tokens);

#endif
