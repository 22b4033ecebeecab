/* Reference results of a model, as scripts/reference_to_txt.py writes them. Part of the checks, not of the engine. */
#ifndef ENGINE_REFERENCE_H
#define ENGINE_REFERENCE_H

#include "error.h"

#include <stddef.h>
#include <stdint.h>

enum { REFERENCE_TOP = 5, REFERENCE_POSITIONS = 16, REFERENCE_ITEMS = 32 };

struct id_list {
    int32_t *ids;
    int count;
};

struct text {
    char *bytes;
    size_t size;
};

struct reference_run {
    const char *name;
    struct text text;
    struct id_list prompt, greedy;
};

struct reference_top {
    int position;
    int32_t ids[REFERENCE_TOP];
    float logits[REFERENCE_TOP];
};

struct reference_window {
    const char *file; /* in data/text */
    int start, count; /* ids of the encoded text */
    const char *sha256;
    double mean_nll;
    struct reference_top top[REFERENCE_POSITIONS];
    int tops;
};

struct reference_case {
    struct text text;
    struct id_list ids;
};

struct reference {
    struct reference_run runs[REFERENCE_ITEMS];
    struct reference_window windows[REFERENCE_ITEMS];
    struct reference_case cases[REFERENCE_ITEMS];
    int n_runs, n_windows, n_cases;
};

/* Reads a file. Its memory is never freed: a check reads one and ends. */
int reference_read(struct reference *reference, const char *path, struct error *error);

#endif
