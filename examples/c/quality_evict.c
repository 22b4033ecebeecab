/*
 * kvf-evict: what eviction of tokens costs SmolLM2-135M, beside reference figures.
 *
 *     kvf-evict [--windows W,P,K,S] [--budgets 25,50] [--rows h2o,...] [--seeds N] [--removal NAME] [--weights FILE]
 *     kvf-evict --pin                                   the pass key, with and without the tokens that state it pinned
 *     kvf-evict --cost 4096                             what a step costs with so many tokens of PEP 810
 *
 * W   wikitext2-test, tokens 0 to 1023
 * P   pep-0810, tokens 200 to 1223
 * K   passkey-a.txt: the log-probability of the five digits at its end
 * S   wikitext2-test, tokens 0 to 511
 *
 * d is the mean negative log-likelihood minus that of the full cache on the same tokens: those behind the first one
 * that is evicted for. The moment is that of the reference: a token's place is made before it attends.
 *
 * Environment: KVF_DATA, KVF_MODEL as for model_check. Exit status: 0, 1 a bound is broken, 2 usage, 77 no data.
 */
#define _GNU_SOURCE /* memmem */

#include "quality_evict.h"
#include "quality_evict_options.h"

#include "clock.h"
#include "file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIGITS = 5 };

/* A line of the table: a row at a budget with a seed. */
struct lane {
    int row, share, seed;
};

/* Reads and encodes a text, or its first `bytes` bytes. Ends the program where that fails. */
static int read_text(const struct table *t, const char *name, size_t bytes, int32_t **tokens)
{
    struct file file;
    struct error error;
    char path[4096];
    size_t n = 0;

    snprintf(path, sizeof path, "%s/text/%s", t->data, name);
    if (file_map(&file, path, &error) != 0 ||
        tokenizer_encode(t->loaded.tokenizer, (const char *)file.data, bytes && bytes < file.size ? bytes : file.size,
                         tokens, &n, &error) != 0)
        exit(complain(1, error.text));
    file_unmap(&file);
    return (int)n;
}

static struct evict_policy policy_of(const struct table *t, const struct row *row, int budget, int seed)
{
    struct evict_policy policy = evict_policy_named(row->policy, budget);

    policy.before = policy.redraw = 1;
    policy.slack = 0;
    policy.removal = t->removal;
    policy.seed = (uint64_t)seed;
    policy.weights = &t->weights;
    if (row->sinks >= 0)
        policy.sinks = row->sinks;
    if (row->per_layer >= 0)
        policy.per_layer = row->per_layer;
    return policy;
}

static double mean(const struct evict_result *result, int from, int count)
{
    double sum = 0;
    for (int i = from; i < count; i++)
        sum += result->nll[i];
    return sum / (count - from);
}

/* What must hold of the lines of one budget; d by row, of the first seed. */
static int bounds(int w, int share, const double *d)
{
    int failures = 0;
    const struct {
        int row[2];
        int holds;
        const char *text;
    } rules[] = {
        { { WINDOW, WINDOW }, d[WINDOW] > 0.5, "a window without sinks costs more than 0.5" },
        { { SINKS, SINKS }, d[SINKS] < 0.12, "sinks and a window cost less than 0.12" },
        { { H2O, SINKS }, share == 0 ? d[H2O] < d[SINKS] : d[H2O] <= d[SINKS] + 0.01,
          "H2O costs no more than sinks and a window" },
        { { RANDOM, GUARDED }, d[RANDOM] - d[GUARDED] > 0.15, "without sinks chance costs 0.15 more" },
    };

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (w == KEY || isnan(d[rules[i].row[0]]) || isnan(d[rules[i].row[1]]) || rules[i].holds)
            continue;
        printf("FAILED: %s\n", rules[i].text);
        failures++;
    }
    return failures;
}

static int print_lines(const struct lane *lanes, int n, int w, int count, const struct evict_result *results)
{
    static const int parts[] = { 4, 2 };
    double firsts[BUDGETS][ROWS];
    int failures = 0;

    for (int i = 0; i < BUDGETS * ROWS; i++)
        firsts[i / ROWS][i % ROWS] = NAN;
    for (int i = 0; i < n; i++) {
        const struct row *row = &rows[lanes[i].row];
        const int budget = count / parts[lanes[i].share], from = w == KEY ? count - DIGITS : budget + 1;
        const double reference = row->reference[lanes[i].share][w];
        const double nll = mean(&results[i + 1], from, count);
        const double d = w == KEY ? -nll * DIGITS : nll - mean(&results[0], from, count);
        const int near = !row->drawn && !isnan(reference);
        const int bad = !isfinite(d) || (near && !(fabs(d - reference) < (w == KEY ? 0.3 : 0.03)));
        char seed[16] = "", text[16] = "-", perplexity[16] = "";
        if (row->drawn)
            snprintf(seed, sizeof seed, " %d", lanes[i].seed);
        if (!isnan(reference))
            snprintf(text, sizeof text, w == KEY ? "%.1f" : "%+.3f", reference);
        if (w != KEY)
            snprintf(perplexity, sizeof perplexity, "%.2f", exp(nll));
        printf("%d %%  %-12s%-3s %6d %10s ", 100 / parts[lanes[i].share], row->name, seed, budget, perplexity);
        printf(w == KEY ? "%9.2f %9s%s\n" : "%+9.4f %9s%s\n", d, text, bad ? "  FAILED" : "");
        failures += bad;
        if (isnan(firsts[lanes[i].share][lanes[i].row]))
            firsts[lanes[i].share][lanes[i].row] = d;
    }
    for (int share = 0; share < BUDGETS; share++)
        failures += bounds(w, share, firsts[share]);
    return failures;
}

static int run_window(const struct table *t, int w)
{
    static struct evict_result results[EVICT_LANES];
    struct evict_policy policies[EVICT_LANES] = { { .kind = EVICT_NONE } };
    struct lane lanes[EVICT_LANES];
    const double start = clock_seconds();
    struct error error;
    int32_t *tokens;
    const int all = read_text(t, windows[w].file, 0, &tokens), count = w == KEY ? all : windows[w].count;
    int n = 0, failures;

    if (all < windows[w].begin + count || count > EVICT_TOKENS)
        return complain(1, "a text has another length");
    for (int share = 0; share < BUDGETS; share++) {
        for (int r = 0; r < ROWS && t->budgets[share]; r++) {
            for (int seed = 1; t->chosen[r] && seed <= (rows[r].drawn ? t->seeds : 1); seed++) {
                lanes[n] = (struct lane){ r, share, seed };
                policies[++n] = policy_of(t, &rows[r], count / (share == 0 ? 4 : 2), seed);
            }
        }
    }
    if (evict_run(&t->loaded.model, policies, n + 1, tokens + windows[w].begin, count,
                  w == KEY ? count - DIGITS : count / (t->budgets[0] ? 4 : 2) + 1, results, &error) != 0)
        exit(complain(1, error.text));
    printf("%c: %s, tokens %d to %d, %d chats, %.0f s\n", windows[w].name, windows[w].file, windows[w].begin,
           windows[w].begin + count - 1, n + 1, clock_seconds() - start);
    printf("     %-15s %6s %10s %9s %9s\n", "policy", "budget", w == KEY ? "" : "perplexity", w == KEY ? "log p" : "d", "reference");
    if (w == KEY)
        printf("     %-15s %6s %10s %9.2f %9s\n", "full", "", "", -mean(&results[0], count - DIGITS, count) * DIGITS,
               "-0.17");
    failures = print_lines(lanes, n, w, count, results);
    free(tokens);
    return failures;
}

/* The tokens of the line that states the pass key. */
static kvf_pin find_pin(const struct table *t, const int32_t *tokens)
{
    struct file file;
    struct error error;
    char path[4096];
    const char *line, *end;
    size_t bytes[2];
    int n[2];

    snprintf(path, sizeof path, "%s/text/%s", t->data, windows[KEY].file);
    if (file_map(&file, path, &error) != 0)
        exit(complain(1, error.text));
    line = memmem(file.data, file.size, "The pass key is", 15);
    end = line ? memchr(line, '\n', file.size - (size_t)(line - (const char *)file.data)) : NULL;
    if (!end)
        exit(complain(1, "the text states no pass key"));
    bytes[0] = (size_t)(line - (const char *)file.data);
    bytes[1] = (size_t)(end - (const char *)file.data);
    file_unmap(&file);
    for (int i = 0; i < 2; i++) {
        int32_t *part;
        n[i] = read_text(t, windows[KEY].file, bytes[i], &part);
        if (memcmp(part, tokens, (size_t)n[i] * sizeof *part) != 0)
            exit(complain(1, "the line with the pass key does not begin and end with tokens"));
        free(part);
    }
    return (kvf_pin){ (uint32_t)n[0], (uint32_t)n[1] };
}

/*
 * Every policy at two small budgets, with and without the pin: the digits must come out with it, and not without; but
 * H2O for each KV head finds some of those tokens worth keeping by itself, so there only their probability must fall.
 */
static int run_pin(const struct table *t)
{
    static const int budgets[] = { 78, 195 };
    static struct evict_result results[EVICT_LANES];
    struct evict_policy policies[EVICT_LANES];
    struct error error;
    int32_t *tokens;
    const int count = read_text(t, windows[KEY].file, 0, &tokens);
    const kvf_pin pin = find_pin(t, tokens);
    int n = 0, failures = 0;

    for (int i = 0; i < ROWS * 4; i++) {
        if (!t->chosen[i / 4])
            continue;
        policies[n] = policy_of(t, &rows[i / 4], budgets[i / 2 % 2], 1);
        if (i % 2 == 0)
            policies[n].pin = pin;
        n++;
    }
    if (count > EVICT_TOKENS ||
        evict_run(&t->loaded.model, policies, n, tokens, count, count - DIGITS, results, &error) != 0)
        exit(complain(1, count > EVICT_TOKENS ? "a text is too long" : error.text));
    printf("K: %s, tokens %u to %u pinned: digits that come out greedily, and their log-probability\n",
           windows[KEY].file, (unsigned)pin.start, (unsigned)pin.end - 1);
    n = 0;
    for (int i = 0; i < ROWS * 4; i++) {
        double log_p;
        int hits = 0, bad;
        if (!t->chosen[i / 4])
            continue;
        for (int j = count - DIGITS; j < count; j++)
            hits += results[n].hit[j];
        log_p = -mean(&results[n], count - DIGITS, count) * DIGITS;
        bad = i % 2 == 0 ? hits < DIGITS : log_p > -5 || (hits == DIGITS && i / 4 != H2O);
        printf("%-12s %6d %-8s %d of %d %9.2f%s\n", rows[i / 4].name, budgets[i / 2 % 2],
               i % 2 == 0 ? "pinned" : "", hits, DIGITS, log_p, bad ? "  FAILED" : "");
        failures += bad;
        n++;
    }
    free(tokens);
    return failures;
}

/* Steps with the chosen policies, and with none. */
static int run_cost(const struct table *t)
{
    struct evict_policy policies[ROWS + 1] = { { .kind = EVICT_NONE } };
    struct error error;
    int32_t *tokens;
    const int count = t->cost + 64, all = read_text(t, "pep-0810.txt", 0, &tokens);
    int n = 1, failures;

    for (int r = 0; r < ROWS; r++) {
        if (t->chosen[r])
            policies[n++] = evict_policy_named(rows[r].policy, t->cost);
        policies[n - 1].weights = &t->weights;
    }
    if (all < count || count > t->loaded.model.shape.context)
        return complain(1, "neither the text nor the model has so many tokens");
    failures = evict_cost(&t->loaded.model, policies, n, tokens, count, &error);
    free(tokens);
    return failures < 0 ? complain(1, error.text) : failures;
}

int main(int argc, char **argv)
{
    const char *model = getenv("KVF_MODEL"), *data = getenv("KVF_DATA");
    static struct table t;
    struct error error;
    int failures = 0;

    if (quality_evict_options(&t, argc, argv) != 0)
        return 2;
    t.data = data && *data ? data : "../shared/data";
    model = model && *model ? model : ".cache/SmolLM2-135M-Instruct.Q4_1.gguf";
    if (access(model, R_OK) != 0 || access(t.data, R_OK) != 0) {
        printf("skipped: kvf-evict: no %s\n", access(model, R_OK) != 0 ? model : t.data);
        return 77;
    }
    if (load(&t.loaded, model, &error) != 0)
        return complain(2, error.text);
    if (t.weights_name && evict_weights_read(&t.weights, t.weights_name, t.loaded.model.shape.layers, &error) != 0)
        return complain(2, error.text);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int w = 0; w < WINDOWS; w++) {
        if (strchr(t.windows, windows[w].name))
            failures += run_window(&t, w);
    }
    if (t.pin)
        failures += run_pin(&t);
    if (t.cost > 0)
        failures += run_cost(&t);
    evict_weights_free(&t.weights);
    unload(&t.loaded);
    printf("%s: kvf-evict\n", failures ? "FAILED" : "ok");
    return failures ? 1 : 0;
}
