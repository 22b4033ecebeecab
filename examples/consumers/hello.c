/* hello.c - a program that uses an installed kvfolio: the second request finds what the first one left */
#include <kvfolio.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 50 };

static void must(kvf_status status)
{
    if (status != KVF_OK) {
        fprintf(stderr, "%s: %s\n", kvf_status_name(status), kvf_status_text(status));
        exit(1);
    }
}

int main(void)
{
    kvf_pool_config pool = {.struct_size = sizeof pool, .pages = 64};
    kvf_group_config group = {.struct_size = sizeof group, .page_tokens = 8};
    kvf_config cfg = {.struct_size = sizeof cfg, .abi_version = KVF_ABI_VERSION, .pools = &pool, .groups = &group,
                      .n_pools = 1, .n_groups = 1, .sequences = 4, .tickets = 4};
    kvf_token tokens[TOKENS];
    kvf_prompt prompt = {.struct_size = sizeof prompt, .n_tokens = TOKENS, .tokens = tokens};
    kvf_cache *cache;
    kvf_ticket ticket;
    kvf_seq seq;
    size_t bytes, align;
    uint32_t hit, i;
    void *mem;

    for (i = 0; i < TOKENS; i++)
        tokens[i] = i;
    must(kvf_cache_required_size(&cfg, &bytes, &align));
    mem = aligned_alloc(align, (bytes + align - 1) / align * align);
    must(kvf_cache_init(mem, bytes, &cfg, &cache));

    must(kvf_seq_open(cache, NULL, &seq, NULL));
    must(kvf_seq_append(cache, seq, tokens, TOKENS, NULL, NULL));
    must(kvf_seq_close(cache, seq, KVF_CLOSE_KEEP));
    must(kvf_prefix_match(cache, &prompt, TOKENS - 1, KVF_NO_DEADLINE, &ticket, &hit, NULL));

    printf("kvfolio %s: %u of %d tokens are cached\n", kvf_version_string(), (unsigned)hit, TOKENS);
    free(mem);
    return hit == 48 ? 0 : 1;
}
