/*
 * Compares the engine with reference results, and the engine over pages with the engine without.
 *
 *     model_check MODE MODEL
 *
 * MODE   see the list below
 * MODEL  stories (llama2.c format) | smollm (GGUF) | random (built in; only for modes without reference results)
 *
 * Environment, with defaults relative to the root of the repository, where the program should run:
 *     KVF_DATA   folder with models/ and text/                        ../shared/data
 *     KVF_MODEL  the GGUF that scripts/fetch_model.sh fetches         .cache/SmolLM2-135M-Instruct.Q4_1.gguf
 *     KVF_TXT    folder with the output of scripts/..._to_txt.py      build/c
 *
 * Exit status: 0 all agree, 1 something differs, 2 usage, 77 skipped because data is absent (and a line says so).
 */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SKIPPED = 77 };

static int perplexity(struct check *check)
{
    return check_windows(check, 1, 0);
}

static int top_logits(struct check *check)
{
    return check_windows(check, 0, 1);
}

static int windows(struct check *check)
{
    return check_windows(check, 1, 1);
}

static int run_bench(struct check *check)
{
    bench(check);
    return 0;
}

static const struct mode {
    const char *name;
    int (*run)(struct check *check); /* returns the number of failures */
    int needs_reference;             /* the model's reference results */
    int needs_fewshot;               /* the few-shot prompts */
} modes[] = {
    { "sampler", check_sampler, 0, 0 },
    { "tokenizer", check_tokenizer, 1, 0 },
    { "identity", check_identity, 0, 0 },
    { "greedy", check_greedy, 1, 0 },
    { "ppl", perplexity, 1, 0 },
    { "top5", top_logits, 1, 0 },
    { "windows", windows, 1, 0 }, /* ppl and top5 in one pass */
    { "identity-paged", check_paged, 0, 0 },
    { "greedy-paged", check_greedy_paged, 1, 0 },
    { "serve", check_serve, 0, 0 },
    { "fewshot", check_fewshot, 0, 1 },
    { "formats", check_formats, 0, 0 },
    { "layers", check_layers, 0, 0 },
    { "evict", check_evict, 0, 0 },
    { "holes", check_holes, 0, 0 },
    { "share", check_share, 0, 0 },
    { "bench", run_bench, 0, 0 },
};

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
    fputs("usage: model_check MODE stories|smollm|random\nmodes:", stderr);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        fprintf(stderr, " %s", modes[i].name);
    fputc('\n', stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static struct check check;
    const char *txt = setting("KVF_TXT", "build/c");
    char model[4096], reference[4096], fewshot[4096];
    const struct mode *mode = NULL;
    struct error error;
    int failures;

    for (size_t i = 0; i < sizeof modes / sizeof *modes && argc == 3; i++)
        mode = strcmp(modes[i].name, argv[1]) == 0 ? &modes[i] : mode;
    if (!mode)
        return usage();
    setvbuf(stdout, NULL, _IOLBF, 0);
    check.model_name = argv[2];
    check.data = setting("KVF_DATA", "../shared/data");
    if (strcmp(argv[2], "stories") == 0) {
        snprintf(model, sizeof model, "%s/models/stories260K.bin", check.data);
        snprintf(reference, sizeof reference, "%s/stories260K.txt", txt);
    } else if (strcmp(argv[2], "smollm") == 0) {
        snprintf(model, sizeof model, "%s", setting("KVF_MODEL", ".cache/SmolLM2-135M-Instruct.Q4_1.gguf"));
        snprintf(reference, sizeof reference, "%s/smollm2-135m.txt", txt);
    } else if (strcmp(argv[2], "random") == 0 && !mode->needs_reference && !mode->needs_fewshot) {
        snprintf(model, sizeof model, "random");
    } else {
        return usage();
    }
    if (strcmp(model, "random") != 0)
        need(&check, mode->name, model);
    if (mode->needs_reference) {
        need(&check, mode->name, check.data);
        need(&check, mode->name, reference);
        if (reference_read(&check.reference, reference, &error) != 0)
            die("%s", error.text);
    }
    if (mode->needs_fewshot) {
        snprintf(fewshot, sizeof fewshot, "%s/gsm8k-fewshot.txt", txt);
        need(&check, mode->name, fewshot);
        check.fewshot = fewshot;
    }
    if (load(&check.loaded, model, &error) != 0)
        die("%s", error.text);
    failures = mode->run(&check);
    unload(&check.loaded);
    printf("%s: model_check %s %s\n", failures ? "FAILED" : "ok", mode->name, check.model_name);
    return failures ? 1 : 0;
}
