/* Page tables without a manager. */
#include "straight.h"

#include <stdlib.h>

int straight_init(struct straight *s, const struct kv_groups *groups, int slots, int capacity, int max_rows,
                  struct error *error)
{
    const int page = groups->page_tokens;
    size_t entries;
    int whole;

    *s = (struct straight){ .groups = groups, .slots = slots, .slot_pages = (capacity + page - 1) / page };
    entries = (size_t)slots * (size_t)s->slot_pages;
    s->floor = calloc((size_t)slots, sizeof *s->floor);
    whole = s->floor != NULL;
    for (int g = 0; g < groups->n; g++) {
        struct straight_group *of = &s->of[g];
        const int ring = kv_group_open_pages(groups, &groups->groups[g]);
        of->open = groups->groups[g].format->kind == KV_SEALED && ring < s->slot_pages ? ring : s->slot_pages;
        of->sinks = kv_group_sinks(groups, &groups->groups[g]);
        of->done = calloc((size_t)slots, sizeof *of->done);
        of->begin = calloc((size_t)slots, sizeof *of->begin);
        of->end = calloc((size_t)slots, sizeof *of->end);
        of->seals = calloc(entries, sizeof *of->seals);
        of->rows = calloc((size_t)max_rows, sizeof *of->rows);
        of->tables = calloc(entries, sizeof *of->tables);
        whole &= of->done && of->begin && of->end && of->seals && of->rows && of->tables;
        for (int i = 0; i < slots && whole; i++)
            of->done[i] = (int)(of->begin[i] = of->end[i] = (uint32_t)of->sinks);
    }
    return whole ? 0 : fail(error, "out of memory for %d slots of %d tokens", slots, capacity);
}

void straight_free(struct straight *s)
{
    free(s->floor);
    for (int g = 0; g < KV_GROUPS; g++) {
        free(s->of[g].done);
        free(s->of[g].begin);
        free(s->of[g].end);
        free(s->of[g].seals);
        free(s->of[g].rows);
        free(s->of[g].tables);
    }
}

void straight_pages(const struct straight *s, int *pages, int *sealed)
{
    for (int g = 0; g < s->groups->n; g++) {
        pages[g] = s->slots * s->of[g].open;
        sealed[g] = s->groups->groups[g].format->kind == KV_SEALED ? s->slots * s->slot_pages : 0;
    }
}

void straight_clear(struct straight *s, int slot)
{
    s->floor[slot] = 0;
    for (int g = 0; g < s->groups->n; g++)
        s->of[g].done[slot] = s->of[g].sinks;
}

/* Page ids of the n-th page of a slot, before and after it is sealed. */
static int open_page(const struct straight *s, int group, int slot, int n)
{
    const int sinks = s->of[group].sinks, open = s->of[group].open, first = 1 + slot * open;

    return n < sinks ? first + n : first + sinks + (n - sinks) % (open - sinks);
}

static int sealed_page(const struct straight *s, int slot, int n)
{
    return 1 + slot * s->slot_pages + n;
}

/* Seals what is due at the first row of a slot, and writes its table. */
static void plan_slot(struct straight *s, int group, const struct row_desc *row, struct kv_paged_part *part)
{
    struct straight_group *of = &s->of[group];
    const int slot = row->sequence;
    int32_t *table = of->tables + (size_t)slot * (size_t)s->slot_pages;
    int upto = kv_group_sealed_at(s->groups, &s->groups->groups[group], row->position);

    if (s->groups->groups[group].format->kind == KV_SEALED && upto < s->floor[slot])
        upto = s->floor[slot];
    if (upto < of->done[slot])
        upto = of->done[slot];
    for (int n = of->done[slot]; n < upto; n++)
        of->seals[part->n_seals++] = (kvf_kernel_seal){ (uint32_t)open_page(s, group, slot, n),
                                                        (uint32_t)sealed_page(s, slot, n) };
    of->end[slot] = (uint32_t)upto;
    for (int n = 0; n < s->slot_pages; n++)
        table[n] = n >= of->sinks && n < upto ? sealed_page(s, slot, n) : open_page(s, group, slot, n);
}

void straight_plan(struct straight *s, const struct row_desc *rows, int n)
{
    const int page = s->groups->page_tokens;

    for (int g = 0; g < s->groups->n; g++) {
        struct straight_group *of = &s->of[g];
        struct kv_paged_part *part = &s->parts[g];
        const int is_sealed = s->groups->groups[g].format->kind == KV_SEALED;

        *part = (struct kv_paged_part){ .seals = of->seals, .slots = of->rows, .tables = of->tables,
                                        .table_stride = s->slot_pages, .sealed_begin = is_sealed ? of->begin : NULL,
                                        .sealed_end = is_sealed ? of->end : NULL };
        for (int i = 0; i < n; i++) {
            const int position = rows[i].position;
            if (i == 0 || rows[i].sequence != rows[i - 1].sequence)
                plan_slot(s, g, &rows[i], part);
            of->rows[i] = (int64_t)open_page(s, g, rows[i].sequence, position / page) * page + position % page;
        }
    }
}

void straight_commit(struct straight *s, int slot)
{
    for (int g = 0; g < s->groups->n; g++)
        s->of[g].done[slot] = (int)s->of[g].end[slot];
}
