/*
 * kvf-record: what the heads of a model pay attention to over a text, for `kvf train` and `kvf judge`.
 *
 *     kvf-record --text FILE --out FILE [--model FILE] [--from N] [--tokens N]
 *
 * The model reads tokens N to N + tokens - 1 of the text (0 and 1,024 by default), and nothing is evicted. What is written is
 * described in examples/rust/kvf/learn/recording.rs.
 *
 * Environment: KVF_MODEL as for kvf-chat. Exit status: 0, 1 it could not be done, 2 usage.
 */
#include "file.h"
#include "forward.h"
#include "load.h"
#include "streams.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64, PAGE = 16 };

struct record {
    const char *model, *text, *out;
    int from, tokens;
    struct loaded loaded;
    struct threads *threads;
    struct engine *engine;
    struct cache *cache;
    uint64_t sequence;
    size_t of_head;      /* elements of the rows of one KV head */
    uint16_t *rows;      /* [layers][kv heads][of_head] f16 */
};

/* Adds up what the heads of a group paid; different streams at the same time. */
static void tell(void *user, const struct streams_view *view, int chat, int stream, int position,
                 const float *probabilities, int slots)
{
    struct record *r = user;
    const struct model_shape *shape = &r->loaded.model.shape;
    const size_t n = (size_t)position + 1;
    uint16_t *row = r->rows + (size_t)stream * r->of_head + n * (n - 1) / 2;
    (void)view, (void)chat;

    for (size_t slot = 0; slot < n; slot++) { /* nothing is evicted: a slot is a position */
        float sum = 0;
        for (int h = 0; h < shape->heads / shape->kv_heads; h++)
            sum += probabilities[(size_t)h * (size_t)slots + slot];
        kvf_cpu_from_f32(KVF_KERNEL_DTYPE_F16, &sum, &row[slot], 1);
    }
}

static int start(struct record *r, struct error *error)
{
    const struct model_shape *shape = &r->loaded.model.shape;
    const int columns = (r->tokens + PAGE - 1) / PAGE, streams = shape->layers * shape->kv_heads;
    const struct streams_config config = { .page_tokens = PAGE, .pages = columns * streams, .columns = columns,
                                           .max_sequences = 1, .max_rows = CHUNK, .chunk = CHUNK,
                                           .longest = r->tokens };
    int hit;

    r->of_head = (size_t)r->tokens * (size_t)(r->tokens + 1) / 2;
    r->rows = malloc((size_t)streams * r->of_head * sizeof *r->rows);
    r->threads = threads_new(0);
    if (!r->rows || !r->threads)
        return fail(error, "out of memory for attention over %d tokens", r->tokens);
    r->engine = engine_new(&r->loaded.model, r->threads, CHUNK, error);
    r->cache = r->engine ? streams_new(&config, shape, r->threads, error) : NULL;
    if (!r->cache)
        return -1;
    if (r->cache->open(r->cache, NULL, 0, &r->sequence, &hit, error) != CACHE_OK)
        return fail(error, "no room for %d tokens", r->tokens);
    streams_watch(r->cache, &(struct streams_watch){ r, tell });
    return 0;
}

static int read_tokens(struct record *r, const int32_t *tokens, struct error *error)
{
    for (int len = 0; len < r->tokens;) {
        const int32_t count = r->tokens - len < CHUNK ? r->tokens - len : CHUNK;
        struct cache_batch batch;

        if (r->cache->begin(r->cache, error) != 0 ||
            r->cache->add(r->cache, r->sequence, tokens + len, count, 0, error) != CACHE_OK ||
            r->cache->finish(r->cache, &batch, error) != 0 ||
            engine_forward(r->engine, r->cache->kv, batch.tokens, batch.rows, batch.n, NULL, error) != 0 ||
            r->cache->commit(r->cache, &count, error) != 0)
            return -1;
        len += count;
    }
    return 0;
}

/* Lengths of the keys of a head, or of its values. */
static int write_norms(const struct record *r, const struct streams_view *view, int of_values, FILE *out)
{
    const kvf_kernel_pages *pages = &view->pages;
    const char *base = of_values ? pages->v : pages->k;
    const uint64_t page = of_values ? pages->v_page_stride : pages->k_page_stride;
    const uint64_t token = of_values ? pages->v_token_stride : pages->k_token_stride;

    for (uint32_t i = 0; i < (uint32_t)r->tokens; i++) {
        const void *vector = base + (uint64_t)view->table[i / PAGE] * page + i % PAGE * token;
        float norm;
        if (kvf_keysum_norm(vector, (size_t)r->loaded.model.shape.head_dim, &norm) != KVF_OK ||
            fwrite(&norm, sizeof norm, 1, out) != 1)
            return -1;
    }
    return 0;
}

static int write_all(const struct record *r, FILE *out)
{
    const struct model_shape *shape = &r->loaded.model.shape;
    const uint32_t header[] = { (uint32_t)shape->layers, (uint32_t)shape->kv_heads,
                                (uint32_t)(shape->heads / shape->kv_heads), (uint32_t)r->tokens };

    if (fwrite("KVFATTN1", 8, 1, out) != 1 || fwrite(header, sizeof header, 1, out) != 1)
        return -1;
    for (int i = 0; i < shape->layers * shape->kv_heads; i++) {
        const struct streams_view view = streams_view(r->cache, r->sequence, i / shape->kv_heads, i % shape->kv_heads);
        if (write_norms(r, &view, 0, out) != 0 || write_norms(r, &view, 1, out) != 0 ||
            fwrite(r->rows + (size_t)i * r->of_head, sizeof *r->rows, r->of_head, out) != r->of_head)
            return -1;
    }
    return 0;
}

static int record(struct record *r, struct error *error)
{
    struct file file;
    int32_t *tokens;
    size_t n;
    FILE *out;
    int status;

    if (load(&r->loaded, r->model, error) != 0 || file_map(&file, r->text, error) != 0)
        return -1;
    if (tokenizer_encode(r->loaded.tokenizer, (const char *)file.data, file.size, &tokens, &n, error) != 0)
        return -1;
    file_unmap(&file);
    if (n < (size_t)r->from + (size_t)r->tokens)
        return fail(error, "%s has %zu tokens", r->text, n);
    if (r->tokens > r->loaded.model.shape.context)
        return fail(error, "the model reads %d tokens at most", r->loaded.model.shape.context);
    if (start(r, error) != 0 || read_tokens(r, tokens + r->from, error) != 0)
        return -1;
    free(tokens);
    out = fopen(r->out, "wb");
    if (!out)
        return fail(error, "%s: cannot be written", r->out);
    status = write_all(r, out);
    if (fclose(out) != 0 || status != 0)
        return fail(error, "%s: cannot be written", r->out);
    printf("%s: tokens %d to %d of %s\n", r->out, r->from, r->from + r->tokens - 1, r->text);
    return 0;
}

static int whole(const char *text, int least, int *value)
{
    char *end;
    const long number = strtol(text, &end, 10);

    *value = (int)number;
    return end == text || *end || number < least || number > 1 << 20;
}

static int read_options(struct record *r, int argc, char **argv)
{
    static const struct option names[] = { { "text", 1, NULL, 't' },   { "out", 1, NULL, 'o' },
                                           { "model", 1, NULL, 'm' },  { "from", 1, NULL, 'f' },
                                           { "tokens", 1, NULL, 'n' }, { NULL, 0, NULL, 0 } };
    int option, bad = 0;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 't': r->text = optarg; break;
        case 'o': r->out = optarg; break;
        case 'm': r->model = optarg; break;
        case 'f': bad |= whole(optarg, 0, &r->from); break;
        case 'n': bad |= whole(optarg, 1, &r->tokens); break;
        default: return -1;
        }
    }
    return bad || optind < argc || !r->text || !r->out ? -1 : 0;
}

int main(int argc, char **argv)
{
    static struct record r = { .tokens = 1024 };
    struct error error;
    int status;

    r.model = getenv("KVF_MODEL");
    if (!r.model || !*r.model)
        r.model = ".cache/SmolLM2-135M-Instruct.Q4_1.gguf";
    if (read_options(&r, argc, argv) != 0) {
        fprintf(stderr, "usage: kvf-record --text FILE --out FILE [--model FILE] [--from N] [--tokens N]\n");
        return 2;
    }
    status = record(&r, &error);
    if (status != 0)
        fprintf(stderr, "kvf-record: %s\n", error.text);
    if (r.cache)
        r.cache->free(r.cache);
    engine_free(r.engine);
    threads_free(r.threads);
    free(r.rows);
    unload(&r.loaded);
    return status != 0;
}
