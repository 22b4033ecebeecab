/*
 * kvfolio_kernels.h - CPU kernels over paged key/value memory
 *
 * Link with libkvfolio_kernels.a (no other library is needed). The header is
 * self-contained and independent of kvfolio.h; both can be included together.
 *
 * Words
 *   P        tokens per page, a power of two from 1 to 256
 *   N        pages in the memory; ids are 1..N, id 0 is the NULL page
 *   Hk, H    key/value heads and query heads; H is a multiple of Hk, and query
 *            head h reads key/value head h / (H / Hk)
 *   d        elements of one head (any number, not only multiples of 16)
 *   slot id  page * P + offset in the page, int64_t; -1 = do not write
 *   position absolute index of a token in its sequence, from 0
 *
 * Rules that hold for every function
 *   1. The result is a status: KVF_KERNEL_OK (0), or a positive code. All
 *      arguments are checked first: on failure nothing has been written,
 *      unless a function says what stays.
 *   2. Every struct begins with struct_size = sizeof(the struct). Fields past
 *      a smaller struct_size count as zero, and zero means the default. A
 *      larger struct_size is accepted if the bytes unknown here are zero.
 *   3. The NULL page is never read and never written. Its memory need not
 *      exist, but the base address is that of page 0: page p begins at
 *      base + p * page_stride. Offsets are computed in 64 bits.
 *   4. No allocation, no lock, no input/output, no global state but what the
 *      CPU was found to have. Functions may run at the same time in several
 *      threads, as long as no byte that one writes is read or written by
 *      another.
 *   5. Buffers written must not overlap buffers read by the same call.
 *   6. Results are reproducible bit for bit: they do not depend on P, on page
 *      ids, on the other rows of the batch, on how the work is split, on the
 *      entries of the table that the mask leaves out, or on the CPU. This
 *      needs the default floating-point environment (round to nearest; no
 *      flush-to-zero, so no -ffast-math start-up code in the program).
 *
 * Sizes: at most 8,192 heads and 8,192 elements per head.
 */
#ifndef KVFOLIO_KERNELS_H
#define KVFOLIO_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this header's structs and functions. */
#define KVF_KERNEL_ABI 1u

/* ---- Status ------------------------------------------------------------ */

#define KVF_KERNEL_OK              0
#define KVF_KERNEL_ERR_NULL        150 /* a required pointer is NULL */
#define KVF_KERNEL_ERR_STRUCT_SIZE 151 /* too small, or unknown bytes not zero */
#define KVF_KERNEL_ERR_DTYPE       152 /* not one of KVF_KERNEL_DTYPE_* */
#define KVF_KERNEL_ERR_PAGE_TOKENS 153 /* P is not a power of two in 1..256, or above 64 with bits of slots */
#define KVF_KERNEL_ERR_SHAPE       154 /* a size is zero or too large, or H is no multiple of Hk */
#define KVF_KERNEL_ERR_STRIDE      155 /* strides overlap, or the memory exceeds the address space */
#define KVF_KERNEL_ERR_ALIGN       156 /* address or stride no multiple of the element size */
#define KVF_KERNEL_ERR_RANGE       157 /* row, head or token range outside its array */
#define KVF_KERNEL_ERR_TABLE       158 /* table row out of range, or too short for the position */
#define KVF_KERNEL_ERR_PAGE        159 /* page id negative or above N */
#define KVF_KERNEL_ERR_NULL_PAGE   160 /* page 0 where a page must be present */
#define KVF_KERNEL_ERR_SLOT        161 /* slot id in page 0, above page N, or below -1; slot of a move not below P */
#define KVF_KERNEL_ERR_TOKENS      162 /* copy of more than P tokens, or of a page onto itself; move of a part of a group */
#define KVF_KERNEL_ERR_SCRATCH     163 /* scratch buffer too small */
#define KVF_KERNEL_ERR_VALUE       164 /* scale or soft_cap not finite, soft_cap negative, unknown KVF_KERNEL_ISA_*, _NONFINITE_*, _REDUCE_* or flag */
#define KVF_KERNEL_ERR_LAYOUT      165 /* not a layout of the library, or one that this function does not read */
#define KVF_KERNEL_ERR_NONFINITE   166 /* a NaN or an infinity where values are needed */
#define KVF_KERNEL_ERR_SCALE       167 /* a scale that is not finite and above 0 */

/* ---- Element types ----------------------------------------------------- */

#define KVF_KERNEL_DTYPE_F32  1u
#define KVF_KERNEL_DTYPE_F16  2u /* IEEE binary16 */
#define KVF_KERNEL_DTYPE_BF16 3u

/* ---- Instruction sets -------------------------------------------------- */

#define KVF_KERNEL_ISA_BEST     0u /* found out at run time */
#define KVF_KERNEL_ISA_PORTABLE 1u /* what every CPU of the target has */
#define KVF_KERNEL_ISA_AVX2     2u /* AVX2 and F16C; portable where the CPU lacks them */

/* "Up to the end" for row_end and head_end of kvf_kernel_work. */
#define KVF_KERNEL_ALL 0xffffffffu

/* ---- Structs ----------------------------------------------------------- */

/*
 * The pages of one (layer, group).
 *
 * Element e of head h of the token in slot s of page p is at
 *     k + p * k_page_stride + s * k_token_stride + h * k_head_stride + e * element size
 * and likewise for v; d is contiguous. All strides are in bytes and multiples
 * of the element size. Any order of layers, pages, tokens and heads can be
 * described, for example, with D = d * element size,
 *     [page][slot][head][d]           token = Hk * D, head = D
 *     [page][head][slot][d]           token = D,      head = P * D
 *     [page][layer][k or v][slot]...  page = all layers, k and v point into page 0
 * If the three v strides are all 0 they are those of k.
 *
 * Functions that only read pages never write through k and v; cast away const
 * if the memory is const.
 */
typedef struct kvf_kernel_pages {
    uint32_t struct_size;
    uint32_t dtype;         /* KVF_KERNEL_DTYPE_* of K and V */
    uint32_t page_tokens;   /* P */
    uint32_t n_pages;       /* N: ids 1..N are valid */
    uint32_t kv_heads;      /* Hk */
    uint32_t head_dim;      /* d */
    void *k;                /* address of page 0, K */
    void *v;                /* address of page 0, V */
    uint64_t k_page_stride; /* bytes from page p to page p + 1 */
    uint64_t k_token_stride;
    uint64_t k_head_stride;
    uint64_t v_page_stride; /* all three 0 = as k */
    uint64_t v_token_stride;
    uint64_t v_head_stride;
} kvf_kernel_pages;

/*
 * Page tables of a batch: entries [rows][stride], page ids. Column c of a row
 * holds the page of tokens c * P .. c * P + P - 1. 0 = no page. Entries that
 * no kernel needs for the tokens asked for are not looked at, so any pad value
 * will do.
 */
typedef struct kvf_kernel_table {
    uint32_t struct_size;
    uint32_t rows;
    uint32_t stride;        /* entries from one row to the next */
    uint32_t reserved;      /* 0 */
    const int32_t *entries; /* [rows][stride] */
} kvf_kernel_table;

/* Keys and values of one sequence without pages: k and v are [tokens][Hk][d]. */
typedef struct kvf_kernel_contiguous {
    uint32_t struct_size;
    uint32_t dtype;
    uint32_t tokens;
    uint32_t kv_heads;
    uint32_t head_dim;
    uint32_t reserved;      /* 0 */
    const void *k;
    const void *v;
} kvf_kernel_contiguous;

/*
 * What attention computes. The query at position t reads token j iff
 *     j <= t  and  (window == 0  or  t - j < window  or  j < sink_tokens)
 * and the table has a page (not 0) for j. Nothing else is read.
 *     x(j) = scale * dot(q, k(j));  with a soft cap c: x = c * tanh(x / c)
 *     out  = sum of exp(x(j)) v(j) / (sum of exp(x(j)) + exp(sink_logits[h]))
 * where the last term is there only if sink_logits is not NULL. "Sink tokens"
 * (always readable) and "sink logits" (a learned term) are independent.
 */
typedef struct kvf_kernel_attention {
    uint32_t struct_size;
    uint32_t heads;           /* H */
    float scale;              /* 0 = 1 / sqrt(d) */
    float soft_cap;           /* 0 = none */
    uint32_t window;          /* tokens, the query's own included; 0 = no limit */
    uint32_t sink_tokens;     /* first tokens that stay readable outside the window */
    const float *sink_logits; /* [H], or NULL */
    uint32_t isa;             /* KVF_KERNEL_ISA_*; it changes no bit of the result */
    uint32_t reserved;        /* 0 */
} kvf_kernel_attention;

/*
 * Query rows and results. Decode has one row per sequence, chunked prefill
 * one per new token; both may be mixed in one batch. Append the keys and
 * values of the rows' own tokens first.
 * A row with a negative position is padding: its out is 0 and its lse that of
 * no token. A row that reads no token gets out = 0 and lse = -infinity, or
 * sink_logits[h] if there are sink logits.
 */
typedef struct kvf_kernel_queries {
    uint32_t struct_size;
    uint32_t n;                /* rows; 0 is allowed and does nothing */
    const float *q;            /* [n][H][d] */
    const int32_t *positions;  /* [n] absolute position of each row */
    float *out;                /* [n][H][d] */
    const int32_t *table_rows; /* [n] table row of each query row; NULL = row i uses table row i */
    float *lse;                /* [n][H] natural log of the denominator, or NULL */
} kvf_kernel_queries;

/*
 * The share of the batch that one call computes: rows row_begin..row_end - 1
 * and heads head_begin..head_end - 1, with ends given exactly (an empty range
 * does nothing) or as KVF_KERNEL_ALL. Threads may take disjoint shares of the
 * same queries, each with its own scratch. Shares cut at multiples of H / Hk
 * heads are fastest.
 */
typedef struct kvf_kernel_work {
    uint32_t struct_size;
    uint32_t row_begin;
    uint32_t row_end;
    uint32_t head_begin;
    uint32_t head_end;
    uint32_t reserved;       /* 0 */
    float *scratch;          /* scratch_floats floats, contents undefined before and after */
    uint64_t scratch_floats; /* see kvf_cpu_attention_scratch */
} kvf_kernel_work;

/*
 * Quantised pages of one layer. Their bytes are those of a kvf_page_layout,
 * which kvf_layout_make of kvfolio.h writes: page p begins at base +
 * p * page_bytes. K and V have the same head dimension, and are not MLA.
 */
typedef struct kvf_kernel_quant {
    uint32_t struct_size;
    uint32_t n_pages;      /* N: ids 1..N are valid */
    const void *layout;    /* a kvf_page_layout */
    void *base;            /* address of page 0, a multiple of the layout's alignment */
    uint32_t layer;        /* which of the layout's layers */
    uint32_t isa;          /* KVF_KERNEL_ISA_* of all but attention; it changes no bit */
    const float *k_scales; /* scales that lie outside pages, [layers][static_scales of K]; NULL = none */
    const float *v_scales;
} kvf_kernel_quant;

/*
 * Rows that span two pools: columns begin[r] .. end[r] - 1 of table row r are
 * pages of the quantised pool, all others of the exact one. NULL: from 0, and
 * to the end. kvf_seq_sealed_columns tells both for a group with a sealed pool.
 */
typedef struct kvf_kernel_split {
    uint32_t struct_size;
    const uint32_t *begin; /* [table rows], or NULL */
    const uint32_t *end;   /* [table rows], or NULL */
} kvf_kernel_split;

/* A full exact page, and the quantised page that gets its tokens. */
typedef struct kvf_kernel_seal {
    uint32_t source;
    uint32_t target;
} kvf_kernel_seal;

/*
 * Which slots of table rows hold live tokens, and at which positions. Slot s of
 * a row is slot s % P of the page in column s / P; a slot is live iff it is
 * below used, its column has a page (not 0), its bit in `valid` is set and its
 * position is not negative. Live slots are read in the order of slots, under
 * the mask of kvf_kernel_attention with their positions for j. A live slot
 * that the mask leaves out, and any other, may hold anything, NaN included;
 * entries of columns from which nothing is read are not looked at. Result bits
 * are those of a packed row with the same tokens in the same order.
 *
 *   valid      bit o of column c is slot c * P + o. P is at most 64
 *              (KVF_KERNEL_ERR_PAGE_TOKENS). NULL = all bits set.
 *   positions  distinct among the live slots of a row, in any order, so that
 *              dead slots can be used again. NULL = slot s is at first + s.
 *   first      without positions only. NULL = 0: slot and position are the
 *              same, which is so for rows that only ever got holes. After
 *              compaction, first = next position - slots in use: right for what
 *              is appended after it and not too small for what was there, so
 *              that nothing hides a token from later queries; but a window then
 *              counts slots, and sink_tokens needs positions.
 *   used       what lies behind is not looked at. NULL = stride * P. Without
 *              positions, the slots of the queries themselves are below it
 *              (KVF_KERNEL_ERR_TABLE).
 */
typedef struct kvf_kernel_slots {
    uint32_t struct_size;
    const uint64_t *valid;    /* [rows][stride] bits, or NULL */
    const int32_t *positions; /* [rows][stride * P]; negative = no token; or NULL */
    const int32_t *first;     /* [rows], not negative (KVF_KERNEL_ERR_RANGE); or NULL */
    const uint32_t *used;     /* [rows] slots in use; or NULL */
} kvf_kernel_slots;

/* What becomes of the probabilities of the H / Hk heads of a group. */
#define KVF_KERNEL_REDUCE_MEAN 0u
#define KVF_KERNEL_REDUCE_MAX  1u
#define KVF_KERNEL_REDUCE_SUM  2u

#define KVF_KERNEL_SCORES_STORE       1u /* set the sums of the queries' rows to 0 first */
#define KVF_KERNEL_SCORES_WITHOUT_OWN 2u /* no sum gets the slot at the query's own position */

/*
 * What queries paid attention to. A probability is exp(x(j)) over the
 * denominator that also divides out: the sink logit is in it. For each query
 * row of the share, ascending, and each slot s that it reads, with r its table
 * row and g a KV head,
 *     sums[r * row_stride + g * head_stride + s] += reduced over the group
 *     probabilities[(row * H + h) * slots + s]    = that of query head h
 * Slots that are not read get 0 in probabilities, and nothing in sums. Bits do
 * not depend on the batch nor on how it is split into calls that take the rows
 * of a table row in the same order. Calls that run at the same time must not
 * share sums: give them different KV heads or table rows. With sums, shares are
 * cut at multiples of H / Hk heads (KVF_KERNEL_ERR_RANGE).
 */
typedef struct kvf_kernel_scores {
    uint32_t struct_size;
    uint32_t reduce;       /* KVF_KERNEL_REDUCE_*, for sums */
    uint32_t flags;        /* KVF_KERNEL_SCORES_*; 0 = added, own token included */
    uint32_t slots;        /* slots of each row; more than any that is read (KVF_KERNEL_ERR_RANGE) */
    float *sums;           /* [table rows][Hk][slots], or NULL */
    float *probabilities;  /* [n][H][slots], or NULL */
    uint64_t row_stride;   /* floats from table row to table row of sums; 0 = Hk * head_stride */
    uint64_t head_stride;  /* floats from KV head to KV head of sums; 0 = slots */
} kvf_kernel_scores;

/* What encoders do with NaN and infinity. */
#define KVF_KERNEL_NONFINITE_REJECT   0u /* KVF_KERNEL_ERR_NONFINITE, nothing written */
#define KVF_KERNEL_NONFINITE_SANITISE 1u /* the nearest finite value of the group; FP8 keeps NaN */

/* One page copy: the first `tokens` tokens of page src go to page dst. */
typedef struct kvf_kernel_copy {
    uint32_t src;
    uint32_t dst;
    uint32_t tokens; /* 0..P */
} kvf_kernel_copy;

#define KVF_KERNEL_KEYS_REMOVE 1u /* keys leave unit_sums instead of joining them */

/*
 * What is asked of keys k; what is NULL is not asked for. Of each slot s and KV
 * head g:
 *     norms[g * head_stride + s] = |k|
 *     dots[g * head_stride + s]  = dot(k, vectors[g])
 *     unit_sums[g]              += k / |k|, slots ascending
 * A key whose length is 0 or not finite adds nothing to unit_sums. With
 * the unit_sums of earlier calls for vectors, the cosine of a key and their mean
 * direction is dots over norms, over the length of unit_sums[g].
 */
typedef struct kvf_kernel_keys {
    uint32_t struct_size;
    uint32_t isa;         /* KVF_KERNEL_ISA_*; it changes no bit */
    uint32_t flags;       /* KVF_KERNEL_KEYS_* */
    uint32_t slots;       /* slots of each row of norms and dots (KVF_KERNEL_ERR_RANGE) */
    float *norms;         /* [Hk][slots], or NULL */
    float *dots;          /* [Hk][slots], or NULL */
    const float *vectors; /* [Hk][d], for dots */
    float *unit_sums;     /* [Hk][d], or NULL */
    uint64_t head_stride; /* floats from KV head to KV head of norms and dots; 0 = slots */
} kvf_kernel_keys;

/* Queries, and the extremes of keys by channel that kvf_cpu_key_extremes wrote. */
typedef struct kvf_kernel_bounds {
    uint32_t struct_size;
    uint32_t isa;          /* KVF_KERNEL_ISA_*; it changes no bit */
    uint32_t n;            /* query rows */
    uint32_t heads;        /* H */
    uint32_t kv_heads;     /* Hk */
    uint32_t head_dim;     /* d */
    uint32_t columns;
    uint32_t reserved;     /* 0 */
    const float *q;        /* [n][H][d] */
    const float *least;    /* [columns][Hk][d] */
    const float *greatest; /* [columns][Hk][d] */
    float *out;            /* [n][H][columns] */
} kvf_kernel_bounds;

/* One token moved: slot src_slot of page src_page goes to slot dst_slot of page dst_page; slots are below P. */
typedef struct kvf_kernel_move {
    uint32_t src_page;
    uint32_t src_slot;
    uint32_t dst_page;
    uint32_t dst_slot;
} kvf_kernel_move;

/* ---- Functions --------------------------------------------------------- */

/* Version of the linked library; compare with KVF_KERNEL_ABI. */
uint32_t kvf_kernels_abi(void);

/* Name of a status, such as "KVF_KERNEL_ERR_SLOT"; never NULL. */
const char *kvf_kernel_status_name(int32_t status);

/*
 * Write n rows of keys and values, k and v [n][Hk][d], to their slots
 * [n]; a row whose slot is -1 is skipped. Rounds to nearest even for F16 and
 * BF16. If a slot occurs twice the later row stays. n = 0 does nothing.
 */
int32_t kvf_cpu_append(const kvf_kernel_pages *pages, const float *k, const float *v,
                       const int64_t *slots, uint32_t n);

/*
 * Copy pages in list order (copy-on-write): for each entry the keys and values
 * of the first `tokens` tokens of all heads, as bytes. Tokens of dst beyond
 * that, and any padding between rows, keep their contents.
 */
int32_t kvf_cpu_copy_pages(const kvf_kernel_pages *pages, const kvf_kernel_copy *copies,
                           uint32_t n);

/*
 * Move tokens in list order, the keys and values of all heads as bytes: what a
 * compaction plan asks for. A list in ascending order whose targets come no
 * later than their sources is safe in place; a token that is moved onto itself
 * stays. Slots that are sources only keep their contents.
 */
int32_t kvf_cpu_move_rows(const kvf_kernel_pages *pages, const kvf_kernel_move *moves, uint32_t n);

/*
 * Read tokens token_begin..token_end - 1 of a table row into k and v, each
 * [token_end - token_begin][Hk][d]. Every page of the range must be present
 * (KVF_KERNEL_ERR_NULL_PAGE).
 */
int32_t kvf_cpu_gather(const kvf_kernel_pages *pages, const kvf_kernel_table *table, uint32_t row,
                       uint32_t token_begin, uint32_t token_end, float *k, float *v);

/* The reverse of kvf_cpu_gather: write k and v to the pages of a table row. */
int32_t kvf_cpu_scatter(const kvf_kernel_pages *pages, const kvf_kernel_table *table, uint32_t row,
                        uint32_t token_begin, uint32_t token_end, const float *k, const float *v);

/*
 * Scratch, in floats, that is enough for one call of kvf_cpu_attention or
 * kvf_cpu_attention_contiguous whose positions are all below max_tokens.
 * Non-decreasing in max_tokens. At most 4 * (min(max_tokens, window +
 * sink_tokens) + 15).
 */
int32_t kvf_cpu_attention_scratch(uint32_t kv_heads, const kvf_kernel_attention *params,
                                  uint32_t max_tokens, uint64_t *scratch_floats);

/* Causal attention of the queries over the pages of their table rows. */
int32_t kvf_cpu_attention(const kvf_kernel_pages *pages, const kvf_kernel_table *table,
                          const kvf_kernel_attention *params, const kvf_kernel_queries *queries,
                          const kvf_kernel_work *work);

/*
 * The same arithmetic, bit for bit, over one sequence without pages. All
 * positions must be below kv->tokens; table_rows is ignored.
 */
int32_t kvf_cpu_attention_contiguous(const kvf_kernel_contiguous *kv,
                                     const kvf_kernel_attention *params,
                                     const kvf_kernel_queries *queries,
                                     const kvf_kernel_work *work);

/*
 * Scratch, in floats, that is enough for one call of kvf_cpu_attention_slots
 * none of whose queries reads more than max_slots slots.
 */
int32_t kvf_cpu_attention_slots_scratch(uint32_t kv_heads, const kvf_kernel_attention *params,
                                        uint32_t max_slots, uint64_t *scratch_floats);

/*
 * Causal attention over the live slots of table rows, and on the same pass
 * their scores. slots may be NULL: slot and position are the same, and all are
 * live, as in kvf_cpu_attention. scores may be NULL: none.
 */
int32_t kvf_cpu_attention_slots(const kvf_kernel_pages *pages, const kvf_kernel_table *table,
                                const kvf_kernel_slots *slots, const kvf_kernel_attention *params,
                                const kvf_kernel_queries *queries, const kvf_kernel_scores *scores,
                                const kvf_kernel_work *work);

/*
 * Look at the keys of the live slots slot_begin..slot_end - 1 of a table row,
 * for policies that need no attention. slots may be NULL, as above; its first
 * counts for nothing. What belongs to other slots is left alone.
 */
int32_t kvf_cpu_keys(const kvf_kernel_pages *pages, const kvf_kernel_table *table,
                     const kvf_kernel_slots *slots, uint32_t row, uint32_t slot_begin,
                     uint32_t slot_end, const kvf_kernel_keys *keys);

/*
 * Least and greatest key by channel over the live slots of each page, for
 * columns column_begin..column_end - 1 of a table row; least and greatest are
 * [column_end][Hk][d], of which those columns are written. A column without a
 * live slot gets +infinity and -infinity, a channel with a NaN gets NaN. To be
 * made anew when a slot of the page is written; a token that died may stay in.
 */
int32_t kvf_cpu_key_extremes(const kvf_kernel_pages *pages, const kvf_kernel_table *table,
                             const kvf_kernel_slots *slots, uint32_t row, uint32_t column_begin,
                             uint32_t column_end, uint32_t isa, float *least, float *greatest);

/*
 * For each query head and page the sum over channels of the greater of q *
 * least and q * greatest: not below dot(q, k), as attention computes it, of any
 * key of the page. It is rounded as that is, and so needs no slack. With scale
 * < 0 it bounds nothing. A column without a live slot gets -infinity; where a
 * NaN comes up the bound is +infinity. To leave pages out of attention, give it
 * a table with 0 in their columns.
 */
int32_t kvf_cpu_page_bounds(const kvf_kernel_bounds *bounds);

/*
 * Convert n elements between float and an element type, with the rounding of
 * kvf_cpu_append; for callers that keep contiguous F16 or BF16 rows.
 */
int32_t kvf_cpu_from_f32(uint32_t dtype, const float *src, void *dst, uint64_t n);
int32_t kvf_cpu_to_f32(uint32_t dtype, const void *src, float *dst, uint64_t n);

/* ---- Quantised pages --------------------------------------------------- */

/*
 * Scratch, in floats, for kvf_cpu_quant_append, _seal and _gather: one head of
 * a page, P * d.
 */
int32_t kvf_cpu_quant_scratch(const void *layout, uint64_t *scratch_floats);

/*
 * Quantise n rows, k and v [n][Hk][d], into their slots [n]; -1 is skipped.
 * Only for layouts whose groups lie along channels (KVF_KERNEL_ERR_LAYOUT
 * otherwise): a row is complete by itself. n calls with one row write the
 * same bytes as one call with n. Where rotating finite values overflows, their
 * groups are saturated, here and in kvf_cpu_quant_seal.
 */
int32_t kvf_cpu_quant_append(const kvf_kernel_quant *quant, uint32_t on_non_finite, const float *k,
                             const float *v, const int64_t *slots, uint32_t n, float *scratch,
                             uint64_t scratch_floats);

/* Quantise all P tokens of full exact pages into pages of the quantised pool. */
int32_t kvf_cpu_quant_seal(const kvf_kernel_pages *exact, const kvf_kernel_quant *quant,
                           uint32_t on_non_finite, const kvf_kernel_seal *seals, uint32_t n,
                           float *scratch, uint64_t scratch_floats);

/* Copy pages in list order, the whole layer of each: groups stay whole. */
int32_t kvf_cpu_quant_copy_pages(const kvf_kernel_quant *quant, const kvf_kernel_copy *copies,
                                 uint32_t n);

/*
 * Move tokens of the layer in list order, codes, scales and zeros. Where groups
 * lie along tokens each G moves of the list, G being the larger of K and V, take
 * the G tokens of one group in order to the places of another
 * (KVF_KERNEL_ERR_TOKENS).
 */
int32_t kvf_cpu_quant_move_rows(const kvf_kernel_quant *quant, const kvf_kernel_move *moves,
                                uint32_t n);

/*
 * Dequantise tokens token_begin..token_end - 1 of a table row, all of whose
 * pages are quantised, into k and v, each [token_end - token_begin][Hk][d].
 * Where groups lie along tokens, the range begins and ends at groups. On
 * KVF_KERNEL_ERR_SCALE, a scale that no encoder writes, the rows before stay.
 */
int32_t kvf_cpu_quant_gather(const kvf_kernel_quant *quant, const kvf_kernel_table *table,
                             uint32_t row, uint32_t token_begin, uint32_t token_end, float *k,
                             float *v, float *scratch, uint64_t scratch_floats);

/* As kvf_cpu_attention_scratch, for kvf_cpu_quant_attention. */
int32_t kvf_cpu_quant_attention_scratch(const kvf_kernel_quant *quant,
                                        const kvf_kernel_attention *params, uint32_t max_tokens,
                                        uint64_t *scratch_floats);

/*
 * Causal attention over table rows that span exact and quantised pages. Each
 * quantised value counts as what it decodes to, so the result is bit for bit
 * that of kvf_cpu_attention over decoded pages. exact may be NULL: then all
 * pages are quantised.
 */
int32_t kvf_cpu_quant_attention(const kvf_kernel_pages *exact, const kvf_kernel_quant *quant,
                                const kvf_kernel_split *split, const kvf_kernel_table *table,
                                const kvf_kernel_attention *params,
                                const kvf_kernel_queries *queries, const kvf_kernel_work *work);

/* ---- Quantised rows in plain buffers ------------------------------------ */

/*
 * T rows of d elements, quantised. The numbers of formats and axes are those
 * of kvfolio.h. No page, no table: for tests, files and transfers.
 *
 *   element          KVF_ELEMENT_  scales                    zeros
 *   INT8, INT4, INT2 4, 5, 6       f16                       f16
 *   INT8_SYMMETRIC   7             f16                       -
 *   FP8_E4M3FN       8             f32, or `scale` for all   -
 *   Q8_0, Q4_0       11, 12        in the codes, f16         -
 *
 * Axis of the first four: KVF_AXIS_TOKEN (1), groups of G channels of one row,
 * or KVF_AXIS_CHANNEL (2), groups of G tokens of one channel. G is 16, 32, 64
 * or 128 and divides d, or T; or 0 = d, along channels only. FP8: as the
 * former, any G that divides d; the axis counts for nothing. Codes are packed,
 * the first in the lowest bits.
 *
 *            along channels   along tokens
 *   codes    [T][d]           [T / G][d][G]
 *   scales   [T][d / G]       [T / G][d]       zeros likewise
 */
typedef struct kvf_kernel_rows {
    uint32_t struct_size;
    uint32_t element;       /* KVF_ELEMENT_* */
    uint32_t axis;          /* KVF_AXIS_* */
    uint32_t group;         /* G; 0 = d */
    uint32_t dim;           /* d */
    uint32_t isa;           /* KVF_KERNEL_ISA_*; it changes no bit */
    uint32_t on_non_finite; /* KVF_KERNEL_NONFINITE_*, for kvf_cpu_quantize */
    float scale;            /* FP8: the one scale; 0 = one for each group, computed */
    uint64_t tokens;        /* T */
    void *codes;
    void *scales; /* NULL where there are none */
    void *zeros;  /* NULL where there are none */
} kvf_kernel_rows;

/*
 * Quantise x, [T][d] of KVF_KERNEL_DTYPE_*. It is read once: on
 * KVF_KERNEL_ERR_NONFINITE (KVF_KERNEL_NONFINITE_REJECT) what was quantised
 * before stays. `report` may be NULL, or gets two numbers: groups beyond f16,
 * which were saturated, and elements that were not finite and were replaced.
 */
int32_t kvf_cpu_quantize(const kvf_kernel_rows *rows, uint32_t dtype, const void *x,
                         uint64_t *report);

/*
 * Dequantise into x, [T][d]: to nearest, and what is beyond the type
 * saturates. codes, scales and zeros are only read. On KVF_KERNEL_ERR_SCALE, a
 * scale that no encoder writes, what was dequantised before stays.
 */
int32_t kvf_cpu_dequantize(const kvf_kernel_rows *rows, uint32_t dtype, void *x);

#ifdef __cplusplus
}
#endif

#endif /* KVFOLIO_KERNELS_H */
