/*
 * kvf-evict: what eviction of tokens costs SmolLM2-135M, beside reference figures.
 *
 *     kvf-evict [--windows W,P,K,S] [--budgets 25,50] [--rows h2o,...] [--seeds N] [--removal NAME] [--weights FILE]
 *     kvf-evict --pin                                   the pass key, with and without the tokens that state it pinned
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

#include "clock.h"
#include "file.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOWS = 4, BUDGETS = 2, DIGITS = 5, KEY = 2, SEEDS = 3 };

static const struct window {
    char name;
    const char *file;
    int begin, count;
} windows[WINDOWS] = {
    { 'W', "wikitext2-test.txt", 0, 1024 },
    { 'P', "pep-0810.txt", 200, 1024 },
    { 'K', "passkey-a.txt", 0, 0 },
    { 'S', "wikitext2-test.txt", 0, 512 },
};

enum row_name { WINDOW, SINKS, RANDOM, GUARDED, H2O, H2O_LAYER, TOVA, SNAPKV, KEYDIFF, KNORM, LEARNED, ROWS };

/* What an independent simulation measured: d, and for K the log-probability. NAN = nothing. */
static const struct row {
    const char *name, *policy;
    int sinks, per_layer; /* -1 = the policy's own */
    int drawn;            /* 1 = by chance: one line for each seed */
    double reference[BUDGETS][WINDOWS];
} rows[ROWS] = {
    { "window", "window", 0, 0, 0, { { .851, .668, -23.8, .987 }, { .727, .575, -21.5, NAN } } },
    { "sinks", "streaming", 4, 0, 0, { { .090, .062, -16.0, .102 }, { .031, .022, -15.8, NAN } } },
    { "random", "random", 0, 0, 1, { { .773, .727, -20.1, .854 }, { .239, .214, -15.5, NAN } } },
    { "random-sinks", "random", 4, 0, 1, { { .083, .066, -16.3, .107 }, { .036, .029, NAN, NAN } } },
    { "h2o", "h2o", 0, 0, 0, { { .052, .040, -6.0, .023 }, { .021, .018, -3.5, NAN } } },
    { "h2o-layer", "h2o", 0, 1, 0, { { .080, .051, -16.1, NAN }, { .031, .011, NAN, NAN } } },
    { "tova", "tova", 0, -1, 0, { { NAN, NAN, NAN, NAN }, { NAN, NAN, NAN, NAN } } },
    { "snapkv", "snapkv", -1, -1, 0, { { NAN, NAN, NAN, NAN }, { NAN, NAN, NAN, NAN } } },
    { "keydiff", "keydiff", -1, -1, 0, { { NAN, NAN, NAN, NAN }, { NAN, NAN, NAN, NAN } } },
    { "knorm", "knorm", -1, -1, 0, { { NAN, NAN, NAN, NAN }, { NAN, NAN, NAN, NAN } } },
    { "learned", "learned", -1, -1, 0, { { NAN, NAN, NAN, NAN }, { NAN, NAN, NAN, NAN } } },
};

struct table {
    struct loaded loaded;
    const char *data;
    const char *windows;
    int chosen[ROWS], budgets[BUDGETS];
    int seeds, pin;
    uint32_t removal;
    const char *weights_name; /* of the learned policy, NULL = none: no such row */
    struct evict_weights weights;
};

/* A line of the table: a row at a budget with a seed. */
struct lane {
    int row, share, seed;
};

static int complain(int status, const char *text)
{
    fprintf(stderr, "kvf-evict: %s\n", text);
    return status;
}

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

static int choose_rows(struct table *t, const char *names)
{
    for (int r = 0; r < ROWS; r++)
        t->chosen[r] = names == NULL && (r != LEARNED || t->weights_name);
    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t length = strcspn(at, ",");
        int r = 0;
        while (r < ROWS && (strlen(rows[r].name) != length || memcmp(rows[r].name, at, length) != 0))
            r++;
        if (r == ROWS || (r == LEARNED && !t->weights_name))
            return -1;
        t->chosen[r] = 1;
    }
    return 0;
}

static int read_options(struct table *t, int argc, char **argv)
{
    static const struct option names[] = { { "windows", 1, NULL, 'w' }, { "budgets", 1, NULL, 'b' },
                                           { "rows", 1, NULL, 'r' },    { "seeds", 1, NULL, 's' },
                                           { "removal", 1, NULL, 'm' }, { "pin", 0, NULL, 'p' },
                                           { "weights", 1, NULL, 'l' }, { NULL, 0, NULL, 0 } };
    const char *row_names = NULL, *budgets = "25,50", *removal = "compact";
    int option;

    t->windows = "";
    t->seeds = SEEDS;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 'w': t->windows = optarg; break;
        case 'b': budgets = optarg; break;
        case 'r': row_names = optarg; break;
        case 's': t->seeds = atoi(optarg); break;
        case 'm': removal = optarg; break;
        case 'p': t->pin = 1; break;
        case 'l': t->weights_name = optarg; break;
        default: return 2;
        }
    }
    if (optind < argc || t->windows[strspn(t->windows, "WPKS,")] || (!*t->windows && !t->pin) || t->seeds < 1 ||
        t->seeds > 9 || evict_removal_named(removal) < 0)
        return complain(2, "usage: kvf-evict [--windows W,P,K,S] [--budgets 25,50] [--rows NAME,...] [--seeds 1..9]\n"
                           "                 [--removal hole|replace|compact] [--pin] [--weights FILE]");
    t->removal = (uint32_t)evict_removal_named(removal);
    t->budgets[0] = strstr(budgets, "25") != NULL;
    t->budgets[1] = strstr(budgets, "50") != NULL;
    if (!t->budgets[0] && !t->budgets[1])
        return complain(2, "--budgets takes 25, 50 or 25,50");
    if (choose_rows(t, row_names) != 0)
        return complain(2, "--rows takes window, sinks, random, random-sinks, h2o, h2o-layer, tova, snapkv, keydiff, "
                           "knorm, and learned beside --weights, with commas between them");
    return 0;
}

int main(int argc, char **argv)
{
    const char *model = getenv("KVF_MODEL"), *data = getenv("KVF_DATA");
    static struct table t;
    struct error error;
    int failures = 0;

    if (read_options(&t, argc, argv) != 0)
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
    evict_weights_free(&t.weights);
    unload(&t.loaded);
    printf("%s: kvf-evict\n", failures ? "FAILED" : "ok");
    return failures ? 1 : 0;
}
