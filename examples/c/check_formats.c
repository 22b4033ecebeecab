/*
 * Check formats: however keys and values are kept, logits and pages have the same bits with a manager and without,
 * in chunks of any size, after a fork, rejected tokens and a truncate; a prefix that is found gives what computing
 * it gives, as far as the manager promises.
 *
 * Where pages are sealed late (kivi2), a sequence that found a prefix reads pages as sealed that one which computed
 * them still reads exact. That is compared with a sequence without a manager whose pages were sealed early. Pages of
 * sinks are exact for both.
 */
#include "check.h"

#include "cache_contiguous.h"
#include "kv_paged.h"
#include "random.h"
#include "step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOTAL = 260, FORK = 200, CUT = 3, DRAFTS = 3, MAX_CHUNK = 64, BACK = 96, SEQUENCES = 3 };

/* One cache with what it needs to run. */
struct machine {
    const struct model *model;
    struct kv_groups groups;
    struct threads *threads;
    struct cache *cache;
    struct engine *engine;
    float *logits; /* [MAX_CHUNK + DRAFTS][vocab] */
};

/* The two texts, the same up to FORK, and what was found. */
struct formats {
    const struct model *model;
    struct kv_spec spec;
    int32_t texts[2][TOTAL];
    float *expected[2]; /* [TOTAL][vocab] without a manager */
    float *got;         /* [TOTAL][vocab] */
    long long rows, wrong, pages, wrong_pages;
    int broken; /* things that did not hold */
};

static void must(int status, const struct error *error)
{
    if (status != 0)
        die("%s", error->text);
}

static size_t vocab_of(const struct formats *f)
{
    return (size_t)f->model->shape.vocab;
}

/* Fills the pages with what decodes to NaN in every format: nothing may be read before it is written. */
static void poison(const struct machine *m)
{
    for (int g = 0; g < m->groups.n; g++) {
        for (int sealed = 0; sealed < 2; sealed++) {
            const struct kv_pool *pool = kv_paged_pool(m->cache->kv, g, sealed);
            if (pool->memory)
                memset(pool->memory, 0xff, ((size_t)pool->pages + 1) * pool->layout->page_bytes);
        }
    }
}

static struct machine machine_start(const struct formats *f, int managed)
{
    const int rows = MAX_CHUNK + DRAFTS;
    struct machine m = { .model = f->model };
    struct error error;
    int sealed;

    must(kv_groups_make(&m.groups, &f->model->shape, &f->spec, 0, &error), &error);
    m.threads = threads_new(0);
    if (managed) {
        const struct step_config config = { 0, SEQUENCES * (TOTAL / m.groups.page_tokens + 2), SEQUENCES, rows,
                                            f->spec };
        m.cache = step_new(&config, &f->model->shape, m.threads, &error);
    } else {
        m.cache = cache_contiguous_new(&f->model->shape, m.threads, &f->spec, 0, 1, TOTAL, rows, &error);
    }
    m.engine = m.cache ? engine_new(f->model, m.threads, rows, &error) : NULL;
    m.logits = malloc((size_t)rows * vocab_of(f) * sizeof *m.logits);
    if (!m.engine || !m.logits)
        die("%s", error.text);
    if (managed || cache_contiguous_page(m.cache, 0, 0, 0, &sealed))
        poison(&m);
    return m;
}

static void machine_stop(struct machine *m)
{
    engine_free(m->engine);
    m->cache->free(m->cache);
    threads_free(m->threads);
    free(m->logits);
}

static uint64_t open_text(struct machine *m, const int32_t *text, int *hit)
{
    uint64_t sequence;
    struct error error;
    if (m->cache->open(m->cache, text, TOTAL, &sequence, hit, &error) != CACHE_OK)
        die("a sequence cannot be opened: %s", error.text);
    return sequence;
}

/* Tokens `from` to `end` - 1 of a text, with wrong tokens behind each step that are not accepted. */
static void run(struct machine *m, uint64_t sequence, const int32_t *text, int from, int end, int chunk, int drafts,
                float *logits)
{
    const size_t vocab = (size_t)m->model->shape.vocab;
    struct cache_batch batch;
    struct error error;

    for (int at = from, count; at < end; at += count) {
        int32_t tokens[MAX_CHUNK + DRAFTS];
        int most;
        count = end - at < chunk ? end - at : chunk;
        most = m->cache->run(m->cache, sequence, count + drafts);
        count = count < most ? count : most;
        for (int i = 0; i < most; i++)
            tokens[i] = i < count ? text[at + i] : (text[at] + 1 + i) % (int32_t)vocab;
        must(m->cache->begin(m->cache, &error), &error);
        if (m->cache->add(m->cache, sequence, tokens, most, most, &error) != CACHE_OK)
            die("no room for a step at %d: %s", at, error.text);
        must(m->cache->finish(m->cache, &batch, &error), &error);
        must(engine_forward(m->engine, m->cache->kv, batch.tokens, batch.rows, batch.n, m->logits, &error), &error);
        memcpy(logits + (size_t)at * vocab, m->logits, (size_t)count * vocab * sizeof *logits);
        must(m->cache->commit(m->cache, &(int32_t){ count }, &error), &error);
    }
}

static void expect(struct formats *f, int holds, const char *what)
{
    if (!holds)
        printf("formats %s: %s: does not hold\n", f->spec.format, what);
    f->broken += !holds;
}

static void compare(struct formats *f, const float *expected, int from, int end)
{
    for (int i = from; i < end; i++) {
        const size_t at = (size_t)i * vocab_of(f);
        f->rows++;
        f->wrong += memcmp(expected + at, f->got + at, vocab_of(f) * sizeof *expected) != 0 || isnan(f->got[at]);
    }
}

/* Full pages of a sequence with a manager against those of slot 0 without. */
static void compare_pages(struct formats *f, struct machine *m, uint64_t sequence, const struct machine *other)
{
    for (int g = 0; g < m->groups.n; g++) {
        int32_t table[TOTAL];
        uint32_t begin = 0, end = 0;
        if (kvf_table_dense(step_manager(m->cache), (uint32_t)g, &sequence, 1, TOTAL, 0, table, TOTAL) != KVF_OK ||
            kvf_seq_sealed_columns(step_manager(m->cache), sequence, (uint32_t)g, &begin, &end) != KVF_OK)
            die("a table cannot be read");
        for (int n = 0; n < TOTAL / m->groups.page_tokens; n++) {
            const int sealed = n >= (int)begin && n < (int)end;
            const struct kv_pool *pool = kv_paged_pool(m->cache->kv, g, sealed);
            int other_sealed;
            const void *page = cache_contiguous_page(other->cache, 0, g, n, &other_sealed);
            if (!page)
                continue;
            f->pages++;
            f->wrong_pages += other_sealed != sealed ||
                              memcmp(page, (const char *)pool->memory + (size_t)table[n] * pool->layout->page_bytes,
                                     pool->layout->page_bytes) != 0;
        }
    }
}

/* A text without a manager; from token `early` on all whole pages before it are read as sealed, -1 = as scheduled. */
static struct machine without(const struct formats *f, int text, int early, int chunk, float *logits)
{
    struct machine m = machine_start(f, 0);
    int hit;
    const uint64_t sequence = open_text(&m, f->texts[text], &hit);

    run(&m, sequence, f->texts[text], 0, early < 0 ? TOTAL : early, chunk, 0, logits);
    if (early >= 0) {
        cache_contiguous_seal(m.cache, sequence, early / m.groups.page_tokens);
        run(&m, sequence, f->texts[text], early, TOTAL, chunk, 0, logits);
    }
    return m;
}

/* What a sequence gives that goes on from `from`, where the pages before it were sealed early. */
static void compare_early(struct formats *f, int from)
{
    float *expected = malloc(TOTAL * vocab_of(f) * sizeof *expected);
    struct machine m;

    if (!expected)
        die("out of memory");
    m = without(f, 0, from, MAX_CHUNK, expected);
    compare(f, expected, from, TOTAL);
    machine_stop(&m);
    free(expected);
}

/* Computed, found, forked, taken back: all in one cache. */
static void managed(struct formats *f, int chunk, const struct machine *other)
{
    struct machine m = machine_start(f, 1);
    kvf_cache *kvf = step_manager(m.cache);
    int hit, is_late = 0, is_sealed = 0;
    uint64_t sequence = open_text(&m, f->texts[0], &hit), child;
    struct error error;

    for (int g = 0; g < m.groups.n; g++) {
        is_sealed |= m.groups.groups[g].format->kind == KV_SEALED;
        is_late |= m.groups.groups[g].format->recent > 0;
    }
    /* Computed. */
    run(&m, sequence, f->texts[0], 0, TOTAL, chunk, 0, f->got);
    compare(f, f->expected[0], 0, TOTAL);
    compare_pages(f, &m, sequence, other);
    must(m.cache->close(m.cache, sequence, CACHE_KEEP, &error), &error);

    /* Found. */
    sequence = open_text(&m, f->texts[0], &hit);
    expect(f, hit >= TOTAL / 3, "a third of the text is found");
    run(&m, sequence, f->texts[0], hit, TOTAL, chunk, 0, f->got);
    compare_early(f, hit);
    if (!is_late)
        compare(f, f->expected[0], hit, TOTAL);

    /* Taken back, into what is sealed only between pages. */
    expect(f, kvf_seq_truncate(kvf, sequence, BACK + CUT) == (is_sealed ? KVF_ERR_UNSUPPORTED : KVF_OK),
           "a sealed page cannot be cut, others can");
    expect(f, kvf_seq_truncate(kvf, sequence, BACK) == KVF_OK, "a sequence is taken back to the beginning of a page");
    run(&m, sequence, f->texts[0], BACK, TOTAL, chunk, 0, f->got);
    compare_early(f, BACK);
    must(m.cache->close(m.cache, sequence, CACHE_DISCARD, &error), &error);
    if (kvf_namespace_clear_all(kvf) != KVF_OK)
        die("the index cannot be cleared");

    /* Forked, with rejected tokens in every step; the parent is taken back a little. */
    sequence = open_text(&m, f->texts[0], &hit);
    run(&m, sequence, f->texts[0], hit, FORK, chunk, DRAFTS, f->got);
    if (m.cache->fork(m.cache, sequence, &child, 1, &error) != CACHE_OK)
        die("a sequence cannot be forked: %s", error.text);
    expect(f, hit == 0, "nothing is found in an index that was cleared");
    expect(f, kvf_seq_truncate(kvf, sequence, FORK - CUT) == KVF_OK, "what is not sealed can be taken back");
    run(&m, sequence, f->texts[0], FORK - CUT, TOTAL, chunk, DRAFTS, f->got);
    compare(f, f->expected[0], 0, TOTAL);
    compare_pages(f, &m, sequence, other);
    run(&m, child, f->texts[1], FORK, TOTAL, chunk, DRAFTS, f->got);
    compare(f, f->expected[1], FORK, TOTAL);
    machine_stop(&m);
}

static int check_format(struct formats *f, const char *model, uint64_t *key)
{
    static const int chunks[] = { 1, 7, 64 };
    struct machine first, second;
    struct kv_groups groups;
    struct error error;
    int failed;

    f->rows = f->wrong = f->pages = f->wrong_pages = f->broken = 0;
    *key = 0;
    /* Every format fits heads of whole blocks. */
    if (kv_groups_make(&groups, &f->model->shape, &f->spec, 0, &error) != 0) {
        failed = f->model->shape.head_dim % 32 == 0;
        printf("formats %s %s %s: not for this model: %s%s\n", model, f->spec.format,
               f->spec.layers ? f->spec.layers : "", error.text, failed ? "  FAILED" : "");
        return failed;
    }
    *key = kv_groups_key(&groups);
    first = without(f, 0, -1, 64, f->expected[0]);
    second = without(f, 1, -1, 64, f->expected[1]);
    for (int c = 0; c < 3; c++) {
        if (chunks[c] != 64) {
            struct machine m = without(f, 0, -1, chunks[c], f->got);
            compare(f, f->expected[0], 0, TOTAL);
            machine_stop(&m);
        }
        managed(f, chunks[c], &first);
    }
    machine_stop(&first);
    machine_stop(&second);
    failed = f->wrong > 0 || f->wrong_pages > 0 || f->broken > 0;
    printf("formats %s %s%s%s, %d sinks, in pages of %d: %lld of %lld rows of logits and %lld of %lld pages differ%s\n", model,
           f->spec.format, f->spec.layers ? ", " : "", f->spec.layers ? f->spec.layers : "", f->spec.sinks,
           groups.page_tokens,
           f->wrong, f->rows, f->wrong_pages, f->pages, failed ? "  FAILED" : "");
    return failed;
}

int check_formats(struct check *check)
{
    static const struct kv_spec mixed[] = {
        { "kivi2", "0=f16", "f16", 0 }, { "int8", "1=int4-channel", NULL, 0 }, { "int4-channel", "1=kivi2", NULL, 0 },
        { "f32", "0=bf16", NULL, 0 }, { "int4-channel", NULL, NULL, 4 }, { "kivi2", "1=int4-channel", "f16", 40 },
    };
    static struct formats f;
    uint64_t keys[KV_FORMATS + sizeof mixed / sizeof *mixed];
    int n = 0, failures = 0, equal = 0;

    f.model = &check->loaded.model;
    for (int text = 0; text < 2; text++) {
        f.expected[text] = malloc(TOTAL * vocab_of(&f) * sizeof(float));
        for (int i = 0; i < TOTAL; i++)
            f.texts[text][i] = (int32_t)(random_bits(i < FORK ? 31 : 32 + (uint64_t)text, (uint64_t)i) % vocab_of(&f));
    }
    f.got = malloc(TOTAL * vocab_of(&f) * sizeof *f.got);
    if (!f.expected[0] || !f.expected[1] || !f.got)
        die("out of memory");
    for (; n < KV_FORMATS; n++) {
        f.spec = (struct kv_spec){ .format = kv_format_at(n)->name };
        failures += check_format(&f, check->model_name, &keys[n]);
    }
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++, n++) {
        f.spec = mixed[i];
        failures += check_format(&f, check->model_name, &keys[n]);
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++)
            equal += keys[i] != 0 && keys[i] == keys[j];
    }
    printf("formats %s: %d of %d namespace keys are those of another format\n", check->model_name, equal, n);
    for (int text = 0; text < 2; text++)
        free(f.expected[text]);
    free(f.got);
    return failures + equal;
}
