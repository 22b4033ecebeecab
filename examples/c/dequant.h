/*
 * One weight row from its file format to f32: portable code, and AVX2 code that does the same operations in the same
 * order on each element (integer to float, times d, plus m), hence the same bits.
 */
#ifndef ENGINE_DEQUANT_H
#define ENGINE_DEQUANT_H

#include "matmul.h"

#include <stdint.h>
#include <string.h>

/* f16 to f32, exactly: the exponent is rebased by one multiplication, which also normalises subnormals. */
static inline float half_to_float(const uint8_t *bytes)
{
    const uint32_t h = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
    uint32_t bits = (h & 0x7fff) << 13;
    float value;
    memcpy(&value, &bits, 4);
    value *= 0x1p112f;
    memcpy(&bits, &value, 4);
    if ((h & 0x7c00) == 0x7c00) /* infinity or NaN */
        bits |= 0x7f800000;
    bits |= (h & 0x8000) << 16;
    memcpy(&value, &bits, 4);
    return value;
}

/* Address of row `row`. */
static inline const uint8_t *matrix_row_data(const struct matrix *w, int row)
{
    return (const uint8_t *)w->data + (size_t)row * tensor_row_bytes(w->type, w->cols);
}

/* Copies an f32 row of `cols` elements and pads it with zeros. */
static inline void dequant_f32(const uint8_t *source, float *out, int cols)
{
    memcpy(out, source, (size_t)cols * sizeof *out);
    for (int k = cols; k < padded(cols); k++)
        out[k] = 0.0f;
}

static inline void dequant_q8_0_portable(const uint8_t *restrict block, float *restrict out, int cols)
{
    for (int k = 0; k < cols; k += 32, block += 34) {
        const float d = half_to_float(block);
        for (int i = 0; i < 32; i++)
            out[k + i] = d * (float)(int8_t)block[2 + i];
    }
}

static inline void dequant_q4_1_portable(const uint8_t *restrict block, float *restrict out, int cols)
{
    for (int k = 0; k < cols; k += 32, block += 20) {
        const float d = half_to_float(block), m = half_to_float(block + 2);
        for (int i = 0; i < 16; i++)
            out[k + i] = d * (float)(block[4 + i] & 15) + m;
        for (int i = 0; i < 16; i++)
            out[k + 16 + i] = d * (float)(block[4 + i] >> 4) + m;
    }
}

/* out[padded(cols)] = row `row` of w. */
static inline void dequant_portable(const struct matrix *w, int row, float *out)
{
    switch (w->type) {
    case TENSOR_F32:
        dequant_f32(matrix_row_data(w, row), out, w->cols);
        break;
    case TENSOR_Q8_0:
        dequant_q8_0_portable(matrix_row_data(w, row), out, w->cols);
        break;
    case TENSOR_Q4_1:
        dequant_q4_1_portable(matrix_row_data(w, row), out, w->cols);
        break;
    }
}

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline void dequant_q8_0_avx2(const uint8_t *block, float *out, int cols)
{
    for (int k = 0; k < cols; k += 32, block += 34) {
        const __m256 d = _mm256_set1_ps(half_to_float(block));
        for (int i = 0; i < 32; i += 8) {
            const __m128i q = _mm_loadl_epi64((const __m128i *)(block + 2 + i));
            const __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q));
            _mm256_storeu_ps(out + k + i, _mm256_mul_ps(d, x));
        }
    }
}

AVX2 static inline void dequant_q4_1_avx2(const uint8_t *block, float *out, int cols)
{
    const __m128i nibble = _mm_set1_epi8(15);
    for (int k = 0; k < cols; k += 32, block += 20) {
        const __m256 d = _mm256_set1_ps(half_to_float(block)), m = _mm256_set1_ps(half_to_float(block + 2));
        const __m128i packed = _mm_loadu_si128((const __m128i *)(block + 4));
        const __m128i low = _mm_and_si128(packed, nibble);
        const __m128i high = _mm_and_si128(_mm_srli_epi16(packed, 4), nibble);
        const __m128i q[4] = { low, _mm_srli_si128(low, 8), high, _mm_srli_si128(high, 8) }; /* 8 elements each */
        for (int i = 0; i < 4; i++) {
            const __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(q[i]));
            _mm256_storeu_ps(out + k + 8 * i, _mm256_add_ps(_mm256_mul_ps(d, x), m));
        }
    }
}

/* dequant_portable with AVX2. */
AVX2 static inline void dequant_avx2(const struct matrix *w, int row, float *out)
{
    switch (w->type) {
    case TENSOR_F32:
        dequant_f32(matrix_row_data(w, row), out, w->cols);
        break;
    case TENSOR_Q8_0:
        dequant_q8_0_avx2(matrix_row_data(w, row), out, w->cols);
        break;
    case TENSOR_Q4_1:
        dequant_q4_1_avx2(matrix_row_data(w, row), out, w->cols);
        break;
    }
}

#undef AVX2

#endif

#endif
