/*
 * Check identity-paged: logits through pages have the bits of logits without pages, whatever the page size, whether the
 * beginning was found in the cache, forked, rolled back, and however the tokens are cut into chunks.
 *
 * Two texts have the same beginning and differ from `fork` on. A run computes the first, or with a fork both. Each is
 * compared, row by row, with the same text computed in the same chunks without pages. Page memory is scrambled
 * (scramble.h).
 */
#include "check.h"

#include "kv_paged.h"
#include "random.h"
#include "scramble.h"
#include "step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 160, DRAFTS = 5, MAX_LANES = 2, CUT = 3 };

struct variant {
    int page_tokens, hit, fork, rollback, chunk;
};

/* What is computed, and what it should be. */
struct plan {
    const struct check *check;
    int total, fork, published; /* tokens: of a text, before the fork, of the beginning that is published */
    int32_t texts[MAX_LANES][MAX_TOKENS];
    float *logits[MAX_LANES];   /* [total][vocab] without pages */
};

struct lane {
    uint64_t sequence;
    int text, len;
};

struct run {
    const struct plan *plan;
    struct variant variant;
    struct threads *threads;
    struct cache *cache;
    struct engine *engine;
    float *logits;
    struct scramble scramble;
    struct lane lanes[MAX_LANES];
    int n_lanes;
    int turn;            /* rollbacks take two ways in turn */
    long long rows, wrong, wasted;
};

static void must(int status, const struct error *error)
{
    if (status != 0)
        die("%s", error->text);
}

static void must_kvf(kvf_status status, const char *what)
{
    if (status != KVF_OK)
        die("%s: %s", what, kvf_status_name(status));
}

static void compare(struct run *r, const struct lane *lane, int n, const float *logits)
{
    const size_t vocab = (size_t)r->plan->check->loaded.model.shape.vocab;
    for (int i = 0; i < n; i++) {
        const float *expected = r->plan->logits[lane->text] + (size_t)(lane->len + i) * vocab;
        r->rows++;
        r->wrong += memcmp(expected, logits + (size_t)i * vocab, vocab * sizeof *logits) != 0;
    }
}

/* Slots that a sequence has beyond its tokens: never a whole page. */
static void count_waste(struct run *r)
{
    for (int i = 0; i < r->n_lanes; i++) {
        kvf_seq_info info = { .struct_size = sizeof info };
        uint32_t pages;
        must_kvf(kvf_seq_info_read(step_manager(r->cache), r->lanes[i].sequence, &info), "kvf_seq_info_read");
        must_kvf(kvf_seq_pages(step_manager(r->cache), r->lanes[i].sequence, 0, &pages), "kvf_seq_pages");
        r->wasted += (long long)pages * r->variant.page_tokens - info.len >= r->variant.page_tokens;
    }
}

static void truncate_lane(struct run *r, struct lane *lane, int len)
{
    must_kvf(kvf_seq_truncate(step_manager(r->cache), lane->sequence, (uint32_t)len), "kvf_seq_truncate");
    lane->len = len;
}

/* One step: up to `chunk` tokens of every lane, none beyond `end`; with drafts behind them that are taken back. */
static int step(struct run *r, int end)
{
    const int drafts = r->variant.rollback ? DRAFTS : 0, late = r->turn++ % 2;
    kvf_accept accepts[MAX_LANES];
    struct cache_batch batch;
    struct lane *added[MAX_LANES];
    int counts[MAX_LANES], n = 0, row = 0;
    struct error error;

    must(r->cache->begin(r->cache, &error), &error);
    for (int i = 0; i < r->n_lanes; i++) {
        struct lane *lane = &r->lanes[i];
        int32_t tokens[MAX_TOKENS + DRAFTS];
        const int left = end - lane->len, count = left < r->variant.chunk ? left : r->variant.chunk;
        if (count <= 0)
            continue;
        memcpy(tokens, r->plan->texts[lane->text] + lane->len, (size_t)count * sizeof *tokens);
        for (int d = 0; d < drafts; d++)
            tokens[count + d] = (tokens[d % count] + 1) % r->plan->check->loaded.model.shape.vocab;
        if (r->cache->add(r->cache, lane->sequence, tokens, count + drafts, count + drafts, &error) != CACHE_OK)
            die("no room for a step: %s", error.text);
        added[n] = lane;
        counts[n] = count;
        /* Drafts are refused at once, or count until a truncate, as tokens that are not verified. */
        accepts[n++] = (kvf_accept){ .accepted = (uint32_t)(late ? count + drafts : count),
                                     .verified = (uint32_t)count };
    }
    if (n == 0) {
        r->cache->abort(r->cache);
        return 0;
    }
    must(r->cache->finish(r->cache, &batch, &error), &error);
    scramble_batch(&r->scramble);
    must(engine_forward(r->engine, r->cache->kv, batch.tokens, batch.rows, batch.n, r->logits, &error), &error);
    for (int i = 0; i < n; i++) {
        compare(r, added[i], counts[i], r->logits + (size_t)row * (size_t)r->plan->check->loaded.model.shape.vocab);
        row += counts[i] + drafts;
    }
    must_kvf(kvf_plan_commit(step_manager(r->cache), accepts, (size_t)n), "kvf_plan_commit");
    row = 0;
    for (int i = 0; i < n; i++) {
        added[i]->len += counts[i];
        if (late && drafts)
            truncate_lane(r, added[i], added[i]->len);
        for (int d = 0; d < drafts; d++)
            scramble_slot(&r->scramble, step_view(r->cache, 0).slots[row + counts[i] + d]);
        row += counts[i] + drafts;
    }
    count_waste(r);
    scramble_free_pages(&r->scramble);
    return 1;
}

static void open_lane(struct run *r, int text, int n, int expected)
{
    struct error error;
    struct lane *lane = &r->lanes[r->n_lanes++];

    lane->text = text;
    if (r->cache->open(r->cache, r->plan->texts[text], n, &lane->sequence, &lane->len, &error) != CACHE_OK)
        die("a sequence cannot be opened: %s", error.text);
    if (lane->len != expected)
        die("a match gave %d tokens, not %d", lane->len, expected);
}

/* Computes and publishes the beginning of text 0, in a sequence that goes on with something else. */
static void publish(struct run *r)
{
    struct error error;
    open_lane(r, 0, r->plan->published + 1, 0);
    while (step(r, r->plan->published))
        ;
    must(r->cache->close(r->cache, r->lanes[0].sequence, CACHE_KEEP, &error), &error);
    r->n_lanes = 0;
    scramble_free_pages(&r->scramble);
}

static void scenario(struct run *r)
{
    const struct plan *plan = r->plan;
    const int page = r->variant.page_tokens;
    const int hit = r->variant.hit ? plan->published / page * page : 0;
    struct error error;

    if (r->variant.hit)
        publish(r);
    open_lane(r, 0, plan->total, hit);
    if (r->variant.rollback && hit > CUT)
        truncate_lane(r, &r->lanes[0], hit - CUT); /* inside a published page: the next write copies it */
    while (step(r, plan->fork))
        ;
    if (r->variant.fork) {
        struct lane *child = &r->lanes[r->n_lanes];
        if (r->cache->fork(r->cache, r->lanes[0].sequence, &child->sequence, 1, &error) != CACHE_OK)
            die("a sequence cannot be forked: %s", error.text);
        child->text = 1;
        child->len = r->lanes[0].len;
        r->n_lanes++;
        if (r->variant.rollback)
            truncate_lane(r, &r->lanes[0], plan->fork - CUT);
    }
    while (step(r, plan->total))
        ;
    for (int i = 0; i < r->n_lanes; i++)
        must(r->cache->close(r->cache, r->lanes[i].sequence, i ? CACHE_DISCARD : CACHE_KEEP, &error), &error);
}

/* Runs a variant; adds what it did to *sum. Returns 1 iff something was wrong. */
static int run_variant(const struct plan *plan, const struct variant *variant, struct run *sum)
{
    const struct model *model = &plan->check->loaded.model;
    const int pages = scramble_pages(4 * (plan->total + DRAFTS) / variant->page_tokens + 16);
    const int rows = MAX_LANES * (variant->chunk + DRAFTS);
    const struct step_config config = { variant->page_tokens, pages, MAX_LANES, rows, { .format = "f32" } };
    struct run r = { .plan = plan, .variant = *variant };
    struct error error;
    int failed;

    r.threads = threads_new(0);
    r.cache = step_new(&config, &model->shape, r.threads, &error);
    r.engine = r.cache ? engine_new(model, r.threads, rows, &error) : NULL;
    r.logits = malloc((size_t)rows * (size_t)model->shape.vocab * sizeof *r.logits);
    if (!r.engine || !r.logits)
        die("%s", error.text);
    scramble_start(&r.scramble, r.cache, model->shape.layers, variant->page_tokens, pages);
    scenario(&r);
    failed = r.wrong > 0 || r.wasted > 0 || r.scramble.neighbours > 0;
    if (failed)
        printf("identity-paged %s P %d hit %d fork %d rollback %d chunk %d: %lld of %lld rows differ, %lld times a "
               "whole page wasted, %lld neighbours\n", plan->check->model_name, variant->page_tokens, variant->hit,
               variant->fork, variant->rollback, variant->chunk, r.wrong, r.rows, r.wasted, r.scramble.neighbours);
    sum->rows += r.rows;
    sum->wrong += r.wrong;
    sum->wasted += r.wasted;
    sum->scramble.neighbours += r.scramble.neighbours;
    sum->scramble.copies += r.scramble.copies;
    sum->scramble.poisoned += r.scramble.poisoned;
    engine_free(r.engine);
    r.cache->free(r.cache);
    threads_free(r.threads);
    free(r.logits);
    return failed;
}

/* The same texts without pages, in chunks of `chunk`. */
static void compute_expected(struct plan *plan, int chunk)
{
    const size_t vocab = (size_t)plan->check->loaded.model.shape.vocab;
    struct runner r = runner_start(&plan->check->loaded.model, 0, MAX_LANES, plan->total);

    for (int text = 0; text < MAX_LANES; text++) {
        if (!plan->logits[text])
            plan->logits[text] = malloc((size_t)plan->total * vocab * sizeof(float));
        if (!plan->logits[text])
            die("out of memory");
        for (int at = 0; at < plan->total; at += chunk) {
            const int n = plan->total - at < chunk ? plan->total - at : chunk;
            runner_run(&r, text, plan->texts[text] + at, at, n, 1);
            memcpy(plan->logits[text] + (size_t)at * vocab, r.logits, (size_t)n * vocab * sizeof(float));
        }
    }
    runner_stop(&r);
}

int check_paged(struct check *check)
{
    static const int page_sizes[] = { 1, 16, 64 }, chunks[] = { 1, 7, 64 };
    const int small = check->loaded.model.shape.layers <= 8; /* a model of which all variants are affordable */
    static struct plan plan;
    struct run sums[3] = { { 0 } };
    int failures = 0, runs[3] = { 0 };

    plan = (struct plan){ .check = check, .total = small ? 150 : 100, .fork = small ? 117 : 70,
                          .published = small ? 100 : 66 };
    for (int i = 0; i < plan.total; i++) {
        for (int text = 0; text < MAX_LANES; text++)
            plan.texts[text][i] = (int32_t)(random_bits(i < plan.fork ? 11 : (uint64_t)(12 + text), (uint64_t)i) %
                                            (uint64_t)check->loaded.model.shape.vocab);
    }
    for (int c = 0; c < 3; c++) {
        if (!small && chunks[c] == 1)
            continue;
        compute_expected(&plan, chunks[c]);
        for (int p = 0; p < 3; p++) {
            for (int bits = small ? 0 : 7; bits < 8; bits++) {
                const struct variant v = { page_sizes[p], bits & 1, bits >> 1 & 1, bits >> 2 & 1, chunks[c] };
                if (!small && (chunks[c] == 7) != (page_sizes[p] == 16))
                    continue; /* P 16 in chunks of 7, the others in chunks of 64 */
                failures += run_variant(&plan, &v, &sums[p]);
                runs[p]++;
            }
        }
    }
    for (int p = 0; p < 3; p++)
        printf("identity-paged %s P %d: %d runs, %lld rows of logits against contiguous ones: %s; %lld page copies, "
               "%lld pages filled with NaN, %lld sequences with %d unused slots or more, %lld neighbouring pages\n",
               check->model_name, page_sizes[p], runs[p], sums[p].rows, sums[p].wrong ? "bits differ" : "same bits",
               sums[p].scramble.copies, sums[p].scramble.poisoned, sums[p].wasted, page_sizes[p],
               sums[p].scramble.neighbours);
    for (int text = 0; text < MAX_LANES; text++)
        free(plan.logits[text]);
    return failures;
}
