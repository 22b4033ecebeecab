/* Tokens per second of prefill and decode. */
#include "check.h"

#include "random.h"
#include "sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PREFILL = 512, DECODE = 64, STREAMS = 8 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Decodes DECODE steps of `streams` sequences from position `position` on; returns tokens per second. */
static double decode(struct runner *r, int streams, int position)
{
    const int vocab = r->model->shape.vocab;
    int32_t tokens[STREAMS] = { 0 };
    struct row_desc rows[STREAMS];
    struct error error;
    double start = seconds();

    for (int step = 0; step < DECODE; step++) {
        for (int i = 0; i < streams; i++)
            rows[i] = (struct row_desc){ i, position + step, 1 };
        if (engine_forward(r->engine, r->kv, tokens, rows, streams, r->logits, &error) != 0)
            die("%s", error.text);
        for (int i = 0; i < streams; i++)
            tokens[i] = sampler_greedy(r->logits + (size_t)i * (size_t)vocab, vocab);
    }
    return streams * DECODE / (seconds() - start);
}

void bench(struct check *check)
{
    const struct model *model = &check->loaded.model;
    struct runner r = runner_start(model, 0, STREAMS, PREFILL + DECODE);
    int32_t tokens[PREFILL];
    double start, prefill;

    for (int i = 0; i < PREFILL; i++)
        tokens[i] = (int32_t)(random_bits(7, (uint64_t)i) % (uint64_t)model->shape.vocab);
    for (int stream = 0; stream < STREAMS; stream++)
        kv_contiguous_truncate(r.kv, stream, 0);
    runner_run(&r, 0, tokens, 0, 1, 0); /* brings the weights into memory */
    kv_contiguous_truncate(r.kv, 0, 0);

    start = seconds();
    for (int at = 0; at < PREFILL; at += CHECK_ROWS)
        runner_run(&r, 0, tokens + at, at, CHECK_ROWS, 0);
    prefill = PREFILL / (seconds() - start);
    printf("bench %s kernel %s threads %d prefill %d tokens: %.1f tokens/s\n", check->model_name, matmul_kernel_name(),
           threads_count(r.threads), PREFILL, prefill);
    printf("bench %s decode 1 stream at %d: %.1f tokens/s\n", check->model_name, PREFILL, decode(&r, 1, PREFILL));
    kv_contiguous_truncate(r.kv, 0, 0);
    printf("bench %s decode %d streams at 0: %.1f tokens/s\n", check->model_name, STREAMS, decode(&r, STREAMS, 0));
    runner_stop(&r);
}
