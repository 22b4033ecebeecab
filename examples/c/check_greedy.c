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

int check_greedy(struct check *check)
{
    const struct model *model = &check->loaded.model;
    int failures = 0;

    for (int i = 0; i < check->reference.n_runs; i++) {
        const struct reference_run *run = &check->reference.runs[i];
        const int prompt = run->prompt.count, wanted = run->greedy.count;
        struct runner r = runner_start(model, 0, 1, prompt + wanted);
        int done = 0, text;

        for (int at = 0; at < prompt; at += CHECK_ROWS)
            runner_run(&r, 0, run->prompt.ids + at, at, prompt - at < CHECK_ROWS ? prompt - at : CHECK_ROWS, 0);
        for (; done < wanted; done++) {
            const int32_t id = sampler_greedy(r.logits, model->shape.vocab);
            if (id != run->greedy.ids[done])
                break;
            if (done + 1 < wanted)
                runner_run(&r, 0, &id, prompt + done, 1, 0);
        }
        text = text_agrees(check, run);
        printf("greedy %s %-50.50s %d of %d ids agree, text %s\n", check->model_name, run->name, done, wanted,
               text ? "agrees" : "differs");
        failures += done < wanted || !text;
        runner_stop(&r);
    }
    return failures;
}
