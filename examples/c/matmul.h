/*
 * Matrices as they lie in model files, and y = W x for many x at once.
 *
 * Contract: every y[row][out] has the same bits for any batch size, any blocking and any number of threads.
 * A weight is dequantised exactly as its format says (d*q, or d*q + m, in f32), then
 *     lane[l] = sum over k of w[16k + l] * x[16k + l]   16 partial sums in f32, k ascending, no fused multiply-add
 *     y = the fixed tree in matmul_kernel.h over the 16 lanes.
 */
#ifndef ENGINE_MATMUL_H
#define ENGINE_MATMUL_H

#include "threads.h"

#include <stddef.h>

enum tensor_type {
    TENSOR_F32,  /* f32 */
    TENSOR_Q8_0, /* blocks of 32: f16 d, i8 q[32];                x = d*q      34 bytes */
    TENSOR_Q4_1  /* blocks of 32: f16 d, f16 m, 16 bytes nibbles; x = d*q + m  20 bytes */
};

enum {
    MATMUL_LANES = 16,
    MATMUL_MAX_COLS = 16384 /* a dequantised row must fit the stack block of matmul() */
};

/* A weight matrix [rows = out][cols = in]; the data is borrowed and needs no alignment except f32's. */
struct matrix {
    const void *data;
    enum tensor_type type;
    int rows;
    int cols;
};

/* Rounds a number of columns up to whole lanes: the stride activations need. */
static inline int padded(int cols)
{
    return (cols + MATMUL_LANES - 1) / MATMUL_LANES * MATMUL_LANES;
}

/* Returns the bytes of one row, 0 iff `cols` is not a multiple of the format's block. */
size_t tensor_row_bytes(enum tensor_type type, int cols);

/* Dequantises row `row` into out[padded(cols)], padding with zeros. */
void matrix_row(const struct matrix *w, int row, float *out);

/*
 * Computes y[n][rows] = x[n][cols] W^T. Row i of x starts at x + i*x_stride, with x_stride >= padded(cols) and zeros
 * from cols to padded(cols); row i of y starts at y + i*y_stride. Each weight row is dequantised once per call.
 */
void matmul(struct threads *threads, const struct matrix *w, const float *x, size_t x_stride, int n,
            float *y, size_t y_stride);

/* Returns the name of the kernel in use ("avx2" or "portable"); both give the same bits. */
const char *matmul_kernel_name(void);

/* Makes later calls use the portable kernel, for the test that compares the two. */
void matmul_force_portable(int on);

#endif
