/*
 * The arithmetic of matmul.c, written once and compiled once per instruction set: the file that includes this one
 * defines KERNEL(name) (a name with a suffix) and TARGET (a function attribute or nothing).
 * Dequantising is in dequant.h.
 *
 * Only adds and multiplies on vectors, in an order written down here, so every instruction set gives the same bits.
 * Compile with -ffp-contract=off: a compiler that fused a*b+c would break that.
 */

/*
 * y[t][r] = w[r] . x[t] for R weight rows and T activations, R <= 2 and T <= 3 constants at every call.
 * The tile only decides what stays in registers; no sum depends on it.
 */
TARGET static inline __attribute__((always_inline)) void
KERNEL(tile)(const int R, const int T, const float *w, size_t w_stride, const float *x, size_t x_stride, int lanes_cols,
             float *y, size_t y_stride)
{
    vec8 low[2][3] = { 0 }, high[2][3] = { 0 }; /* lanes 0..7 and 8..15 of [r][t]: 12 of 16 registers */
    for (int k = 0; k < lanes_cols; k += MATMUL_LANES) {
        vec8 x_low[3], x_high[3];
        for (int t = 0; t < T; t++) {
            x_low[t] = *(const vec8_unaligned *)(x + (size_t)t * x_stride + k);
            x_high[t] = *(const vec8_unaligned *)(x + (size_t)t * x_stride + k + 8);
        }
        for (int r = 0; r < R; r++) {
            const vec8 w_low = *(const vec8_unaligned *)(w + (size_t)r * w_stride + k);
            const vec8 w_high = *(const vec8_unaligned *)(w + (size_t)r * w_stride + k + 8);
            for (int t = 0; t < T; t++) {
                low[r][t] += w_low * x_low[t];
                high[r][t] += w_high * x_high[t];
            }
        }
    }
    for (int r = 0; r < R; r++) {
        for (int t = 0; t < T; t++) {
            const vec8 s = low[r][t] + high[r][t];
            y[(size_t)t * y_stride + (size_t)r] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
        }
    }
}

/* y[T][rows] for all weight rows of a block. */
TARGET static inline __attribute__((always_inline)) void
KERNEL(strip)(const int T, const float *w, size_t w_stride, int rows, const float *x, size_t x_stride, int lanes_cols,
              float *y, size_t y_stride)
{
    int r = 0;
    for (; r + 2 <= rows; r += 2)
        KERNEL(tile)(2, T, w + (size_t)r * w_stride, w_stride, x, x_stride, lanes_cols, y + r, y_stride);
    for (; r < rows; r++)
        KERNEL(tile)(1, T, w + (size_t)r * w_stride, w_stride, x, x_stride, lanes_cols, y + r, y_stride);
}

/* y[n][rows] for `rows` dequantised weight rows w[rows][stride], which stay in the first-level cache. */
TARGET static void KERNEL(block)(const float *w, size_t w_stride, int rows, const float *x, size_t x_stride, int n,
                                 int lanes_cols, float *y, size_t y_stride)
{
    for (; n >= 3; n -= 3, x += 3 * x_stride, y += 3 * y_stride)
        KERNEL(strip)(3, w, w_stride, rows, x, x_stride, lanes_cols, y, y_stride);
    if (n == 2)
        KERNEL(strip)(2, w, w_stride, rows, x, x_stride, lanes_cols, y, y_stride);
    else if (n == 1)
        KERNEL(strip)(1, w, w_stride, rows, x, x_stride, lanes_cols, y, y_stride);
}

#undef KERNEL
#undef TARGET
