/* The command line of kvf-evict, and the rows and windows that it names. */
#ifndef ENGINE_QUALITY_EVICT_OPTIONS_H
#define ENGINE_QUALITY_EVICT_OPTIONS_H

#include "evict.h"
#include "load.h"

enum { WINDOWS = 4, BUDGETS = 2, KEY = 2 };

/* Tokens of a text; that of KEY ends with a pass key. */
struct window {
    char name;
    const char *file;
    int begin, count; /* count 0 = all */
};
extern const struct window windows[WINDOWS];

enum row_name { WINDOW, SINKS, RANDOM, GUARDED, H2O, H2O_LAYER, TOVA, SNAPKV, KEYDIFF, KNORM, LEARNED, ROWS };

struct row {
    const char *name, *policy;
    int sinks, per_layer; /* -1 = the policy's own */
    int drawn;            /* 1 = by chance: one line for each seed */
    double reference[BUDGETS][WINDOWS]; /* NAN = none */
};
extern const struct row rows[ROWS];

struct table {
    struct loaded loaded;
    const char *data;
    const char *windows;
    int chosen[ROWS], budgets[BUDGETS];
    int seeds, pin, cost;
    uint32_t removal;
    const char *weights_name; /* of the learned policy, NULL = none: no such row */
    struct evict_weights weights;
};

/* Says what is wrong, and gives `status`. */
int complain(int status, const char *text);

/* Reads argv; what is wrong was said where it does not give 0. */
int quality_evict_options(struct table *table, int argc, char **argv);

#endif
