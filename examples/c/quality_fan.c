/* One batch of the model over several caches. */
#include "quality.h"

static int begin(struct kv_backend *self, const struct row_desc *rows, int n, struct error *error)
{
    struct quality_fan *fan = (struct quality_fan *)self;
    int at = 0;

    for (int i = 0; i < fan->n; at += fan->counts[i++]) {
        if (fan->counts[i] > 0 && fan->to[i]->begin(fan->to[i], rows + at, fan->counts[i], error) != 0)
            return -1;
    }
    return at == n ? 0 : fail(error, "fan: %d rows for %d", n, at);
}

static int append(struct kv_backend *self, int layer, const float *k, const float *v, int n, struct error *error)
{
    struct quality_fan *fan = (struct quality_fan *)self;
    (void)n;
    for (int i = 0; i < fan->n; i++) {
        const size_t floats = (size_t)fan->counts[i] * (size_t)fan->row_kv;
        if (fan->counts[i] > 0 && fan->to[i]->append(fan->to[i], layer, k, v, fan->counts[i], error) != 0)
            return -1;
        k += floats;
        v += floats;
    }
    return 0;
}

static int attend(struct kv_backend *self, int layer, const float *q, float *out, int n, struct error *error)
{
    struct quality_fan *fan = (struct quality_fan *)self;
    (void)n;
    for (int i = 0; i < fan->n; i++) {
        const size_t floats = (size_t)fan->counts[i] * (size_t)fan->row_q;
        if (fan->counts[i] > 0 && fan->to[i]->attend(fan->to[i], layer, q, out, fan->counts[i], error) != 0)
            return -1;
        q += floats;
        out += floats;
    }
    return 0;
}

void quality_fan_init(struct quality_fan *fan, const struct model_shape *shape)
{
    *fan = (struct quality_fan){ .backend = { begin, append, attend }, .row_q = shape->heads * shape->head_dim,
                                 .row_kv = shape->kv_heads * shape->head_dim };
}
