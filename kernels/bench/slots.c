/*
 * slots.c - what holes and scores cost on top of decode attention
 *
 * One query row over T tokens. The variants run in turn; a figure is the median
 * over the rounds of a variant's thread CPU time over that of kvf_cpu_attention
 * in the same round. `slots.sh` builds and runs.
 */
#include "kvfolio_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { P = 16, T = 4096, COLUMNS = T / P, ROUNDS = 101 };
enum { PLAIN, LISTED, SUMS, WITHOUT_OWN, PROBABILITIES, POSITIONS, HALF, HALF_SUMS, PACKED, VARIANTS };

static const char *const names[VARIANTS] = {
    "",
    "kvf_cpu_attention_slots, no holes, no scores",
    "  and sums",
    "  and sums, own token left out",
    "  and probabilities",
    "  and sums, rows by positions",
    "every second slot a hole at random, no scores",
    "  and sums",
    "kvf_cpu_attention, half the tokens, packed",
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *get(size_t bytes)
{
    void *p = calloc(1, bytes);
    if (p == NULL) exit(2);
    return p;
}

static uint32_t state = 1;

static uint32_t draw(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static void check(int32_t status)
{
    if (status == 0) return;
    fprintf(stderr, "%s\n", kvf_kernel_status_name(status));
    exit(1);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x)
{
    qsort(x, ROUNDS, sizeof *x, ascending);
    return x[ROUNDS / 2];
}

static void measure(uint32_t kv_heads, uint32_t heads, uint32_t d, uint32_t dtype)
{
    const size_t size = dtype == KVF_KERNEL_DTYPE_F32 ? 4 : 2, n = (size_t)T * kv_heads * d;
    const size_t bytes = (n + (size_t)P * kv_heads * d) * size;
    kvf_kernel_pages pages = {sizeof pages, dtype, P, COLUMNS, kv_heads, d, get(bytes), get(bytes),
                              P * kv_heads * d * size, kv_heads * d * size, d * size, 0, 0, 0};
    int32_t *entries = get(COLUMNS * sizeof *entries), *positions = get(T * sizeof *positions);
    uint64_t *half = get(COLUMNS * sizeof *half), *all = get(COLUMNS * sizeof *all), floats;
    float *x = get(n * sizeof *x), *q = get(heads * d * sizeof *q), *out = get(heads * d * sizeof *out);
    float *sums = get(kv_heads * (size_t)T * sizeof *sums), *rows = get(heads * (size_t)T * sizeof *rows);
    const int32_t last = T - 1;
    int32_t packed = -1;
    const kvf_kernel_table table = {sizeof table, 1, COLUMNS, 0, entries};
    const kvf_kernel_attention params = {sizeof params, heads, 0, 0, 0, 0, NULL, 0, 0};
    kvf_kernel_queries queries = {sizeof queries, 1, q, &last, out, NULL, NULL};
    kvf_kernel_work work = {sizeof work, 0, KVF_KERNEL_ALL, 0, KVF_KERNEL_ALL, 0, NULL, 0};
    kvf_kernel_scores scores = {sizeof scores, KVF_KERNEL_REDUCE_MEAN, 0, T, sums, NULL, 0, 0};
    kvf_kernel_slots slots = {sizeof slots, NULL, NULL, NULL, NULL};
    static double ratios[VARIANTS][ROUNDS];
    double plain = 0;
    size_t i;
    int v, round;

    for (i = 0; i < n; i++) x[i] = (float)draw() / 8388608.0f - 1.0f;
    check(kvf_cpu_from_f32(dtype, x, (char *)pages.k + pages.k_page_stride, n));
    check(kvf_cpu_from_f32(dtype, x, (char *)pages.v + pages.k_page_stride, n));
    for (i = 0; i < heads * d; i++) q[i] = (float)draw() / 8388608.0f - 1.0f;
    for (i = 0; i < COLUMNS; i++) {
        entries[i] = (int32_t)(i * 37 % COLUMNS) + 1;
        half[i] = draw() & 0xffff;
        all[i] = 0xffff;
        packed += __builtin_popcountll(half[i]);
    }
    for (i = 0; i < T; i++) positions[i] = (int32_t)i;
    check(kvf_cpu_attention_slots_scratch(kv_heads, &params, T, &floats));
    work.scratch = get(floats * sizeof(float));
    work.scratch_floats = floats;
    for (round = 0; round < ROUNDS; round++) {
        for (v = 0; v < VARIANTS; v++) {
            const int with_sums = v == SUMS || v == WITHOUT_OWN || v == POSITIONS || v == HALF_SUMS;
            double seconds = now();
            slots.valid = v == HALF || v == HALF_SUMS ? half : v == POSITIONS ? all : NULL;
            slots.positions = v == POSITIONS ? positions : NULL;
            scores.sums = with_sums ? sums : NULL;
            scores.probabilities = v == PROBABILITIES ? rows : NULL;
            scores.flags = v == WITHOUT_OWN ? KVF_KERNEL_SCORES_WITHOUT_OWN : 0;
            queries.positions = v == PACKED ? &packed : &last;
            if (v == PLAIN || v == PACKED)
                check(kvf_cpu_attention(&pages, &table, &params, &queries, &work));
            else
                check(kvf_cpu_attention_slots(&pages, &table, &slots, &params, &queries,
                                              with_sums || v == PROBABILITIES ? &scores : NULL, &work));
            seconds = now() - seconds;
            if (v == PLAIN) plain = seconds;
            ratios[v][round] = v == PLAIN ? seconds : seconds / plain;
        }
    }
    printf("T %d, P %d, Hk %u, H %u, d %u, %s: %.2f ms\n", T, P, kv_heads, heads, d, size == 4 ? "f32" : "f16",
           median(ratios[PLAIN]) * 1e3);
    for (v = 1; v < VARIANTS; v++) printf("  %-48s %.3f\n", names[v], median(ratios[v]));
    free(pages.k), free(pages.v), free(entries), free(positions), free(half), free(all), free(x);
    free(q), free(out), free(sums), free(rows), free(work.scratch);
}

int main(void)
{
    measure(8, 32, 128, KVF_KERNEL_DTYPE_F16);
    measure(3, 9, 64, KVF_KERNEL_DTYPE_F16);
    measure(8, 32, 128, KVF_KERNEL_DTYPE_F32);
    measure(8, 8, 64, KVF_KERNEL_DTYPE_F32);
    return 0;
}
