/* kvf_fuzz_views.c - the caller's rows brought up to date by what changed, and rings */
#include <string.h>

#include "kvf_fuzz_calls.h"

enum { ROW = 1024 };

/* What changed since a row was last asked for ends as the dense row does, and nothing has changed since. */
static kvf_status refresh(kvf_fuzz_world *world, uint32_t row, uint32_t group)
{
    static int32_t entries[ROW], dense[ROW];
    kvf_row_query query;
    kvf_row_delta delta;
    kvf_delta_report report;
    kvf_status status;
    uint32_t pages = 0;

    query.seq = world->shown[row];
    query.since = world->since[row][group];
    memset(&report, 0, sizeof report);
    report.struct_size = sizeof report;
    status = kvf_seq_pages(world->cache, query.seq, group, &pages);
    if (status != KVF_OK || pages > ROW)
        return status;
    status = kvf_table_changed(world->cache, group, &query, 1, &delta, 1, entries, ROW, &report);
    kvf_fuzz_must(world, status == KVF_OK && report.rows <= 1, "a live sequence tells what changed");
    if (report.rows == 1) {
        status = kvf_table_dense(world->cache, group, &query.seq, 1, pages, -1, dense, ROW);
        kvf_fuzz_must(world, status == KVF_OK && delta.row == 0 && delta.start + delta.count == pages &&
                      memcmp(entries, dense + delta.start, delta.count * sizeof *dense) == 0,
                      "what changed is the end of the row");
    }
    world->since[row][group] = query.since = report.version;
    status = kvf_table_changed(world->cache, group, &query, 1, NULL, 0, NULL, 0, &report);
    kvf_fuzz_must(world, status == KVF_OK && report.rows == 0, "nothing has changed since");
    return KVF_OK;
}

static kvf_status show_rows(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    uint32_t pages, row, group;

    for (row = 0; row < op->n_children; row++) {
        kvf_status status = kvf_seq_pages(world->cache, world->sequences[op->children[row]].handle, 0, &pages);
        if (status != KVF_OK)
            return status;
    }
    for (row = 0; row < op->n_children; row++) {
        kvf_seq occupant = world->sequences[op->children[row]].handle;
        if (world->shown[row] != occupant)
            memset(world->since[row], 0, sizeof world->since[row]);
        world->shown[row] = occupant;
        for (group = 0; group < world->spec->config.n_groups; group++)
            refresh(world, row, group);
    }
    return KVF_OK;
}

/* A ring that is too short for its buffer would write behind it. */
static kvf_status show_ring(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    static int32_t ring[ROW + 1];
    kvf_ring_report report;
    kvf_status status;

    memset(&report, 0, sizeof report);
    report.struct_size = sizeof report;
    ring[ROW] = -1;
    status = kvf_table_ring(world->cache, world->sequences[op->seq].handle, op->group, op->count, ring, ROW, &report);
    kvf_fuzz_must(world, ring[ROW] == -1, "a ring keeps its buffer");
    if (status == KVF_ERR_SHORT_BUFFER)
        return KVF_OK; /* it is longer than what is kept here */
    if (status == KVF_OK)
        kvf_fuzz_must(world, report.end <= report.first || report.end - report.first <= op->count,
                      "a ring shows no more pages than it has columns");
    return status;
}

kvf_status kvf_fuzz_view(kvf_fuzz_world *world, const kvf_fuzz_op *op)
{
    return op->kind == KVF_FUZZ_EXPORT ? show_rows(world, op) : show_ring(world, op);
}
