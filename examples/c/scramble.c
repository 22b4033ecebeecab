/* Hostile page memory for the checks. */
#include "scramble.h"

#include "check.h"
#include "kv_paged.h"
#include "step.h"

#include <stdlib.h>
#include <string.h>

static int is_prime(int n)
{
    for (int d = 2; d * d <= n; d++) {
        if (n % d == 0)
            return 0;
    }
    return n > 1;
}

int scramble_pages(int n)
{
    while (!is_prime(n + 1))
        n++;
    return n;
}

static int translate(const struct scramble *s, int page)
{
    return (int)((long long)page * s->factor % (s->pages + 1));
}

/* All bits set is a NaN in f32, f16 and bf16. */
static void fill(const kvf_kernel_pages *pages, int page, int token, int n)
{
    const size_t at = (size_t)page * pages->k_page_stride + (size_t)token * pages->k_token_stride;
    memset((char *)pages->k + at, 0xff, (size_t)n * pages->k_token_stride);
    memset((char *)pages->v + at, 0xff, (size_t)n * pages->k_token_stride);
}

static void fill_page(struct scramble *s, int page)
{
    for (int l = 0; l < s->layers; l++)
        fill(kv_paged_layer(s->cache->kv, l), page, 0, s->page_tokens);
    s->poisoned++;
}

void scramble_start(struct scramble *s, struct cache *cache, int layers, int page_tokens, int pages)
{
    *s = (struct scramble){ .cache = cache, .layers = layers, .page_tokens = page_tokens, .pages = pages,
                            .factor = (int)(0.618 * pages) };
    for (int page = 0; page <= pages; page++)
        fill_page(s, page);
}

void scramble_batch(struct scramble *s)
{
    const struct step_view view = step_view(s->cache, 0);

    for (int row = 0; row < view.rows; row++) {
        int32_t *entries = view.tables + (size_t)row * (size_t)view.stride;
        for (int c = 0; c < view.stride; c++) {
            if (entries[c] == 0)
                entries[c] = c % 2 ? 0 : INT32_MIN;
            else
                entries[c] = translate(s, entries[c]);
            s->neighbours += c > 0 && entries[c] > 0 && abs(entries[c] - entries[c - 1]) == 1;
        }
    }
    for (int i = 0; i < view.n_copies; i++) {
        view.copies[i].src = (uint32_t)translate(s, (int)view.copies[i].src);
        view.copies[i].dst = (uint32_t)translate(s, (int)view.copies[i].dst);
        fill_page(s, (int)view.copies[i].dst);
        s->copies++;
    }
    for (int i = 0; i < view.tokens; i++) {
        const int page = translate(s, (int)(view.slots[i] / s->page_tokens)), token = view.slots[i] % s->page_tokens;
        view.slots[i] = (int64_t)page * s->page_tokens + token;
        if (token == 0)
            fill_page(s, page);
    }
}

void scramble_free_pages(struct scramble *s)
{
    for (int page = 1; page <= s->pages; page++) {
        kvf_page_info info = { .struct_size = sizeof info };
        if (kvf_page_info_read(step_manager(s->cache), 0, (uint32_t)page, &info) != KVF_OK)
            die("page %d cannot be read", page);
        if (info.state == KVF_PAGE_FREE)
            fill_page(s, translate(s, page));
    }
}

void scramble_slot(struct scramble *s, int64_t slot)
{
    for (int l = 0; l < s->layers; l++)
        fill(kv_paged_layer(s->cache->kv, l), (int)(slot / s->page_tokens), (int)(slot % s->page_tokens), 1);
}
