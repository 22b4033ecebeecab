/*
 * kvf-quality: what each format of keys and values costs SmolLM2-135M, beside reference figures.
 *
 *     kvf-quality [--windows W,P,S] [--rows int8,kivi2,...] [--chunks 64,1] [--passkey]
 *
 * W   wikitext2-test, tokens 0 to 1023, predictions of tokens 257 on
 * P   pep-0810, tokens 200 to 1223, likewise
 * S   wikitext2-test, tokens 0 to 511, predictions of tokens 129 on
 *
 * d is the mean negative log-likelihood minus that of f32 on the same tokens. With two chunk sizes the logits of both
 * must be equal bit for bit. kivi2-paper is KIVI as its paper has it, without pages (quality_paper.c). --passkey: the five digits at the end of passkey-a.txt must come out.
 *
 * Environment: KVF_DATA, KVF_MODEL as for model_check. Exit status: 0, 1 a bound is broken, 2 usage, 77 no data.
 */
#include "quality.h"

#include "clock.h"
#include "file.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOWS = 3, NO_BOUND = 9, DIGITS = 5 };

static const struct window {
    char name;
    const char *file;
    int begin, count, from;
} windows[WINDOWS] = {
    { 'W', "wikitext2-test.txt", 0, 1024, 257 },
    { 'P', "pep-0810.txt", 200, 1024, 257 },
    { 'S', "wikitext2-test.txt", 0, 512, 129 },
};

/*
 * What an independent simulation measured, with f32 scales. |d - centre| must stay below bound, where the centre is 0,
 * or the reference where near_reference is 1. Other formats have neither.
 */
static const struct row {
    const char *format;
    double reference[WINDOWS]; /* NAN = nothing */
    double bound;
    int near_reference;
} references[] = {
    { "f32", { 0, 0, 0 }, NO_BOUND, 0 },
    { "int8", { -0.000, 0.002, 0.000 }, 0.005, 0 },
    { "int4", { 0.112, 0.170, 0.102 }, NO_BOUND, 0 },
    { "int4-channel", { -0.001, 0.005, 0.005 }, 0.01, 0 },
    { "kivi2", { 0.105, 0.159, 0.043 }, 0.03, 1 },
    { QUALITY_PAPER, { 0.136, 0.205, NAN }, 0.03, 1 },
};

struct quality {
    struct loaded loaded;
    const char *data;
    struct row rows[QUALITY_LANES]; /* f32 first */
    int n;
    int chunks[2], n_chunks;
    const char *windows; /* names of those to run */
    int passkey;
};

static int complain(int status, const char *text)
{
    fprintf(stderr, "kvf-quality: %s\n", text);
    return status;
}

/* Reads and encodes a text; *tokens is the caller's. Returns the number of tokens, -1 and a reason. */
static int read_text(const struct quality *q, const char *name, int32_t **tokens, struct error *error)
{
    struct file file;
    char path[4096];
    size_t n;
    int status;

    snprintf(path, sizeof path, "%s/text/%s", q->data, name);
    if (file_map(&file, path, error) != 0)
        return -1;
    status = tokenizer_encode(q->loaded.tokenizer, (const char *)file.data, file.size, tokens, &n, error);
    file_unmap(&file);
    return status == 0 ? (int)n : -1;
}

/* Bytes of a token as the planner says, and in f16. */
static double token_bytes(const struct quality *q, const char *format, double *f16)
{
    const int paper = strcmp(format, QUALITY_PAPER) == 0;
    const struct kv_spec spec = { .format = paper ? "f32" : format };
    struct kv_groups groups;
    struct error error;

    if (kv_groups_make(&groups, &q->loaded.model.shape, &spec, 0, &error) != 0)
        exit(complain(1, error.text));
    *f16 = (double)kv_groups_f16_token(&groups, groups.shape.layers);
    return paper ? quality_paper_bytes(&groups.shape, KV_PLANNED) : kv_groups_token_bytes(&groups);
}

static void run_all(const struct quality *q, const struct quality_text *text, int chunk,
                    struct quality_result *results)
{
    const char *formats[QUALITY_LANES];
    struct error error;

    for (int i = 0; i < q->n; i++)
        formats[i] = q->rows[i].format;
    if (quality_run(&q->loaded.model, formats, q->n, text, chunk, results, &error) != 0)
        exit(complain(1, error.text));
}

/* Pairs whose references differ by more than 0.03 on both long texts keep their order. */
static int order(const struct quality *q, const double *d)
{
    int failures = 0;

    for (int i = 0; i < q->n; i++) {
        for (int j = 0; j < q->n; j++) {
            const double *a = q->rows[i].reference, *b = q->rows[j].reference;
            if (!(b[0] - a[0] > 0.03) || !(b[1] - a[1] > 0.03) || d[i] < d[j])
                continue;
            printf("FAILED: %s should cost less than %s\n", q->rows[i].format, q->rows[j].format);
            failures++;
        }
    }
    return failures;
}

static int run_window(const struct quality *q, const struct window *window)
{
    static struct quality_result results[2][QUALITY_LANES];
    const int w = (int)(window - windows);
    const double start = clock_seconds();
    double d[QUALITY_LANES], f16;
    int32_t *tokens;
    struct quality_text text;
    struct error error;
    const int n = read_text(q, window->file, &tokens, &error);
    int failures = 0;

    if (n < window->begin + window->count)
        return complain(1, n < 0 ? error.text : "a text is too short");
    text = (struct quality_text){ tokens + window->begin, window->count, window->from };
    for (int c = 0; c < q->n_chunks; c++)
        run_all(q, &text, q->chunks[c], results[c]);
    printf("%c: %s, tokens %d to %d, predictions of %d on; f32 perplexity %.2f; %.0f s\n", window->name, window->file,
           window->begin, window->begin + window->count - 1, window->from, exp(results[0][0].nll),
           clock_seconds() - start);
    printf("%-14s %12s %8s %9s %9s  %s\n", "format", "bytes/token", "of f16", "d", "reference",
           q->n_chunks > 1 ? "logits in chunks of both sizes" : "");
    for (int i = 0; i < q->n; i++) {
        const struct row *row = &q->rows[i];
        const double bytes = token_bytes(q, row->format, &f16), reference = row->reference[w];
        const int same = q->n_chunks < 2 || memcmp(results[0][i].hashes, results[1][i].hashes,
                                                   sizeof results[0][i].hashes) == 0;
        int bad;
        d[i] = results[0][i].nll - results[0][0].nll;
        bad = (!isnan(reference) && !(fabs(d[i] - (row->near_reference ? reference : 0)) < row->bound)) || !same ||
              isnan(d[i]);
        printf("%-14s %12.1f %7.2fx %+9.4f ", row->format, bytes, f16 / bytes, d[i]);
        printf(isnan(reference) ? "%9s" : "", "-");
        if (!isnan(reference))
            printf("%+9.3f", reference);
        printf("  %s%s\n", q->n_chunks < 2 ? "" : same ? "same bits" : "bits differ", bad ? "  FAILED" : "");
        failures += bad;
    }
    free(tokens);
    return failures + order(q, d);
}

/* The digits must be the likeliest tokens one after the other, which is what greedy decoding would say. */
static int run_passkey(const struct quality *q)
{
    static struct quality_result results[QUALITY_LANES];
    int32_t *tokens;
    struct error error;
    const int n = read_text(q, "passkey-a.txt", &tokens, &error);
    int failures = 0;

    if (n <= DIGITS || n > QUALITY_TOKENS)
        return complain(1, n < 0 ? error.text : "the passkey text has another length");
    run_all(q, &(struct quality_text){ tokens, n, n - DIGITS }, 64, results);
    for (int i = 0; i < q->n; i++) {
        const int must = q->rows[i].bound < NO_BOUND || i == 0;
        printf("passkey %-14s %d of %d digits, log-probability %+.2f%s\n", q->rows[i].format, results[i].greedy,
               DIGITS, -results[i].nll * DIGITS, must && results[i].greedy < DIGITS ? "  FAILED" : "");
        failures += must && results[i].greedy < DIGITS;
    }
    free(tokens);
    return failures;
}

/* Adds a format, with its reference if there is one. */
static void add_row(struct quality *q, const char *format)
{
    struct row *row = &q->rows[q->n++];

    *row = (struct row){ format, { NAN, NAN, NAN }, NO_BOUND, 0 };
    for (size_t i = 0; i < sizeof references / sizeof *references; i++) {
        if (strcmp(references[i].format, format) == 0)
            *row = references[i];
    }
}

/* Chooses rows by a list of names, all if it is NULL; f32 is always the first, and stands there once. */
static int choose_rows(struct quality *q, const char *names)
{
    int chosen[KV_FORMATS] = { 0 }, paper = !names;

    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t length = strcspn(at, ",");
        const struct kv_format *format = kv_format_find(at, length);
        const int is_paper = length == strlen(QUALITY_PAPER) && memcmp(at, QUALITY_PAPER, length) == 0;
        if (!format && !is_paper)
            return -1;
        paper |= is_paper;
        if (format)
            chosen[format - kv_format_at(0)] = 1;
    }
    for (int i = 0; i < KV_FORMATS; i++) {
        if (!names || chosen[i] || i == 0)
            add_row(q, kv_format_at(i)->name);
        if (paper && strcmp(kv_format_at(i)->name, "kivi2") == 0)
            add_row(q, QUALITY_PAPER);
    }
    return 0;
}

/* One or two numbers from 1 to 256. */
static int read_chunks(struct quality *q, const char *text)
{
    int used = 0;

    q->n_chunks = sscanf(text, "%d%n,%d%n", &q->chunks[0], &used, &q->chunks[1], &used);
    for (int c = 0; c < q->n_chunks; c++) {
        if (q->chunks[c] < 1 || q->chunks[c] > 256)
            return -1;
    }
    return q->n_chunks < 1 || text[used] ? -1 : 0;
}

/* Reads argv. Returns 0, or 2 and has said why. */
static int read_options(struct quality *q, int argc, char **argv)
{
    static const struct option names[] = { { "windows", 1, NULL, 'w' }, { "rows", 1, NULL, 'r' },
                                           { "chunks", 1, NULL, 'c' },  { "passkey", 0, NULL, 'p' },
                                           { NULL, 0, NULL, 0 } };
    const char *rows = NULL, *chunks = "64";
    int option;

    q->windows = "";
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 'w')
            q->windows = optarg;
        else if (option == 'r')
            rows = optarg;
        else if (option == 'p')
            q->passkey = 1;
        else if (option == 'c')
            chunks = optarg;
        else
            return 2;
    }
    if (optind < argc || q->windows[strspn(q->windows, "WPS,")] || (!*q->windows && !q->passkey))
        return complain(2, "usage: kvf-quality [--windows W,P,S] [--rows FORMAT,...] [--chunks N[,N]] [--passkey]");
    if (read_chunks(q, chunks) != 0)
        return complain(2, "--chunks takes one or two numbers from 1 to 256");
    if (choose_rows(q, rows) != 0) {
        fprintf(stderr, "kvf-quality: --rows takes %s, or %s, with commas between them\n", kv_format_names(), QUALITY_PAPER);
        return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *model = getenv("KVF_MODEL"), *data = getenv("KVF_DATA");
    static struct quality q;
    struct error error;
    int failures = 0;

    if (read_options(&q, argc, argv) != 0)
        return 2;
    q.data = data && *data ? data : "../shared/data";
    model = model && *model ? model : ".cache/SmolLM2-135M-Instruct.Q4_1.gguf";
    if (access(model, R_OK) != 0 || access(q.data, R_OK) != 0) {
        printf("skipped: kvf-quality: no %s\n", access(model, R_OK) != 0 ? model : q.data);
        return 77;
    }
    if (load(&q.loaded, model, &error) != 0)
        return complain(2, error.text);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int w = 0; w < WINDOWS; w++) {
        if (strchr(q.windows, windows[w].name))
            failures += run_window(&q, &windows[w]);
    }
    if (q.passkey)
        failures += run_passkey(&q);
    unload(&q.loaded);
    printf("%s: kvf-quality\n", failures ? "FAILED" : "ok");
    return failures ? 1 : 0;
}
