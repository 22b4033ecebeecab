/*
 * quant.c - speed of encoding and decoding rows, in 10^9 elements a second
 *
 * kernels/bench/run.sh builds and runs it. One thread, its CPU time, the best
 * of several runs; d = 128. Beside each other, of the same run:
 *
 *   portable, avx2   the two instruction sets of the library
 *   memcpy, read     copying and reading the plain elements
 *   C, C avx2        blocks.c as the compiler makes it, f32 only
 *   of read          encoding with AVX2 as a part of reading: what a perfect
 *                    encoder would do from memory
 *   of memcpy        decoding with AVX2 as a part of copying the elements
 */
#define _POSIX_C_SOURCE 199309L
#include "kvfolio_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BLOCKS(suffix)                                                  \
    void q8_0_encode##suffix(const float *x, uint8_t *to, size_t n);    \
    void q8_0_decode##suffix(const uint8_t *from, float *x, size_t n);  \
    void q4_0_encode##suffix(const float *x, uint8_t *to, size_t n);    \
    void q4_0_decode##suffix(const uint8_t *from, float *x, size_t n)
BLOCKS(_plain);
BLOCKS(_avx2);

enum { DIM = 128, DTYPES = 2 };

typedef struct job {
    kvf_kernel_rows rows;
    uint32_t dtype;
    void *x;
    void *other;
    size_t n, bytes;
} job;

static volatile uint64_t sink;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void encode(job *job)
{
    if (kvf_cpu_quantize(&job->rows, job->dtype, job->x, NULL) != 0) exit(1);
}

static void decode(job *job)
{
    if (kvf_cpu_dequantize(&job->rows, job->dtype, job->other) != 0) exit(1);
}

static void copy(job *job)
{
    memcpy(job->other, job->x, job->bytes);
    sink += *(volatile unsigned char *)job->other;
}

#if defined(__x86_64__)
__attribute__((target("avx2")))
#endif
static void stream(job *job)
{
    const uint64_t *x = job->x;
    uint64_t sums[32] = {0}, sum = 0;
    size_t i, lane;
    for (i = 0; i + 32 <= job->bytes / 8; i += 32)
        for (lane = 0; lane < 32; lane++) sums[lane] += x[i + lane];
    for (lane = 0; lane < 32; lane++) sum += sums[lane];
    sink += sum;
}

#define YARDSTICK(name)                                                                  \
    static void name##_encode_c(job *job) { name##_encode_plain(job->x, job->rows.codes, job->n); }   \
    static void name##_encode_v(job *job) { name##_encode_avx2(job->x, job->rows.codes, job->n); }    \
    static void name##_decode_c(job *job) { name##_decode_plain(job->rows.codes, job->other, job->n); } \
    static void name##_decode_v(job *job) { name##_decode_avx2(job->rows.codes, job->other, job->n); }
YARDSTICK(q8_0)
YARDSTICK(q4_0)

/* The best of several runs, each of at least a millisecond. */
static double rate(job *job, void (*run)(struct job *))
{
    double best = 1e9, start, took;
    int repeat = 1, i, nth;
    run(job);
    start = now();
    run(job);
    took = now() - start;
    while (took * repeat < 1e-3) repeat *= 2;
    for (nth = 0; nth < (job->bytes > 1 << 22 ? 5 : 15); nth++) {
        start = now();
        for (i = 0; i < repeat; i++) run(job);
        took = (now() - start) / repeat;
        best = took < best ? took : best;
    }
    return (double)job->n / best * 1e-9;
}

static const struct {
    const char *name;
    uint32_t element, axis, group;
    void (*yardsticks[4])(job *);
} formats[] = {
    {"int8 token G=d", 4, 1, 0, {0}},
    {"int8 token G=32", 4, 1, 32, {0}},
    {"int8 channel G=32", 4, 2, 32, {0}},
    {"int8 symmetric", 7, 1, 0, {0}},
    {"int4 token G=32", 5, 1, 32, {0}},
    {"int4 channel G=32", 5, 2, 32, {0}},
    {"int2 token G=32", 6, 1, 32, {0}},
    {"int2 channel G=32", 6, 2, 32, {0}},
    {"fp8 e4m3fn", 8, 0, 0, {0}},
    {"q8_0", 11, 0, 0, {q8_0_encode_c, q8_0_encode_v, q8_0_decode_c, q8_0_decode_v}},
    {"q4_0", 12, 0, 0, {q4_0_encode_c, q4_0_encode_v, q4_0_decode_c, q4_0_decode_v}},
};

static void table(size_t bytes)
{
    uint32_t dtype, isa;
    size_t i, direction;
    double limits[2]; /* of encoding and of decoding */
    job job;
    void *codes = malloc(bytes + 64), *scales = malloc(bytes / 4 + 64), *zeros = malloc(bytes / 4 + 64);
    job.bytes = bytes;
    job.x = aligned_alloc(64, bytes);
    job.other = aligned_alloc(64, bytes);
    if (!codes || !scales || !zeros || !job.x || !job.other) exit(1);
    memset(job.other, 1, bytes);
    for (dtype = KVF_KERNEL_DTYPE_F32; dtype <= DTYPES; dtype++) {
        float *x = malloc(bytes / (dtype == KVF_KERNEL_DTYPE_F32 ? 4 : 2) * sizeof(float));
        uint64_t seed = 1;
        if (!x) exit(1);
        job.dtype = dtype;
        job.n = bytes / (dtype == KVF_KERNEL_DTYPE_F32 ? 4 : 2);
        for (i = 0; i < job.n; i++) {
            float sum = -2.0f;
            int part;
            for (part = 0; part < 4; part++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                sum += (float)(seed >> 40) / 16777216.0f;
            }
            x[i] = sum;
        }
        kvf_cpu_from_f32(dtype, x, job.x, job.n);
        free(x);
        limits[0] = rate(&job, stream);
        limits[1] = rate(&job, copy);
        printf("\n%s, %zu KiB: memcpy %.2f, read %.2f\n", dtype == KVF_KERNEL_DTYPE_F32 ? "f32" : "f16",
               bytes >> 10, limits[1], limits[0]);
        printf("%-18s %8s %8s %8s %8s %8s   %8s %8s %8s %8s %9s\n", "", "encode", "avx2", "C", "C avx2", "of read",
               "decode", "avx2", "C", "C avx2", "of memcpy");
        for (i = 0; i < sizeof formats / sizeof formats[0]; i++) {
            printf("%-18s", formats[i].name);
            for (direction = 0; direction < 2; direction++) {
                double best = 0;
                memset(&job.rows, 0, sizeof job.rows);
                job.rows.struct_size = sizeof job.rows;
                job.rows.element = formats[i].element;
                job.rows.axis = formats[i].axis;
                job.rows.group = formats[i].group;
                job.rows.dim = DIM;
                job.rows.tokens = job.n / DIM;
                job.rows.codes = codes;
                job.rows.scales = scales;
                job.rows.zeros = zeros;
                for (isa = KVF_KERNEL_ISA_PORTABLE; isa <= KVF_KERNEL_ISA_AVX2; isa++) {
                    job.rows.isa = isa;
                    best = rate(&job, direction == 0 ? encode : decode);
                    printf(" %8.2f", best);
                }
                for (isa = 0; isa < 2; isa++) {
                    void (*run)(struct job *) = formats[i].yardsticks[direction * 2 + isa];
                    if (run && dtype == KVF_KERNEL_DTYPE_F32)
                        printf(" %8.2f", rate(&job, run));
                    else
                        printf(" %8s", "");
                }
                printf(" %8.2f  ", best / limits[direction]);
            }
            printf("\n");
            fflush(stdout);
        }
    }
    free(codes);
    free(scales);
    free(zeros);
    free(job.x);
    free(job.other);
}

/* "cache" or "memory": one of both. */
int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "cache") == 0) table((size_t)256 << 10);
    if (argc < 2 || strcmp(argv[1], "memory") == 0) table((size_t)64 << 20);
    return 0;
}
