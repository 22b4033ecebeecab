/* Reads the command line of kvf-evict. */
#include "quality_evict_options.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 3 };

const struct window windows[WINDOWS] = {
    { 'W', "wikitext2-test.txt", 0, 1024 },
    { 'P', "pep-0810.txt", 200, 1024 },
    { 'K', "passkey-a.txt", 0, 0 },
    { 'S', "wikitext2-test.txt", 0, 512 },
};

/* References are what an independent simulation measured: d, and for K the log-probability. */
const struct row rows[ROWS] = {
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

int complain(int status, const char *text)
{
    fprintf(stderr, "kvf-evict: %s\n", text);
    return status;
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

int quality_evict_options(struct table *t, int argc, char **argv)
{
    static const struct option names[] = { { "windows", 1, NULL, 'w' }, { "budgets", 1, NULL, 'b' },
                                           { "rows", 1, NULL, 'r' },    { "seeds", 1, NULL, 's' },
                                           { "removal", 1, NULL, 'm' }, { "pin", 0, NULL, 'p' },
                                           { "weights", 1, NULL, 'l' }, { "cost", 1, NULL, 'c' },
                                           { NULL, 0, NULL, 0 } };
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
        case 'c': t->cost = atoi(optarg); break;
        case 'l': t->weights_name = optarg; break;
        default: return 2;
        }
    }
    if (optind < argc || t->windows[strspn(t->windows, "WPKS,")] || (!*t->windows && !t->pin && !t->cost) || t->cost < 0 || t->seeds < 1 ||
        t->seeds > 9 || evict_removal_named(removal) < 0)
        return complain(2, "usage: kvf-evict [--windows W,P,K,S] [--budgets 25,50] [--rows NAME,...] [--seeds 1..9]\n"
                           "                 [--removal hole|replace|compact] [--pin] [--weights FILE] [--cost TOKENS]");
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
