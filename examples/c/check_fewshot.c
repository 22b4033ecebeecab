/*
 * Check fewshot: 16 chats over one few-shot prompt lie in exactly the pages, and cost exactly the tokens, that a plain
 * comparison of token arrays says; and so do all 200 questions.
 */
#include "check.h"

#include "step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHATS = 16, QUESTIONS = 200, PREFIX = 1083, ROWS = 64, FULL_PAGES = 14285, DISTINCT_PAGES = 941 };

/* The prompts: the worked examples, then one question each. */
struct prompts {
    struct id_list ids[QUESTIONS];
    int n;
};

static void must(int status, const struct error *error)
{
    if (status != 0)
        die("%s", error->text);
}

static int expect(const char *what, long long got, long long expected)
{
    printf("fewshot %s: %lld, expected %lld\n", what, got, expected);
    return got != expected;
}

/* Reads lines "xHEX" of scripts/fewshot_to_txt.py: the prompts as text. */
static void read_prompts(const struct check *check, const char *path, struct prompts *prompts)
{
    FILE *file = fopen(path, "r");
    static char line[1 << 16], text[1 << 15];
    struct error error;

    prompts->n = 0;
    while (file && prompts->n < QUESTIONS && fgets(line, sizeof line, file)) {
        size_t size = 0, count;
        unsigned byte;
        for (const char *at = line + 1; sscanf(at, "%2x", &byte) == 1; at += 2)
            text[size++] = (char)byte;
        must(tokenizer_encode(check->loaded.tokenizer, text, size, &prompts->ids[prompts->n].ids, &count, &error),
             &error);
        prompts->ids[prompts->n++].count = (int)count;
    }
    if (file)
        fclose(file);
    if (prompts->n < CHATS)
        die("%s has %d prompts", path, prompts->n);
}

/* The longest run of tokens, in whole pages and leaving one to compute, that prompt i shares with one before it. */
static int longest_common(const struct prompts *prompts, int i, int before, int page)
{
    const struct id_list *a = &prompts->ids[i];
    int best = 0;

    for (int j = 0; j < before; j++) {
        const struct id_list *b = &prompts->ids[j];
        const int a_pages = (a->count - 1) / page * page, b_pages = b->count / page * page;
        const int most = a_pages < b_pages ? a_pages : b_pages;
        int common = 0;
        while (common < most && a->ids[common] == b->ids[common])
            common++;
        common = common / page * page;
        best = common > best ? common : best;
    }
    return best;
}

/* Sequences of the prompts in one cache. Without an engine only the bookkeeping is done. */
struct run {
    const struct prompts *prompts;
    int page, vocab;
    struct threads *threads;
    struct cache *cache;
    struct engine *engine;
    float *logits;           /* of the last row of the last step */
    uint64_t sequences[QUESTIONS];
    int lens[QUESTIONS];
    long long computed;      /* tokens */
    long long unexpected;    /* hits that differ from a plain comparison */
    long long wasted;        /* times that a sequence had a page too many */
};

static struct run run_start(const struct check *check, const struct prompts *prompts, int page, int pages, int forward)
{
    const struct model *model = &check->loaded.model;
    const struct step_config config = { page, pages, CHATS, ROWS, { .format = "f32" } };
    struct run r = { .prompts = prompts, .page = page, .vocab = model->shape.vocab };
    struct error error;

    r.threads = threads_new(0);
    r.cache = step_new(&config, &model->shape, r.threads, &error);
    if (r.cache && forward) {
        r.engine = engine_new(model, r.threads, ROWS, &error);
        r.logits = malloc((size_t)ROWS * (size_t)model->shape.vocab * sizeof *r.logits);
    }
    if (!r.cache || (forward && (!r.engine || !r.logits)))
        die("%s", error.text);
    return r;
}

static void run_stop(struct run *r)
{
    engine_free(r->engine);
    r->cache->free(r->cache);
    threads_free(r->threads);
    free(r->logits);
}

/* Opens prompt i when the first `before` prompts are published, and compares what the match gives. */
static void open_prompt(struct run *r, int i, int before)
{
    const struct id_list *ids = &r->prompts->ids[i];
    struct error error;

    if (r->cache->open(r->cache, ids->ids, ids->count, &r->sequences[i], &r->lens[i], &error) != CACHE_OK)
        die("prompt %d cannot be opened: %s", i, error.text);
    r->unexpected += r->lens[i] != longest_common(r->prompts, i, before, r->page);
}

/* Counts sequences that have a page more than their tokens need. */
static void count_waste(struct run *r, int i)
{
    kvf_seq_info info = { .struct_size = sizeof info };
    uint32_t pages;

    if (kvf_seq_info_read(step_manager(r->cache), r->sequences[i], &info) != KVF_OK ||
        kvf_seq_pages(step_manager(r->cache), r->sequences[i], 0, &pages) != KVF_OK)
        die("prompt %d cannot be read", i);
    r->wasted += (long long)pages * r->page - info.len > r->page - 1;
}

/* One step over prompts first..end-1: up to ROWS of their missing tokens. Returns 0 when nothing is missing. */
static int step(struct run *r, int first, int end)
{
    int32_t accepted[CHATS];
    int added[CHATS], n = 0, room = ROWS;
    struct cache_batch batch;
    struct error error;

    must(r->cache->begin(r->cache, &error), &error);
    for (int i = first; i < end && room > 0; i++) {
        const int left = r->prompts->ids[i].count - r->lens[i], count = left < room ? left : room;
        if (left == 0)
            continue;
        if (r->cache->add(r->cache, r->sequences[i], r->prompts->ids[i].ids + r->lens[i], count, count == left,
                          &error) != CACHE_OK)
            die("no room for prompt %d", i);
        accepted[n] = count;
        added[n++] = i;
        room -= count;
    }
    if (n == 0) {
        r->cache->abort(r->cache);
        return 0;
    }
    must(r->cache->finish(r->cache, &batch, &error), &error);
    if (r->engine) {
        const size_t vocab = (size_t)r->vocab;
        int wanted = 0;
        for (int row = 0; row < batch.n; row++)
            wanted += batch.rows[row].want_logits;
        must(engine_forward(r->engine, r->cache->kv, batch.tokens, batch.rows, batch.n, r->logits, &error), &error);
        if (wanted > 1)
            memmove(r->logits, r->logits + (size_t)(wanted - 1) * vocab, vocab * sizeof *r->logits);
    }
    must(r->cache->commit(r->cache, accepted, &error), &error);
    for (int k = 0; k < n; k++) {
        r->lens[added[k]] += accepted[k];
        r->computed += accepted[k];
        count_waste(r, added[k]);
    }
    return 1;
}

/* The last prompt alone, without pages: its last logits must have the same bits. */
static int compare_logits(const struct check *check, const struct run *r, int i)
{
    const struct id_list *ids = &r->prompts->ids[i];
    const size_t vocab = (size_t)check->loaded.model.shape.vocab;
    struct runner alone = runner_start(&check->loaded.model, 0, 1, ids->count);
    int same;

    for (int at = 0; at < ids->count; at += CHECK_ROWS)
        runner_run(&alone, 0, ids->ids + at, at, ids->count - at < CHECK_ROWS ? ids->count - at : CHECK_ROWS, 0);
    same = memcmp(alone.logits, r->logits, vocab * sizeof *r->logits) == 0;
    printf("fewshot logits behind chat %d of %d tokens, most of them found: %s as without pages\n", i + 1, ids->count,
           same ? "same bits" : "not the same bits");
    runner_stop(&alone);
    return !same;
}

/* 16 chats at the same time, all but the first opened when the first is committed. */
static int check_chats(const struct check *check, const struct prompts *prompts, int page, int forward)
{
    struct run r = run_start(check, prompts, page, 4096 / page + 1024, forward);
    const int shared = page == 1 ? longest_common(prompts, 1, 1, 1) : PREFIX / page * page;
    struct cache_usage usage;
    long long pages = shared / page, alone = 0, tokens = 0;
    int failures = 0;
    char what[80];

    open_prompt(&r, 0, 0);
    while (step(&r, 0, 1))
        ;
    for (int i = 1; i < CHATS; i++)
        open_prompt(&r, i, 1);
    while (step(&r, 1, CHATS))
        ;
    for (int i = 0; i < CHATS; i++) {
        const int count = prompts->ids[i].count;
        pages += (count + page - 1) / page - shared / page;
        alone += (count + page - 1) / page;
        tokens += count - (i > 0 ? longest_common(prompts, i, 1, page) : 0);
    }
    r.cache->usage(r.cache, &usage);
    snprintf(what, sizeof what, "%d chats, P %d, pages in use (%lld if none were shared)", CHATS, page, alone);
    failures += expect(what, usage.used, pages);
    snprintf(what, sizeof what, "%d chats, P %d, tokens computed", CHATS, page);
    failures += expect(what, r.computed, tokens);
    failures += expect("matches that differ from a plain comparison", r.unexpected, 0);
    failures += expect("times that a sequence had P unused slots or more", r.wasted, 0);
    if (forward)
        failures += compare_logits(check, &r, CHATS - 1);
    run_stop(&r);
    return failures;
}

/* All questions, one after the other, in a pool that never evicts. Only the bookkeeping. */
static int check_all(const struct check *check, const struct prompts *prompts)
{
    struct run r = run_start(check, prompts, 16, 2048, 0);
    kvf_stats stats = { .struct_size = sizeof stats };
    long long full = 0, tokens = 0, hits = 0;
    struct error error;
    int failures = 0;

    for (int i = 0; i < prompts->n; i++) {
        open_prompt(&r, i, i);
        hits += r.lens[i];
        while (step(&r, i, i + 1))
            ;
        must(r.cache->close(r.cache, r.sequences[i], CACHE_KEEP, &error), &error);
        full += prompts->ids[i].count / 16;
        tokens += prompts->ids[i].count;
    }
    if (kvf_stats_read(step_manager(r.cache), &stats) != KVF_OK)
        die("the statistics cannot be read");
    failures += expect("prompts in all", prompts->n, QUESTIONS);
    failures += expect("full pages of all prompts", full, FULL_PAGES);
    failures += expect("distinct pages published", (long long)stats.published_pages, DISTINCT_PAGES);
    failures += expect("pages in the index", stats.indexed_pages, DISTINCT_PAGES);
    failures += expect("tokens hit and computed", hits + r.computed, tokens);
    failures += expect("matches that differ from a plain comparison", r.unexpected, 0);
    run_stop(&r);
    return failures;
}

int check_fewshot(struct check *check)
{
    static struct prompts prompts;
    int failures;

    read_prompts(check, check->fewshot, &prompts);
    failures = check_chats(check, &prompts, 16, 1) + check_chats(check, &prompts, 1, 0) + check_all(check, &prompts);
    for (int i = 0; i < prompts.n; i++)
        free(prompts.ids[i].ids);
    return failures;
}
