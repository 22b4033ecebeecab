/* Check: draws follow the softmax, keep to the top-p set, and depend on seed and counter only. */
#include "check.h"

#include "sampler.h"

#include <math.h>
#include <stdio.h>

enum { VOCAB = 8, DRAWS = 100000 };

/* Probabilities 1/2, 1/4, 1/8, ... in an order that is not sorted; the last two are equal. */
static const float logits[VOCAB] = { -3, -1, -7, -2, -5, -4, -7, -6 }; /* times log 2 */

static int report(const char *what, int good)
{
    printf("sampler %s: %s\n", what, good ? "holds" : "does not hold");
    return !good;
}

int check_sampler(struct check *check)
{
    const struct sampling all = { .temperature = 1.0f, .seed = 1 };
    const struct sampling warm = { .temperature = 2.0f, .seed = 1 };
    const struct sampling nucleus = { .temperature = 1.0f, .top_p = 0.8f, .seed = 2 };
    const float ties[VOCAB] = { 0, 1, 1, 0, 1, 0, 0, 1 };
    float scaled[VOCAB];
    int counts[VOCAB] = { 0 }, outside = 0, repeats = 1, first_warm = 0, failures = 0;
    double worst = 0.0;
    struct error error;
    struct sampler *s = sampler_new(VOCAB, &error);
    (void)check;

    if (!s)
        die("%s", error.text);
    for (int i = 0; i < VOCAB; i++)
        scaled[i] = logits[i] * (float)log(2.0);
    for (int i = 0; i < DRAWS; i++) {
        const int32_t id = sampler_draw(s, scaled, &all, (uint64_t)i);
        counts[id]++;
        repeats &= id == sampler_draw(s, scaled, &all, (uint64_t)i);
        outside += logits[sampler_draw(s, scaled, &nucleus, (uint64_t)i)] < -3;
        first_warm += sampler_draw(s, scaled, &warm, (uint64_t)i) == 1;
    }
    for (int i = 0; i < VOCAB; i++)
        worst = fmax(worst, fabs((double)counts[i] / DRAWS - exp2((double)logits[i])));
    failures += report("frequencies within 0.01 of the softmax", worst < 0.01);
    failures += report("temperature 2 makes the likeliest rarer", first_warm < counts[1] && first_warm > DRAWS / 5);
    failures += report("top_p 0.8 keeps the three likeliest", outside == 0);
    failures += report("the same counter draws the same id", repeats);
    failures += report("the greedy choice is the lowest id among equals", sampler_greedy(ties, VOCAB) == 1);
    sampler_free(s);
    return failures;
}
