#include "trace.h"

#include <stddef.h>

#include <kvfolio.h>

#include "stream.h"
#include "text.h"

enum { PAGES = 16384, PAGE_TOKENS = 16, LONGEST = 10240 };

/* All of it fits into 4 MB, with the stack. */
static _Alignas(64) unsigned char memory[3 * 1024 * 1024];
static uint32_t tokens[LONGEST];
static kvf_cache *cache;

static int good(const char *function, kvf_status status)
{
    text line = {.used = 0};

    if (status == KVF_OK)
        return 1;
    text_add(&line, function);
    text_add(&line, ": ");
    text_add(&line, kvf_status_name(status));
    text_end(&line);
    return 0;
}

#define MUST(function, ...)                          \
    do {                                             \
        if (!good(#function, function(__VA_ARGS__))) \
            return 1;                                \
    } while (0)

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The first `n` tokens of a segment: kind 0 is a block of a prompt, kind 1 a reply. */
static void write_tokens(uint32_t *to, uint64_t kind, uint64_t index, uint32_t n)
{
    const uint64_t base = (UINT64_C(6) << 56 | kind << 48 | index) * 0xd1342543de82ef95u;
    uint32_t i;

    for (i = 0; i < n; i++)
        to[i] = (uint32_t)(mix(base + (i + UINT64_C(1)) * 0x9e3779b97f4a7c15u) >> 47);
}

static int serve(uint32_t number)
{
    const trace_request request = trace_requests[number];
    const kvf_prompt prompt = {.struct_size = sizeof prompt, .n_tokens = request.prompt, .tokens = tokens};
    uint32_t block = request.first, at, hit;
    kvf_ticket ticket;
    kvf_seq seq;

    if (request.prompt + TRACE_BLOCK > LONGEST || request.reply > LONGEST)
        return 1;
    for (at = 0; at < request.prompt; at += TRACE_BLOCK)
        write_tokens(tokens + at, 0, trace_blocks[block++], TRACE_BLOCK);
    MUST(kvf_prefix_match, cache, &prompt, request.prompt - 1, KVF_NO_DEADLINE, &ticket, &hit, NULL);
    MUST(kvf_seq_open_ticket, cache, ticket, NULL, &seq, NULL);
    MUST(kvf_seq_append, cache, seq, tokens + hit, request.prompt - hit, NULL, NULL);
    write_tokens(tokens, 1, number, request.reply);
    MUST(kvf_seq_append, cache, seq, tokens, request.reply, NULL, NULL);
    MUST(kvf_seq_close, cache, seq, KVF_CLOSE_KEEP);
    return 0;
}

static int report(uint32_t served)
{
    kvf_stats stats = {.struct_size = sizeof stats};
    text line = {.used = 0};
    uint64_t digest;

    MUST(kvf_stats_read, cache, &stats);
    MUST(kvf_cache_digest, cache, &digest);
    text_add(&line, "requests ");
    text_add_number(&line, served);
    text_add(&line, " hits ");
    text_add_number(&line, (uint32_t)stats.hit_tokens);
    text_add(&line, " evicted ");
    text_add_number(&line, (uint32_t)stats.evicted_pages);
    text_add(&line, " digest ");
    text_add_hex(&line, digest);
    text_end(&line);
    return 0;
}

int trace_run(void)
{
    static kvf_pool_config pool = {.struct_size = sizeof pool, .pages = PAGES};
    static kvf_group_config group = {.struct_size = sizeof group, .page_tokens = PAGE_TOKENS};
    static kvf_config cfg = {.struct_size = sizeof cfg, .abi_version = KVF_ABI_VERSION, .pools = &pool, .groups = &group,
                             .n_pools = 1, .n_groups = 1, .sequences = 1, .tickets = 1};
    uint32_t number;

    MUST(kvf_cache_init, memory, sizeof memory, &cfg, &cache);
    for (number = 0; number < trace_requests_count;) {
        if (serve(number))
            return 1;
        number++;
        if ((number % TRACE_REPORT == 0 || number == trace_requests_count) && report(number))
            return 1;
    }
    return 0;
}
