/* The loop at the heart of every BPE tokenizer: join the best adjacent pair until none can be joined. */
#ifndef ENGINE_MERGE_H
#define ENGINE_MERGE_H

#include <stddef.h>
#include <stdint.h>

struct merge_rules {
    const void *context;
    /* Returns 1 iff `left` and `right` may be joined, into *joined. The lowest *priority goes first. */
    int (*find)(const void *context, int32_t left, int32_t right, double *priority, int32_t *joined);
};

/*
 * Joins pairs in ids[0..n) in place, the leftmost first among equals. Returns how many ids are left, or SIZE_MAX when
 * memory runs out. O(n log n).
 */
size_t merge_pairs(int32_t *ids, size_t n, const struct merge_rules *rules);

#endif
