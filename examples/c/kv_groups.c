/* From the formats that the user names to groups of layers with page layouts. */
#include "kv_groups.h"

#include <stdlib.h>
#include <string.h>

/* Formats of all layers. */
static int read_spec(const struct kv_spec *spec, int layers, const struct kv_format **of, struct error *error)
{
    const char *name = spec->format ? spec->format : "f32";
    const struct kv_format *all = kv_format_find(name, strlen(name));

    if (!all)
        return fail(error, "keys and values can be %s, not \"%s\"", kv_format_names(), name);
    for (int l = 0; l < layers; l++)
        of[l] = all;
    for (const char *at = spec->layers; at && *at;) {
        char *equals;
        const long layer = strtol(at, &equals, 10);
        const size_t length = *equals == '=' ? strcspn(equals + 1, ",") : 0;
        if (equals == at || length == 0 || layer < 0 || layer >= layers)
            return fail(error, "\"%s\" is not LAYER=FORMAT with a layer from 0 to %d", at, layers - 1);
        of[layer] = kv_format_find(equals + 1, length);
        if (!of[layer])
            return fail(error, "layer %ld can be %s, not \"%.*s\"", layer, kv_format_names(), (int)length,
                        equals + 1);
        at = equals + 1 + length;
        at += *at == ',';
    }
    return 0;
}

/* Group number of a format, found or new. */
static int group_of(struct kv_groups *g, const struct kv_format *format)
{
    for (int i = 0; i < g->n; i++) {
        if (g->groups[i].format == format)
            return i;
    }
    g->groups[g->n].format = format;
    return g->n++;
}

static int make_layout(const struct kv_groups *g, const struct kv_group *group, const struct kv_format *format,
                       kvf_page_layout *layout, struct error *error)
{
    const int dim = g->shape.head_dim;
    kvf_page_layout_spec spec = {
        .struct_size = sizeof spec, .page_tokens = (uint32_t)g->page_tokens, .layers = (uint32_t)group->layers,
        .kv_heads = (uint32_t)g->shape.kv_heads, .k_dim = (uint32_t)dim, .v_dim = (uint32_t)dim,
        .order = format->kind == KV_EXACT ? KVF_ORDER_TOKENS : KVF_ORDER_HEADS, .rope = KVF_ROPE_POST,
        .k = format->k, .v = format->v,
    };
    uint32_t reason = 0;
    kvf_status status;

    if (format->rotated) {
        spec.rotation = KVF_ROTATION_HADAMARD;
        spec.rotation_size = (uint32_t)(dim & -dim); /* the largest power of two that divides it */
        spec.rotation_parts = KVF_ROTATE_K | KVF_ROTATE_V;
    }
    layout->struct_size = sizeof *layout;
    status = kvf_layout_make(&spec, layout, &reason);
    if (status == KVF_OK)
        return 0;
    return fail(error, "%s with heads of %d: %s", format->name, dim,
                status == KVF_ERR_LAYOUT ? kvf_layout_reason_text(reason) : kvf_status_text(status));
}

/* How many tokens after it was written a page can be published; 0 = at once. */
static int lateness(const struct kv_format *format)
{
    return format->kind == KV_SEALED ? format->recent + 1 : 0;
}

int kv_groups_make(struct kv_groups *g, const struct model_shape *shape, const struct kv_spec *spec, int page_tokens,
                   struct error *error)
{
    const struct kv_format *of[KV_LAYERS], *exact;
    const char *exact_name = spec->exact ? spec->exact : "f32";
    const struct kv_format *first = NULL, *largest = NULL;

    *g = (struct kv_groups){ .shape = *shape, .sinks = spec->sinks };
    exact = kv_format_find(exact_name, strlen(exact_name));
    if (!exact || exact->kind != KV_EXACT)
        return fail(error, "pages that are not sealed yet can be f32, f16 or bf16, not \"%s\"", exact_name);
    if (read_spec(spec, shape->layers, of, error) != 0)
        return -1;
    /* The first group carries the index, and a page of it is published with those of the others that are ready. */
    for (int l = 0; l < shape->layers; l++) {
        if (!first || lateness(of[l]) > lateness(first))
            first = of[l];
        if (!largest || of[l]->page_tokens > largest->page_tokens)
            largest = of[l];
    }
    if (page_tokens > 0 && page_tokens < largest->page_tokens)
        return fail(error, "%s needs pages of at least %d tokens, not %d", largest->name, largest->page_tokens,
                    page_tokens);
    g->page_tokens = page_tokens > 0 ? page_tokens : largest->page_tokens > 16 ? largest->page_tokens : 16;
    group_of(g, first);
    for (int l = 0; l < shape->layers; l++) {
        const int group = group_of(g, of[l]);
        g->group_of[l] = (short)group;
        g->place_of[l] = (short)g->groups[group].layers++;
    }
    for (int i = 0; i < g->n; i++) {
        struct kv_group *group = &g->groups[i];
        if (make_layout(g, group, group->format, &group->layout, error) != 0 ||
            make_layout(g, group, exact, &group->exact, error) != 0)
            return -1;
    }
    return 0;
}

uint64_t kv_groups_key(const struct kv_groups *g)
{
    uint64_t key = 0xcbf29ce484222325u;

    for (int l = 0; l < g->shape.layers; l++) {
        const struct kv_group *group = &g->groups[g->group_of[l]];
        const uint64_t parts[] = { group->layout.id, group->format->kind == KV_SEALED ? group->exact.id : 0,
                                   (uint64_t)group->format->recent, (uint64_t)g->place_of[l],
                                   (uint64_t)kv_group_sinks(g, group) };
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            key = (key ^ parts[i]) * 0x100000001b3u;
            key ^= key >> 29;
        }
    }
    return key;
}

double kv_groups_token_bytes(const struct kv_groups *g)
{
    kvf_memory_group groups[KV_GROUPS];
    kvf_memory_report report = { .struct_size = sizeof report };

    for (int i = 0; i < g->n; i++) {
        const struct kv_group *group = &g->groups[i];
        groups[i] = (kvf_memory_group){ .struct_size = sizeof groups[i], .kind = KVF_GROUP_FULL,
                                        .layout = &group->layout };
        if (group->format->kind == KV_SEALED) {
            groups[i].exact = &group->exact;
            groups[i].recent = (uint32_t)group->format->recent;
            groups[i].sinks = (uint32_t)g->sinks;
        }
    }
    return kvf_memory_estimate(groups, (size_t)g->n, KV_PLANNED, 0, &report) == KVF_OK
               ? (double)report.row_bytes / KV_PLANNED : 0;
}

uint64_t kv_groups_f16_token(const struct kv_groups *g, int layers)
{
    return (uint64_t)layers * 2 * (uint64_t)(g->shape.kv_heads * g->shape.head_dim) * 2;
}

int kv_group_sinks(const struct kv_groups *g, const struct kv_group *group)
{
    return group->format->kind == KV_SEALED ? (g->sinks + g->page_tokens - 1) / g->page_tokens : 0;
}

/* recent + P - 1 tokens stay exact behind a seal; the page that is being sealed and a chunk of a page come on top. */
int kv_group_open_pages(const struct kv_groups *g, const struct kv_group *group)
{
    return kv_group_sinks(g, group) + (group->format->recent + g->page_tokens - 1) / g->page_tokens + 4;
}

int kv_group_sealed_at(const struct kv_groups *g, const struct kv_group *group, int position)
{
    uint32_t pages = 0, run;

    if (group->format->kind == KV_SEALED)
        kvf_plan_seal_schedule((uint32_t)g->page_tokens, (uint32_t)group->format->recent, (uint32_t)position, 1,
                               &pages, &run);
    return (int)pages;
}

int kv_groups_run(const struct kv_groups *g, int position, int n)
{
    uint32_t pages, run = (uint32_t)n;

    for (int i = 0; i < g->n; i++) {
        if (g->groups[i].format->kind == KV_SEALED)
            kvf_plan_seal_schedule((uint32_t)g->page_tokens, (uint32_t)g->groups[i].format->recent, (uint32_t)position,
                                   run, &pages, &run);
    }
    return (int)run;
}
