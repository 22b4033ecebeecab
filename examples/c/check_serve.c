/*
 * Checks greedy-paged and serve: the scheduler over pages makes the reference texts, and over pages whatever the
 * settings the texts that it makes without pages.
 */
#include "check.h"

#include "cache_contiguous.h"
#include "random.h"
#include "scheduler.h"
#include "step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPTS = 10, MAX_PROMPT = 90, MADE = 40, SAMPLES = 3 };

/* How requests are served. page_tokens = 0: without pages. */
struct setting {
    int page_tokens, pages, batch, chunk, draft;
    const char *kv;
};

/* A scheduler with all that it borrows. */
struct server {
    struct threads *threads;
    struct cache *cache;
    struct engine *engine;
    struct scheduler *scheduler;
};

static struct server server_start(const struct model *model, const struct setting *set, int32_t end)
{
    const struct scheduler_config config = { .max_running = set->batch, .chunk = set->chunk, .draft = set->draft,
                                             .context = model->shape.context, .page_tokens = set->page_tokens,
                                             .end = end };
    const int rows = scheduler_rows(&config);
    const struct step_config step = { set->page_tokens, set->pages, set->batch + 1, rows, { .format = set->kv } };
    struct server v;
    struct error error;

    v.threads = threads_new(0);
    v.cache = set->page_tokens ? step_new(&step, &model->shape, v.threads, &error)
                               : cache_contiguous_new(&model->shape, v.threads, &step.kv, 0, set->batch,
                                                      model->shape.context, rows, &error);
    v.engine = v.cache ? engine_new(model, v.threads, rows, &error) : NULL;
    v.scheduler = v.engine ? scheduler_new(&config, model, v.engine, v.cache, &error) : NULL;
    if (!v.scheduler)
        die("%s", error.text);
    return v;
}

static void server_run(struct server *v)
{
    struct error error;
    int left;

    while ((left = scheduler_step(v->scheduler, &error)) > 0)
        ;
    if (left < 0)
        die("%s", error.text);
}

static void server_stop(struct server *v)
{
    scheduler_free(v->scheduler);
    engine_free(v->engine);
    v->cache->free(v->cache);
    threads_free(v->threads);
}

static void submit(struct server *v, const int32_t *tokens, int n, int max_new, int samples,
                   const struct sampling *sampling)
{
    struct error error;
    if (scheduler_submit(v->scheduler, tokens, n, max_new, samples, sampling, &error) < 0)
        die("%s", error.text);
}

/* ---- greedy-paged ---- */

/* All prompts at the same time. Returns the number of texts that differ. */
static int reference_texts(struct check *check, const struct setting *set, int must_preempt)
{
    static const struct sampling greedy = { 0 };
    struct server v = server_start(&check->loaded.model, set, -1);
    const struct scheduler_counts *counts = scheduler_counts(v.scheduler);
    const int n = check->reference.n_runs;
    int agree = 0, ids = 0, failures;

    for (int i = 0; i < n; i++) {
        const struct reference_run *run = &check->reference.runs[i];
        submit(&v, run->prompt.ids, run->prompt.count, run->greedy.count, 1, &greedy);
    }
    server_run(&v);
    for (int i = 0; i < n; i++) {
        const struct reference_run *run = &check->reference.runs[i];
        const struct request *r = scheduler_request(v.scheduler, i);
        const size_t bytes = (size_t)run->greedy.count * sizeof(int32_t);
        const int same = r->n_tokens - r->n_prompt == run->greedy.count &&
                         memcmp(r->tokens + r->n_prompt, run->greedy.ids, bytes) == 0;
        agree += same;
        ids += run->greedy.count;
        if (!same)
            printf("greedy-paged %s %-50.50s differs\n", check->model_name, run->name);
    }
    failures = n - agree + (must_preempt && counts->preempted == 0);
    printf("greedy-paged %s P %d, %d pages, drafts of %d: %d of %d texts agree (%d ids); %lld preempted, %lld of %lld "
           "drafted tokens right\n", check->model_name, set->page_tokens, set->pages, set->draft, agree, n, ids,
           counts->preempted, counts->accepted, counts->drafted);
    server_stop(&v);
    return failures;
}

int check_greedy_paged(struct check *check)
{
    static const struct setting small[] = {
        { 1, 1024, 8, 64, 0, "f32" },
        { 16, 512, 8, 64, 4, "f32" },
        { 64, 64, 8, 7, 4, "f32" },
        { 16, 20, 8, 64, 4, "f32" }, /* too few for all: some must give way */
    };
    static const struct setting large = { 16, 256, 8, 64, 0, "f32" };
    int failures = 0;

    if (check->loaded.model.shape.layers > 8)
        return reference_texts(check, &large, 0);
    for (int i = 0; i < 4; i++)
        failures += reference_texts(check, &small[i], i == 3);
    return failures;
}

/* ---- serve ---- */

/* Prompts with a common beginning: some made greedily, which drafts can guess, some as warm samples. */
static void serve(struct check *check, const struct setting *set, struct server *v)
{
    static const struct sampling greedy = { 0 }, warm = { .temperature = 0.9f, .top_p = 0.95f, .seed = 5 };
    const uint64_t vocab = (uint64_t)check->loaded.model.shape.vocab;

    *v = server_start(&check->loaded.model, set, tokenizer_end(check->loaded.tokenizer));
    for (int p = 0; p < PROMPTS; p++) {
        int32_t tokens[MAX_PROMPT];
        const int n = 40 + 5 * p, shared = p % 3 ? 37 : 20;
        for (int i = 0; i < n; i++)
            tokens[i] = (int32_t)(random_bits(i < shared ? 3 : 4 + (uint64_t)p, (uint64_t)(i % 29)) % vocab);
        submit(v, tokens, n, MADE, p % 2 ? SAMPLES : 1, p % 2 ? &warm : &greedy);
    }
    server_run(v);
}

/* Text of a sample; its id depends on when its prompt was forked. */
static const struct request *find(const struct server *v, int prompt, int sample)
{
    for (int i = 0; i < scheduler_requests(v->scheduler); i++) {
        const struct request *r = scheduler_request(v->scheduler, i);
        if (r->prompt_id == prompt && r->sample == sample)
            return r;
    }
    die("sample %d of prompt %d was never made", sample, prompt);
}

/*
 * Serves as `set` says and compares with what was made before. Returns 1 iff a text differs, a page is lost, or no
 * draft is right.
 */
static int compare(struct check *check, const struct setting *set, const struct server *expected, const char *with)
{
    const struct scheduler_counts *counts;
    struct cache_usage usage;
    struct server v;
    int texts = 0, agree = 0, failed;

    serve(check, set, &v);
    counts = scheduler_counts(v.scheduler);
    v.cache->usage(v.cache, &usage);
    for (int p = 0; p < PROMPTS; p++) {
        for (int sample = 0; sample < (p % 2 ? SAMPLES : 1); sample++) {
            const struct request *a = find(expected, p, sample), *b = find(&v, p, sample);
            texts++;
            agree += a->end == b->end && a->n_tokens == b->n_tokens &&
                     memcmp(a->tokens, b->tokens, (size_t)a->n_tokens * sizeof *a->tokens) == 0;
        }
    }
    printf("serve %s P %d, %d pages, drafts of %d: %d of %d texts as with %s; %lld tokens hit, %lld computed (there "
           "%lld), %lld forked, %lld preempted, %lld copies, %lld of %lld drafted tokens right, %d pages left in use\n",
           check->model_name, set->page_tokens, set->pages, set->draft, agree, texts, with, counts->hit_tokens,
           counts->computed_tokens, scheduler_counts(expected->scheduler)->computed_tokens, counts->forked,
           counts->preempted, usage.copies, counts->accepted, counts->drafted, usage.used);
    failed = agree < texts || usage.used != 0 || (set->draft > 0) != (counts->accepted > 0);
    server_stop(&v);
    return failed;
}

int check_serve(struct check *check)
{
    static const struct setting contiguous = { 0, 0, 4, 64, 0, "f32" };
    static const struct setting paged[] = {
        { 16, 512, 16, 64, 0, "f32" },
        { 16, 512, 16, 16, 3, "f32" },
        { 1, 2048, 6, 33, 2, "f32" },
        { 64, 40, 16, 64, 3, "f32" },
        { 16, 24, 16, 64, 3, "f32" }, /* pages are short */
        { 16, 10, 16, 64, 0, "f32" }, /* barely enough for one */
    };
    static const char *const halves[] = { "f16", "bf16" };
    static const struct setting sealed_alone = { 0, 0, 4, 64, 0, "int4-channel" };
    static const struct setting sealed[] = {
        { 32, 512, 16, 64, 0, "int4-channel" },
        { 32, 12, 16, 33, 3, "int4-channel" }, /* sealed pages are short */
        { 32, 4, 16, 64, 0, "int4-channel" },  /* barely enough for one */
    };
    struct server expected;
    int failures = 0;

    serve(check, &contiguous, &expected);
    for (size_t i = 0; i < sizeof paged / sizeof *paged; i++)
        failures += compare(check, &paged[i], &expected, "arrays of f32");
    server_stop(&expected);
    for (int i = 0; i < 2; i++) {
        const struct setting one = { 1, 4096, 16, 64, 0, halves[i] }, other = { 16, 24, 16, 33, 3, halves[i] };
        serve(check, &one, &expected);
        failures += compare(check, &other, &expected, i ? "bf16 in pages of one token" : "f16 in pages of one token");
        server_stop(&expected);
    }
    serve(check, &sealed_alone, &expected);
    for (size_t i = 0; i < sizeof sealed / sizeof *sealed; i++)
        failures += compare(check, &sealed[i], &expected, "pages sealed without a manager");
    server_stop(&expected);
    return failures;
}
