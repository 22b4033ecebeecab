/* What the checks of model_check share. */
#ifndef ENGINE_CHECK_H
#define ENGINE_CHECK_H

#include "forward.h"
#include "kv_contiguous.h"
#include "load.h"
#include "reference.h"

enum { CHECK_ROWS = 64 }; /* rows an engine takes at a time here */

struct check {
    const char *model_name; /* "stories", "smollm" or "random" */
    const char *data;       /* the data folder */
    const char *fewshot;    /* output of scripts/fewshot_to_txt.py, for check_fewshot */
    struct loaded loaded;
    struct reference reference;
};

/* One engine with its own threads and cache. */
struct runner {
    const struct model *model;
    struct threads *threads;
    struct kv_backend *kv;
    struct engine *engine;
    float *logits; /* [CHECK_ROWS][vocab] */
};

/* Starts a runner for `sequences` sequences of `capacity` tokens; ends the program when that fails. */
struct runner runner_start(const struct model *model, int threads, int sequences, int capacity);
void runner_stop(struct runner *runner);

/*
 * Runs tokens[n], n <= CHECK_ROWS, as positions `position`.. of `sequence`. Logits of all rows, or of the last only,
 * are in runner->logits. Ends the program when that fails.
 */
void runner_run(struct runner *runner, int sequence, const int32_t *tokens, int position, int n, int all_logits);

/* Ends the program with the reason on stderr, status 1. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* The checks return the number of failures and print a line for each thing they compared. */
int check_greedy(struct check *check);
int check_windows(struct check *check, int perplexity, int top);
int check_tokenizer(struct check *check);
int check_identity(struct check *check);
int check_sampler(struct check *check);
int check_paged(struct check *check);
int check_greedy_paged(struct check *check);
int check_serve(struct check *check);
int check_fewshot(struct check *check);
int check_share(struct check *check);
int check_formats(struct check *check);
int check_layers(struct check *check);
int check_evict(struct check *check);
int check_holes(struct check *check);

/* Prints tokens per second of prefill and decode. */
void bench(struct check *check);

/* Encodes window `w`'s file and returns all its ids; the caller frees ->ids. */
struct id_list window_ids(const struct check *check, const struct reference_window *window);

#endif
