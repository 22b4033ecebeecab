/*
 * Page tables without a manager: each slot owns a run of pages, and token t of it lies in the t / P-th of them. Pages
 * that are not sealed yet are a ring, behind those that never are. What kernels read is all here; kv_paged.c has the memory.
 */
#ifndef ENGINE_STRAIGHT_H
#define ENGINE_STRAIGHT_H

#include "kv_paged.h"

struct straight {
    const struct kv_groups *groups; /* borrowed */
    int slots;
    int slot_pages;                 /* pages of a slot */
    int *floor;                     /* [slots] pages that are sealed whatever the schedule says */
    struct straight_group {
        int open;                   /* pages of a slot that are not sealed: all, or a ring */
        int sinks;                  /* pages of a slot that are never sealed */
        int *done;                  /* [slots] end of the columns sealed by steps that are committed */
        uint32_t *begin;            /* [slots] columns that are sealed, those of the slot's latest step too: */
        uint32_t *end;              /* begin is the same for all, and equal to end where there are none */
        kvf_kernel_seal *seals;     /* [slots * slot_pages] */
        int64_t *rows;              /* [max_rows] slots of the rows */
        int32_t *tables;            /* [slots][slot_pages] */
    } of[KV_GROUPS];
    struct kv_paged_part parts[KV_GROUPS];
};

/* Tables for `slots` slots of `capacity` tokens. -1 and a reason on failure. */
int straight_init(struct straight *s, const struct kv_groups *groups, int slots, int capacity, int max_rows,
                  struct error *error);
void straight_free(struct straight *s);

/* Pages that kv_paged_new is to make for each group. */
void straight_pages(const struct straight *s, int *pages, int *sealed);

/* Empties a slot. */
void straight_clear(struct straight *s, int slot);

/* Where the rows of a step lie; row_desc.sequence is the slot. The first row of each slot says where it continues. */
void straight_plan(struct straight *s, const struct row_desc *rows, int n);

/* A step with rows of this slot has been computed. */
void straight_commit(struct straight *s, int slot);

#endif
