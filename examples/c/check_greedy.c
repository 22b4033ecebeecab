/* Check: greedy continuations equal the reference ids, and their text. */
#include "check.h"

#include "sampler.h"

#include <stdio.h>
#include <string.h>

/* Returns 1 iff the ids decode to the reference text, but for a space in front that the reference strips. */
static int text_agrees(const struct check *check, const struct reference_run *run)
{
    struct decoder decoder;
    struct error error;
    size_t at = 0, size;
    int agrees = 1;

    if (decoder_init(&decoder, check->loaded.tokenizer, &error) != 0)
        die("%s", error.text);
    for (int i = 0; i <= run->greedy.count; i++) {
        const char *text = i < run->greedy.count ? decoder_push(&decoder, run->greedy.ids[i], &size)
                                                 : decoder_finish(&decoder, &size);
        if (i == 0 && size > 0 && text[0] == ' ' && run->text.bytes[0] != ' ') {
            text++;
            size--;
        }
        if (size > run->text.size - at || memcmp(run->text.bytes + at, text, size) != 0) {
            agrees = 0;
            break;
        }
        at += size;
    }
    decoder_free(&decoder);
    return agrees && at == run->text.size;
}

/* One more id of every text that agrees so far and is not complete, all in one batch. Returns 0 when none was left. */
static int decode(const struct check *check, struct runner *r, int32_t *next, int *done)
{
    const size_t vocab = (size_t)r->model->shape.vocab;
    struct row_desc rows[REFERENCE_ITEMS];
    int32_t tokens[REFERENCE_ITEMS];
    int run_of[REFERENCE_ITEMS], n = 0;
    struct error error;

    for (int i = 0; i < check->reference.n_runs; i++) {
        const struct reference_run *run = &check->reference.runs[i];
        if (done[i] == run->greedy.count || next[i] != run->greedy.ids[done[i]])
            continue;
        if (++done[i] == run->greedy.count)
            continue;
        rows[n] = (struct row_desc){ i, run->prompt.count + done[i] - 1, 1 };
        tokens[n] = next[i];
        run_of[n++] = i;
    }
    if (n == 0)
        return 0;
    if (engine_forward(r->engine, r->kv, tokens, rows, n, r->logits, &error) != 0)
        die("%s", error.text);
    for (int i = 0; i < n; i++)
        next[run_of[i]] = sampler_greedy(r->logits + (size_t)i * vocab, (int)vocab);
    return 1;
}

int check_greedy(struct check *check)
{
    const struct model *model = &check->loaded.model;
    const int n = check->reference.n_runs;
    int32_t next[REFERENCE_ITEMS];
    int done[REFERENCE_ITEMS] = { 0 }, longest = 0, failures = 0;
    struct runner r;

    for (int i = 0; i < n; i++) {
        const int length = check->reference.runs[i].prompt.count + check->reference.runs[i].greedy.count;
        longest = length > longest ? length : longest;
    }
    r = runner_start(model, 0, n, longest);
    for (int i = 0; i < n; i++) {
        const struct id_list *prompt = &check->reference.runs[i].prompt;
        for (int at = 0; at < prompt->count; at += CHECK_ROWS)
            runner_run(&r, i, prompt->ids + at, at, prompt->count - at < CHECK_ROWS ? prompt->count - at : CHECK_ROWS,
                       0);
        next[i] = sampler_greedy(r.logits, model->shape.vocab);
    }
    while (decode(check, &r, next, done))
        ;
    for (int i = 0; i < n; i++) {
        const struct reference_run *run = &check->reference.runs[i];
        const int text = text_agrees(check, run);
        printf("greedy %s %-50.50s %d of %d ids agree, text %s\n", check->model_name, run->name, done[i],
               run->greedy.count, text ? "agrees" : "differs");
        failures += done[i] < run->greedy.count || !text;
    }
    runner_stop(&r);
    return failures;
}
