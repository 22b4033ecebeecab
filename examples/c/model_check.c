/*
 * Compares the engine with reference results.
 *
 *     model_check MODE MODEL
 *
 * MODE   greedy | ppl | top5 | windows (ppl and top5 in one pass) | tokenizer | identity | sampler | bench
 * MODEL  stories (llama2.c format) | smollm (GGUF) | random (built in; identity, sampler and bench only)
 *
 * Environment, with defaults relative to the root of the repository, where the program should run:
 *     KVF_DATA   folder with models/ and text/                        ../shared/data
 *     KVF_MODEL  the GGUF that scripts/fetch_model.sh fetches         .cache/SmolLM2-135M-Instruct.Q4_1.gguf
 *     KVF_TXT    folder with the output of scripts/reference_to_txt.py  build/c
 *
 * Exit status: 0 all agree, 1 something differs, 2 usage, 77 skipped because data is absent (and a line says so).
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SKIPPED = 77 };

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

/* Ends the program with the line that says it did nothing, if `path` is absent. */
static void need(const struct check *check, const char *mode, const char *path)
{
    if (access(path, R_OK) != 0) {
        printf("skipped: model_check %s %s: no %s\n", mode, check->model_name, path);
        exit(SKIPPED);
    }
}

static int usage(void)
{
    fputs("usage: model_check greedy|ppl|top5|windows|tokenizer|identity|sampler|bench stories|smollm|random\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static struct check check;
    const char *mode = argc == 3 ? argv[1] : "", *txt = setting("KVF_TXT", "build/c");
    char model[4096], reference[4096];
    struct error error;
    const int needs_reference = strcmp(mode, "identity") && strcmp(mode, "sampler") && strcmp(mode, "bench");
    int failures;

    if (argc != 3)
        return usage();
    check.model_name = argv[2];
    check.data = setting("KVF_DATA", "../shared/data");
    if (strcmp(argv[2], "stories") == 0) {
        snprintf(model, sizeof model, "%s/models/stories260K.bin", check.data);
        snprintf(reference, sizeof reference, "%s/stories260K.txt", txt);
    } else if (strcmp(argv[2], "smollm") == 0) {
        snprintf(model, sizeof model, "%s", setting("KVF_MODEL", ".cache/SmolLM2-135M-Instruct.Q4_1.gguf"));
        snprintf(reference, sizeof reference, "%s/smollm2-135m.txt", txt);
    } else if (strcmp(argv[2], "random") == 0 && !needs_reference) {
        snprintf(model, sizeof model, "random");
    } else {
        return usage();
    }
    if (strcmp(model, "random") != 0)
        need(&check, mode, model);
    if (needs_reference) {
        need(&check, mode, check.data);
        need(&check, mode, reference);
        if (reference_read(&check.reference, reference, &error) != 0)
            die("%s", error.text);
    }
    if (load(&check.loaded, model, &error) != 0)
        die("%s", error.text);

    if (strcmp(mode, "greedy") == 0)
        failures = check_greedy(&check);
    else if (strcmp(mode, "ppl") == 0)
        failures = check_windows(&check, 1, 0);
    else if (strcmp(mode, "top5") == 0)
        failures = check_windows(&check, 0, 1);
    else if (strcmp(mode, "windows") == 0)
        failures = check_windows(&check, 1, 1);
    else if (strcmp(mode, "tokenizer") == 0)
        failures = check_tokenizer(&check);
    else if (strcmp(mode, "identity") == 0)
        failures = check_identity(&check);
    else if (strcmp(mode, "sampler") == 0)
        failures = check_sampler();
    else if (strcmp(mode, "bench") == 0)
        failures = (bench(&check), 0);
    else
        failures = -1;
    unload(&check.loaded);
    if (failures < 0)
        return usage();
    printf("%s: model_check %s %s\n", failures ? "FAILED" : "ok", mode, check.model_name);
    return failures ? 1 : 0;
}
