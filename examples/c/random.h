/* A counter-based random generator: number `counter` of stream `seed`, with no state to keep. */
#ifndef ENGINE_RANDOM_H
#define ENGINE_RANDOM_H

#include <stdint.h>

/* The finaliser of splitmix64: a bijection that mixes every bit into every other. */
static inline uint64_t random_mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* 64 random bits. */
static inline uint64_t random_bits(uint64_t seed, uint64_t counter)
{
    return random_mix(random_mix(seed + 0x9e3779b97f4a7c15u) + counter * 0x9e3779b97f4a7c15u);
}

/* Uniform in [0, 1), a multiple of 2^-24. */
static inline float random_unit(uint64_t seed, uint64_t counter)
{
    return (float)(random_bits(seed, counter) >> 40) * 0x1p-24f;
}

#endif
