/* Weights of the learned policy, as `kvf train` writes them: one network for each layer of a model, or one for all. */
#ifndef ENGINE_EVICT_WEIGHTS_H
#define ENGINE_EVICT_WEIGHTS_H

#include "error.h"
#include "kvfolio.h"

struct evict_weights {
    uint32_t hidden, networks;
    float *weights; /* [networks][of one, as kvf_mlp has them] */
};

/* Reads and checks a file for a model of so many layers. -1 and a reason on failure; evict_weights_free otherwise. */
int evict_weights_read(struct evict_weights *weights, const char *path, int layers, struct error *error);
void evict_weights_free(struct evict_weights *weights);

/* Floats of one network. */
size_t evict_weights_floats(uint32_t hidden);

/* The network of a layer. */
kvf_mlp evict_weights_of(const struct evict_weights *weights, int layer);

#endif
