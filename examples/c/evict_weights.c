/* Reads weights: words with blanks between them, the first five of which say what the others are. */
#include "evict_weights.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_HIDDEN = 32, MOST_NETWORKS = 1024 };

size_t evict_weights_floats(uint32_t hidden)
{
    return 2 * KVF_FEATURES + (size_t)hidden * (KVF_FEATURES + 2) + 1;
}

kvf_mlp evict_weights_of(const struct evict_weights *w, int layer)
{
    const size_t floats = evict_weights_floats(w->hidden);

    return (kvf_mlp){ .struct_size = sizeof(kvf_mlp), .version = KVF_MLP_VERSION, .features = KVF_FEATURES,
                      .hidden = w->hidden, .n_weights = (uint32_t)floats,
                      .weights = w->weights + (w->networks == 1 ? 0 : (size_t)layer * floats) };
}

/* Whether kvfolio takes a network: scores of a stream without tokens. */
static int is_sound(const struct evict_weights *w, int layer)
{
    uint64_t valid = 0;
    uint32_t position = 0;
    float number = 0;
    const kvf_stream none = { .struct_size = sizeof none, .page_tokens = 1, .columns = 1, .channels = 1,
                              .valid = &valid, .positions = &position, .features = &number };
    const kvf_feature_inputs inputs = { .struct_size = sizeof inputs, .sum = &number, .last = &number,
                                        .key_norms = &number, .value_norms = &number };
    const kvf_mlp mlp = evict_weights_of(w, layer);

    return kvf_evict_learned_scores(&none, &mlp, &inputs, &number, NULL) == KVF_OK;
}

static int read_all(struct evict_weights *w, FILE *file, const char *path, struct error *error)
{
    uint32_t version, features;
    size_t n, all;
    char more;

    if (fscanf(file, "kvf-evict-mlp %u %u %u %u", &version, &features, &w->hidden, &w->networks) != 4)
        return fail(error, "%s: no weights of a learned policy", path);
    if (version != KVF_MLP_VERSION || features != KVF_FEATURES || w->hidden < 1 || w->hidden > MOST_HIDDEN ||
        w->networks < 1 || w->networks > MOST_NETWORKS)
        return fail(error, "%s: weights of version %u, %u features, %u hidden units and %u networks", path, version,
                    features, w->hidden, w->networks);
    all = w->networks * evict_weights_floats(w->hidden);
    w->weights = malloc(all * sizeof *w->weights);
    if (!w->weights)
        return fail(error, "out of memory for %zu weights", all);
    for (n = 0; n < all && fscanf(file, "%f", &w->weights[n]) == 1; n++)
        ;
    if (n < all || fscanf(file, " %c", &more) != EOF)
        return fail(error, "%s: not %zu weights", path, all);
    for (uint32_t i = 0; i < w->networks; i++) {
        if (!is_sound(w, (int)i))
            return fail(error, "%s: network %u has weights that are not finite, or a deviation that is not above 0", path,
                        i);
    }
    return 0;
}

int evict_weights_read(struct evict_weights *weights, const char *path, int layers, struct error *error)
{
    FILE *file = fopen(path, "r");
    int status;

    *weights = (struct evict_weights){ 0 };
    if (!file)
        return fail(error, "%s: cannot be read", path);
    status = read_all(weights, file, path, error);
    fclose(file);
    if (status == 0 && weights->networks != 1 && weights->networks != (uint32_t)layers)
        status = fail(error, "%s: %u networks, for a model of %d layers", path, weights->networks, layers);
    if (status != 0)
        evict_weights_free(weights);
    return status;
}

void evict_weights_free(struct evict_weights *weights)
{
    free(weights->weights);
    *weights = (struct evict_weights){ 0 };
}
