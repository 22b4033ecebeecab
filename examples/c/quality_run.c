/* Runs a text through many caches in lockstep. */
#include "quality.h"

#include "forward.h"
#include "sampler.h"
#include "step.h"

#include <stdlib.h>
#include <string.h>

struct lane {
    struct cache *cache;      /* NULL = the next is all there is */
    struct kv_backend *paper;
    uint64_t sequence;
    int len;
    struct quality_result *result;
};

/* What a row of logits says of the next token. */
struct prediction {
    int lane, target;
    int hit; /* 1 iff it is the likeliest */
    double nll;
    uint64_t hash;
};

struct run {
    const struct model *model;
    const struct quality_text *text;
    struct threads *threads;
    struct engine *engine;
    struct quality_fan fan;
    struct lane lanes[QUALITY_LANES];
    int n, chunk;
    int32_t *tokens;      /* [n * chunk] the batch at hand */
    struct row_desc *rows;
    float *logits;        /* [n * chunk][vocab] */
    struct prediction *predictions; /* [n * chunk] */
};

/* Looks at rows of logits: bodies of parallel_for. */
static void look(void *context, int begin, int end, int worker)
{
    struct run *r = context;
    const int vocab = r->model->shape.vocab;
    (void)worker;

    for (int i = begin; i < end; i++) {
        const float *logits = r->logits + (size_t)i * (size_t)vocab;
        struct prediction *p = &r->predictions[i];
        const int32_t target = r->text->tokens[p->target];
        uint64_t hash = 0xcbf29ce484222325u;

        for (int j = 0; j < vocab; j++) {
            uint32_t bits;
            memcpy(&bits, &logits[j], sizeof bits);
            hash = (hash ^ bits) * 0x100000001b3u;
        }
        p->nll = sampler_nll(logits, vocab, target);
        p->hit = sampler_greedy(logits, vocab) == target;
        p->hash = hash;
    }
}

/* Plans the next `count` tokens of a lane, as its first rows of the batch. */
static int plan(struct run *r, struct lane *lane, int count, int wanted, int at, struct error *error)
{
    struct cache_batch batch;

    if (!lane->cache) {
        for (int i = 0; i < count; i++) {
            r->tokens[at + i] = r->text->tokens[lane->len + i];
            r->rows[at + i] = (struct row_desc){ 0, lane->len + i, i >= count - wanted };
        }
        return 0;
    }
    if (lane->cache->begin(lane->cache, error) != 0)
        return -1;
    if (lane->cache->add(lane->cache, lane->sequence, r->text->tokens + lane->len, count, wanted, error) != CACHE_OK)
        return fail(error, "no room for a text of %d tokens", r->text->count);
    if (lane->cache->finish(lane->cache, &batch, error) != 0)
        return -1;
    memcpy(r->tokens + at, batch.tokens, (size_t)count * sizeof *batch.tokens);
    memcpy(r->rows + at, batch.rows, (size_t)count * sizeof *batch.rows);
    return 0;
}

/* Adds the next tokens of a lane to its own plan and to the batch. */
static int add(struct run *r, int l, int *n_rows, int *n_wanted, struct error *error)
{
    struct lane *lane = &r->lanes[l];
    const int left = r->text->count - 1 - lane->len; /* of the last token nothing is wanted */
    int count = left < r->chunk ? left : r->chunk, wanted;

    if (lane->cache)
        count = lane->cache->run(lane->cache, lane->sequence, count);
    wanted = lane->len + count + 1 - r->text->from;
    wanted = wanted < 0 ? 0 : wanted < count ? wanted : count;
    if (plan(r, lane, count, wanted, *n_rows, error) != 0)
        return -1;
    *n_rows += count;
    r->fan.counts[l] = count;
    for (int i = count - wanted; i < count; i++)
        r->predictions[(*n_wanted)++] = (struct prediction){ .lane = l, .target = lane->len + i + 1 };
    return 0;
}

static int step(struct run *r, struct error *error)
{
    int n_rows = 0, n_wanted = 0;

    memset(r->fan.counts, 0, sizeof r->fan.counts);
    for (int l = 0; l < r->n; l++) {
        if (r->lanes[l].len < r->text->count - 1 && add(r, l, &n_rows, &n_wanted, error) != 0)
            return -1;
    }
    if (n_rows == 0)
        return 0;
    if (engine_forward(r->engine, &r->fan.backend, r->tokens, r->rows, n_rows, r->logits, error) != 0)
        return -1;
    parallel_for(r->threads, n_wanted, 1, look, r);
    for (int i = 0; i < n_wanted; i++) {
        const struct prediction *p = &r->predictions[i];
        struct quality_result *result = r->lanes[p->lane].result;
        result->nll += p->nll;
        result->greedy += p->hit;
        result->hashes[p->target] = p->hash;
    }
    for (int l = 0; l < r->n; l++) {
        const int32_t accepted = r->fan.counts[l];
        if (accepted > 0 && r->lanes[l].cache && r->lanes[l].cache->commit(r->lanes[l].cache, &accepted, error) != 0)
            return -1;
        r->lanes[l].len += accepted;
    }
    return 1;
}

static int open_lane(struct run *r, struct lane *lane, const char *format, struct error *error)
{
    const struct step_config config = { 0, r->text->count / 16 + 1, 1, r->chunk, { .format = format } };
    int hit;

    if (strcmp(format, QUALITY_PAPER) == 0) {
        lane->paper = quality_paper_new(&r->model->shape, r->threads, r->text->count, error);
        return lane->paper ? 0 : -1;
    }
    lane->cache = step_new(&config, &r->model->shape, r->threads, error);
    if (!lane->cache)
        return -1;
    return lane->cache->open(lane->cache, r->text->tokens, r->text->count, &lane->sequence, &hit, error) == CACHE_OK
               ? 0 : -1;
}

static int start(struct run *r, const char *const *formats, struct quality_result *results, struct error *error)
{
    const size_t rows = (size_t)(r->n * r->chunk);

    r->threads = threads_new(0);
    r->engine = engine_new(r->model, r->threads, (int)rows, error);
    if (!r->engine)
        return -1;
    r->tokens = calloc(rows, sizeof *r->tokens);
    r->rows = calloc(rows, sizeof *r->rows);
    r->predictions = calloc(rows, sizeof *r->predictions);
    r->logits = malloc(rows * (size_t)r->model->shape.vocab * sizeof *r->logits);
    if (!r->threads || !r->tokens || !r->rows || !r->predictions || !r->logits)
        return fail(error, "out of memory for %d formats", r->n);
    quality_fan_init(&r->fan, &r->model->shape);
    for (int l = 0; l < r->n; l++) {
        struct lane *lane = &r->lanes[l];
        if (open_lane(r, lane, formats[l], error) != 0)
            return -1;
        lane->result = &results[l];
        memset(lane->result, 0, sizeof *lane->result);
        r->fan.to[l] = lane->cache ? lane->cache->kv : lane->paper;
        r->fan.n = l + 1;
    }
    return 0;
}

static void stop(struct run *r)
{
    for (int l = 0; l < r->n; l++) {
        if (r->lanes[l].cache)
            r->lanes[l].cache->free(r->lanes[l].cache);
        quality_paper_free(r->lanes[l].paper);
    }
    engine_free(r->engine);
    threads_free(r->threads);
    free(r->tokens);
    free(r->rows);
    free(r->predictions);
    free(r->logits);
}

int quality_run(const struct model *model, const char *const *formats, int n, const struct quality_text *text,
                int chunk, struct quality_result *results, struct error *error)
{
    struct run r = { .model = model, .text = text, .n = n, .chunk = chunk };
    int more = 1;

    if (start(&r, formats, results, error) != 0)
        more = -1;
    while (more > 0)
        more = step(&r, error);
    for (int l = 0; l < n && more == 0; l++)
        results[l].nll /= text->count - text->from;
    stop(&r);
    return more;
}
