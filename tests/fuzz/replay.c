/*
 * replay.c - runs files through kvf_fuzz_one: `replay [--trace] FILE...`
 *
 * One line per file: "pass DIGEST FILE", "skip FILE" where it does not fit, or the op and what does not hold. With
 * --trace a line per op before it: index, status, digest. Exit status 1 after a violation.
 */
#include <stdio.h>
#include <string.h>

#include "kvf_fuzz.h"

static const char *file;
static uint8_t data[1 << 20];

static void trace(const kvf_fuzz_step *step)
{
    printf("op %u %s %016llx\n", (unsigned)step->op, kvf_status_name(step->status), (unsigned long long)step->digest);
}

static void tell(const kvf_fuzz_step *step, const char *what)
{
    printf("FAIL %016llx %s: op %u: %s: %s (rule %u at %u)\n", (unsigned long long)step->digest, file,
           (unsigned)step->op, kvf_status_name(step->status), what, (unsigned)step->rule, (unsigned)step->index);
}

static int run(void)
{
    FILE *in = fopen(file, "rb");
    size_t len;
    int result;

    if (in == NULL) {
        perror(file);
        return 1;
    }
    len = fread(data, 1, sizeof data, in);
    fclose(in);
    result = kvf_fuzz_one(data, len);
    if (result == 0)
        printf("pass %016llx %s\n", (unsigned long long)kvf_fuzz_digest, file);
    if (result < 0)
        printf("skip %s\n", file);
    return result > 0;
}

int main(int argc, char **argv)
{
    int failed = 0, i;

    kvf_fuzz_on_violation = tell;
    for (i = 1; i < argc; i++) {
        file = argv[i];
        if (strcmp(file, "--trace") == 0)
            kvf_fuzz_on_step = trace;
        else
            failed |= run();
    }
    return failed;
}
