/*
 * blocks.c - q8_0 and q4_0, restated from their published formulas as plain C
 *
 * What a compiler makes of them is the yardstick that quant.c prints. Compiled
 * once with -O3 alone and once with -O3 -mavx2 -mf16c, under two suffixes.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(name) JOIN(name, SUFFIX)

enum { BLOCK = 32 };

static void put_half(uint8_t *to, float x)
{
    _Float16 half = (_Float16)x;
    memcpy(to, &half, sizeof half);
}

static float get_half(const uint8_t *from)
{
    _Float16 half;
    memcpy(&half, from, sizeof half);
    return (float)half;
}

/* d = max |x| / 127, then round(x / d) */
void NAME(q8_0_encode)(const float *x, uint8_t *to, size_t n)
{
    for (; n >= BLOCK; n -= BLOCK, x += BLOCK, to += 2 + BLOCK) {
        float most = 0.0f, d, inverse;
        int i;
        for (i = 0; i < BLOCK; i++) most = fmaxf(most, fabsf(x[i]));
        d = most / 127.0f;
        inverse = d != 0.0f ? 1.0f / d : 0.0f;
        put_half(to, d);
        for (i = 0; i < BLOCK; i++) to[2 + i] = (uint8_t)(int8_t)roundf(x[i] * inverse);
    }
}

void NAME(q8_0_decode)(const uint8_t *from, float *x, size_t n)
{
    for (; n >= BLOCK; n -= BLOCK, x += BLOCK, from += 2 + BLOCK) {
        float d = get_half(from);
        int i;
        for (i = 0; i < BLOCK; i++) x[i] = (float)(int8_t)from[2 + i] * d;
    }
}

/* d = the value of the greatest magnitude / -8, then min(15, floor(x / d + 8.5)) */
void NAME(q4_0_encode)(const float *x, uint8_t *to, size_t n)
{
    for (; n >= BLOCK; n -= BLOCK, x += BLOCK, to += 2 + BLOCK / 2) {
        float most = 0.0f, value = 0.0f, d, inverse;
        int i;
        for (i = 0; i < BLOCK; i++) {
            if (fabsf(x[i]) > most) {
                most = fabsf(x[i]);
                value = x[i];
            }
        }
        d = value / -8.0f;
        inverse = d != 0.0f ? 1.0f / d : 0.0f;
        put_half(to, d);
        for (i = 0; i < BLOCK / 2; i++) {
            int low = (int)(x[i] * inverse + 8.5f), high = (int)(x[i + BLOCK / 2] * inverse + 8.5f);
            low = low < 15 ? low : 15;
            high = high < 15 ? high : 15;
            to[2 + i] = (uint8_t)(low | high << 4);
        }
    }
}

void NAME(q4_0_decode)(const uint8_t *from, float *x, size_t n)
{
    for (; n >= BLOCK; n -= BLOCK, x += BLOCK, from += 2 + BLOCK / 2) {
        float d = get_half(from);
        int i;
        for (i = 0; i < BLOCK / 2; i++) {
            x[i] = (float)((from[2 + i] & 15) - 8) * d;
            x[i + BLOCK / 2] = (float)((from[2 + i] >> 4) - 8) * d;
        }
    }
}
