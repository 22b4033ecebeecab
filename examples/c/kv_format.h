/*
 * How keys and values can be kept: one table of names.
 *
 * Three kinds. Exact: the numbers themselves. Direct: groups lie along channels, so a row is quantised when it is
 * appended. Sealed: groups of keys lie along tokens, so rows stay exact until a page is full and older than `recent`.
 */
#ifndef ENGINE_KV_FORMAT_H
#define ENGINE_KV_FORMAT_H

#include "kvfolio.h"

#include <stddef.h>

enum { KV_FORMATS = 17 };
enum kv_kind { KV_EXACT, KV_DIRECT, KV_SEALED };

struct kv_format {
    const char *name;
    enum kv_kind kind;
    kvf_tensor_format k, v;
    int page_tokens; /* fewest tokens a page */
    int recent;      /* sealed: fewest recent tokens that stay exact */
    int rotated;     /* 1 = rows are multiplied by a Hadamard matrix first */
};

/* The format with this name of `length` bytes, NULL if there is none. */
const struct kv_format *kv_format_find(const char *name, size_t length);

/* The n-th format, from 0 to KV_FORMATS - 1. */
const struct kv_format *kv_format_at(int n);

/* All names, for messages. */
const char *kv_format_names(void);

#endif
