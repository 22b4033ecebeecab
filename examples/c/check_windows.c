/* Check: perplexity and top logits of the reference's windows of text. */
#include "check.h"

#include "sampler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The largest difference to the five reference logits; infinite if a sixth id is clearly above the fifth. */
static float top_difference(const float *logits, int vocab, const struct reference_top *top)
{
    float worst = 0.0f;
    int above = 0;

    for (int i = 0; i < REFERENCE_TOP; i++)
        worst = fmaxf(worst, fabsf(logits[top->ids[i]] - top->logits[i]));
    for (int i = 0; i < vocab; i++)
        above += logits[i] > top->logits[REFERENCE_TOP - 1] + 1e-3f;
    return above < REFERENCE_TOP ? worst : INFINITY;
}

int check_windows(struct check *check, int perplexity, int top)
{
    const struct model *model = &check->loaded.model;
    const int vocab = model->shape.vocab;
    int failures = 0;

    for (int w = 0; w < check->reference.n_windows; w++) {
        const struct reference_window *window = &check->reference.windows[w];
        const struct id_list all = window_ids(check, window);
        const int32_t *ids = all.ids + window->start;
        struct runner r = runner_start(model, 0, 1, window->count);
        double sum = 0.0;
        float worst = 0.0f;

        if (window->start + window->count > all.count)
            die("%s has only %d ids", window->file, all.count);
        for (int at = 0; at < window->count; at += CHECK_ROWS) {
            const int n = window->count - at < CHECK_ROWS ? window->count - at : CHECK_ROWS;
            runner_run(&r, 0, ids + at, at, n, 1);
            for (int i = 0; i < n && at + i + 1 < window->count && perplexity; i++)
                sum += sampler_nll(r.logits + (size_t)i * (size_t)vocab, vocab, ids[at + i + 1]);
            for (int t = 0; t < window->tops; t++) {
                const int i = window->top[t].position - at;
                if (i >= 0 && i < n)
                    worst = fmaxf(worst, top_difference(r.logits + (size_t)i * (size_t)vocab, vocab, &window->top[t]));
            }
        }
        if (perplexity) {
            const double mean = sum / (window->count - 1);
            printf("ppl %s %s %d..%d nll %.6f reference %.6f difference %+.1e\n", check->model_name, window->file,
                   window->start, window->start + window->count, mean, window->mean_nll, mean - window->mean_nll);
            failures += !(fabs(mean - window->mean_nll) < 1e-3);
        }
        if (top) {
            printf("top5 %s %s %d..%d %d positions, largest logit difference %.1e\n", check->model_name, window->file,
                   window->start, window->start + window->count, window->tops, (double)worst);
            failures += !(worst < 1e-3f);
        }
        runner_stop(&r);
        free(all.ids);
    }
    return failures;
}
