/*
 * sweep.c - every function of kvfolio.h, called wrongly in every way that can be checked
 *
 * Each call must answer with the expected status. One that fails must leave the cache's digest and
 * all outputs as they were, apart from what the header says is written: shortages, needed lengths.
 * The calls are made by sweep.py from the header. Run this under a sanitizer or valgrind.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvfolio.h"

enum state { IDLE, BUILDING, FINISHED, SEALING };

/* What calls refer to. */
static struct world {
    kvf_cache *cache;
    kvf_seq seq, other;
    kvf_ticket ticket;
    kvf_transfer transfer;
    kvf_namespace ns;
    kvf_lease lease;
    uint32_t len;     /* of seq */
    uint32_t csr;     /* entries of both sequences' rows in group 0 */
    uint32_t scratch; /* of kvf_cache_check */
    uint32_t keys, key_scratch; /* of kvf_events_keys */
    uint32_t copies;  /* of the finished plan */
    uint32_t scrubs;
    uint32_t tokens[16];
} w;

static void *memory, *spare;
static size_t memory_bytes, spare_bytes, sealing_bytes;
static int failures, calls;

/* Outputs lie here, so that they can be compared as one. */
enum { ARENA = 4096, PATTERN = 0xA5 };
static union { uint64_t align; unsigned char bytes[ARENA]; } arena, saved;
static size_t arena_used;
static uint64_t digest_before;

static kvf_pool_config pools[2];
static kvf_group_config groups[2];
static kvf_media_span bad_spans[2];
static union { uint64_t align; unsigned char bytes[8192]; } long_struct, other_memory;

#define BESIDE(pointer) ((void *)((char *)(void *)(uintptr_t)(pointer) + 1))
#define FOREIGN ((kvf_cache *)(void *)other_memory.bytes)

static void must(kvf_status status, int line)
{
    if (status != KVF_OK) {
        printf("sweep.c:%d: %s\n", line, kvf_status_name(status));
        exit(1);
    }
}
#define MUST(call) must((call), __LINE__)

static void *take(size_t bytes, size_t struct_size)
{
    unsigned char *at = arena.bytes + arena_used;
    arena_used += (bytes + 64 + 7) / 8 * 8; /* a gap behind each */
    if (arena_used > ARENA) {
        puts("sweep.c: ARENA is too small");
        exit(1);
    }
    if (struct_size != 0) {
        uint32_t size = (uint32_t)struct_size;
        memcpy(at, &size, sizeof size);
    }
    return at;
}

/* The struct with 16 more bytes behind it. */
static void *longer(const void *from, size_t size, int fill)
{
    uint32_t larger = (uint32_t)size + 16;
    memset(long_struct.bytes, 0, sizeof long_struct.bytes);
    memcpy(long_struct.bytes, from, size);
    memcpy(long_struct.bytes, &larger, sizeof larger);
    long_struct.bytes[size + 15] = (unsigned char)fill;
    return long_struct.bytes;
}

/* A cache that was copied to another place. */
static kvf_cache *moved(void)
{
    memcpy(spare, memory, memory_bytes);
    return spare;
}

static kvf_config config(void)
{
    kvf_config cfg;
    memset(&cfg, 0, sizeof cfg);
    memset(pools, 0, sizeof pools);
    memset(groups, 0, sizeof groups);
    pools[0].struct_size = pools[1].struct_size = sizeof pools[0];
    pools[0].pages = pools[1].pages = 24;
    groups[0].struct_size = groups[1].struct_size = sizeof groups[0];
    groups[0].page_tokens = groups[1].page_tokens = 4;
    groups[1].kind = KVF_GROUP_WINDOW;
    groups[1].pool = 1;
    groups[1].window = 8;
    groups[1].sinks = 4;
    cfg.struct_size = sizeof cfg;
    cfg.abi_version = KVF_ABI_VERSION;
    cfg.pools = pools;
    cfg.groups = groups;
    cfg.n_pools = cfg.n_groups = 2;
    cfg.sequences = 8;
    cfg.tickets = cfg.transfers = cfg.namespaces = cfg.leases = cfg.classes = 4;
    cfg.quotas = 2;
    cfg.key_parts = 16;
    cfg.events = 64;
    cfg.publish = KVF_PUBLISH_IMMEDIATE;
    cfg.flags = KVF_CONFIG_SCRUB;
    cfg.seed = 7;
    return cfg;
}

static kvf_prompt prompt(void)
{
    kvf_prompt asked;
    memset(&asked, 0, sizeof asked);
    asked.struct_size = sizeof asked;
    asked.tokens = w.tokens;
    asked.n_tokens = 9;
    return asked;
}

/* Makes the world anew: two sequences that share two pages, one of everything else, a plan. */
static void begin(enum state state)
{
    kvf_config cfg = config();
    kvf_prompt asked;
    kvf_namespace_key key;
    kvf_open_params in_ns = {sizeof in_ns, 0, 0, 0, NULL, 0, 0};
    kvf_plan_report report = {sizeof report, 0, 0, 0, 0, 0};
    kvf_seq child;
    uint32_t hit, i, pages;
    kvf_violation violation;
    size_t needed = 0;
    uint64_t last = 0;
    static uint32_t key_scratch[8];

    memset(&w, 0, sizeof w);
    if (state == SEALING)
        groups[0].sealed_pool = 2, groups[0].sinks = 4;
    MUST(kvf_cache_init(memory, state == SEALING ? sealing_bytes : memory_bytes, &cfg, &w.cache));
    for (i = 0; i < 16; i++)
        w.tokens[i] = i + 1;
    MUST(kvf_cache_advance(w.cache, 5));
    MUST(kvf_seq_open(w.cache, NULL, &w.seq, NULL));
    MUST(kvf_seq_append(w.cache, w.seq, w.tokens, 10, NULL, NULL));
    w.len = 10;
    if (state == SEALING) {
        MUST(kvf_plan_begin(w.cache, 6));
        MUST(kvf_plan_add(w.cache, w.seq, 2, w.tokens, NULL));
        memset(&arena, PATTERN, sizeof arena);
        arena_used = 0;
        return;
    }
    asked = prompt();
    MUST(kvf_prefix_match(w.cache, &asked, 8, KVF_NO_DEADLINE, &w.ticket, &hit, NULL));
    MUST(kvf_seq_open_ticket(w.cache, w.ticket, NULL, &w.other, NULL));
    MUST(kvf_prefix_match(w.cache, &asked, 8, KVF_NO_DEADLINE, &w.ticket, &hit, NULL));
    MUST(kvf_io_begin_ticket(w.cache, w.ticket, 0, 4, KVF_IO_STORE, &w.transfer, NULL));
    MUST(kvf_retain_lease(w.cache, w.seq, 8, 99, &w.lease, NULL));
    memset(&key, 0, sizeof key);
    key.struct_size = sizeof key;
    key.model = 1;
    MUST(kvf_namespace_open(w.cache, &key, &w.ns, NULL));
    in_ns.ns = w.ns;
    /* Pages that another namespace wrote, so that there is something to scrub, and a child, so that
     * there is something to copy. */
    MUST(kvf_seq_open(w.cache, &in_ns, &child, NULL));
    MUST(kvf_seq_append(w.cache, child, w.tokens, 16, NULL, NULL));
    MUST(kvf_seq_close(w.cache, child, KVF_CLOSE_DISCARD));
    MUST(kvf_seq_fork(w.cache, w.seq, w.len, &child, 1, NULL));
    MUST(kvf_seq_pages(w.cache, w.seq, 0, &pages));
    w.csr = pages;
    MUST(kvf_seq_pages(w.cache, w.other, 0, &pages));
    w.csr += pages;
    memset(&violation, 0, sizeof violation);
    violation.struct_size = sizeof violation;
    if (kvf_cache_check(w.cache, 2, NULL, 0, &needed, &violation) != KVF_ERR_SHORT_BUFFER)
        MUST(KVF_ERR_INTERNAL);
    w.scratch = (uint32_t)needed;
    if (kvf_events_keys(w.cache, NULL, 0, NULL, 0, &needed, &last) != KVF_ERR_SHORT_BUFFER || needed > 8)
        MUST(KVF_ERR_INTERNAL);
    w.key_scratch = (uint32_t)needed;
    if (kvf_events_keys(w.cache, key_scratch, needed, NULL, 0, &needed, &last) != KVF_ERR_SHORT_BUFFER)
        MUST(KVF_ERR_INTERNAL);
    w.keys = (uint32_t)needed;
    if (state != IDLE) {
        MUST(kvf_plan_begin(w.cache, 6));
        MUST(kvf_plan_add(w.cache, w.seq, 2, w.tokens, NULL));
    }
    if (state == FINISHED)
        MUST(kvf_plan_finish(w.cache, &report));
    w.copies = report.copies;
    w.scrubs = report.scrubs;
    if (state == FINISHED && (w.copies == 0 || w.scrubs == 0))
        MUST(KVF_ERR_INTERNAL);

    bad_spans[0].start = 4;
    bad_spans[0].length = 4;
    bad_spans[1].start = 6;
    bad_spans[1].length = 1;
    memset(&arena, PATTERN, sizeof arena);
    arena_used = 0;
}

/* Good inputs under the names that sweep.py gives them: "in_" and the parameter's name. */
static kvf_config in_cfg;
static kvf_prompt in_prompt;
static kvf_open_params in_params;
static kvf_namespace_key in_key, in_ns_key;
static uint8_t in_parent[KVF_KEY_BYTES];
static const uint32_t *in_tokens = w.tokens;
static const uint32_t in_columns[1] = {0};
static kvf_media_span in_spans[1];
static kvf_plan_item in_items[1];
static kvf_accept in_accepts[1];
static kvf_seq in_seqs[2];
static kvf_row_query in_queries[2];
static kvf_page_layout_spec in_spec;
static kvf_page_layout in_layout;
static kvf_memory_group in_groups[1];
static kvf_stream in_stream, in_streams[2];
static kvf_protected in_guarded;
static kvf_h2o in_how;
static kvf_observation in_observation;
static kvf_mlp in_mlp;
static kvf_feature_inputs in_inputs;
static const kvf_pin pins[1] = {{2, 3}}, bad_pins[1] = {{3, 3}};
static float mlp_weights[27];
static const uint64_t in_keep[3] = {13, 0, 1}, in_weights[2] = {1, 2};
static const uint64_t *in_other = in_keep;
static const float in_scores[32] = {1.0f, 0.5f, 0.25f};
static const float *in_sums = in_scores, *in_norms = in_scores, *in_dots = in_scores, *in_vector = in_scores;
static const float *in_sum = in_scores, *in_bounds = in_scores, *in_probabilities = in_scores;
static const float *in_kept = in_scores, *in_evicted = in_scores;

/* Nine tokens in pages of four: the second one and the second page are gone. The arrays lie among the outputs. */
static void lend_stream(void)
{
    const uint64_t keep[3] = {13, 0, 1};

    memset(&in_stream, 0, sizeof in_stream);
    in_stream.struct_size = sizeof in_stream;
    in_stream.page_tokens = in_stream.columns = 4;
    in_stream.channels = 2;
    in_stream.valid = take(4 * sizeof(uint64_t), 0);
    in_stream.positions = take(16 * sizeof(uint32_t), 0);
    in_stream.features = take(2 * 16 * sizeof(float), 0);
    memset(in_stream.valid, 0, 4 * sizeof(uint64_t));
    MUST(kvf_stream_append(&in_stream, 9, KVF_PLACE_BEHIND, NULL, NULL));
    MUST(kvf_stream_retain(&in_stream, keep, NULL));
    in_streams[0] = in_streams[1] = in_stream;
}

static void lend_eviction(void)
{
    int i;

    lend_stream();
    memset(&in_guarded, 0, sizeof in_guarded);
    in_guarded.struct_size = sizeof in_guarded;
    in_guarded.sinks = in_guarded.recent = in_guarded.n_pins = 1;
    in_guarded.pins = pins;
    memset(&in_how, 0, sizeof in_how);
    in_how.struct_size = sizeof in_how;
    memset(&in_observation, 0, sizeof in_observation);
    in_observation.struct_size = sizeof in_observation;
    in_observation.kind = KVF_OBSERVE_PROBABILITIES;
    in_observation.queries = 1;
    in_observation.heads = 2;
    in_observation.values = in_scores;
    for (i = 0; i < 27; i++)
        mlp_weights[i] = 1.0f;
    memset(&in_mlp, 0, sizeof in_mlp);
    in_mlp.struct_size = sizeof in_mlp;
    in_mlp.version = KVF_MLP_VERSION;
    in_mlp.features = KVF_FEATURES;
    in_mlp.hidden = 1;
    in_mlp.weights = mlp_weights;
    in_mlp.n_weights = 27;
    memset(&in_inputs, 0, sizeof in_inputs);
    in_inputs.struct_size = sizeof in_inputs;
    in_inputs.sum = in_inputs.last = in_inputs.key_norms = in_inputs.value_norms = in_scores;
}

static void inputs(void)
{
    const kvf_open_params params = {sizeof params, 0, 0, 1, NULL, 0, 0};
    const kvf_namespace_key key = {sizeof key, 0, {1, 2, 3, 4}, 5, 6, 7, 8};
    const kvf_media_span span = {12, 2, {1, 2, 3, 4}};
    const kvf_plan_item item = {w.other, w.tokens, 2, 0};
    const kvf_accept accept = {2, 2, NULL};
    const kvf_row_query first = {w.seq, 0}, second = {w.other, 0};
    const kvf_tensor_format int4 = {KVF_ELEMENT_INT4, KVF_AXIS_TOKEN, 32, KVF_SCALE_NONE, 0, 0};

    in_cfg = config();
    in_prompt = prompt();
    in_params = params;
    in_key = in_ns_key = key;
    in_spans[0] = span;
    in_items[0] = item;
    in_accepts[0] = accept;
    in_seqs[0] = w.seq;
    in_seqs[1] = w.other;
    in_queries[0] = first;
    in_queries[1] = second;
    memset(&in_spec, 0, sizeof in_spec);
    in_spec.struct_size = sizeof in_spec;
    in_spec.page_tokens = 16;
    in_spec.layers = in_spec.kv_heads = 2;
    in_spec.k_dim = in_spec.v_dim = 64;
    in_spec.rope = KVF_ROPE_POST;
    in_spec.k = in_spec.v = int4;
    memset(&in_layout, 0, sizeof in_layout);
    in_layout.struct_size = sizeof in_layout;
    MUST(kvf_layout_make(&in_spec, &in_layout, NULL));
    memset(in_groups, 0, sizeof in_groups);
    in_groups[0].struct_size = sizeof in_groups[0];
    in_groups[0].layout = &in_layout;
    lend_eviction();
}

static void before_call(void)
{
    /* Ended caches have no digest; then nothing is compared. */
    if (kvf_cache_digest(w.cache, &digest_before) != KVF_OK)
        digest_before = 0;
    saved = arena;
}

static void fail(const char *function, const char *what, const char *why, kvf_status status)
{
    printf("%s, %s: %s (%s)\n", function, what, why, kvf_status_name(status));
    failures++;
}

/* Layouts have reasons for one status, token eviction for several. */
static int gives_reason(const char *function, kvf_status status)
{
    if (strcmp(function, "kvf_layout_make") == 0)
        return status == KVF_ERR_LAYOUT;
    return status == KVF_ERR_ARGUMENT || status == KVF_ERR_UNSUPPORTED || status == KVF_ERR_LAYOUT ||
           kvf_status_is_capacity(status);
}

static void after_call(const char *function, const char *what, kvf_status status, kvf_status expected,
                       void *needed, void *reason, void *shortage)
{
    uint64_t digest = 0;

    calls++;
    if (status != expected)
        fail(function, what, kvf_status_name(expected), status);
    if (status == KVF_OK)
        return;
    if (kvf_cache_digest(w.cache, &digest) != KVF_OK)
        digest = 0;
    if (digest != digest_before)
        fail(function, what, "the digest changed", status);
    /* What may be written: put back before everything is compared. */
    if (needed != NULL && (status == KVF_ERR_SHORT_BUFFER || status == KVF_ERR_CONFIG)) {
        size_t at = (size_t)((unsigned char *)needed - arena.bytes);
        memcpy(arena.bytes + at, saved.bytes + at, 32);
    }
    if (reason != NULL && gives_reason(function, status))
        memcpy(reason, saved.bytes + ((unsigned char *)reason - arena.bytes), sizeof(uint32_t));
    if (shortage != NULL && kvf_status_is_capacity(status))
        memcpy(shortage, saved.bytes + ((unsigned char *)shortage - arena.bytes), sizeof(kvf_shortage));
    if (memcmp(&arena, &saved, sizeof arena) != 0)
        fail(function, what, "an output was written", status);
}

#include "sweep_cases.h"

static void sweep_pure(void)
{
    if (strcmp(kvf_status_name(KVF_ERR_STALE), "KVF_ERR_STALE") != 0 ||
        strcmp(kvf_status_name(-1), "KVF_UNKNOWN") != 0 || kvf_status_text(12345) == NULL ||
        strcmp(kvf_layout_reason_text(2), "layers: at least 1") != 0 || kvf_layout_reason_text(0) == NULL ||
        strncmp(kvf_evict_reason_text(KVF_EVICT_RECENT), "recent", 6) != 0 ||
        strcmp(kvf_evict_reason_text(0), "unknown reason") != 0 || kvf_evict_mass_of_lse(1.0f, 1.0f) != 0.0f ||
        kvf_status_is_capacity(KVF_RETRY) != 1 || kvf_status_is_capacity(KVF_OK) != 0 ||
        kvf_abi_version() != KVF_ABI_VERSION || kvf_version_string()[0] == 0 || kvf_version() == 0)
        fail("version", "names", "wrong", KVF_OK);
}

/* Structs of older and newer programs. */
static void sweep_sizes(void)
{
    union { kvf_stats stats; unsigned char bytes[sizeof(kvf_stats) + 16]; } out, blank;
    kvf_config cfg = config();
    uint32_t hit = 99;
    size_t i, bytes = 0, align = 0;

    begin(IDLE);
    inputs();
    memset(&blank, PATTERN, sizeof blank);
    out = blank;
    out.stats.struct_size = (uint32_t)offsetof(kvf_stats, transfers);
    MUST(kvf_stats_read(w.cache, &out.stats));
    if (out.stats.sequences != 3 || out.stats.tickets != 1)
        fail("kvf_stats_read", "older struct", "wrong content", KVF_OK);
    for (i = offsetof(kvf_stats, transfers); i < sizeof out; i++)
        if (out.bytes[i] != PATTERN)
            fail("kvf_stats_read", "older struct", "written beyond", KVF_OK);
    out = blank;
    out.stats.struct_size = (uint32_t)sizeof out;
    MUST(kvf_stats_read(w.cache, &out.stats));
    if (out.stats.struct_size != sizeof out || out.stats.tick != 5)
        fail("kvf_stats_read", "newer struct", "wrong content", KVF_OK);
    for (i = sizeof(kvf_stats); i < sizeof out; i++)
        if (out.bytes[i] != PATTERN)
            fail("kvf_stats_read", "newer struct", "written beyond", KVF_OK);

    in_prompt.struct_size = (uint32_t)offsetof(kvf_prompt, spans);
    in_prompt.n_spans = 7; /* not read */
    in_prompt.ns = 77;
    MUST(kvf_prefix_lookup(w.cache, &in_prompt, 8, &hit));
    if (hit != 8)
        fail("kvf_prefix_lookup", "older struct", "wrong hit", KVF_OK);
    /* NULL is good where there are no elements. */
    MUST(kvf_table_dense(w.cache, 0, NULL, 0, 8, -1, NULL, 0));
    MUST(kvf_seq_fork(w.cache, w.seq, 4, NULL, 0, NULL));
    MUST(kvf_seq_add_spans(w.cache, w.seq, NULL, 0, NULL));
    MUST(kvf_seq_append_batch(w.cache, NULL, 0, NULL, NULL));

    cfg.struct_size = (uint32_t)offsetof(kvf_config, events);
    cfg.seed = cfg.flags = cfg.events = UINT32_MAX; /* not read */
    MUST(kvf_cache_required_size(&cfg, &bytes, &align));
    if (bytes == 0 || bytes >= memory_bytes)
        fail("kvf_cache_required_size", "older struct", "wrong size", KVF_OK);
}

int main(void)
{
    kvf_config cfg = config();
    size_t align;

    MUST(kvf_cache_required_size(&cfg, &memory_bytes, &align));
    groups[0].sealed_pool = 2;
    MUST(kvf_cache_required_size(&cfg, &sealing_bytes, &align));
    memory_bytes = spare_bytes = (memory_bytes + align - 1) / align * align;
    memory = aligned_alloc(align, (sealing_bytes + align - 1) / align * align);
    spare = aligned_alloc(align, spare_bytes);
    if (memory == NULL || spare == NULL)
        return 1;
    memset(memory, PATTERN, memory_bytes);
    memset(spare, PATTERN, spare_bytes);
    sweep_pure();
    sweep_all();
    sweep_sizes();
    printf("sweep: %d functions, %d calls, %d failures\n", SWEEP_FUNCTIONS, calls, failures);
    free(memory);
    free(spare);
    return failures == 0 && calls == SWEEP_CASES ? 0 : 1;
}
