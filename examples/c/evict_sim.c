/* Lists of what is kept, in the order of positions. */
#include "evict_sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct token {
    int position;
    float score;
    float look[EVICT_LOOK]; /* SnapKV: of the last queries */
    float sum, last;        /* learned: attention received */
};

struct list {
    struct token *tokens;
    int n;
    long long strangers;
};

struct evict_sim {
    struct evict_policy policy;
    struct model_shape shape;
    int n;              /* lists */
    int seen, most;
    struct list *lists;
    uint64_t *bits;     /* for kvf_evict_random_scores */
    uint32_t *positions;
    float *scores;
    double mass;        /* that the last query had paid to what went */
    long long cuts;     /* evictions from a list */
};

struct evict_sim *evict_sim_new(const struct evict_policy *policy, const struct model_shape *shape, int most)
{
    struct evict_sim *sim = calloc(1, sizeof *sim);

    if (!sim)
        return NULL;
    *sim = (struct evict_sim){ .policy = *policy, .shape = *shape, .n = shape->layers * shape->kv_heads, .most = most };
    sim->lists = calloc((size_t)sim->n, sizeof *sim->lists);
    sim->bits = malloc((size_t)(most + 1) * sizeof *sim->bits);
    sim->positions = malloc((size_t)most * sizeof *sim->positions);
    sim->scores = malloc((size_t)most * sizeof *sim->scores);
    for (int i = 0; sim->lists && i < sim->n; i++)
        sim->lists[i].tokens = calloc((size_t)most, sizeof *sim->lists[i].tokens);
    return sim;
}

void evict_sim_free(struct evict_sim *sim)
{
    for (int i = 0; sim && i < sim->n; i++)
        free(sim->lists[i].tokens);
    if (sim) {
        free(sim->lists);
        free(sim->bits);
        free(sim->positions);
        free(sim->scores);
    }
    free(sim);
}

/* ---- What goes ---- */

static int is_protected(const struct evict_sim *sim, int position)
{
    const struct evict_policy *p = &sim->policy;
    return position < p->sinks || position >= sim->seen - p->recent ||
           (position >= (int)p->pin.start && position < (int)p->pin.end);
}

/* The score that decides: with one kept set for a layer, over all of its heads. */
static float score_of(const struct evict_sim *sim, int list, int at)
{
    float sum = sim->lists[list].tokens[at].score;

    if (sim->policy.kind == EVICT_WINDOW || sim->policy.kind == EVICT_STREAMING)
        return 0;
    for (int head = 1; sim->policy.per_layer && head < sim->shape.kv_heads; head++)
        sum += sim->lists[list + head].tokens[at].score;
    return sum;
}

static void take_out(struct list *list, int at)
{
    memmove(&list->tokens[at], &list->tokens[at + 1], (size_t)(list->n - at - 1) * sizeof *list->tokens);
    list->n--;
}

/* One after the other: the lowest score, and of equal ones the oldest. */
static void evict(struct evict_sim *sim)
{
    const int step = sim->policy.per_layer ? sim->shape.kv_heads : 1;

    for (int l = 0; l < sim->n; l += step) {
        if (sim->policy.kind == EVICT_NONE || sim->lists[l].n <= sim->policy.budget + sim->policy.slack)
            continue;
        sim->cuts += step;
        while (sim->lists[l].n > sim->policy.budget) {
            int worst = -1;
            for (int at = 0; at < sim->lists[l].n; at++) {
                if (!is_protected(sim, sim->lists[l].tokens[at].position) &&
                    (worst < 0 || score_of(sim, l, at) < score_of(sim, l, worst)))
                    worst = at;
            }
            for (int head = 0; head < step; head++) {
                sim->mass += (double)sim->lists[l + head].tokens[worst].last;
                take_out(&sim->lists[l + head], worst);
            }
        }
    }
}

void evict_sim_begin(struct evict_sim *sim, int count)
{
    for (int i = 0; i < count; i++) {
        for (int l = 0; l < sim->n; l++)
            sim->lists[l].tokens[sim->lists[l].n++] = (struct token){ .position = sim->seen };
        sim->seen++;
    }
    if (sim->policy.before)
        evict(sim);
}

/* ---- Scores ---- */

static struct token *find(struct list *list, int position)
{
    for (int at = 0; at < list->n; at++) {
        if (list->tokens[at].position == position)
            return &list->tokens[at];
    }
    return NULL;
}

void evict_sim_tell(struct evict_sim *sim, const kvf_stream *stream, int number, int position,
                    const float *probabilities, int slots)
{
    struct list *list = &sim->lists[number];
    const int group = sim->shape.heads / sim->shape.kv_heads;

    for (int at = 0; at < list->n; at++) {
        list->tokens[at].look[position % EVICT_LOOK] = 0;
        if (sim->policy.kind == EVICT_TOVA)
            list->tokens[at].score = 0;
        list->tokens[at].last = 0;
    }
    for (uint32_t slot = 0; slot < stream->rows; slot++) {
        const int is_live = (int)(stream->valid[slot / stream->page_tokens] >> slot % stream->page_tokens & 1);
        struct token *token;
        float sum = 0;
        for (int h = 0; h < group; h++)
            sum += probabilities[h * slots + (int)slot];
        token = is_live ? find(list, (int)stream->positions[slot]) : NULL;
        if (!token || token->position > position) {
            list->strangers += sum != 0 || (is_live && !token);
            continue;
        }
        if (sim->policy.kind == EVICT_H2O)
            token->score += sum;
        else if (sim->policy.kind == EVICT_TOVA)
            token->score = sum / (float)group;
        token->look[position % EVICT_LOOK] = sum / (float)group;
        token->last = sum;
        token->sum += sum;
    }
}

/* The mean over neighbours of the sum over the last queries; beyond the ends there is 0. */
static void score_snapkv(struct list *list)
{
    for (int at = 0; at < list->n; at++) {
        double sum = 0;
        for (int near = at - EVICT_SMOOTH / 2; near <= at + EVICT_SMOOTH / 2; near++) {
            for (int look = 0; look < EVICT_LOOK && near >= 0 && near < list->n; look++)
                sum += (double)list->tokens[near].look[look];
        }
        list->tokens[at].score = (float)(sum / EVICT_SMOOTH);
    }
}

/* Where the key of a position lies, or its value. */
static const float *vector_of(const struct streams_view *view, int position, int is_value)
{
    const kvf_stream *s = view->stream;
    const kvf_kernel_pages *pages = &view->pages;
    const char *base = is_value ? pages->v : pages->k;
    const uint64_t page = is_value ? pages->v_page_stride : pages->k_page_stride;
    const uint64_t token = is_value ? pages->v_token_stride : pages->k_token_stride;

    for (uint32_t slot = 0; slot < s->rows; slot++) {
        const uint32_t column = slot / s->page_tokens, offset = slot % s->page_tokens;
        if ((s->valid[column] >> offset & 1) && (int)s->positions[slot] == position)
            return (const float *)(base + (uint64_t)view->table[column] * page + offset * token);
    }
    return NULL;
}

static double length(const float *key, int dim)
{
    double squares = 0;
    for (int i = 0; i < dim; i++)
        squares += (double)key[i] * (double)key[i];
    return sqrt(squares);
}

static void score_keys(const struct evict_sim *sim, struct list *list, const struct streams_view *view)
{
    const int dim = sim->shape.head_dim;
    double mean[1024] = { 0 };

    for (int at = 0; at < list->n; at++) {
        const float *key = vector_of(view, list->tokens[at].position, 0);
        const double norm = length(key, dim);
        for (int i = 0; i < dim; i++)
            mean[i] += (double)key[i] / norm;
    }
    for (int at = 0; at < list->n; at++) {
        const float *key = vector_of(view, list->tokens[at].position, 0);
        double dot = 0, squares = 0;
        for (int i = 0; i < dim; i++) {
            dot += (double)key[i] * mean[i];
            squares += mean[i] * mean[i];
        }
        list->tokens[at].score = sim->policy.kind == EVICT_KNORM
                                     ? (float)-length(key, dim)
                                     : (float)(-dot / (length(key, dim) * sqrt(squares)));
    }
}

/* The network, from its description in kvfolio.h. */
static void score_learned(const struct evict_sim *sim, int number, const struct streams_view *view)
{
    struct list *list = &sim->lists[number];
    const kvf_mlp mlp = evict_weights_of(sim->policy.weights, number / sim->shape.kv_heads);
    const uint32_t f = KVF_FEATURES, h = mlp.hidden;
    const float *means = mlp.weights, *deviations = means + f, *w1 = deviations + f, *b1 = w1 + h * f, *w2 = b1 + h;

    for (int at = 0; at < list->n; at++) {
        struct token *token = &list->tokens[at];
        const int age = sim->seen - 1 - token->position;
        const float x[KVF_FEATURES] = {
            (float)log1p(age), token->sum, token->sum / (float)(age + 1), token->last,
            (float)length(vector_of(view, token->position, 0), sim->shape.head_dim),
            (float)length(vector_of(view, token->position, 1), sim->shape.head_dim),
            (float)at / (float)list->n, token->position == 0,
        };
        token->score = w2[h];
        for (uint32_t unit = 0; unit < h; unit++) {
            float sum = b1[unit];
            for (uint32_t i = 0; i < f; i++)
                sum += w1[unit * f + i] * ((x[i] - means[i]) / deviations[i]);
            token->score += w2[unit] * (sum * fminf(fmaxf(sum + 3, 0), 6) / 6);
        }
    }
}

/* The draws are kvfolio's; what is done with them is not. */
static void score_random(struct evict_sim *sim, struct list *list, int number)
{
    kvf_stream stream = { .struct_size = sizeof stream, .page_tokens = 1, .seen = (uint32_t)sim->seen,
                          .live = (uint32_t)list->n, .rows = (uint32_t)list->n, .columns = (uint32_t)list->n,
                          .valid = sim->bits, .positions = sim->positions };

    for (int at = 0; at < list->n; at++) {
        sim->bits[at] = 1;
        sim->positions[at] = (uint32_t)list->tokens[at].position;
    }
    if (kvf_evict_random_scores(&stream, sim->policy.seed, (uint64_t)number, sim->scores, NULL) != KVF_OK)
        return;
    for (int at = 0; at < list->n; at++)
        list->tokens[at].score = sim->scores[at];
}

void evict_sim_end(struct evict_sim *sim, struct cache *cache, uint64_t sequence)
{
    for (int l = 0; l < sim->n; l++) {
        struct list *list = &sim->lists[l];
        if (sim->policy.kind == EVICT_SNAPKV) {
            score_snapkv(list);
        } else if (sim->policy.kind == EVICT_RANDOM) {
            score_random(sim, list, l);
        } else if (sim->policy.kind >= EVICT_KEYDIFF) {
            const struct streams_view view = streams_view(cache, sequence, l / sim->shape.kv_heads,
                                                          l % sim->shape.kv_heads);
            if (sim->policy.kind == EVICT_LEARNED)
                score_learned(sim, l, &view);
            else
                score_keys(sim, list, &view);
        }
    }
    if (!sim->policy.before)
        evict(sim);
}

long long evict_sim_compare(struct evict_sim *sim, struct cache *cache, uint64_t sequence, long long *compared)
{
    long long wrong = 0;

    for (int l = 0; l < sim->n; l++) {
        const int heads = sim->shape.kv_heads;
        const kvf_stream *s = streams_view(cache, sequence, l / heads, l % heads).stream;
        int found = 0;
        for (uint32_t slot = 0; slot < s->rows; slot++) {
            if (!(s->valid[slot / s->page_tokens] >> slot % s->page_tokens & 1))
                continue;
            (*compared)++;
            if (find(&sim->lists[l], (int)s->positions[slot]))
                found++;
            else
                wrong++;
        }
        wrong += sim->lists[l].n - found;
    }
    return wrong;
}

double evict_sim_mass(const struct evict_sim *sim, long long *cuts)
{
    *cuts = sim->cuts;
    return sim->mass / (sim->shape.heads / sim->shape.kv_heads);
}

long long evict_sim_strangers(const struct evict_sim *sim)
{
    long long n = 0;
    for (int l = 0; l < sim->n; l++)
        n += sim->lists[l].strangers;
    return n;
}
