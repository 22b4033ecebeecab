/*
 * run.c - a workload file through the C interface
 *
 *   run FILE.kvw...
 *
 * Does to each file what examples/rust/manager.rs does through the Rust interface, so that the digest is the same, and
 * prints for each: CPU seconds of the thread, hit tokens, evicted pages, digest.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kvfolio.h"

enum { MAGIC = 0x3157564B, PAGE_TOKENS = 16, CHUNK_ENTRIES = 32, BATCH = 256 };
enum { ADMIT = 1, GROW = 2, RELEASE = 3 };

struct operation {
    uint32_t kind, request, offset, count;
};

/* A workload file as it lies in memory. */
struct workload {
    uint32_t pages, cached, requests, n_operations;
    const struct operation *operations;
    const uint32_t *tokens;
    void *file;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void must(kvf_status status, const char *call)
{
    if (status != KVF_OK)
        fail(call, kvf_status_text(status));
}
#define MUST(call) must((call), #call)

static void *take(size_t bytes, size_t align)
{
    void *mem = align ? aligned_alloc(align, bytes) : calloc(1, bytes);
    if (!mem)
        fail("memory", "there is not enough");
    return mem;
}

static struct workload load(const char *path)
{
    struct workload work;
    FILE *file = fopen(path, "rb");
    uint32_t *words;
    long bytes;

    if (!file || fseek(file, 0, SEEK_END) || (bytes = ftell(file)) < 32 || fseek(file, 0, SEEK_SET))
        fail(path, "cannot be read");
    words = take((size_t)bytes, 0);
    if (fread(words, 1, (size_t)bytes, file) != (size_t)bytes || words[0] != MAGIC || words[1] != 1 ||
        words[2] != PAGE_TOKENS || ((size_t)words[6] * 4 + words[7] + 8) * 4 != (size_t)bytes)
        fail(path, "is no workload file");
    fclose(file);
    work.pages = words[3];
    work.cached = words[4];
    work.requests = words[5];
    work.n_operations = words[6];
    work.operations = (const struct operation *)(words + 8);
    work.tokens = words + 8 + (size_t)words[6] * 4;
    work.file = words;
    return work;
}

/* Most requests alive at once, and table chunks for all that is alive at once. */
static void needs(const struct workload *work, uint32_t *most_alive, uint32_t *most_chunks)
{
    uint32_t *tokens = take(work->requests * sizeof *tokens, 0);
    uint32_t alive = 0, chunks = 0, i;

    *most_alive = *most_chunks = 0;
    for (i = 0; i < work->n_operations; i++)
        tokens[work->operations[i].request] += work->operations[i].count;
    for (i = 0; i < work->n_operations; i++) {
        const struct operation *op = &work->operations[i];
        uint32_t per_chunk = PAGE_TOKENS * CHUNK_ENTRIES;
        uint32_t need = (tokens[op->request] + per_chunk - 1) / per_chunk + 1;
        if (op->kind == ADMIT)
            alive++, chunks += need;
        else if (op->kind == RELEASE)
            alive--, chunks -= need;
        *most_alive = alive > *most_alive ? alive : *most_alive;
        *most_chunks = chunks > *most_chunks ? chunks : *most_chunks;
    }
    free(tokens);
}

static kvf_cache *make_cache(const struct workload *work, void **mem)
{
    kvf_pool_config pool = {.struct_size = sizeof pool, .pages = work->pages};
    kvf_group_config group = {.struct_size = sizeof group, .page_tokens = PAGE_TOKENS};
    kvf_config cfg = {.struct_size = sizeof cfg, .abi_version = KVF_ABI_VERSION,
                      .pools = &pool, .groups = &group, .n_pools = 1, .n_groups = 1,
                      .tickets = 1, .plan_sequences = BATCH, .plan_copies = BATCH};
    size_t bytes, align;
    kvf_cache *cache;

    needs(work, &cfg.sequences, &cfg.table_chunks);
    cfg.plan_tokens = work->cached ? BATCH * 16 : 1;
    cfg.index = work->cached ? KVF_INDEX_TREE : KVF_INDEX_NONE;
    MUST(kvf_cache_required_size(&cfg, &bytes, &align));
    *mem = take((bytes + align - 1) / align * align, align);
    MUST(kvf_cache_init(*mem, bytes, &cfg, &cache));
    return cache;
}

static kvf_seq admit(kvf_cache *cache, const struct workload *work, const struct operation *op)
{
    kvf_prompt prompt = {.struct_size = sizeof prompt, .n_tokens = op->count};
    kvf_accept all = {.accepted = op->count, .verified = op->count};
    kvf_ticket ticket;
    kvf_seq seq;
    uint32_t hit;

    if (!work->cached) {
        MUST(kvf_seq_open(cache, NULL, &seq, NULL));
        MUST(kvf_plan_begin(cache, 0));
        MUST(kvf_plan_add(cache, seq, op->count, NULL, NULL));
        MUST(kvf_plan_finish(cache, NULL));
        MUST(kvf_plan_commit(cache, &all, 1));
        return seq;
    }
    prompt.tokens = work->tokens + op->offset;
    MUST(kvf_prefix_match(cache, &prompt, op->count - 1, KVF_NO_DEADLINE, &ticket, &hit, NULL));
    MUST(kvf_seq_open_ticket(cache, ticket, NULL, &seq, NULL));
    MUST(kvf_seq_append(cache, seq, prompt.tokens + hit, op->count - hit, NULL, NULL));
    return seq;
}

/* One step: a plan over `n` requests that grow. */
static void step(kvf_cache *cache, const struct workload *work, const struct operation *ops, uint32_t n,
                 const kvf_seq *seqs)
{
    static kvf_plan_item items[BATCH];
    static kvf_accept accepts[BATCH];
    static kvf_status statuses[BATCH];
    size_t n_added;
    uint32_t i;

    for (i = 0; i < n; i++) {
        items[i].seq = seqs[ops[i].request];
        items[i].tokens = work->tokens + ops[i].offset;
        items[i].count = ops[i].count;
        accepts[i].accepted = accepts[i].verified = ops[i].count;
    }
    MUST(kvf_plan_begin(cache, 0));
    MUST(kvf_plan_add_batch(cache, items, n, statuses, &n_added, NULL));
    if (n_added != n)
        fail("kvf_plan_add_batch", "a request does not fit");
    MUST(kvf_plan_finish(cache, NULL));
    MUST(kvf_plan_commit(cache, accepts, n));
}

static void run_all(kvf_cache *cache, const struct workload *work, kvf_seq *seqs)
{
    const struct operation *op = work->operations, *end = op + work->n_operations;
    uint32_t n;

    while (op < end) {
        switch (op->kind) {
        case ADMIT:
            seqs[op->request] = admit(cache, work, op);
            op++;
            break;
        case RELEASE:
            MUST(kvf_seq_close(cache, seqs[op->request], KVF_CLOSE_KEEP));
            op++;
            break;
        default:
            for (n = 1; n < BATCH && op + n < end && op[n].kind == GROW; n++)
                ;
            if (n > 1)
                step(cache, work, op, n, seqs);
            else
                MUST(kvf_seq_append(cache, seqs[op->request], work->tokens + op->offset, op->count, NULL, NULL));
            op += n;
        }
    }
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    int i;

    if (argc < 2)
        fail("usage", "run FILE.kvw...");
    for (i = 1; i < argc; i++) {
        struct workload work = load(argv[i]);
        kvf_stats stats = {.struct_size = sizeof stats};
        kvf_seq *seqs = take(work.requests * sizeof *seqs, 0);
        void *mem;
        kvf_cache *cache = make_cache(&work, &mem);
        double start = cpu_seconds();
        uint64_t digest;

        run_all(cache, &work, seqs);
        printf("%.9f ", cpu_seconds() - start);
        MUST(kvf_stats_read(cache, &stats));
        MUST(kvf_cache_digest(cache, &digest));
        printf("%" PRIu64 " %" PRIu64 " %016" PRIx64 "\n", stats.hit_tokens, stats.evicted_pages, digest);
        free(mem);
        free(seqs);
        free(work.file);
    }
    return 0;
}
