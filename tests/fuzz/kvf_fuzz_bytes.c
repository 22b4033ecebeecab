/* kvf_fuzz_bytes.c - reads the byte form of scenarios; total: every byte string is one */
#include <string.h>

#include "kvf_fuzz_bytes.h"

enum { ESCAPE = 0xF0, MOST_RUN = 1 << 12, MOST_TOKENS = 1 << 16, MOST_POSITION = 1 << 16 };

uint32_t kvf_fuzz_byte(kvf_fuzz_input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

/* A number up to `most`; below ESCAPE a byte counts modulo `base`. */
static uint64_t wide(kvf_fuzz_input *in, uint32_t base, uint64_t most)
{
    uint32_t first = kvf_fuzz_byte(in), shift;
    uint64_t value = 0;

    if (first < ESCAPE) {
        value = first % base;
    } else {
        for (shift = 0; shift < 64; shift += 7) {
            uint32_t next = kvf_fuzz_byte(in);
            value |= (uint64_t)(next & 0x7F) << shift;
            if (!(next & 0x80))
                break;
        }
    }
    return value < most ? value : most;
}

uint32_t kvf_fuzz_num(kvf_fuzz_input *in, uint32_t base, uint32_t most)
{
    return (uint32_t)wide(in, base, most);
}

uint32_t kvf_fuzz_flag(kvf_fuzz_input *in, uint32_t base)
{
    return kvf_fuzz_num(in, base, 1);
}

static uint32_t label(kvf_fuzz_input *in, uint32_t base)
{
    return kvf_fuzz_num(in, base, KVF_FUZZ_LABELS - 1);
}

/* --- the parts of ops --- */

/* Runs of consecutive tokens, put behind those that the op has. Answers how many there are now. */
static uint32_t read_tokens(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    uint32_t runs = kvf_fuzz_num(in, 4, 255), all = 0, i;

    while (runs--) {
        uint32_t first = kvf_fuzz_num(in, 4, UINT32_MAX - MOST_RUN), len = kvf_fuzz_num(in, 18, MOST_RUN);
        for (i = 0; i < len && all < MOST_TOKENS; i++, all++)
            if (op->n_tokens < KVF_FUZZ_TOKENS)
                op->tokens[op->n_tokens++] = first + i;
    }
    op->has_tokens = 1;
    return op->n_tokens;
}

/* At least `least` spans, each beginning a little behind the one before. */
static void read_spans(kvf_fuzz_input *in, const kvf_fuzz_spec *spec, uint32_t least, kvf_fuzz_op *op)
{
    uint32_t n = kvf_fuzz_num(in, spec->config.key_parts == 0 ? 1 : 3, 255) + least, end = 0;

    while (n--) {
        kvf_media_span span;
        span.start = end + kvf_fuzz_num(in, 12, UINT32_MAX);
        span.length = kvf_fuzz_num(in, 6, UINT32_MAX);
        span.digest[0] = span.digest[1] = span.digest[2] = span.digest[3] = kvf_fuzz_num(in, 2, UINT32_MAX);
        end = span.start + span.length;
        if (op->n_spans < KVF_FUZZ_SPANS)
            op->spans[op->n_spans++] = span;
    }
}

/* Tokens of a prompt and how much of it may be hit: all but one, all, or a number. */
static void read_query(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    uint32_t len = read_tokens(in, op), code = kvf_fuzz_num(in, 2, MOST_POSITION + 2);
    op->count = code == 0 ? len - (len > 0) : code == 1 ? len : code - 2;
}

static void read_position(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    op->back = kvf_fuzz_num(in, 4, 3) != 0;
    op->position = kvf_fuzz_num(in, 20, MOST_POSITION);
}

static void read_time(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    op->timed = 1;
    op->is_absolute = kvf_fuzz_num(in, 1, 1);
    op->time = wide(in, 3, UINT64_MAX);
}

static kvf_fuzz_option read_option(kvf_fuzz_input *in, uint32_t base)
{
    uint32_t code = kvf_fuzz_num(in, base, MOST_POSITION);
    kvf_fuzz_option option;
    option.some = code > 0;
    option.value = code - (code > 0);
    return option;
}

/* Room in a plan: a count and tokens, which need not agree. */
static void read_room(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    uint32_t code;

    op->seq = label(in, 8);
    code = kvf_fuzz_num(in, 3, 3); /* 0 and 1: as many as are given; 2: without tokens; 3: a count apart from them */
    if (code >= 2)
        op->count = kvf_fuzz_num(in, 20, MOST_POSITION);
    if (code != 2)
        read_tokens(in, op);
    if (code < 2)
        op->count = op->n_tokens;
}

static void read_accepts(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    uint32_t i;

    op->n_accepts = kvf_fuzz_num(in, 3, 63);
    for (i = 0; i < op->n_accepts; i++) {
        kvf_fuzz_accept *accept = &op->accepts[i];
        accept->accepted = read_option(in, 6);
        accept->verified = read_option(in, 3);
        accept->first = op->n_tokens;
        accept->has_tokens = kvf_fuzz_flag(in, 1);
        accept->n_tokens = accept->has_tokens ? read_tokens(in, op) - accept->first : 0;
    }
}

static void read_io(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    op->transfer = label(in, 3);
    op->flag = kvf_fuzz_num(in, 4, 3) == 3;
    op->seq = op->ticket = label(in, op->flag ? 4 : 8);
    op->begin = kvf_fuzz_num(in, 8, MOST_POSITION);
    op->end = op->begin + kvf_fuzz_num(in, 24, MOST_POSITION);
    op->direction = kvf_fuzz_flag(in, 2); /* in the order of KVF_IO_* */
}

static void read_children(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    uint32_t i;
    for (i = 0; i < op->n_children; i++)
        op->children[i] = (uint8_t)label(in, 8);
}

/* Frequent kinds have several places, behind the first of each. */
static kvf_fuzz_kind read_kind(kvf_fuzz_input *in, uint32_t version)
{
    static const uint8_t more[] = {
        KVF_FUZZ_OPEN, KVF_FUZZ_OPEN, KVF_FUZZ_OPEN_TICKET, KVF_FUZZ_OPEN_TICKET, KVF_FUZZ_FORK, KVF_FUZZ_TRUNCATE,
        KVF_FUZZ_CLOSE, KVF_FUZZ_CLOSE, KVF_FUZZ_CLOSE, KVF_FUZZ_BEGIN, KVF_FUZZ_ADD, KVF_FUZZ_ADD, KVF_FUZZ_ADD,
        KVF_FUZZ_FINISH, KVF_FUZZ_FINISH, KVF_FUZZ_COMMIT, KVF_FUZZ_COMMIT, KVF_FUZZ_RESERVE, KVF_FUZZ_APPEND,
        KVF_FUZZ_APPEND, KVF_FUZZ_APPEND, KVF_FUZZ_APPEND, KVF_FUZZ_APPEND, KVF_FUZZ_APPEND, KVF_FUZZ_APPEND,
        KVF_FUZZ_VERIFY, KVF_FUZZ_MATCH, KVF_FUZZ_MATCH, KVF_FUZZ_MATCH, KVF_FUZZ_MATCH, KVF_FUZZ_MATCH, KVF_FUZZ_DROP,
        KVF_FUZZ_EVICT, KVF_FUZZ_PUBLISH
    };
    uint32_t kinds = version < 3 ? KVF_FUZZ_MOVE + 1 : version < 4 ? KVF_FUZZ_SEAL + 1 : KVF_FUZZ_REMOVE + 1;
    uint32_t code = kvf_fuzz_byte(in) % (kinds + (uint32_t)sizeof more);
    return (kvf_fuzz_kind)(code < kinds ? code : more[code - kinds]);
}

void kvf_fuzz_read_op(kvf_fuzz_input *in, const kvf_fuzz_spec *spec, kvf_fuzz_op *op)
{
    uint32_t spaces = spec->n_namespaces, pools = spec->config.n_pools;
    uint32_t classes = spec->config.classes > 0 ? spec->config.classes : 1;
    uint32_t groups = spec->config.n_groups; /* no more than KVF_FUZZ_GROUPS */

    op->has_tokens = op->n_tokens = op->n_spans = op->n_children = op->n_accepts = op->timed = op->flag = 0;
    op->kind = read_kind(in, spec->version);
    switch (op->kind) {
    case KVF_FUZZ_OPEN:
        op->seq = label(in, 8);
        op->ns = kvf_fuzz_num(in, spaces, UINT16_MAX);
        op->eviction_class = kvf_fuzz_num(in, classes, UINT8_MAX);
        read_spans(in, spec, 0, op);
        break;
    case KVF_FUZZ_OPEN_TICKET:
        op->seq = label(in, 8);
        op->ticket = label(in, 4);
        op->eviction_class = kvf_fuzz_num(in, classes, UINT8_MAX);
        break;
    case KVF_FUZZ_ADD_SPANS:
        op->seq = label(in, 8);
        read_spans(in, spec, 1, op);
        break;
    case KVF_FUZZ_FORK:
        op->seq = label(in, 8);
        op->n_children = kvf_fuzz_num(in, 3, KVF_FUZZ_CHILDREN - 1) + 1;
        read_children(in, op);
        read_position(in, op);
        break;
    case KVF_FUZZ_TRUNCATE:
    case KVF_FUZZ_VERIFY:
        op->seq = label(in, 8);
        read_position(in, op);
        break;
    case KVF_FUZZ_CLOSE:
        op->seq = label(in, 8);
        op->flag = kvf_fuzz_flag(in, 2);
        break;
    case KVF_FUZZ_BEGIN:
    case KVF_FUZZ_ADVANCE:
        read_time(in, op);
        break;
    case KVF_FUZZ_ADD:
    case KVF_FUZZ_RESERVE:
        read_room(in, op);
        break;
    case KVF_FUZZ_COMMIT: read_accepts(in, op); break;
    case KVF_FUZZ_APPEND:
        op->seq = label(in, 8);
        read_tokens(in, op);
        break;
    case KVF_FUZZ_PUBLISH: op->count = kvf_fuzz_num(in, 8, MOST_POSITION); break;
    case KVF_FUZZ_LOOKUP:
    case KVF_FUZZ_MATCH:
        if (op->kind == KVF_FUZZ_MATCH)
            op->ticket = label(in, 4);
        op->ns = kvf_fuzz_num(in, spaces, UINT16_MAX);
        read_query(in, op);
        read_spans(in, spec, 0, op);
        if (op->kind == KVF_FUZZ_MATCH && kvf_fuzz_flag(in, 1))
            read_time(in, op);
        break;
    case KVF_FUZZ_DROP: op->ticket = label(in, 4); break;
    case KVF_FUZZ_EVICT:
        op->pool = kvf_fuzz_num(in, pools, UINT16_MAX);
        op->count = kvf_fuzz_num(in, 6, MOST_POSITION);
        break;
    case KVF_FUZZ_CLEAR: {
        uint32_t code = kvf_fuzz_num(in, spaces + 1, UINT16_MAX);
        op->flag = code == 0;
        op->ns = code - (code > 0);
        break;
    }
    case KVF_FUZZ_IO_BEGIN: read_io(in, op); break;
    case KVF_FUZZ_IO_END:
        op->transfer = label(in, 3);
        op->flag = kvf_fuzz_flag(in, 2);
        break;
    case KVF_FUZZ_LEASE:
        op->lease = label(in, 4);
        op->seq = label(in, 8);
        op->count = kvf_fuzz_num(in, 24, MOST_POSITION);
        read_time(in, op);
        break;
    case KVF_FUZZ_END_LEASE: op->lease = label(in, 4); break;
    case KVF_FUZZ_SET_CLASS:
    case KVF_FUZZ_MOVE:
        op->ns = kvf_fuzz_num(in, spaces, UINT16_MAX);
        read_tokens(in, op);
        if (op->kind == KVF_FUZZ_MOVE)
            op->flag = kvf_fuzz_flag(in, 2);
        else
            op->eviction_class = kvf_fuzz_num(in, classes, UINT8_MAX);
        break;
    case KVF_FUZZ_SET_QUOTA:
        op->ns = kvf_fuzz_num(in, spaces, UINT16_MAX);
        op->pool = kvf_fuzz_num(in, pools, UINT16_MAX);
        op->count = kvf_fuzz_num(in, 12, MOST_POSITION);
        break;
    case KVF_FUZZ_CLOSE_SPACE:
    case KVF_FUZZ_OPEN_SPACE: op->ns = kvf_fuzz_num(in, spaces, UINT16_MAX); break;
    case KVF_FUZZ_EXPORT:
        op->n_children = kvf_fuzz_num(in, 4, KVF_FUZZ_CHILDREN - 1);
        read_children(in, op);
        break;
    case KVF_FUZZ_RING:
    case KVF_FUZZ_SEAL:
        op->seq = label(in, 8);
        op->group = kvf_fuzz_num(in, groups, UINT16_MAX);
        op->count = kvf_fuzz_num(in, op->kind == KVF_FUZZ_RING ? 12 : 6, MOST_POSITION);
        break;
    case KVF_FUZZ_REMOVE:
        op->seq = label(in, 8);
        op->count = kvf_fuzz_num(in, 6, MOST_POSITION);
        op->group = kvf_fuzz_num(in, 255, UINT8_MAX); /* bits of columns */
        break;
    case KVF_FUZZ_FINISH:
    case KVF_FUZZ_CANCEL:
    case KVF_FUZZ_ABORT:
    case KVF_FUZZ_DRAIN:
    case KVF_FUZZ_CHECK:
        break;
    }
}
