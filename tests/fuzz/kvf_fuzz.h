/*
 * kvf_fuzz.h - one scenario in bytes through the C interface, with everything checked that a program can check
 *
 * For any fuzzer, simulator or bounded checker: plain C99, no heap, no output, no other library than kvfolio. Compile
 * all kvf_fuzz*.c and call kvf_fuzz_one. Bytes are those of tests/GRAMMAR.md, so a
 * failing input can be printed, compared with the reference model and shortened by kvf-replay. tests/FUZZING.md tells
 * what is checked.
 */
#ifndef KVF_FUZZ_H
#define KVF_FUZZ_H

#include "kvfolio.h"

/* Static memory, in bytes, that the cache lives in. Configurations that need more are declined. */
#ifndef KVF_FUZZ_MEMORY
#define KVF_FUZZ_MEMORY (1u << 20)
#endif

/* What is known after an op. */
typedef struct kvf_fuzz_step {
    uint32_t op;       /* Index of the op, from 0. The number of ops for what is checked after the last. */
    kvf_status status; /* Its answer. */
    uint64_t digest;   /* Digest after it. */
    uint32_t rule;     /* Rule that kvf_cache_check names. 0 = none. */
    uint32_t index;    /* Where, as kvf_violation says. */
} kvf_fuzz_step;

/* Called after every op unless NULL. */
extern void (*kvf_fuzz_on_step)(const kvf_fuzz_step *step);

/* Called at the first violation, with what does not hold. NULL: abort(). If it returns, the run ends. */
extern void (*kvf_fuzz_on_violation)(const kvf_fuzz_step *step, const char *what);

/*
 * Runs one scenario; every byte string is one. Answers 0, 1 after a violation, or -1 where the scenario does not
 * fit the limits of the harness. Not reentrant.
 */
int kvf_fuzz_one(const uint8_t *data, size_t len);

/* Digest after the last op of the last scenario, equal to that of kvf-replay on the same bytes. */
extern uint64_t kvf_fuzz_digest;

#endif
