/* Matrices as they lie in model files, and y = W x for many x at once. */
#include "matmul.h"

#include "dequant.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

/* Eight floats; the compiler splits them where registers are narrower. Loads promise no alignment. */
typedef float vec8 __attribute__((vector_size(32)));
typedef float vec8_unaligned __attribute__((vector_size(32), aligned(4), may_alias));

#define KERNEL(name) name##_portable
#define TARGET
#include "matmul_kernel.h"

/* AVX2 without FMA on purpose: a fused multiply-add would round differently from the portable kernel. */
#if defined(__x86_64__)
#define HAVE_AVX2_KERNEL 1
#define KERNEL(name) name##_avx2
#define TARGET __attribute__((target("avx2")))
#include "matmul_kernel.h"
#else
#define HAVE_AVX2_KERNEL 0
#endif

enum {
    BLOCK_FLOATS = 6144 /* weights dequantised at a time, unless a single row is longer: 24 KiB, most of an L1 cache */
};

static atomic_int force_portable;

static int use_avx2(void)
{
#if HAVE_AVX2_KERNEL
    return !atomic_load_explicit(&force_portable, memory_order_relaxed) && __builtin_cpu_supports("avx2");
#else
    return 0;
#endif
}

struct product {
    const struct matrix *w;
    const float *x;
    size_t x_stride;
    int n;
    float *y;
    size_t y_stride;
    int block_rows;
    int avx2;
};

/* Output rows [begin, end) of the product, a block of dequantised weights at a time. */
static void product_rows(void *context, int begin, int end, int worker)
{
    const struct product *p = context;
    const int stride = padded(p->w->cols);
    float block[MATMUL_MAX_COLS] __attribute__((aligned(64)));

    (void)worker;
    for (int row = begin; row < end; row += p->block_rows) {
        const int rows = end - row < p->block_rows ? end - row : p->block_rows;
#if HAVE_AVX2_KERNEL
        if (p->avx2) {
            for (int r = 0; r < rows; r++)
                dequant_avx2(p->w, row + r, block + r * stride);
            block_avx2(block, (size_t)stride, rows, p->x, p->x_stride, p->n, stride, p->y + row, p->y_stride);
            continue;
        }
#endif
        for (int r = 0; r < rows; r++)
            dequant_portable(p->w, row + r, block + r * stride);
        block_portable(block, (size_t)stride, rows, p->x, p->x_stride, p->n, stride, p->y + row, p->y_stride);
    }
}

void matmul(struct threads *threads, const struct matrix *w, const float *x, size_t x_stride, int n,
            float *y, size_t y_stride)
{
    const int stride = padded(w->cols);
    const int block_rows = stride >= BLOCK_FLOATS ? 1 : BLOCK_FLOATS / stride;
    struct product product = { w, x, x_stride, n, y, y_stride, block_rows, use_avx2() };

    /* About eight ranges a thread, in whole blocks: enough to even out a core that is busy with something else. */
    int grain = w->rows / (8 * threads_count(threads)) / block_rows * block_rows;
    if (grain < block_rows)
        grain = block_rows;
    parallel_for(threads, w->rows, grain, product_rows, &product);
}

size_t tensor_row_bytes(enum tensor_type type, int cols)
{
    switch (type) {
    case TENSOR_F32:
        return (size_t)cols * 4;
    case TENSOR_Q8_0:
        return cols % 32 ? 0 : (size_t)cols / 32 * 34;
    case TENSOR_Q4_1:
        return cols % 32 ? 0 : (size_t)cols / 32 * 20;
    }
    return 0;
}

void matrix_row(const struct matrix *w, int row, float *out)
{
    dequant_portable(w, row, out);
}

const char *matmul_kernel_name(void)
{
    return use_avx2() ? "avx2" : "portable";
}

void matmul_force_portable(int on)
{
    atomic_store(&force_portable, on);
}
