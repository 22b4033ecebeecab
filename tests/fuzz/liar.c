/*
 * liar.c - a library that lies in one way, to see that the harness notices
 *
 * Linked with -Wl,--wrap=NAME for each function below; KVF_LIE names the lie to tell.
 */
#include <stdlib.h>
#include <string.h>

#include "kvfolio.h"

kvf_status __real_kvf_cache_digest(const kvf_cache *cache, uint64_t *digest);
kvf_status __real_kvf_seq_close(kvf_cache *cache, kvf_seq seq, uint32_t mode);
kvf_status __real_kvf_prefix_drop(kvf_cache *cache, kvf_ticket ticket);
kvf_status __real_kvf_prefix_lookup(const kvf_cache *cache, const kvf_prompt *prompt, uint32_t limit,
                                    uint32_t *tokens);
kvf_status __real_kvf_table_slots(const kvf_cache *cache, uint32_t group, int64_t *slots, int32_t *positions,
                                  size_t cap, size_t *n);
kvf_status __real_kvf_table_dense(const kvf_cache *cache, uint32_t group, const kvf_seq *seqs, size_t n,
                                  uint32_t stride, int32_t pad, int32_t *out, size_t cap);
kvf_status __wrap_kvf_cache_digest(const kvf_cache *cache, uint64_t *digest);
kvf_status __wrap_kvf_seq_close(kvf_cache *cache, kvf_seq seq, uint32_t mode);
kvf_status __wrap_kvf_prefix_drop(kvf_cache *cache, kvf_ticket ticket);
kvf_status __wrap_kvf_prefix_lookup(const kvf_cache *cache, const kvf_prompt *prompt, uint32_t limit,
                                    uint32_t *tokens);
kvf_status __wrap_kvf_table_slots(const kvf_cache *cache, uint32_t group, int64_t *slots, int32_t *positions,
                                  size_t cap, size_t *n);
kvf_status __wrap_kvf_table_dense(const kvf_cache *cache, uint32_t group, const kvf_seq *seqs, size_t n,
                                  uint32_t stride, int32_t pad, int32_t *out, size_t cap);

static int lies(const char *which)
{
    const char *lie = getenv("KVF_LIE");
    return lie != NULL && strcmp(lie, which) == 0;
}

/* Never the same twice. */
kvf_status __wrap_kvf_cache_digest(const kvf_cache *cache, uint64_t *digest)
{
    static uint64_t calls;
    kvf_status status = __real_kvf_cache_digest(cache, digest);
    if (lies("digest"))
        *digest ^= ++calls;
    return status;
}

/* Says that it closed. */
kvf_status __wrap_kvf_seq_close(kvf_cache *cache, kvf_seq seq, uint32_t mode)
{
    return lies("close") ? KVF_OK : __real_kvf_seq_close(cache, seq, mode);
}

/* Says that it dropped, and keeps the pages. */
kvf_status __wrap_kvf_prefix_drop(kvf_cache *cache, kvf_ticket ticket)
{
    return lies("drop") ? KVF_OK : __real_kvf_prefix_drop(cache, ticket);
}

/* Promises one token more than a match gives. */
kvf_status __wrap_kvf_prefix_lookup(const kvf_cache *cache, const kvf_prompt *prompt, uint32_t limit,
                                    uint32_t *tokens)
{
    kvf_status status = __real_kvf_prefix_lookup(cache, prompt, limit, tokens);
    *tokens += (uint32_t)lies("lookup");
    return status;
}

/* Gives two tokens one slot. */
kvf_status __wrap_kvf_table_slots(const kvf_cache *cache, uint32_t group, int64_t *slots, int32_t *positions,
                                  size_t cap, size_t *n)
{
    kvf_status status = __real_kvf_table_slots(cache, group, slots, positions, cap, n);
    if (lies("slots") && status == KVF_OK && *n > 1) {
        slots[1] = slots[0];
        positions[1] = positions[0];
    }
    return status;
}

/* Leaves the end of the last row as it was. */
kvf_status __wrap_kvf_table_dense(const kvf_cache *cache, uint32_t group, const kvf_seq *seqs, size_t n,
                                  uint32_t stride, int32_t pad, int32_t *out, size_t cap)
{
    int32_t before = cap > 0 ? out[cap - 1] : 0;
    kvf_status status = __real_kvf_table_dense(cache, group, seqs, n, stride, pad, out, cap);
    if (lies("tail") && cap > 0)
        out[cap - 1] = before;
    return status;
}
