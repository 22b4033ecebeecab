/*
 * What each group of layers needs in a step.
 *
 *     which pages are sealed    kvf_plan_seal_schedule, kvf_plan_seal           while the plan is built
 *     what kernels read         kvf_plan_copies, kvf_table_slots,               once it is finished
 *                               kvf_seq_sealed_columns, kvf_table_dense
 *
 * The page that a token is the first to read as sealed is sealed in the step of that token. Chunks are cut there
 * (kv_groups_run), so a step seals at most one page of a sequence and group.
 */
#include "step_state.h"

#include <stdlib.h>

kvf_pool_stats step_pool(const struct step *s, int pool)
{
    kvf_pool_stats stats = { .struct_size = sizeof stats };
    kvf_pool_stats_read(s->kvf, (uint32_t)pool, &stats);
    return stats;
}

/* Pages that a group is to seal of a sequence of `len` tokens, and in *upto below which one. */
static int to_seal(const struct step *s, int group, kvf_seq sequence, int len, uint32_t *upto)
{
    uint32_t begin = 0, end = 0;

    *upto = (uint32_t)kv_group_sealed_at(&s->groups, &s->groups.groups[group], len);
    kvf_seq_sealed_columns(s->kvf, sequence, (uint32_t)group, &begin, &end);
    return *upto > end ? (int)(*upto - end) : 0;
}

int step_can_seal(const struct step *s, kvf_seq sequence, int len)
{
    uint32_t upto;

    for (int g = 0; g < s->groups.n; g++) {
        const struct step_group *part = &s->parts[g];
        const int need = part->sealed_pool < 0 ? 0 : to_seal(s, g, sequence, len, &upto);
        kvf_pool_stats pool;
        if (need == 0)
            continue;
        pool = step_pool(s, part->sealed_pool);
        if (need > (int)(pool.free_pages + pool.cached) - part->promised)
            return 0;
    }
    return 1;
}

kvf_status step_seal(struct step *s, kvf_seq sequence, int len)
{
    uint32_t upto;

    for (int g = 0; g < s->groups.n; g++) {
        const int need = s->parts[g].sealed_pool < 0 ? 0 : to_seal(s, g, sequence, len, &upto);
        const kvf_status status = need > 0 ? kvf_plan_seal(s->kvf, sequence, (uint32_t)g, upto, NULL) : KVF_OK;
        if (status != KVF_OK)
            return status;
        s->parts[g].promised += need;
    }
    return KVF_OK;
}

/* Sorts the plan's copies by group, and by whether they seal. */
static kvf_status export_copies(struct step *s)
{
    size_t n = 0;
    const kvf_status status = kvf_plan_copies(s->kvf, s->copies, s->copies_cap, &n);

    for (int g = 0; g < s->groups.n; g++)
        s->parts[g].n_copies = s->parts[g].n_seals = 0;
    for (size_t i = 0; i < n && status == KVF_OK; i++) {
        const kvf_page_copy *copy = &s->copies[i];
        struct step_group *part = &s->parts[copy->group];
        if (copy->seals)
            part->seals[part->n_seals++] = (kvf_kernel_seal){ copy->source, copy->target };
        else
            part->copies[part->n_copies++] = (kvf_kernel_copy){ copy->source, copy->target, copy->tokens };
    }
    return status;
}

/* Exports a group's page tables, as wide as the longest row. */
static kvf_status export_tables(struct step *s, int group)
{
    struct step_group *part = &s->parts[group];
    size_t needed;
    uint32_t pages;

    part->stride = 1;
    for (int i = 0; i < s->n_sequences; i++) {
        kvf_status status = kvf_seq_pages(s->kvf, s->sequences[i], (uint32_t)group, &pages);
        if (status == KVF_OK && part->sealed_pool >= 0)
            status = kvf_seq_sealed_columns(s->kvf, s->sequences[i], (uint32_t)group, &part->sealed_begin[i],
                                            &part->sealed_end[i]);
        if (status != KVF_OK)
            return status;
        if ((int)pages > part->stride)
            part->stride = (int)pages;
    }
    needed = (size_t)s->n_sequences * (size_t)part->stride;
    if (needed > part->tables_cap) {
        int32_t *tables = realloc(part->tables, 2 * needed * sizeof *tables);
        if (!tables)
            return KVF_ERR_MEMORY;
        part->tables = tables;
        part->tables_cap = 2 * needed;
    }
    return kvf_table_dense(s->kvf, (uint32_t)group, s->sequences, (size_t)s->n_sequences, (uint32_t)part->stride, 0,
                           part->tables, part->tables_cap);
}

/* Pages in use now, the step's own included: their number, bytes, and bytes in f16. */
static void note_peak(struct step *s)
{
    uint64_t bytes = 0, f16_bytes = 0;
    int used = 0;

    for (int g = 0; g < s->groups.n; g++) {
        const struct kv_group *group = &s->groups.groups[g];
        const struct step_group *part = &s->parts[g];
        const uint32_t open = step_pool(s, part->pool).used;
        const uint32_t sealed = part->sealed_pool < 0 ? 0 : step_pool(s, part->sealed_pool).used;
        used += (int)(open + sealed);
        bytes += open * (part->sealed_pool < 0 ? group->layout : group->exact).page_bytes;
        bytes += sealed * group->layout.page_bytes;
        f16_bytes += (uint64_t)(open + sealed) * (uint64_t)s->groups.page_tokens *
                     kv_groups_f16_token(&s->groups, group->layers);
    }
    s->peak = used > s->peak ? used : s->peak;
    if (bytes > s->peak_bytes) {
        s->peak_bytes = bytes;
        s->peak_f16_bytes = f16_bytes;
    }
}

kvf_status step_export(struct step *s)
{
    kvf_status status = export_copies(s);
    size_t n;

    for (int g = 0; g < s->groups.n && status == KVF_OK; g++) {
        struct step_group *part = &s->parts[g];
        status = kvf_table_slots(s->kvf, (uint32_t)g, part->slots, s->positions, (size_t)s->config.max_rows, &n);
        if (status == KVF_OK)
            status = export_tables(s, g);
        s->kernel_parts[g] = (struct kv_paged_part){
            .copies = part->copies, .n_copies = part->n_copies, .seals = part->seals, .n_seals = part->n_seals,
            .slots = part->slots, .tables = part->tables, .table_stride = part->stride,
            .sealed_begin = part->sealed_pool < 0 ? NULL : part->sealed_begin,
            .sealed_end = part->sealed_pool < 0 ? NULL : part->sealed_end,
        };
    }
    if (status == KVF_OK)
        note_peak(s);
    return status;
}
