/*
 * The model's layers by format: layers of one format are one group of the cache, with pages of one layout that hold
 * all of them.
 */
#ifndef ENGINE_KV_GROUPS_H
#define ENGINE_KV_GROUPS_H

#include "error.h"
#include "kv_format.h"
#include "model.h"

enum { KV_GROUPS = KV_FORMATS, KV_LAYERS = 1024 /* model.c refuses more */, KV_PLANNED = 4096 };

/* What the user wants. */
struct kv_spec {
    const char *format; /* of all layers; NULL = f32 */
    const char *layers; /* exceptions, such as "0=f16,29=f16"; NULL = none */
    const char *exact;  /* f32, f16 or bf16: pages that are not sealed yet; NULL = f32 */
    int sinks;          /* tokens at the start whose pages are never sealed */
};

struct kv_group {
    const struct kv_format *format;
    int layers;
    kvf_page_layout layout; /* of its pages; of sealed ones where there are such */
    kvf_page_layout exact;  /* sealed: of pages that are not sealed yet */
};

struct kv_groups {
    struct model_shape shape;
    int page_tokens; /* of all groups */
    int sinks;       /* of sealed groups: tokens at the start whose pages stay exact */
    int n;
    struct kv_group groups[KV_GROUPS];
    short group_of[KV_LAYERS]; /* of each layer of the model */
    short place_of[KV_LAYERS]; /* the layer's place in the pages of its group */
};

/*
 * Works out groups, layouts and the page size: `page_tokens`, or where it is 0, 16 or what the formats need. Refuses
 * a page size that is too small, and formats that do not fit the model's heads.
 */
int kv_groups_make(struct kv_groups *groups, const struct model_shape *shape, const struct kv_spec *spec,
                   int page_tokens, struct error *error);

/* Equal exactly if the bytes of all pages mean the same: `format` of a namespace key. */
uint64_t kv_groups_key(const struct kv_groups *groups);

/* Bytes that kvfolio's planner says a token of a sequence of KV_PLANNED takes, without free slots and padding. */
double kv_groups_token_bytes(const struct kv_groups *groups);

/* Bytes of a token of `layers` layers in f16. */
uint64_t kv_groups_f16_token(const struct kv_groups *groups, int layers);

/* Pages at the start of a row that a group never seals. */
int kv_group_sinks(const struct kv_groups *groups, const struct kv_group *group);

/* Pages of a sealed group that a sequence has unsealed at most, those of sinks among them. */
int kv_group_open_pages(const struct kv_groups *groups, const struct kv_group *group);

/*
 * kvf_plan_seal_schedule: behind which page, sinks apart, none is to be read as sealed at a position, and how many of n
 * tokens may follow at once.
 */
int kv_group_sealed_at(const struct kv_groups *groups, const struct kv_group *group, int position);
int kv_groups_run(const struct kv_groups *groups, int position, int n);

#endif
