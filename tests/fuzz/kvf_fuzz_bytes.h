/*
 * kvf_fuzz_bytes.h - the byte form of scenarios, versions 1 to 4, as C structs
 *
 * Lists that are longer than the arrays here are read to their end and kept to what fits.
 */
#ifndef KVF_FUZZ_BYTES_H
#define KVF_FUZZ_BYTES_H

#include "kvfolio.h"

enum {
    KVF_FUZZ_POOLS = 16,
    KVF_FUZZ_GROUPS = 32,
    KVF_FUZZ_NAMESPACES = 64,
    KVF_FUZZ_LABELS = 256,
    KVF_FUZZ_TOKENS = 4096,
    KVF_FUZZ_SPANS = 16,
    KVF_FUZZ_CHILDREN = 64,
    KVF_FUZZ_ACCEPTS = 256
};

/* What is left to read. Past the end every byte is 0. */
typedef struct kvf_fuzz_input {
    const uint8_t *at;
    size_t left;
} kvf_fuzz_input;

/* A configuration in the words of the C interface, but for limits, where 0 = large enough. */
typedef struct kvf_fuzz_spec {
    kvf_pool_config pools[KVF_FUZZ_POOLS];
    kvf_group_config groups[KVF_FUZZ_GROUPS];
    kvf_namespace_key namespaces[KVF_FUZZ_NAMESPACES];
    kvf_config config; /* arrays and counts set, the limits as read */
    uint32_t version, n_namespaces;
    int fits; /* 0 = more groups than this harness keeps */
} kvf_fuzz_spec;

typedef enum kvf_fuzz_kind {
    KVF_FUZZ_OPEN, KVF_FUZZ_OPEN_TICKET, KVF_FUZZ_FORK, KVF_FUZZ_TRUNCATE, KVF_FUZZ_CLOSE, KVF_FUZZ_BEGIN, KVF_FUZZ_ADD,
    KVF_FUZZ_FINISH, KVF_FUZZ_CANCEL, KVF_FUZZ_COMMIT, KVF_FUZZ_ABORT, KVF_FUZZ_RESERVE, KVF_FUZZ_APPEND,
    KVF_FUZZ_VERIFY, KVF_FUZZ_PUBLISH, KVF_FUZZ_LOOKUP, KVF_FUZZ_MATCH, KVF_FUZZ_DROP, KVF_FUZZ_EVICT, KVF_FUZZ_CLEAR,
    KVF_FUZZ_IO_BEGIN, KVF_FUZZ_IO_END, KVF_FUZZ_ADVANCE, KVF_FUZZ_LEASE, KVF_FUZZ_SET_CLASS, KVF_FUZZ_SET_QUOTA,
    KVF_FUZZ_DRAIN, KVF_FUZZ_CHECK, KVF_FUZZ_ADD_SPANS, KVF_FUZZ_END_LEASE, KVF_FUZZ_MOVE,
    KVF_FUZZ_CLOSE_SPACE, KVF_FUZZ_OPEN_SPACE, KVF_FUZZ_EXPORT, KVF_FUZZ_RING, KVF_FUZZ_SEAL, /* not before version 3 */
    KVF_FUZZ_REMOVE /* not before version 4 */
} kvf_fuzz_kind;

/* An optional number. */
typedef struct kvf_fuzz_option {
    uint32_t some, value;
} kvf_fuzz_option;

/* What one sequence of a plan accepts; its ids are `n_tokens` of the op's tokens from `first` on. */
typedef struct kvf_fuzz_accept {
    kvf_fuzz_option accepted, verified;
    uint32_t has_tokens, first, n_tokens;
} kvf_fuzz_accept;

/* One op. Only the fields of its kind have a meaning. Labels index the harness's handles. */
typedef struct kvf_fuzz_op {
    kvf_fuzz_kind kind;
    uint32_t seq, ticket, transfer, lease, ns, pool, group, eviction_class;
    uint32_t count;               /* tokens, pages, entries, columns, a budget, or the limit of a query */
    uint32_t begin, end;          /* a range of tokens */
    uint32_t flag;                /* discard, load, failed, hot, all namespaces, or: the owner is a ticket */
    uint32_t direction;           /* KVF_IO_* */
    uint32_t back, position;      /* a position, from the end if `back` */
    uint32_t is_absolute, timed;  /* a time, if `timed` */
    uint64_t time;
    uint32_t has_tokens, n_tokens, n_spans, n_children, n_accepts;
    kvf_token tokens[KVF_FUZZ_TOKENS];
    kvf_media_span spans[KVF_FUZZ_SPANS];
    uint8_t children[KVF_FUZZ_CHILDREN]; /* of a fork; rows of an export */
    kvf_fuzz_accept accepts[KVF_FUZZ_ACCEPTS];
} kvf_fuzz_op;

/* One byte; a number up to `most`, one byte below `base`; 0 or 1. */
uint32_t kvf_fuzz_byte(kvf_fuzz_input *in);
uint32_t kvf_fuzz_num(kvf_fuzz_input *in, uint32_t base, uint32_t most);
uint32_t kvf_fuzz_flag(kvf_fuzz_input *in, uint32_t base);

/* In kvf_fuzz_spec.c. */
void kvf_fuzz_read_spec(kvf_fuzz_input *in, kvf_fuzz_spec *spec);
void kvf_fuzz_read_op(kvf_fuzz_input *in, const kvf_fuzz_spec *spec, kvf_fuzz_op *op);

#endif
