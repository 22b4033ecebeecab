/*
 * libfuzzer.c - kvf_fuzz_one as a libFuzzer program: scripts/fuzz.sh builds and runs it
 *
 * What does not fit the harness is kept out of the corpus.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kvf_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerInitialize(int *argc, char ***argv);
void rust_eh_personality(void);

/* Rust's core library is compiled to unwind and names this. Ours is compiled to abort and never calls it. */
void rust_eh_personality(void)
{
    abort();
}

static void stop(const kvf_fuzz_step *step, const char *what)
{
    fprintf(stderr, "VIOLATED op %u: %s (%s, rule %u at %u, digest %016llx)\n", (unsigned)step->op, what,
            kvf_status_name(step->status), (unsigned)step->rule, (unsigned)step->index,
            (unsigned long long)step->digest);
    abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    kvf_fuzz_on_violation = stop;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    return kvf_fuzz_one(data, len) < 0 ? -1 : 0;
}
