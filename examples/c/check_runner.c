/* An engine with its own threads and cache, for the checks. */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("model_check: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

struct runner runner_start(const struct model *model, int threads, int sequences, int capacity)
{
    struct runner r = { .model = model };
    struct error error;

    r.threads = threads_new(threads);
    r.kv = kv_contiguous_new(&model->shape, r.threads, sequences, capacity, &error);
    if (!r.kv)
        die("%s", error.text);
    r.engine = engine_new(model, r.threads, CHECK_ROWS, &error);
    if (!r.engine)
        die("%s", error.text);
    r.logits = malloc((size_t)CHECK_ROWS * (size_t)model->shape.vocab * sizeof *r.logits);
    if (!r.logits || !r.threads)
        die("out of memory");
    return r;
}

void runner_stop(struct runner *r)
{
    engine_free(r->engine);
    kv_contiguous_free(r->kv);
    threads_free(r->threads);
    free(r->logits);
}

void runner_run(struct runner *r, int sequence, const int32_t *tokens, int position, int n, int all_logits)
{
    struct row_desc rows[CHECK_ROWS];
    struct error error;

    for (int i = 0; i < n; i++)
        rows[i] = (struct row_desc){ sequence, position + i, all_logits || i == n - 1 };
    if (engine_forward(r->engine, r->kv, tokens, rows, n, r->logits, &error) != 0)
        die("%s", error.text);
}
