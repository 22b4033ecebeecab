/*
 * A small thread pool with one operation: parallel_for.
 *
 * The caller works too, so a pool of n threads starts n-1. Ranges are handed out in order, on demand; which thread
 * gets which range is not defined, so a body must write only what its range owns. Then results do not depend on n.
 */
#ifndef ENGINE_THREADS_H
#define ENGINE_THREADS_H

#include "error.h"

struct threads;

/* Handles items [begin, end) in thread `worker`, 0 <= worker < threads_count: two calls at a time never share it. */
typedef void (*range_body)(void *context, int begin, int end, int worker);

/* Starts a pool of `count` threads, 0 meaning one per online processor. NULL when threads cannot be started. */
struct threads *threads_new(int count);

/* Joins and frees the pool; harmless on NULL. */
void threads_free(struct threads *threads);

/* Returns the number of threads that work in parallel_for, 1 for a NULL pool. */
int threads_count(const struct threads *threads);

/*
 * Calls body over disjoint ranges that cover [0, n), each of `grain` items except the last.
 * Returns when all are done. One caller at a time; bodies must not call it. A NULL pool runs everything here.
 */
void parallel_for(struct threads *threads, int n, int grain, range_body body, void *context);

#endif
