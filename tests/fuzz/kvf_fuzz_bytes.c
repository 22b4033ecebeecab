/* kvf_fuzz_bytes.c - reads the byte form of scenarios; total: every byte string is one */
#include <string.h>

#include "kvf_fuzz_bytes.h"

enum { ESCAPE = 0xF0, MOST_RUN = 1 << 12, MOST_TOKENS = 1 << 16, MOST_POSITION = 1 << 16, MOST_LIMIT = 1 << 20 };

static uint32_t byte(kvf_fuzz_input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

/* A number up to `most`; below ESCAPE a byte counts modulo `base`. */
static uint64_t wide(kvf_fuzz_input *in, uint32_t base, uint64_t most)
{
    uint32_t first = byte(in), shift;
    uint64_t value = 0;

    if (first < ESCAPE) {
        value = first % base;
    } else {
        for (shift = 0; shift < 64; shift += 7) {
            uint32_t next = byte(in);
            value |= (uint64_t)(next & 0x7F) << shift;
            if (!(next & 0x80))
                break;
        }
    }
    return value < most ? value : most;
}

static uint32_t num(kvf_fuzz_input *in, uint32_t base, uint32_t most)
{
    return (uint32_t)wide(in, base, most);
}

static uint32_t flag(kvf_fuzz_input *in, uint32_t base)
{
    return num(in, base, 1);
}

static uint32_t label(kvf_fuzz_input *in, uint32_t base)
{
    return num(in, base, KVF_FUZZ_LABELS - 1);
}

/* --- configuration --- */

static void read_pool(kvf_fuzz_input *in, kvf_pool_config *pool)
{
    pool->struct_size = sizeof *pool;
    pool->pages = num(in, 24, MOST_LIMIT) + 1;
    pool->policy = num(in, 1, 2); /* in the order of KVF_POLICY_* */
}

static void read_group(kvf_fuzz_input *in, uint32_t version, kvf_group_config *group, uint32_t pools)
{
    memset(group, 0, sizeof *group);
    group->struct_size = sizeof *group;
    group->kind = num(in, 2, 1);
    group->page_tokens = 1u << num(in, 4, 8);
    group->pool = num(in, 2, 15) % pools;
    if (group->kind == KVF_GROUP_WINDOW) {
        group->window = num(in, 20, MOST_LIMIT) + 1;
        group->sinks = num(in, 5, MOST_LIMIT);
    }
    group->window_keep = flag(in, 2);
    if (version < 2)
        return;
    group->flags = flag(in, 2) * KVF_GROUP_CONTIGUOUS;
    if (group->kind == KVF_GROUP_WINDOW && num(in, 4, 3) == 3)
        group->ring_tokens = num(in, 20, MOST_LIMIT) + 1;
    if (version >= 3 && group->kind == KVF_GROUP_FULL && num(in, 4, 3) == 3) {
        uint32_t pool = num(in, 2, 15) % pools;
        group->sealed_pool = pool == group->pool ? 0 : pool + 1;
    }
}

static void read_groups(kvf_fuzz_input *in, kvf_fuzz_spec *spec)
{
    kvf_group_config group;
    uint32_t n = num(in, 3, 1023) + 1, i;

    for (i = 0; i < n; i++) {
        read_group(in, spec->version, &group, spec->config.n_pools);
        if (i < KVF_FUZZ_GROUPS)
            spec->groups[i] = group;
    }
    spec->fits = n <= KVF_FUZZ_GROUPS;
    spec->config.n_groups = spec->fits ? n : KVF_FUZZ_GROUPS;
}

/* Of equal ones the first stays. */
static void read_namespaces(kvf_fuzz_input *in, kvf_fuzz_spec *spec)
{
    uint32_t n = num(in, 2, KVF_FUZZ_NAMESPACES - 1) + 1, i, k;

    for (i = 0; i < n; i++) {
        kvf_namespace_key key;
        memset(&key, 0, sizeof key);
        key.struct_size = sizeof key;
        key.tenant[0] = num(in, 1, UINT32_MAX);
        key.adapter_generation = num(in, 1, UINT32_MAX);
        key.format = num(in, 1, UINT32_MAX);
        key.adapter = (uint32_t)(i + num(in, 1, UINT32_MAX));
        for (k = 0; k < spec->n_namespaces; k++)
            if (memcmp(&spec->namespaces[k], &key, sizeof key) == 0)
                break;
        if (k == spec->n_namespaces)
            spec->namespaces[spec->n_namespaces++] = key;
    }
}

static int has_full_group(const kvf_config *config)
{
    uint32_t i;
    for (i = 0; i < config->n_groups; i++)
        if (config->groups[i].kind == KVF_GROUP_FULL)
            return 1;
    return 0;
}

void kvf_fuzz_read_spec(kvf_fuzz_input *in, kvf_fuzz_spec *spec)
{
    kvf_config *config = &spec->config;
    uint32_t version = byte(in), index, i;

    memset(spec, 0, sizeof *spec);
    spec->version = version == 1 || version == 2 ? version : 3; /* what names no version means the newest */
    config->struct_size = sizeof *config;
    config->abi_version = KVF_ABI_VERSION;
    config->pools = spec->pools;
    config->groups = spec->groups;
    index = num(in, 8, 7);
    config->index = index < 4 ? KVF_INDEX_TREE : index < 7 ? KVF_INDEX_FLAT : KVF_INDEX_NONE;
    config->publish = flag(in, 2);
    config->flags = flag(in, 1) * KVF_CONFIG_PARTIAL_TAIL;
    config->flags |= flag(in, 1) * KVF_CONFIG_SCRUB;
    config->n_pools = num(in, 2, KVF_FUZZ_POOLS - 1) + 1;
    for (i = 0; i < config->n_pools; i++)
        read_pool(in, &spec->pools[i]);
    read_groups(in, spec);
    read_namespaces(in, spec);
    config->sequences = num(in, 1, MOST_LIMIT);
    config->tickets = num(in, 1, MOST_LIMIT);
    config->transfers = num(in, 1, MOST_LIMIT);
    config->events = num(in, 1, MOST_LIMIT);
    config->table_chunks = num(in, 1, MOST_LIMIT);
    config->classes = num(in, 1, MOST_LIMIT);
    config->leases = num(in, 1, MOST_LIMIT);
    config->quotas = num(in, 1, MOST_LIMIT);
    config->key_parts = num(in, 1, MOST_LIMIT);
    if (spec->version >= 3) {
        config->index_nodes = num(in, 1, MOST_LIMIT);
        config->namespaces = num(in, 1, MOST_LIMIT);
    }
    if (config->namespaces == 0)
        config->namespaces = spec->n_namespaces + 1;
    config->seed = num(in, 4, UINT32_MAX);
    if (config->classes > 63)
        config->classes = 63;
    if (config->quotas > spec->n_namespaces)
        config->quotas = spec->n_namespaces;
    if (config->quotas > config->namespaces)
        config->quotas = config->namespaces;
    if (spec->version < 3 && config->index != KVF_INDEX_NONE && !has_full_group(config)) {
        spec->groups[0].kind = KVF_GROUP_FULL;
        spec->groups[0].window = spec->groups[0].sinks = spec->groups[0].ring_tokens = 0;
    }
}

/* --- the parts of ops --- */

/* Runs of consecutive tokens, put behind those that the op has. Answers how many there are now. */
static uint32_t read_tokens(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    uint32_t runs = num(in, 4, 255), all = 0, i;

    while (runs--) {
        uint32_t first = num(in, 4, UINT32_MAX - MOST_RUN), len = num(in, 18, MOST_RUN);
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
    uint32_t n = num(in, spec->config.key_parts == 0 ? 1 : 3, 255) + least, end = 0;

    while (n--) {
        kvf_media_span span;
        span.start = end + num(in, 12, UINT32_MAX);
        span.length = num(in, 6, UINT32_MAX);
        span.digest[0] = span.digest[1] = span.digest[2] = span.digest[3] = num(in, 2, UINT32_MAX);
        end = span.start + span.length;
        if (op->n_spans < KVF_FUZZ_SPANS)
            op->spans[op->n_spans++] = span;
    }
}

/* Tokens of a prompt and how much of it may be hit: all but one, all, or a number. */
static void read_query(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    uint32_t len = read_tokens(in, op), code = num(in, 2, MOST_POSITION + 2);
    op->count = code == 0 ? len - (len > 0) : code == 1 ? len : code - 2;
}

static void read_position(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    op->back = num(in, 4, 3) != 0;
    op->position = num(in, 20, MOST_POSITION);
}

static void read_time(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    op->timed = 1;
    op->is_absolute = num(in, 1, 1);
    op->time = wide(in, 3, UINT64_MAX);
}

static kvf_fuzz_option read_option(kvf_fuzz_input *in, uint32_t base)
{
    uint32_t code = num(in, base, MOST_POSITION);
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
    code = num(in, 3, 3); /* 0 and 1: as many as are given; 2: without tokens; 3: a count apart from them */
    if (code >= 2)
        op->count = num(in, 20, MOST_POSITION);
    if (code != 2)
        read_tokens(in, op);
    if (code < 2)
        op->count = op->n_tokens;
}

static void read_accepts(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    uint32_t i;

    op->n_accepts = num(in, 3, 63);
    for (i = 0; i < op->n_accepts; i++) {
        kvf_fuzz_accept *accept = &op->accepts[i];
        accept->accepted = read_option(in, 6);
        accept->verified = read_option(in, 3);
        accept->first = op->n_tokens;
        accept->has_tokens = flag(in, 1);
        accept->n_tokens = accept->has_tokens ? read_tokens(in, op) - accept->first : 0;
    }
}

static void read_io(kvf_fuzz_input *in, kvf_fuzz_op *op)
{
    op->transfer = label(in, 3);
    op->flag = num(in, 4, 3) == 3;
    op->seq = op->ticket = label(in, op->flag ? 4 : 8);
    op->begin = num(in, 8, MOST_POSITION);
    op->end = op->begin + num(in, 24, MOST_POSITION);
    op->direction = flag(in, 2); /* in the order of KVF_IO_* */
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
    uint32_t kinds = version < 3 ? KVF_FUZZ_MOVE + 1 : KVF_FUZZ_SEAL + 1;
    uint32_t code = byte(in) % (kinds + (uint32_t)sizeof more);
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
        op->ns = num(in, spaces, UINT16_MAX);
        op->eviction_class = num(in, classes, UINT8_MAX);
        read_spans(in, spec, 0, op);
        break;
    case KVF_FUZZ_OPEN_TICKET:
        op->seq = label(in, 8);
        op->ticket = label(in, 4);
        op->eviction_class = num(in, classes, UINT8_MAX);
        break;
    case KVF_FUZZ_ADD_SPANS:
        op->seq = label(in, 8);
        read_spans(in, spec, 1, op);
        break;
    case KVF_FUZZ_FORK:
        op->seq = label(in, 8);
        op->n_children = num(in, 3, KVF_FUZZ_CHILDREN - 1) + 1;
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
        op->flag = flag(in, 2);
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
    case KVF_FUZZ_PUBLISH: op->count = num(in, 8, MOST_POSITION); break;
    case KVF_FUZZ_LOOKUP:
    case KVF_FUZZ_MATCH:
        if (op->kind == KVF_FUZZ_MATCH)
            op->ticket = label(in, 4);
        op->ns = num(in, spaces, UINT16_MAX);
        read_query(in, op);
        read_spans(in, spec, 0, op);
        if (op->kind == KVF_FUZZ_MATCH && flag(in, 1))
            read_time(in, op);
        break;
    case KVF_FUZZ_DROP: op->ticket = label(in, 4); break;
    case KVF_FUZZ_EVICT:
        op->pool = num(in, pools, UINT16_MAX);
        op->count = num(in, 6, MOST_POSITION);
        break;
    case KVF_FUZZ_CLEAR: {
        uint32_t code = num(in, spaces + 1, UINT16_MAX);
        op->flag = code == 0;
        op->ns = code - (code > 0);
        break;
    }
    case KVF_FUZZ_IO_BEGIN: read_io(in, op); break;
    case KVF_FUZZ_IO_END:
        op->transfer = label(in, 3);
        op->flag = flag(in, 2);
        break;
    case KVF_FUZZ_LEASE:
        op->lease = label(in, 4);
        op->seq = label(in, 8);
        op->count = num(in, 24, MOST_POSITION);
        read_time(in, op);
        break;
    case KVF_FUZZ_END_LEASE: op->lease = label(in, 4); break;
    case KVF_FUZZ_SET_CLASS:
    case KVF_FUZZ_MOVE:
        op->ns = num(in, spaces, UINT16_MAX);
        read_tokens(in, op);
        if (op->kind == KVF_FUZZ_MOVE)
            op->flag = flag(in, 2);
        else
            op->eviction_class = num(in, classes, UINT8_MAX);
        break;
    case KVF_FUZZ_SET_QUOTA:
        op->ns = num(in, spaces, UINT16_MAX);
        op->pool = num(in, pools, UINT16_MAX);
        op->count = num(in, 12, MOST_POSITION);
        break;
    case KVF_FUZZ_CLOSE_SPACE:
    case KVF_FUZZ_OPEN_SPACE: op->ns = num(in, spaces, UINT16_MAX); break;
    case KVF_FUZZ_EXPORT:
        op->n_children = num(in, 4, KVF_FUZZ_CHILDREN - 1);
        read_children(in, op);
        break;
    case KVF_FUZZ_RING:
    case KVF_FUZZ_SEAL:
        op->seq = label(in, 8);
        op->group = num(in, groups, UINT16_MAX);
        op->count = num(in, op->kind == KVF_FUZZ_RING ? 12 : 6, MOST_POSITION);
        break;
    case KVF_FUZZ_FINISH:
    case KVF_FUZZ_CANCEL:
    case KVF_FUZZ_ABORT:
    case KVF_FUZZ_DRAIN:
    case KVF_FUZZ_CHECK:
        break;
    }
}
