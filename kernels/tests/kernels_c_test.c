/*
 * kernels_c_test.c - struct layouts, a small decode, and every error, from C
 *
 *   gcc -std=c99 -Wall -Wextra -Wpedantic -Werror -Iinclude \
 *       kernels/tests/kernels_c_test.c <target>/capi/libkvfolio_kernels.a -lm
 *
 * Also valid as C++11. Exit status 0 = passed.
 */
#include "kvfolio_kernels.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATIC_ASSERT(name, condition) typedef char static_assert_##name[(condition) ? 1 : -1]
#define P64 (sizeof(void *) == 8)

STATIC_ASSERT(pages, !P64 || sizeof(kvf_kernel_pages) == 88);
STATIC_ASSERT(pages_k, offsetof(kvf_kernel_pages, k) == 24);
STATIC_ASSERT(pages_stride, !P64 || offsetof(kvf_kernel_pages, k_page_stride) == 40);
STATIC_ASSERT(pages_v_stride, !P64 || offsetof(kvf_kernel_pages, v_page_stride) == 64);
STATIC_ASSERT(table, !P64 || sizeof(kvf_kernel_table) == 24);
STATIC_ASSERT(contiguous, !P64 || sizeof(kvf_kernel_contiguous) == 40);
STATIC_ASSERT(attention, !P64 || sizeof(kvf_kernel_attention) == 40);
STATIC_ASSERT(attention_sinks, offsetof(kvf_kernel_attention, sink_logits) == 24);
STATIC_ASSERT(attention_isa, !P64 || offsetof(kvf_kernel_attention, isa) == 32);
STATIC_ASSERT(queries, !P64 || sizeof(kvf_kernel_queries) == 48);
STATIC_ASSERT(queries_rows, !P64 || offsetof(kvf_kernel_queries, table_rows) == 32);
STATIC_ASSERT(work, !P64 || sizeof(kvf_kernel_work) == 40);
STATIC_ASSERT(work_scratch, offsetof(kvf_kernel_work, scratch) == 24);
STATIC_ASSERT(quant, !P64 || sizeof(kvf_kernel_quant) == 48);
STATIC_ASSERT(quant_scales, !P64 || offsetof(kvf_kernel_quant, k_scales) == 32);
STATIC_ASSERT(split, !P64 || sizeof(kvf_kernel_split) == 24);
STATIC_ASSERT(split_end, !P64 || offsetof(kvf_kernel_split, end) == 16);
STATIC_ASSERT(seal, sizeof(kvf_kernel_seal) == 8);
STATIC_ASSERT(rows, !P64 || sizeof(kvf_kernel_rows) == 64);
STATIC_ASSERT(rows_tokens, offsetof(kvf_kernel_rows, tokens) == 32);
STATIC_ASSERT(slots, !P64 || sizeof(kvf_kernel_slots) == 40);
STATIC_ASSERT(slots_used, !P64 || offsetof(kvf_kernel_slots, used) == 32);
STATIC_ASSERT(scores, !P64 || sizeof(kvf_kernel_scores) == 48);
STATIC_ASSERT(scores_sums, offsetof(kvf_kernel_scores, sums) == 16);
STATIC_ASSERT(scores_stride, !P64 || offsetof(kvf_kernel_scores, row_stride) == 32);
STATIC_ASSERT(keys, !P64 || sizeof(kvf_kernel_keys) == 56);
STATIC_ASSERT(keys_stride, !P64 || offsetof(kvf_kernel_keys, head_stride) == 48);
STATIC_ASSERT(bounds, !P64 || sizeof(kvf_kernel_bounds) == 64);
STATIC_ASSERT(bounds_q, offsetof(kvf_kernel_bounds, q) == 32);
STATIC_ASSERT(move, sizeof(kvf_kernel_move) == 16);
STATIC_ASSERT(copy, sizeof(kvf_kernel_copy) == 12);

static int failures = 0;

#define CHECK(condition)                                                      \
    do {                                                                      \
        if (!(condition)) {                                                   \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);    \
            failures++;                                                       \
        }                                                                     \
    } while (0)

#define EXPECT(status, call)                                                  \
    do {                                                                      \
        int32_t got_ = (call);                                                \
        if (got_ != (status)) {                                               \
            printf("%s:%d: %s gave %d (%s)\n", __FILE__, __LINE__, #call,     \
                   (int)got_, kvf_kernel_status_name(got_));                  \
            failures++;                                                       \
        }                                                                     \
    } while (0)

enum { P = 4, N = 8, HK = 2, H = 4, D = 8, T = 11, COLUMNS = 3 };

static float k_memory[N + 1][P][HK][D];
static float v_memory[N + 1][P][HK][D];
static float k_rows[T][HK][D];
static float v_rows[T][HK][D];
static const int32_t entries[2][COLUMNS] = {{7, 2, 5}, {1, 0, -9}};

static kvf_kernel_pages make_pages(void)
{
    kvf_kernel_pages pages;
    memset(&pages, 0, sizeof pages);
    pages.struct_size = sizeof pages;
    pages.dtype = KVF_KERNEL_DTYPE_F32;
    pages.page_tokens = P;
    pages.n_pages = N;
    pages.kv_heads = HK;
    pages.head_dim = D;
    pages.k = k_memory;
    pages.v = v_memory;
    pages.k_page_stride = sizeof k_memory[0];
    pages.k_token_stride = sizeof k_memory[0][0];
    pages.k_head_stride = sizeof k_memory[0][0][0];
    return pages;
}

static kvf_kernel_table make_table(void)
{
    kvf_kernel_table table;
    memset(&table, 0, sizeof table);
    table.struct_size = sizeof table;
    table.rows = 2;
    table.stride = COLUMNS;
    table.entries = &entries[0][0];
    return table;
}

static void fill(void)
{
    uint32_t x = 12345;
    size_t i;
    float *k = &k_rows[0][0][0], *v = &v_rows[0][0][0];
    for (i = 0; i < sizeof k_memory / sizeof(float); i++) {
        (&k_memory[0][0][0][0])[i] = nanf("");
        (&v_memory[0][0][0][0])[i] = nanf("");
    }
    for (i = 0; i < sizeof k_rows / sizeof(float); i++) {
        x = x * 1664525u + 1013904223u;
        k[i] = (float)(x >> 8) / 8388608.0f - 1.0f;
        x = x * 1664525u + 1013904223u;
        v[i] = (float)(x >> 8) / 8388608.0f - 1.0f;
    }
}

static void test_append_gather_scatter(const kvf_kernel_pages *pages, const kvf_kernel_table *table)
{
    int64_t slots[T + 1];
    float k[T][HK][D], v[T][HK][D];
    int i;
    for (i = 0; i < T; i++)
        slots[i] = (int64_t)entries[0][i / P] * P + i % P;
    EXPECT(0, kvf_cpu_append(pages, &k_rows[0][0][0], &v_rows[0][0][0], slots, T));
    EXPECT(0, kvf_cpu_gather(pages, table, 0, 0, T, &k[0][0][0], &v[0][0][0]));
    CHECK(memcmp(k, k_rows, sizeof k) == 0);
    CHECK(memcmp(v, v_rows, sizeof v) == 0);
    CHECK(isnan(k_memory[5][3][0][0])); /* behind the last token */
    CHECK(isnan(k_memory[0][0][0][0]) && isnan(v_memory[0][3][1][7]));

    /* An empty call looks at nothing; -1 skips; a wrong slot writes nothing. */
    EXPECT(0, kvf_cpu_append(pages, NULL, NULL, NULL, 0));
    slots[0] = -1;
    EXPECT(0, kvf_cpu_append(pages, &k_rows[1][0][0], &v_rows[1][0][0], slots, 1));
    slots[0] = (int64_t)3 * P;
    slots[1] = P - 1; /* page 0 */
    EXPECT(KVF_KERNEL_ERR_SLOT, kvf_cpu_append(pages, &k[0][0][0], &v[0][0][0], slots, 2));
    slots[1] = (int64_t)(N + 1) * P;
    EXPECT(KVF_KERNEL_ERR_SLOT, kvf_cpu_append(pages, &k[0][0][0], &v[0][0][0], slots, 2));
    slots[1] = -2;
    EXPECT(KVF_KERNEL_ERR_SLOT, kvf_cpu_append(pages, &k[0][0][0], &v[0][0][0], slots, 2));
    CHECK(isnan(k_memory[3][0][0][0]));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_append(NULL, &k[0][0][0], &v[0][0][0], slots, 1));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_append(pages, NULL, &v[0][0][0], slots, 1));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_append(pages, &k[0][0][0], NULL, slots, 1));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_append(pages, &k[0][0][0], &v[0][0][0], NULL, 1));

    EXPECT(0, kvf_cpu_scatter(pages, table, 1, 0, P, &k_rows[0][0][0], &v_rows[0][0][0]));
    CHECK(memcmp(k_memory[1], k_rows, sizeof k_memory[1]) == 0);
    EXPECT(KVF_KERNEL_ERR_NULL_PAGE,
           kvf_cpu_scatter(pages, table, 1, 0, P + 1, &k_rows[0][0][0], &v_rows[0][0][0]));
    EXPECT(KVF_KERNEL_ERR_PAGE,
           kvf_cpu_gather(pages, table, 1, 2 * P, 2 * P + 1, &k[0][0][0], &v[0][0][0]));
    EXPECT(KVF_KERNEL_ERR_TABLE,
           kvf_cpu_gather(pages, table, 2, 0, 1, &k[0][0][0], &v[0][0][0]));
    EXPECT(KVF_KERNEL_ERR_TABLE,
           kvf_cpu_gather(pages, table, 0, 12, 13, &k[0][0][0], &v[0][0][0]));
    EXPECT(KVF_KERNEL_ERR_RANGE,
           kvf_cpu_gather(pages, table, 0, 2, 1, &k[0][0][0], &v[0][0][0]));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_gather(pages, NULL, 0, 0, 1, &k[0][0][0], &v[0][0][0]));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_gather(pages, table, 0, 0, 1, NULL, &v[0][0][0]));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_gather(pages, table, 0, 0, 1, &k[0][0][0], NULL));
}

static void test_copy(const kvf_kernel_pages *pages)
{
    kvf_kernel_copy copies[2] = {{7, 3, 3}, {2, 4, 0}};
    EXPECT(0, kvf_cpu_copy_pages(pages, copies, 2));
    CHECK(memcmp(k_memory[3], k_memory[7], 3 * sizeof k_memory[0][0]) == 0);
    CHECK(memcmp(v_memory[3], v_memory[7], 3 * sizeof v_memory[0][0]) == 0);
    CHECK(isnan(k_memory[3][3][0][0]) && isnan(k_memory[4][0][0][0]));
    EXPECT(0, kvf_cpu_copy_pages(pages, NULL, 0));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_copy_pages(pages, NULL, 1));
    copies[1].src = 0;
    EXPECT(KVF_KERNEL_ERR_NULL_PAGE, kvf_cpu_copy_pages(pages, copies, 2));
    copies[1].src = N + 1;
    EXPECT(KVF_KERNEL_ERR_PAGE, kvf_cpu_copy_pages(pages, copies, 2));
    copies[1].src = copies[1].dst;
    EXPECT(KVF_KERNEL_ERR_TOKENS, kvf_cpu_copy_pages(pages, copies, 2));
    copies[1].src = 2;
    copies[1].tokens = P + 1;
    EXPECT(KVF_KERNEL_ERR_TOKENS, kvf_cpu_copy_pages(pages, copies, 2));
}

/* Pages 6 and 8 are free for this. */
static void test_moves(const kvf_kernel_pages *pages)
{
    kvf_kernel_move moves[3] = {{6, 1, 6, 0}, {6, 3, 6, 1}, {8, 0, 6, 2}};
    float before[2][HK][D];
    int i, e;
    for (i = 0; i < P; i++)
        for (e = 0; e < HK * D; e++) {
            k_memory[6][i][e / D][e % D] = (float)(i * 100 + e);
            v_memory[8][i][e / D][e % D] = (float)(i * -100 - e);
            k_memory[8][i][e / D][e % D] = v_memory[6][i][e / D][e % D] = 1.0f;
        }
    memcpy(before[0], k_memory[6][1], sizeof before[0]);
    memcpy(before[1], k_memory[6][3], sizeof before[1]);
    EXPECT(0, kvf_cpu_move_rows(pages, moves, 3));
    CHECK(memcmp(k_memory[6][0], before, sizeof before) == 0);
    CHECK(memcmp(v_memory[6][2], v_memory[8][0], sizeof v_memory[8][0]) == 0);
    CHECK(memcmp(k_memory[6][3], before[1], sizeof before[1]) == 0);
    EXPECT(0, kvf_cpu_move_rows(pages, NULL, 0));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_move_rows(pages, NULL, 1));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_move_rows(NULL, moves, 1));
    EXPECT(KVF_KERNEL_ERR_ALIGN, kvf_cpu_move_rows(pages, (kvf_kernel_move *)((char *)moves + 1), 1));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_quant_move_rows(NULL, moves, 1));
    moves[2].dst_slot = P;
    EXPECT(KVF_KERNEL_ERR_SLOT, kvf_cpu_move_rows(pages, moves, 3));
    moves[2].dst_slot = 0;
    moves[2].src_page = 0;
    EXPECT(KVF_KERNEL_ERR_NULL_PAGE, kvf_cpu_move_rows(pages, moves, 3));
    moves[2].src_page = N + 1;
    EXPECT(KVF_KERNEL_ERR_PAGE, kvf_cpu_move_rows(pages, moves, 3));
    CHECK(memcmp(k_memory[6][0], before, sizeof before) == 0);
}

/* Plain double-precision attention of one head. */
static void expected(const float *q, int kv_head, int t, double scale, double *out, double *lse)
{
    double weights[T], sum = 0;
    int j, e;
    for (j = 0; j <= t; j++) {
        double x = 0;
        for (e = 0; e < D; e++)
            x += (double)q[e] * (double)k_rows[j][kv_head][e];
        weights[j] = exp(x * scale);
        sum += weights[j];
    }
    for (e = 0; e < D; e++) {
        out[e] = 0;
        for (j = 0; j <= t; j++)
            out[e] += weights[j] / sum * (double)v_rows[j][kv_head][e];
    }
    *lse = log(sum);
}

static void test_attention(const kvf_kernel_pages *pages, const kvf_kernel_table *table)
{
    enum { ROWS = 3 };
    float q[ROWS][H][D], out[ROWS][H][D], again[ROWS][H][D], lse[ROWS][H];
    const int32_t positions[ROWS] = {T - 1, -1, 4};
    const int32_t table_rows[ROWS] = {0, 99, 0};
    const int32_t bad_rows[ROWS] = {0, 0, 2};
    kvf_kernel_attention params;
    kvf_kernel_queries queries;
    kvf_kernel_work work;
    kvf_kernel_contiguous contiguous;
    kvf_kernel_pages bad_pages;
    kvf_kernel_table bad_table;
    struct {
        kvf_kernel_work work;
        uint64_t later_field;
    } future;
    uint64_t floats = 0;
    uint32_t i;
    int row, h, e;

    for (row = 0; row < ROWS; row++)
        for (h = 0; h < H; h++)
            for (e = 0; e < D; e++)
                q[row][h][e] = (float)((row * 31 + h * 7 + e * 3) % 11) * 0.25f - 1.0f;
    memset(out, 0x55, sizeof out);
    memset(&params, 0, sizeof params);
    params.struct_size = sizeof params;
    params.heads = H;
    memset(&queries, 0, sizeof queries);
    queries.struct_size = sizeof queries;
    queries.n = ROWS;
    queries.q = &q[0][0][0];
    queries.positions = positions;
    queries.out = &out[0][0][0];
    queries.table_rows = table_rows;
    queries.lse = &lse[0][0];
    EXPECT(0, kvf_cpu_attention_scratch(HK, &params, T, &floats));
    CHECK(floats == 2 * 16);
    memset(&work, 0, sizeof work);
    work.struct_size = sizeof work;
    work.row_end = KVF_KERNEL_ALL;
    work.head_end = KVF_KERNEL_ALL;
    work.scratch = (float *)malloc((size_t)floats * sizeof(float));
    work.scratch_floats = floats;

    EXPECT(0, kvf_cpu_attention(pages, table, &params, &queries, &work));
    for (row = 0; row < ROWS; row++) {
        for (h = 0; h < H; h++) {
            double o[D] = {0}, l = 0;
            if (positions[row] < 0) {
                CHECK(isinf(lse[row][h]) && lse[row][h] < 0);
            } else {
                expected(q[row][h], h / (H / HK), positions[row], 1 / sqrt((double)D), o, &l);
                CHECK(fabs(l - (double)lse[row][h]) < 1e-5);
            }
            for (e = 0; e < D; e++)
                CHECK(fabs(o[e] - (double)out[row][h][e]) < 1e-6);
        }
    }

    /* Without pages, in shares of one row and one head: the same bits. */
    memset(&contiguous, 0, sizeof contiguous);
    contiguous.struct_size = sizeof contiguous;
    contiguous.dtype = KVF_KERNEL_DTYPE_F32;
    contiguous.tokens = T;
    contiguous.kv_heads = HK;
    contiguous.head_dim = D;
    contiguous.k = k_rows;
    contiguous.v = v_rows;
    memset(again, 0x55, sizeof again);
    queries.out = &again[0][0][0];
    for (i = 0; i < ROWS * H; i++) {
        work.row_begin = i / H;
        work.row_end = i / H + 1;
        work.head_begin = i % H;
        work.head_end = i % H + 1;
        EXPECT(0, kvf_cpu_attention_contiguous(&contiguous, &params, &queries, &work));
    }
    CHECK(memcmp(out, again, sizeof out) == 0);
    memset(again, 0x55, sizeof again);
    for (i = 0; i < ROWS * H; i++) {
        work.row_begin = i / H;
        work.row_end = i / H + 1;
        work.head_begin = i % H;
        work.head_end = i % H + 1;
        EXPECT(0, kvf_cpu_attention(pages, table, &params, &queries, &work));
    }
    CHECK(memcmp(out, again, sizeof out) == 0);
    work.row_begin = 0;
    work.row_end = KVF_KERNEL_ALL;
    work.head_begin = 0;
    work.head_end = KVF_KERNEL_ALL;

    /* Errors; nothing is written. */
    memset(again, 0x55, sizeof again);
    memset(out, 0x55, sizeof out);
#define ATTENTION(status) EXPECT(status, kvf_cpu_attention(pages, table, &params, &queries, &work))
    work.scratch_floats--;
    ATTENTION(KVF_KERNEL_ERR_SCRATCH);
    work.scratch_floats++;
    work.row_end = ROWS + 1;
    ATTENTION(KVF_KERNEL_ERR_RANGE);
    work.row_end = KVF_KERNEL_ALL;
    work.head_end = H + 1;
    ATTENTION(KVF_KERNEL_ERR_RANGE);
    work.head_end = KVF_KERNEL_ALL;
    params.heads = 3;
    ATTENTION(KVF_KERNEL_ERR_SHAPE);
    params.heads = 0;
    ATTENTION(KVF_KERNEL_ERR_SHAPE);
    params.heads = H;
    params.soft_cap = -1.0f;
    ATTENTION(KVF_KERNEL_ERR_VALUE);
    params.soft_cap = 0.0f;
    queries.table_rows = bad_rows;
    queries.positions = positions;
    ATTENTION(KVF_KERNEL_ERR_TABLE);
    queries.table_rows = table_rows;
    queries.q = NULL;
    ATTENTION(KVF_KERNEL_ERR_NULL);
    queries.q = &q[0][0][0];
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_attention(NULL, table, &params, &queries, &work));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_attention(pages, NULL, &params, &queries, &work));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_attention(pages, table, NULL, &queries, &work));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_attention(pages, table, &params, NULL, &work));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_attention(pages, table, &params, &queries, NULL));
    bad_pages = *pages;
#define BAD_PAGES(status) EXPECT(status, kvf_cpu_attention(&bad_pages, table, &params, &queries, &work))
    bad_pages.n_pages = 6;
    BAD_PAGES(KVF_KERNEL_ERR_PAGE);
    bad_pages.n_pages = N;
    bad_pages.dtype = 4;
    BAD_PAGES(KVF_KERNEL_ERR_DTYPE);
    bad_pages.dtype = KVF_KERNEL_DTYPE_F32;
    bad_pages.page_tokens = 3;
    BAD_PAGES(KVF_KERNEL_ERR_PAGE_TOKENS);
    bad_pages.page_tokens = P;
    bad_pages.head_dim = 0;
    BAD_PAGES(KVF_KERNEL_ERR_SHAPE);
    bad_pages.head_dim = D;
    bad_pages.k_head_stride = 2;
    BAD_PAGES(KVF_KERNEL_ERR_ALIGN);
    bad_pages.k_head_stride = 4;
    BAD_PAGES(KVF_KERNEL_ERR_STRIDE);
    bad_table = *table;
    bad_table.stride = 0;
    EXPECT(KVF_KERNEL_ERR_SHAPE, kvf_cpu_attention(pages, &bad_table, &params, &queries, &work));
    contiguous.tokens = T - 1;
    EXPECT(KVF_KERNEL_ERR_RANGE,
           kvf_cpu_attention_contiguous(&contiguous, &params, &queries, &work));
    for (i = 0; i < sizeof out; i++)
        CHECK(((unsigned char *)out)[i] == 0x55 && ((unsigned char *)again)[i] == 0x55);

    /* struct_size: zero, short, long with zeros, long with something. */
    queries.out = &out[0][0][0];
    params.struct_size = 0;
    ATTENTION(KVF_KERNEL_ERR_STRUCT_SIZE);
    params.struct_size = (uint32_t)offsetof(kvf_kernel_attention, scale);
    params.scale = 77.0f; /* not there for the library */
    ATTENTION(0);
    params.scale = 0.0f;
    params.struct_size = sizeof params;
    params.isa = 3;
    ATTENTION(KVF_KERNEL_ERR_VALUE);
    queries.out = &again[0][0][0];
    params.isa = KVF_KERNEL_ISA_PORTABLE;
    ATTENTION(0);
    CHECK(memcmp(out, again, sizeof out) == 0);
    params.isa = KVF_KERNEL_ISA_BEST;
    memset(again, 0x55, sizeof again);
    memset(&future, 0, sizeof future);
    future.work = work;
    future.work.struct_size = sizeof future;
    EXPECT(0, kvf_cpu_attention(pages, table, &params, &queries, &future.work));
    CHECK(memcmp(out, again, sizeof out) == 0);
    future.later_field = 1;
    EXPECT(KVF_KERNEL_ERR_STRUCT_SIZE,
           kvf_cpu_attention(pages, table, &params, &queries, &future.work));
    free(work.scratch);
}

/* Row 0 holds T tokens; some die, and what is left counts as if it were alone. */
static void test_slots(const kvf_kernel_pages *pages, const kvf_kernel_table *table)
{
    enum { SLOTS = COLUMNS * P, PAD = 3, STRIDE = SLOTS + PAD };
    const uint64_t valid[2][COLUMNS] = {{0xb, 0x0, 0x7}, {0, 0, 0}}; /* slots 0 1 3 8 9 10 */
    static const int live[] = {0, 1, 3, 8, 9, 10};
    enum { LIVE = 6 };
    const int32_t holes[2][COLUMNS] = {{7, 0, 5}, {0, 0, 0}};
    const uint32_t used[2] = {T, 0};
    const int32_t position = T - 1, row = 0;
    float q[H][D], out[H][D], packed[H][D], lse[H], packed_lse[H], k[LIVE][HK][D], v[LIVE][HK][D];
    float sums[2][HK][STRIDE], again[2][HK][STRIDE], probabilities[H][SLOTS];
    int32_t positions[2][SLOTS];
    kvf_kernel_attention params;
    kvf_kernel_queries queries;
    kvf_kernel_work work;
    kvf_kernel_contiguous contiguous;
    kvf_kernel_slots slots;
    kvf_kernel_scores scores;
    kvf_kernel_table with_holes = *table;
    kvf_kernel_pages wide;
    const int32_t packed_position = LIVE - 1;
    uint64_t floats = 0;
    int i, h, s;

    with_holes.entries = &holes[0][0];
    for (h = 0; h < H; h++)
        for (i = 0; i < D; i++)
            q[h][i] = (float)((h * 7 + i * 3) % 11) * 0.25f - 1.0f;
    for (i = 0; i < LIVE; i++) {
        memcpy(k[i], k_rows[live[i]], sizeof k[i]);
        memcpy(v[i], v_rows[live[i]], sizeof v[i]);
    }
    memset(&params, 0, sizeof params);
    params.struct_size = sizeof params;
    params.heads = H;
    memset(&queries, 0, sizeof queries);
    queries.struct_size = sizeof queries;
    queries.n = 1;
    queries.q = &q[0][0];
    queries.positions = &packed_position;
    queries.out = &packed[0][0];
    queries.table_rows = &row;
    queries.lse = packed_lse;
    EXPECT(0, kvf_cpu_attention_slots_scratch(HK, &params, LIVE, &floats));
    CHECK(floats == (2 + 2 + 1) * 16);
    memset(&work, 0, sizeof work);
    work.struct_size = sizeof work;
    work.row_end = KVF_KERNEL_ALL;
    work.head_end = KVF_KERNEL_ALL;
    work.scratch = (float *)malloc((size_t)floats * sizeof(float));
    work.scratch_floats = floats;
    memset(&contiguous, 0, sizeof contiguous);
    contiguous.struct_size = sizeof contiguous;
    contiguous.dtype = KVF_KERNEL_DTYPE_F32;
    contiguous.tokens = LIVE;
    contiguous.kv_heads = HK;
    contiguous.head_dim = D;
    contiguous.k = k;
    contiguous.v = v;
    EXPECT(0, kvf_cpu_attention_contiguous(&contiguous, &params, &queries, &work));

    memset(&slots, 0, sizeof slots);
    slots.struct_size = sizeof slots;
    slots.valid = &valid[0][0];
    slots.used = used;
    memset(&scores, 0, sizeof scores);
    scores.struct_size = sizeof scores;
    scores.flags = KVF_KERNEL_SCORES_STORE;
    scores.slots = SLOTS;
    scores.sums = &sums[0][0][0];
    scores.probabilities = &probabilities[0][0];
    scores.head_stride = STRIDE;
    queries.positions = &position;
    queries.out = &out[0][0];
    queries.lse = lse;
    memset(sums, 0x55, sizeof sums);
    memset(again, 0x55, sizeof again);
#define SLOTS_CALL(status)                                                                        \
    EXPECT(status, kvf_cpu_attention_slots(pages, &with_holes, &slots, &params, &queries, &scores, &work))
    SLOTS_CALL(0);
    CHECK(memcmp(out, packed, sizeof out) == 0 && memcmp(lse, packed_lse, sizeof lse) == 0);
    for (h = 0; h < H; h++) {
        double sum = 0;
        for (s = 0; s < SLOTS; s++) {
            const int g = h / (H / HK);
            const double x = (double)probabilities[g * 2][s] + (double)probabilities[g * 2 + 1][s];
            CHECK((probabilities[h][s] > 0) == (s < T && (valid[0][s / P] >> s % P & 1) != 0));
            CHECK(fabs((double)sums[0][g][s] - x / 2) < 1e-6);
            sum += (double)probabilities[h][s];
        }
        CHECK(fabs(sum - 1) < 1e-6);
    }
    /* Only row 0 and no padding. */
    CHECK(memcmp(&sums[0][0][SLOTS], &again[0][0][SLOTS], PAD * sizeof(float)) == 0);
    CHECK(memcmp(sums[1], again[1], sizeof sums[1]) == 0);

    /* Shares by KV head, added to zeros; positions instead of order. */
    for (s = 0; s < SLOTS; s++) {
        positions[0][s] = s < T ? T - 1 - s : -1;
        positions[1][s] = -1;
    }
    memset(again[0], 0, sizeof again[0]);
    memcpy(&again[0][0][SLOTS], &sums[0][0][SLOTS], PAD * sizeof(float));
    memcpy(&again[0][1][SLOTS], &sums[0][1][SLOTS], PAD * sizeof(float));
    memset(out, 0x55, sizeof out);
    slots.positions = &positions[0][0];
    slots.used = NULL;
    scores.flags = 0;
    scores.sums = &again[0][0][0];
    for (h = 0; h < H; h += H / HK) {
        work.head_begin = (uint32_t)h;
        work.head_end = (uint32_t)(h + H / HK);
        SLOTS_CALL(0);
    }
    CHECK(memcmp(out, packed, sizeof out) == 0);
    CHECK(memcmp(again, sums, sizeof sums) == 0);

    /* Errors; nothing is written. */
    memset(out, 0x55, sizeof out);
    memset(probabilities, 0x55, sizeof probabilities);
    work.head_begin = 1;
    SLOTS_CALL(KVF_KERNEL_ERR_RANGE);
    work.head_begin = 0;
    work.head_end = KVF_KERNEL_ALL;
    work.scratch_floats--;
    SLOTS_CALL(KVF_KERNEL_ERR_SCRATCH);
    work.scratch_floats++;
    scores.reduce = 3;
    SLOTS_CALL(KVF_KERNEL_ERR_VALUE);
    scores.reduce = KVF_KERNEL_REDUCE_MAX;
    scores.flags = 4;
    SLOTS_CALL(KVF_KERNEL_ERR_VALUE);
    scores.flags = KVF_KERNEL_SCORES_STORE;
    scores.slots = T - 1;
    SLOTS_CALL(KVF_KERNEL_ERR_RANGE);
    scores.slots = SLOTS;
    scores.head_stride = SLOTS - 1;
    SLOTS_CALL(KVF_KERNEL_ERR_STRIDE);
    scores.head_stride = UINT64_MAX / 2;
    SLOTS_CALL(KVF_KERNEL_ERR_STRIDE);
    scores.head_stride = STRIDE;
    scores.row_stride = 1;
    SLOTS_CALL(KVF_KERNEL_ERR_STRIDE);
    scores.row_stride = 0;
    scores.sums = (float *)((char *)again + 1);
    SLOTS_CALL(KVF_KERNEL_ERR_ALIGN);
    scores.sums = &again[0][0][0];
    scores.struct_size--;
    SLOTS_CALL(0); /* a shorter struct: the rest is the default */
    scores.struct_size = 8;
    SLOTS_CALL(KVF_KERNEL_ERR_STRUCT_SIZE);
    scores.struct_size = sizeof scores;
    memset(out, 0x55, sizeof out);
    memset(probabilities, 0x55, sizeof probabilities);
    memcpy(again, sums, sizeof sums);
    slots.valid = (const uint64_t *)((const char *)valid + 4);
    SLOTS_CALL(KVF_KERNEL_ERR_ALIGN);
    slots.valid = &valid[0][0];
    slots.struct_size = 0;
    SLOTS_CALL(KVF_KERNEL_ERR_STRUCT_SIZE);
    slots.struct_size = sizeof slots;
    slots.used = used;
    slots.positions = NULL;
    queries.positions = &positions[0][0];
    positions[0][0] = T;
    SLOTS_CALL(KVF_KERNEL_ERR_TABLE);
    queries.positions = &position;
    wide = *pages;
    wide.page_tokens = 128;
    EXPECT(KVF_KERNEL_ERR_PAGE_TOKENS,
           kvf_cpu_attention_slots(&wide, &with_holes, &slots, &params, &queries, &scores, &work));
    EXPECT(KVF_KERNEL_ERR_NULL,
           kvf_cpu_attention_slots(pages, NULL, &slots, &params, &queries, &scores, &work));
    EXPECT(KVF_KERNEL_ERR_NULL,
           kvf_cpu_attention_slots(pages, table, &slots, NULL, &queries, &scores, &work));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_attention_slots_scratch(HK, &params, LIVE, NULL));
    for (i = 0; i < (int)sizeof out; i++) CHECK(((unsigned char *)out)[i] == 0x55);
    for (i = 0; i < (int)sizeof probabilities; i++)
        CHECK(((unsigned char *)probabilities)[i] == 0x55);
    CHECK(memcmp(again, sums, sizeof sums) == 0);
    free(work.scratch);
}

/* The first T slots of row 0, of which slot 5 is dead. */
static void test_keys(const kvf_kernel_pages *pages, const kvf_kernel_table *table)
{
    enum { SLOTS = T + 2 };
    const uint64_t valid[2][COLUMNS] = {{0xf, 0xd, 0x7}, {0, 0, 0}};
    float norms[HK][SLOTS], dots[HK][SLOTS], vectors[HK][D], sums[HK][D], before[HK][SLOTS];
    float least[COLUMNS][HK][D], greatest[COLUMNS][HK][D], q[H][D], out[H][COLUMNS];
    kvf_kernel_slots slots;
    kvf_kernel_keys keys;
    kvf_kernel_bounds bounds;
    int s, g, h, e;
    memset(&slots, 0, sizeof slots);
    slots.struct_size = sizeof slots;
    slots.valid = &valid[0][0];
    memset(&keys, 0, sizeof keys);
    keys.struct_size = sizeof keys;
    keys.slots = T;
    keys.head_stride = SLOTS;
    keys.norms = &norms[0][0];
    keys.dots = &dots[0][0];
    keys.vectors = &vectors[0][0];
    keys.unit_sums = &sums[0][0];
    for (g = 0; g < HK; g++)
        for (e = 0; e < D; e++) {
            vectors[g][e] = (float)(e - g) * 0.5f;
            sums[g][e] = 0.0f;
        }
    memset(norms, 0x55, sizeof norms);
    memset(dots, 0x55, sizeof dots);
    memset(before, 0x55, sizeof before);
    EXPECT(0, kvf_cpu_keys(pages, table, &slots, 0, 0, T, &keys));
    for (g = 0; g < HK; g++) {
        double sum[D] = {0};
        for (s = 0; s < T; s++) {
            double square = 0, dot = 0;
            if (s == 5) {
                CHECK(memcmp(&norms[g][s], before, sizeof(float)) == 0);
                continue;
            }
            for (e = 0; e < D; e++) {
                square += (double)k_rows[s][g][e] * (double)k_rows[s][g][e];
                dot += (double)k_rows[s][g][e] * (double)vectors[g][e];
            }
            for (e = 0; e < D; e++) sum[e] += (double)k_rows[s][g][e] / sqrt(square);
            CHECK(fabs(sqrt(square) - (double)norms[g][s]) < 1e-5);
            CHECK(fabs(dot - (double)dots[g][s]) < 1e-5);
        }
        for (e = 0; e < D; e++) CHECK(fabs(sum[e] - (double)sums[g][e]) < 1e-5);
        CHECK(memcmp(&norms[g][T], before, 2 * sizeof(float)) == 0);
    }

    for (h = 0; h < H; h++)
        for (e = 0; e < D; e++) q[h][e] = (float)((h * 7 + e * 3) % 11) * 0.25f - 1.0f;
    memset(least, 0x55, sizeof least);
    EXPECT(0, kvf_cpu_key_extremes(pages, table, &slots, 0, 0, COLUMNS, 0, &least[0][0][0], &greatest[0][0][0]));
    memset(&bounds, 0, sizeof bounds);
    bounds.struct_size = sizeof bounds;
    bounds.n = 1;
    bounds.heads = H;
    bounds.kv_heads = HK;
    bounds.head_dim = D;
    bounds.columns = COLUMNS;
    bounds.q = &q[0][0];
    bounds.least = &least[0][0][0];
    bounds.greatest = &greatest[0][0][0];
    bounds.out = &out[0][0];
    EXPECT(0, kvf_cpu_page_bounds(&bounds));
    for (h = 0; h < H; h++)
        for (s = 0; s < T; s++) {
            double dot = 0;
            for (e = 0; e < D; e++) dot += (double)q[h][e] * (double)k_rows[s][h / (H / HK)][e];
            CHECK(s == 5 || dot <= (double)out[h][s / P] + 1e-6);
        }

    /* Errors; nothing is written. */
    memcpy(norms, before, sizeof norms);
    memcpy(vectors, sums, sizeof sums);
#define KEYS(status, begin, end) EXPECT(status, kvf_cpu_keys(pages, table, &slots, 0, begin, end, &keys))
    KEYS(KVF_KERNEL_ERR_RANGE, 2, 1);
    KEYS(KVF_KERNEL_ERR_RANGE, 0, T + 1);
    KEYS(KVF_KERNEL_ERR_TABLE, 0, COLUMNS * P + 1);
    EXPECT(KVF_KERNEL_ERR_TABLE, kvf_cpu_keys(pages, table, &slots, 2, 0, T, &keys));
    keys.vectors = NULL;
    KEYS(KVF_KERNEL_ERR_NULL, 0, T);
    keys.vectors = (float *)((char *)vectors + 1);
    KEYS(KVF_KERNEL_ERR_ALIGN, 0, T);
    keys.vectors = &vectors[0][0];
    keys.head_stride = T - 1;
    KEYS(KVF_KERNEL_ERR_STRIDE, 0, T);
    keys.head_stride = SLOTS;
    keys.flags = 2;
    KEYS(KVF_KERNEL_ERR_VALUE, 0, T);
    keys.flags = 0;
    keys.isa = 3;
    KEYS(KVF_KERNEL_ERR_VALUE, 0, T);
    keys.isa = 0;
    keys.struct_size = 4;
    KEYS(KVF_KERNEL_ERR_STRUCT_SIZE, 0, T);
    keys.struct_size = sizeof keys;
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_keys(pages, table, &slots, 0, 0, T, NULL));
    CHECK(memcmp(norms, before, sizeof norms) == 0 && memcmp(vectors, sums, sizeof sums) == 0);
    EXPECT(KVF_KERNEL_ERR_TABLE,
           kvf_cpu_key_extremes(pages, table, &slots, 0, 0, COLUMNS + 1, 0, &least[0][0][0], &greatest[0][0][0]));
    EXPECT(KVF_KERNEL_ERR_NULL,
           kvf_cpu_key_extremes(pages, table, &slots, 0, 0, 1, 0, &least[0][0][0], NULL));
    EXPECT(KVF_KERNEL_ERR_PAGE, /* what is not a page, in a live column */
           kvf_cpu_key_extremes(pages, table, NULL, 1, 0, COLUMNS, 0, &least[0][0][0], &greatest[0][0][0]));
    bounds.heads = 3;
    EXPECT(KVF_KERNEL_ERR_SHAPE, kvf_cpu_page_bounds(&bounds));
    bounds.heads = H;
    bounds.q = NULL;
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_page_bounds(&bounds));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_page_bounds(NULL));
}

static void test_convert(void)
{
    const float src[4] = {1.0f, -2.5f, 65504.0f, 1e-8f};
    float back[4];
    uint16_t half[4];
    EXPECT(0, kvf_cpu_from_f32(KVF_KERNEL_DTYPE_F16, src, half, 4));
    CHECK(half[0] == 0x3c00 && half[1] == 0xc100 && half[2] == 0x7bff && half[3] == 0);
    EXPECT(0, kvf_cpu_to_f32(KVF_KERNEL_DTYPE_F16, half, back, 4));
    CHECK(back[1] == -2.5f);
    EXPECT(0, kvf_cpu_from_f32(KVF_KERNEL_DTYPE_BF16, src, half, 4));
    CHECK(half[0] == 0x3f80);
    EXPECT(KVF_KERNEL_ERR_DTYPE, kvf_cpu_from_f32(0, src, half, 4));
    EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_to_f32(1, NULL, back, 4));
}

static void test_rows(void)
{
    enum { ROWS = 32, DIM = 64, ALL = ROWS * DIM };
    static float x[ALL], back[ALL], again[ALL];
    static unsigned char codes[2][ALL];
    static uint16_t scales[2][ALL / 16], zeros[2][ALL / 16];
    uint64_t report[2] = {9, 9};
    uint32_t axis, isa;
    int i;
    for (i = 0; i < ALL; i++) x[i] = (float)((i * 37) % 101) * 0.02f - 1.0f;
    for (axis = 1; axis <= 2; axis++) {
        kvf_kernel_rows rows;
        memset(&rows, 0, sizeof rows);
        rows.struct_size = sizeof rows;
        rows.element = 4; /* KVF_ELEMENT_INT8 */
        rows.axis = axis;
        rows.group = 32;
        rows.dim = DIM;
        rows.tokens = ROWS;
        for (isa = 0; isa < 2; isa++) {
            rows.isa = isa;
            rows.codes = codes[isa];
            rows.scales = scales[isa];
            rows.zeros = zeros[isa];
            EXPECT(0, kvf_cpu_quantize(&rows, KVF_KERNEL_DTYPE_F32, x, report));
            EXPECT(0, kvf_cpu_dequantize(&rows, KVF_KERNEL_DTYPE_F32, isa == 0 ? back : again));
        }
        CHECK(report[0] == 0 && report[1] == 0);
        CHECK(memcmp(codes[0], codes[1], sizeof codes[0]) == 0);
        CHECK(memcmp(scales[0], scales[1], sizeof scales[0]) == 0);
        CHECK(memcmp(back, again, sizeof back) == 0);
        for (i = 0; i < ALL; i++) CHECK(fabsf(back[i] - x[i]) <= 0.0041f);
        EXPECT(KVF_KERNEL_ERR_DTYPE, kvf_cpu_quantize(&rows, 9, x, NULL));
        rows.zeros = NULL;
        EXPECT(KVF_KERNEL_ERR_NULL, kvf_cpu_quantize(&rows, KVF_KERNEL_DTYPE_F32, x, NULL));
        rows.zeros = zeros[0];
        rows.group = 24;
        EXPECT(KVF_KERNEL_ERR_LAYOUT, kvf_cpu_quantize(&rows, KVF_KERNEL_DTYPE_F32, x, NULL));
        rows.group = 32;
        rows.isa = 3;
        EXPECT(KVF_KERNEL_ERR_VALUE, kvf_cpu_dequantize(&rows, KVF_KERNEL_DTYPE_F32, back));
        rows.isa = 0;
        x[70] = (float)INFINITY;
        EXPECT(KVF_KERNEL_ERR_NONFINITE, kvf_cpu_quantize(&rows, KVF_KERNEL_DTYPE_F32, x, report));
        rows.on_non_finite = KVF_KERNEL_NONFINITE_SANITISE;
        EXPECT(0, kvf_cpu_quantize(&rows, KVF_KERNEL_DTYPE_F32, x, report));
        CHECK(report[0] == 0 && report[1] == 1);
        x[70] = 0.5f;
    }
}

int main(void)
{
    kvf_kernel_pages pages = make_pages();
    kvf_kernel_table table = make_table();
    fill();
    CHECK(kvf_kernels_abi() == KVF_KERNEL_ABI);
    CHECK(strcmp(kvf_kernel_status_name(KVF_KERNEL_ERR_SLOT), "KVF_KERNEL_ERR_SLOT") == 0);
    CHECK(kvf_kernel_status_name(-5) != NULL);
    test_append_gather_scatter(&pages, &table);
    test_copy(&pages);
    test_moves(&pages);
    test_attention(&pages, &table);
    test_slots(&pages, &table);
    test_keys(&pages, &table);
    test_convert();
    test_rows();
    printf(failures == 0 ? "ok\n" : "%d failures\n", failures);
    return failures != 0;
}
