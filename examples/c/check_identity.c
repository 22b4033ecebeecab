/* Check: logits have the same bits whatever the chunks, the batch, the threads and the kernel. */
#include "check.h"

#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 128, STREAMS = 16, STREAM_TOKENS = 24 };

/* All logits [TOKENS][vocab] of the tokens as one sequence in chunks of `chunk`. */
static float *chunked(const struct check *check, const int32_t *tokens, int threads, int chunk)
{
    const size_t vocab = (size_t)check->loaded.model.shape.vocab;
    struct runner r = runner_start(&check->loaded.model, threads, 1, TOKENS);
    float *logits = malloc(TOKENS * vocab * sizeof *logits);

    if (!logits)
        die("out of memory");
    for (int at = 0; at < TOKENS; at += chunk) {
        const int n = TOKENS - at < chunk ? TOKENS - at : chunk;
        runner_run(&r, 0, tokens + at, at, n, 1);
        memcpy(logits + (size_t)at * vocab, r.logits, (size_t)n * vocab * sizeof *logits);
    }
    runner_stop(&r);
    return logits;
}

static int report(const struct check *check, const char *what, int a, int b, int same)
{
    printf("identity %s %s %d, %d threads: %s\n", check->model_name, what, a, b, same ? "same bits" : "bits differ");
    return !same;
}

/* One row a sequence and step, of sequences that begin at different tokens, against each sequence alone. */
static int check_batch(const struct check *check, const int32_t *tokens, int threads)
{
    const size_t vocab = (size_t)check->loaded.model.shape.vocab;
    struct runner alone = runner_start(&check->loaded.model, 1, STREAMS, STREAM_TOKENS);
    struct runner batch = runner_start(&check->loaded.model, threads, STREAMS, STREAM_TOKENS);
    int same = 1;

    for (int step = 0; step < STREAM_TOKENS; step++) {
        struct row_desc rows[STREAMS];
        int32_t row_tokens[STREAMS];
        struct error error;

        /* The order of sequences turns from step to step, so a row's place cannot matter either. */
        for (int i = 0; i < STREAMS; i++) {
            const int stream = (i + step) % STREAMS;
            rows[i] = (struct row_desc){ stream, step, 1 };
            row_tokens[i] = tokens[stream + step];
        }
        if (engine_forward(batch.engine, batch.kv, row_tokens, rows, STREAMS, batch.logits, &error) != 0)
            die("%s", error.text);
        for (int i = 0; i < STREAMS; i++) {
            runner_run(&alone, rows[i].sequence, &row_tokens[i], step, 1, 1);
            same &= memcmp(alone.logits, batch.logits + (size_t)i * vocab, vocab * sizeof(float)) == 0;
        }
    }
    runner_stop(&alone);
    runner_stop(&batch);
    return report(check, "rows of a batch against each alone, batch", STREAMS, threads, same);
}

int check_identity(struct check *check)
{
    static const int chunks[] = { 1, 2, 7, 64 };
    const size_t bytes = TOKENS * (size_t)check->loaded.model.shape.vocab * sizeof(float);
    int32_t tokens[TOKENS];
    float *first, *other;
    int failures = 0;

    for (int i = 0; i < TOKENS; i++)
        tokens[i] = (int32_t)(random_bits(7, (uint64_t)i) % (uint64_t)check->loaded.model.shape.vocab);
    first = chunked(check, tokens, 1, 1);
    for (int threads = 1; threads <= 3; threads++) {
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
            other = chunked(check, tokens, threads, chunks[c]);
            failures += report(check, "one by one against chunks of", chunks[c], threads,
                               memcmp(first, other, bytes) == 0);
            free(other);
        }
        failures += check_batch(check, tokens, threads);
    }
    printf("identity %s: the kernel so far was %s\n", check->model_name, matmul_kernel_name());
    matmul_force_portable(1);
    other = chunked(check, tokens, 2, 64);
    matmul_force_portable(0);
    failures += report(check, "the same with the portable kernel, chunks of", 64, 2,
                       memcmp(first, other, bytes) == 0);
    free(other);
    free(first);
    return failures;
}
