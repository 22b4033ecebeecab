/*
 * Makes page memory as hostile as it can be, for the checks: pages of a sequence never lie beside each other, and what
 * the cache does not own is NaN.
 */
#ifndef ENGINE_SCRAMBLE_H
#define ENGINE_SCRAMBLE_H

#include "cache.h"

/*
 * Page id i of the manager lies in memory page (i * factor) mod (pages + 1). pages + 1 is prime, so that is a
 * permutation, and ids that are close lie far apart. Between finish and the forward pass, tables, slots and copies are
 * translated in place; the engine and the manager know nothing of it.
 *
 * Filled with NaN are: all memory at the start, the NULL page included; a page when its first token is about to be
 * written, or when it is about to become the target of a copy; a page once it is free; slots of rejected tokens.
 * Table entries behind a row's end are the NULL page and numbers that are no page at all, in turn.
 */
struct scramble {
    struct cache *cache;
    int layers, page_tokens, pages, factor;
    long long neighbours; /* table entries beside each other that are memory pages beside each other */
    long long poisoned;   /* pages */
    long long copies;     /* translated */
};

void scramble_start(struct scramble *s, struct cache *cache, int layers, int page_tokens, int pages);

/* Call after finish, before the forward pass. */
void scramble_batch(struct scramble *s);

/* Call after every commit, truncate or close: fills free pages. */
void scramble_free_pages(struct scramble *s);

/* Fills one slot, as step_view shows it after scramble_batch. */
void scramble_slot(struct scramble *s, int64_t slot);

/* The smallest prime above n, less one: a number of pages that can be scrambled. */
int scramble_pages(int n);

#endif
