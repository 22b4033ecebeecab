/*
 * evict.c - token eviction in C: a stream under H2O that stays within its budget, held against a plain list
 *
 * Bytes are simulated by a tag per slot of a page: every live slot must hold the token that the stream says, whatever
 * was freed, moved or written again. C99 and C++11.
 */
#include <stdio.h>
#include <string.h>

#include "kvfolio.h"

static int failures;

static void expect(int condition, int line)
{
    if (!condition) {
        printf("evict.c:%d\n", line);
        failures++;
    }
}
#define EXPECT(condition) expect((condition), __LINE__)
static int near(float a, float b)
{
    return a - b < 1e-6f && b - a < 1e-6f;
}
#define OK(call) EXPECT((call) == KVF_OK)

enum { P = 4, COLUMNS = 12, SLOTS = P * COLUMNS, STEPS = 300, BUDGET = 9, PROMPT = 21, HEADS = 2 };

/* The engine's side: a row of pages, and what their slots hold. */
static struct engine {
    kvf_stream stream;
    uint64_t valid[COLUMNS];
    uint32_t positions[SLOTS];
    float features[2 * SLOTS];
    uint32_t row[COLUMNS], columns; /* pages of the row */
    uint32_t tags[COLUMNS][P];
    uint32_t free_pages[COLUMNS], n_free;
} e;

/* The plain list: what should be there. */
static float received[PROMPT + STEPS];
static int is_kept[PROMPT + STEPS];

static void start(void)
{
    memset(&e, 0, sizeof e);
    memset(received, 0, sizeof received);
    memset(is_kept, 0, sizeof is_kept);
    e.stream.struct_size = sizeof e.stream;
    e.stream.page_tokens = P;
    e.stream.columns = COLUMNS;
    e.stream.channels = 2;
    e.stream.valid = e.valid;
    e.stream.positions = e.positions;
    e.stream.features = e.features;
    while (e.n_free < COLUMNS) {
        e.free_pages[e.n_free] = e.n_free;
        e.n_free++;
    }
}

static uint32_t *tag(uint32_t slot)
{
    return &e.tags[e.row[slot / P]][slot % P];
}

static void append(uint32_t count, uint32_t placement)
{
    uint32_t slots[PROMPT], i, first = e.stream.seen;
    OK(kvf_stream_append(&e.stream, count, placement, slots, NULL));
    for (i = 0; i < count; i++) {
        while (slots[i] / P >= e.columns)
            e.row[e.columns++] = e.free_pages[--e.n_free];
        *tag(slots[i]) = first + i;
        e.features[SLOTS + slots[i]] = (float)(first + i); /* a second channel, which must go along */
        is_kept[first + i] = 1;
    }
}

/* Attention in steps of 1 / 64, so that sums are exact. */
static float attention(uint32_t query, uint32_t head, uint32_t position)
{
    uint32_t x = (query * 31 + head * 17 + position) * 2654435761u;
    return (float)(x >> 29) / 64.0f;
}

static kvf_h2o how;

static void attend(uint32_t queries)
{
    static float rows[PROMPT * HEADS * SLOTS];
    kvf_observation seen;
    uint32_t q, h, s, first = e.stream.seen - queries;
    memset(rows, 0, sizeof rows);
    for (q = 0; q < queries; q++)
        for (s = 0; s < e.stream.rows; s++) {
            uint32_t at = e.positions[s];
            float sum = 0.0f;
            if ((e.valid[s / P] >> (s % P) & 1) == 0 || at > first + q)
                continue;
            for (h = 0; h < HEADS; h++) {
                float a = attention(first + q, h, at);
                rows[(q * HEADS + h) * e.stream.rows + s] = a;
                sum += a;
            }
            received[at] = (how.decay > 0 ? received[at] * how.decay : received[at]) + sum / HEADS;
        }
    memset(&seen, 0, sizeof seen);
    seen.struct_size = sizeof seen;
    seen.kind = KVF_OBSERVE_PROBABILITIES;
    seen.queries = queries;
    seen.heads = HEADS;
    seen.values = rows;
    OK(kvf_evict_h2o_observe(&e.stream, &how, &seen, e.features, NULL));
}

static const kvf_pin pins[1] = {{5, 7}};

static kvf_protected guard(void)
{
    kvf_protected guarded;
    memset(&guarded, 0, sizeof guarded);
    guarded.struct_size = sizeof guarded;
    guarded.sinks = 2;
    guarded.recent = 3;
    guarded.pins = pins;
    guarded.n_pins = 1;
    return guarded;
}

static int is_protected(uint32_t position)
{
    return position < 2 || (position >= 5 && position < 7) || position + 3 >= e.stream.seen;
}

static void evict(void)
{
    kvf_protected guarded = guard();
    uint64_t keep[COLUMNS];
    uint32_t kept = 0, live = e.stream.live, budget = BUDGET, i;
    OK(kvf_evict_keep_best(&e.stream, e.features, &guarded, budget, keep, &kept, NULL));
    EXPECT(kept == (live < budget ? live : budget) && e.stream.live == live);
    OK(kvf_stream_retain(&e.stream, keep, NULL));
    for (; live > budget; live--) {
        uint32_t lowest = UINT32_MAX;
        for (i = 0; i < e.stream.seen; i++)
            if (is_kept[i] && !is_protected(i) && (lowest == UINT32_MAX || received[i] < received[lowest]))
                lowest = i;
        is_kept[lowest] = 0;
    }
}

static void drop_dead(void)
{
    uint32_t dead[COLUMNS], i, to = 0, from, rows = e.stream.rows;
    size_t n = 99, need = 0;
    kvf_status status = kvf_stream_drop_dead_columns(&e.stream, NULL, 0, &need, NULL);
    EXPECT(status == (need == 0 ? KVF_OK : KVF_ERR_SHORT_BUFFER) && (need == 0 || e.stream.rows == rows));
    OK(kvf_stream_drop_dead_columns(&e.stream, dead, COLUMNS, &n, NULL));
    EXPECT(n == need);
    for (i = 0, from = 0; from < e.columns; from++) {
        if (i < n && dead[i] == from) {
            e.free_pages[e.n_free++] = e.row[from];
            i++;
        } else
            e.row[to++] = e.row[from];
    }
    e.columns = to;
}

static void compact(void)
{
    kvf_slot_move moves[SLOTS];
    kvf_compaction report;
    uint32_t sparse = 9, i, j;
    size_t n = 0, need = 0;
    OK(kvf_stream_is_sparse(&e.stream, 60, &sparse, NULL));
    if (!sparse)
        return;
    memset(&report, 0, sizeof report);
    report.struct_size = sizeof report;
    EXPECT(kvf_stream_plan_compaction(&e.stream, 1, NULL, 0, &need, &report, NULL) == KVF_ERR_SHORT_BUFFER);
    OK(kvf_stream_plan_compaction(&e.stream, 1, moves, SLOTS, &n, &report, NULL));
    EXPECT(n == need && n > 0 && report.rows == e.stream.live && report.columns == (BUDGET + P - 1) / P);
    for (i = 0; i < n; i++)
        for (j = 0; j < moves[i].count; j++)
            *tag(moves[i].to + j) = *tag(moves[i].from + j);
    OK(kvf_stream_commit_compaction(&e.stream, 1, NULL));
    for (i = 0; i < report.freed; i++)
        e.free_pages[e.n_free++] = e.row[--e.columns];
    EXPECT(e.columns == report.columns && e.stream.rows == report.rows);
}

static void compare(void)
{
    uint32_t s, live = 0, kept = 0;
    OK(kvf_stream_check(&e.stream, NULL));
    for (s = 0; s < e.stream.seen; s++)
        kept += is_kept[s] != 0;
    for (s = 0; s < e.stream.rows; s++) {
        uint32_t at = e.positions[s];
        if ((e.valid[s / P] >> (s % P) & 1) == 0)
            continue;
        live++;
        EXPECT(is_kept[at] && *tag(s) == at);
        EXPECT(e.features[s] == received[at] && e.features[SLOTS + s] == (float)at);
    }
    EXPECT(live == kept && live == e.stream.live);
}

enum mode { HOLES, COMPACTED, REUSED };

static uint64_t run(enum mode mode, float decay)
{
    uint64_t digest = 0;
    uint32_t step, most = 0;
    start();
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.decay = decay;
    append(PROMPT, KVF_PLACE_BEHIND);
    attend(PROMPT);
    for (step = 0; step < STEPS; step++) {
        uint32_t i;
        evict();
        drop_dead();
        if (mode == COMPACTED)
            compact();
        compare();
        for (i = 0; i < e.stream.seen; i++)
            digest = digest * 31 + (is_kept[i] ? i + 1 : 0);
        append(1, mode == REUSED ? KVF_PLACE_REUSE : KVF_PLACE_BEHIND);
        attend(1);
        if (step > 0 && e.columns > most)
            most = e.columns;
    }
    EXPECT(e.n_free + e.columns == COLUMNS);
    /* With decay old tokens go, so that holes spread over pages, which the other modes give back. */
    EXPECT(decay > 0 && mode == HOLES ? most == 6 : most < 6);
    return digest;
}

/* By hand: sinks 0 and 1, pins 5 and 6, and 6 to 8 as the newest. */
static void refusals(void)
{
    kvf_protected guarded = guard();
    kvf_stream spoilt;
    uint64_t keep[COLUMNS] = {0};
    uint32_t kept = 77, reason = 0, tokens = 0, position = 0;
    start();
    append(9, KVF_PLACE_BEHIND);
    OK(kvf_evict_protected_tokens(&guarded, &tokens, NULL));
    EXPECT(tokens == 7);
    EXPECT(kvf_evict_keep_best(&e.stream, NULL, &guarded, 6, keep, &kept, &reason) == KVF_ERR_ARGUMENT);
    EXPECT(reason == KVF_EVICT_BUDGET && kept == 77 && keep[0] == 0);
    EXPECT(strncmp(kvf_evict_reason_text(reason), "budget", 6) == 0);
    OK(kvf_evict_keep_best(&e.stream, NULL, &guarded, 7, keep, &kept, &reason));
    EXPECT(kept == 7 && keep[0] == 3 && keep[1] == 15 && keep[2] == 1); /* 6 counts twice, so 4 may stay */
    OK(kvf_stream_retain(&e.stream, keep, NULL));
    EXPECT(kvf_stream_append(&e.stream, SLOTS - 8, KVF_PLACE_BEHIND, NULL, &reason) == KVF_RETRY);
    EXPECT(reason == KVF_EVICT_FULL && e.stream.seen == 9);
    EXPECT(kvf_stream_append(&e.stream, SLOTS + 1, KVF_PLACE_REUSE, NULL, &reason) == KVF_NEVER);
    spoilt = e.stream;
    spoilt.live--; /* one hole more than there is */
    EXPECT(kvf_stream_append(&spoilt, 4, KVF_PLACE_REUSE, NULL, &reason) == KVF_ERR_ARGUMENT);
    EXPECT(reason == KVF_EVICT_STREAM);
    EXPECT(kvf_stream_next_position(&e.stream, KVF_POSITION_ABSOLUTE, 9, &position, &reason) == KVF_NEVER);
    OK(kvf_stream_next_position(&e.stream, KVF_POSITION_RANK, 9, &position, NULL));
    EXPECT(position == 7 && reason == KVF_EVICT_POSITION);
    OK(kvf_stream_truncate(&e.stream, 6, NULL));
    EXPECT(e.stream.live == 4 && e.stream.seen == 6);
    spoilt = e.stream;
    spoilt.struct_size = 8;
    EXPECT(kvf_stream_check(&spoilt, NULL) == KVF_ERR_STRUCT_SIZE);
}

/* Values written out by hand: what tests of the core prove, seen through the C interface. */
static void values(void)
{
    const float sums[4] = {0.0f, 3.0f, 0.0f, 6.0f}, norms[4] = {1.0f, 2.0f, 0.0f, 4.0f}, key[2] = {3.0f, 4.0f};
    const float bounds[5] = {1.0f, 9.0f, 3.0f, 7.0f, 0.0f};
    const uint64_t weights[3] = {1, 1, 2}, half[1] = {3};
    float scores[4], drawn[4], sum[2] = {0, 0}, norm = 0, mass = 9, error[2], weight[27];
    uint32_t budgets[32], n_chosen = 0, kept = 0;
    int32_t deltas[4];
    uint8_t chosen[5];
    uint64_t keep[1] = {4};
    kvf_feature_inputs inputs;
    kvf_mlp mlp;
    size_t n = 0;
    float features[4 * KVF_FEATURES];
    int i;

    start();
    append(4, KVF_PLACE_BEHIND);
    OK(kvf_evict_snapkv_scores(&e.stream, sums, KVF_SMOOTH_AVERAGE, 3, scores, NULL));
    EXPECT(scores[0] == 1.0f && scores[1] == 1.0f && scores[2] == 3.0f && scores[3] == 2.0f);
    OK(kvf_evict_knorm_scores(&e.stream, norms, scores, NULL));
    EXPECT(scores[1] == -2.0f && scores[3] == -4.0f);
    OK(kvf_keysum_add(key, 2, sum));
    OK(kvf_keysum_norm(sum, 2, &norm));
    EXPECT(near(norm, 1.0f) && near(sum[1], 0.8f));
    OK(kvf_evict_keydiff_scores(&e.stream, sums, norms, 2.0f, scores, NULL));
    EXPECT(scores[1] == -0.75f && scores[2] == 0.0f);
    OK(kvf_keysum_remove(key, 2, sum));
    EXPECT(sum[0] == 0.0f && sum[1] == 0.0f);
    OK(kvf_evict_random_scores(&e.stream, 7, 1, drawn, NULL));
    OK(kvf_evict_random_scores(&e.stream, 7, 2, scores, NULL));
    EXPECT(drawn[0] != drawn[1] && drawn[0] != scores[0]);

    memset(&inputs, 0, sizeof inputs);
    inputs.struct_size = sizeof inputs;
    inputs.sum = inputs.last = sums;
    inputs.key_norms = inputs.value_norms = norms;
    OK(kvf_evict_features(&e.stream, &inputs, features, 4 * KVF_FEATURES, &n, NULL));
    EXPECT(n == 4 * KVF_FEATURES && features[KVF_FEATURES + 1] == 3.0f && features[KVF_FEATURES + 2] == 1.0f);
    EXPECT(features[7] == 1.0f && features[KVF_FEATURES + 7] == 0.0f && features[3 * KVF_FEATURES + 6] == 0.75f);
    for (i = 0; i < 27; i++)
        weight[i] = i < 8 || i == 24 ? 0.0f : i < 16 || i > 24 ? 1.0f : i == 17 ? 2.0f : 0.0f; /* x = 2 * sum, b1 = 0 */
    memset(&mlp, 0, sizeof mlp);
    mlp.struct_size = sizeof mlp;
    mlp.version = KVF_MLP_VERSION;
    mlp.features = KVF_FEATURES;
    mlp.hidden = 1;
    mlp.weights = weight;
    mlp.n_weights = 27;
    OK(kvf_evict_learned_scores(&e.stream, &mlp, &inputs, scores, NULL));
    EXPECT(scores[0] == 1.0f && scores[1] == 7.0f && scores[3] == 13.0f); /* hardswish is x itself from 3 on */

    OK(kvf_evict_quest_columns(bounds, 5, 3, 1, chosen, &n_chosen, NULL));
    EXPECT(n_chosen == 3 && chosen[0] && chosen[1] && !chosen[2] && !chosen[3] && chosen[4]);
    OK(kvf_budget_pyramid(120, 20, 0, 0, budgets, 32, NULL));
    EXPECT(budgets[0] == 234 && budgets[1] == 227 && budgets[31] == 6);
    OK(kvf_budget_by_weight(10, weights, 3, 0, 4, budgets, NULL));
    EXPECT(budgets[0] == 3 && budgets[1] == 3 && budgets[2] == 4);
    OK(kvf_budget_uniform(8, budgets, 3, NULL));
    EXPECT(budgets[0] == 3 && budgets[1] == 3 && budgets[2] == 2);
    OK(kvf_evict_keep_union(half, 1, keep, &kept));
    EXPECT(keep[0] == 7 && kept == 3);
    OK(kvf_evict_mass_of_row(&e.stream, sums, keep, &mass, NULL));
    EXPECT(mass == 6.0f && near(kvf_evict_mass_of_lse(1.0986123f, 1.3862944f), 0.25f));
    OK(kvf_evict_output_error(0.5f, norms, sums, 2, error));
    EXPECT(error[0] == 0.5f && error[1] == -0.5f);
    keep[0] = 10;
    OK(kvf_stream_retain(&e.stream, keep, NULL));
    OK(kvf_stream_deltas(&e.stream, deltas, NULL));
    EXPECT(deltas[1] == -1 && deltas[3] == -2 && deltas[0] == 0);
}

/* Two heads share six tokens: the one whose scores are higher gets more. */
static void heads(void)
{
    static const float high[4] = {5, 6, 7, 8}, low[4] = {1, 2, 3, 4};
    kvf_protected guarded = guard();
    kvf_stream pair[2];
    float features[2][4];
    uint64_t valid[1] = {15};
    uint32_t budgets[2];
    guarded.sinks = guarded.n_pins = 0;
    guarded.recent = 1;
    start();
    append(4, KVF_PLACE_BEHIND);
    memcpy(features[0], low, sizeof low);
    memcpy(features[1], high, sizeof high);
    pair[0] = pair[1] = e.stream;
    pair[0].columns = pair[1].columns = pair[0].channels = pair[1].channels = 1;
    pair[0].valid = pair[1].valid = valid;
    pair[0].features = features[0];
    pair[1].features = features[1];
    OK(kvf_budget_by_head_scores(pair, 2, 0, 3, 1, &guarded, budgets, NULL));
    EXPECT(budgets[0] == 2 && budgets[1] == 4);
}

/* Groups of 32 tokens along channels, as KIVI has keys. */
static void soundness(void)
{
    kvf_page_layout_spec spec;
    kvf_page_layout layout;
    uint32_t reason = 0, unit = 0;
    memset(&spec, 0, sizeof spec);
    memset(&layout, 0, sizeof layout);
    spec.struct_size = sizeof spec;
    layout.struct_size = sizeof layout;
    spec.page_tokens = 64;
    spec.layers = spec.kv_heads = 1;
    spec.k_dim = spec.v_dim = 64;
    spec.rope = KVF_ROPE_POST;
    spec.k.element = spec.v.element = KVF_ELEMENT_INT4;
    spec.k.axis = KVF_AXIS_CHANNEL;
    spec.v.axis = KVF_AXIS_TOKEN;
    spec.k.group = spec.v.group = 32;
    OK(kvf_layout_make(&spec, &layout, NULL));
    OK(kvf_evict_move_unit(&layout, &unit));
    EXPECT(unit == 32);
    OK(kvf_evict_check(&layout, KVF_REMOVE_COMPACT, KVF_POSITION_ABSOLUTE, &reason));
    EXPECT(kvf_evict_check(&layout, KVF_REMOVE_REPLACE, 0, &reason) == KVF_ERR_UNSUPPORTED);
    EXPECT(reason == KVF_EVICT_GROUP_OF_TOKENS);
    EXPECT(kvf_evict_check(&layout, KVF_REMOVE_HOLE, KVF_POSITION_RANK, &reason) == KVF_ERR_UNSUPPORTED);
    EXPECT(reason == KVF_EVICT_KEYS);
}

int main(void)
{
    const float decays[2] = {0.0f, 0.5f};
    int i;
    for (i = 0; i < 2; i++) {
        uint64_t holes = run(HOLES, decays[i]), compacted = run(COMPACTED, decays[i]), reused = run(REUSED, decays[i]);
        EXPECT(holes == compacted && compacted == reused); /* what is kept does not depend on where it lies */
    }
    refusals();
    values();
    heads();
    soundness();
    printf("evict: %d failures\n", failures);
    return failures == 0 ? 0 : 1;
}
