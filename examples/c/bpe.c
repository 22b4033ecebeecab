/*
 * Byte-level BPE, the tokenizer inside GGUF files of GPT-2 descent.
 *
 * The file writes each byte as one printable character (0x20 as U+0120, ...). Pieces are turned into plain bytes when
 * the file is loaded, so encoding and decoding see bytes only.
 */
#include "gguf.h"
#include "merge.h"
#include "split.h"
#include "utf8.h"
#include "vocabulary.h"

#include <stdlib.h>
#include <string.h>

enum { TOKEN_NORMAL = 1, TOKEN_CONTROL = 3, TOKEN_USER_DEFINED = 4 };

/* ---- Encoding ---- */

static size_t merge_slot(const struct tokenizer *t, int32_t left, int32_t right)
{
    const uint64_t key = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    size_t slot = (size_t)(key >> 32) & t->merge_mask;
    while (t->merges[slot].left >= 0 && (t->merges[slot].left != left || t->merges[slot].right != right))
        slot = (slot + 1) & t->merge_mask;
    return slot;
}

static int find_merge(const void *context, int32_t left, int32_t right, double *priority, int32_t *joined)
{
    const struct tokenizer *t = context;
    const struct merge_entry *entry = &t->merges[merge_slot(t, left, right)];
    *priority = entry->rank;
    *joined = entry->joined;
    return entry->left >= 0;
}

/* The longest special token that text[0..size) begins with, -1 if none. */
static int32_t special_at(const struct tokenizer *t, const char *text, size_t size)
{
    int32_t best = -1;
    for (int i = 0; i < t->specials; i++) {
        const struct piece piece = t->pieces[t->special[i]];
        if (piece.size <= size && piece.text[0] == text[0] && memcmp(piece.text, text, piece.size) == 0 &&
            (best < 0 || piece.size > t->pieces[best].size))
            best = t->special[i];
    }
    return best;
}

/* Appends the ids of text without special tokens. */
static int encode_plain(const struct tokenizer *t, const char *text, size_t size, int32_t *ids, size_t *count)
{
    const struct merge_rules rules = { t, find_merge };
    while (size > 0) {
        const size_t piece = split_next(text, size);
        size_t n = 0, left;
        for (size_t i = 0; i < piece; i++)
            if (t->byte_ids[(unsigned char)text[i]] >= 0)
                ids[*count + n++] = t->byte_ids[(unsigned char)text[i]];
        left = merge_pairs(ids + *count, n, &rules);
        if (left == SIZE_MAX)
            return -1;
        *count += left;
        text += piece;
        size -= piece;
    }
    return 0;
}

static int encode(const struct tokenizer *t, const char *text, size_t size, int32_t *ids, size_t *count)
{
    size_t begin = 0, at = 0; /* text[begin..at) is plain */

    *count = 0;
    while (at < size) {
        const int32_t special = special_at(t, text + at, size - at);
        if (special < 0) {
            at++;
            continue;
        }
        if (encode_plain(t, text + begin, at - begin, ids, count) != 0)
            return -1;
        ids[(*count)++] = special;
        begin = at += t->pieces[special].size;
    }
    return encode_plain(t, text + begin, size - begin, ids, count);
}

/* ---- Loading ---- */

/* The byte that a code point stands for, -1 if none: printable Latin-1 is itself, the rest follow from U+0100 on. */
static int byte_of(uint32_t code)
{
    if ((code >= 0x21 && code <= 0x7e) || (code >= 0xa1 && code <= 0xac) || (code >= 0xae && code <= 0xff))
        return (int)code;
    if (code >= 0x100 && code <= 0x120)
        return (int)code - 0x100; /* 0x00..0x20 */
    if (code >= 0x121 && code <= 0x142)
        return (int)code - 0x121 + 0x7f; /* 0x7f..0xa0 */
    return code == 0x143 ? 0xad : -1;
}

/* Turns the written form into plain bytes at `out`; returns their number, or SIZE_MAX if it is not a written form. */
static size_t plain_bytes(struct gguf_string written, char *out)
{
    size_t size = 0;
    for (size_t at = 0; at < written.size;) {
        uint32_t code;
        const int length = utf8_next(written.data + at, written.size - at, &code);
        const int byte = length > 0 ? byte_of(code) : -1;
        if (byte < 0)
            return SIZE_MAX;
        out[size++] = (char)byte;
        at += (size_t)length;
    }
    return size;
}

/* Fills the pieces and the list of special tokens, whose text is taken as it is. */
static int load_pieces(struct tokenizer *t, const struct gguf_string *tokens, const unsigned char *types,
                       struct error *error)
{
    char *out = t->arena;

    for (int32_t id = 0; id < t->vocab; id++) {
        int32_t type = TOKEN_NORMAL;
        size_t size = SIZE_MAX;
        if (types)
            memcpy(&type, types + 4 * (size_t)id, 4);
        if (type == TOKEN_CONTROL || type == TOKEN_USER_DEFINED) {
            if (tokens[id].size > 0)
                t->special[t->specials++] = id;
        } else {
            size = plain_bytes(tokens[id], out);
        }
        if (size == SIZE_MAX) {
            size = tokens[id].size;
            memcpy(out, tokens[id].data, size);
        }
        t->pieces[id] = (struct piece){ out, size };
        t->longest = size > t->longest ? size : t->longest;
        out += size;
    }
    t->written = t->pieces;
    if (vocabulary_index(t, t->pieces) != 0)
        return fail(error, "tokenizer: out of memory");
    for (int byte = 0; byte < 256; byte++) {
        const char text = (char)byte;
        t->byte_ids[byte] = vocabulary_find(t, t->pieces, (struct piece){ &text, 1 }, (struct piece){ "", 0 });
    }
    return 0;
}

/* Enters "left right" of rank `rank`, unless a better rank joins the same two. */
static int load_merge(struct tokenizer *t, struct gguf_string written, int32_t rank, char *scratch, struct error *error)
{
    const struct piece nothing = { "", 0 };
    const char *space = written.size > 0 ? memchr(written.data, ' ', written.size) : NULL;
    const size_t left_size = space ? (size_t)(space - written.data) : 0;
    struct gguf_string halves[2];
    struct piece left = { scratch, 0 }, right;
    struct merge_entry entry = { .rank = rank };
    size_t slot;

    if (left_size == 0 || left_size + 1 == written.size)
        return fail(error, "tokenizer: merge %d is not two pieces", (int)rank);
    halves[0] = (struct gguf_string){ written.data, left_size };
    halves[1] = (struct gguf_string){ space + 1, written.size - left_size - 1 };
    left.size = plain_bytes(halves[0], scratch);
    if (left.size == SIZE_MAX)
        return fail(error, "tokenizer: merge %d is not byte-level text", (int)rank);
    right.text = scratch + left.size;
    right.size = plain_bytes(halves[1], scratch + left.size);
    if (right.size == SIZE_MAX)
        return fail(error, "tokenizer: merge %d is not byte-level text", (int)rank);
    entry.left = vocabulary_find(t, t->pieces, left, nothing);
    entry.right = vocabulary_find(t, t->pieces, right, nothing);
    entry.joined = vocabulary_find(t, t->pieces, left, right);
    if (entry.left < 0 || entry.right < 0 || entry.joined < 0)
        return fail(error, "tokenizer: merge %d names a piece that is not in the vocabulary", (int)rank);
    slot = merge_slot(t, entry.left, entry.right);
    if (t->merges[slot].left < 0)
        t->merges[slot] = entry;
    return 0;
}

static int load_merges(struct tokenizer *t, const struct gguf_string *merges, size_t count, struct error *error)
{
    size_t slots = 16, longest = 0;
    char *scratch;
    int status = 0;

    while (slots < 2 * count)
        slots *= 2;
    for (size_t i = 0; i < count; i++)
        longest = merges[i].size > longest ? merges[i].size : longest;
    t->merge_mask = slots - 1;
    t->merges = malloc(slots * sizeof *t->merges);
    scratch = malloc(longest + 1);
    if (!t->merges || !scratch) {
        free(scratch);
        return fail(error, "tokenizer: out of memory");
    }
    for (size_t i = 0; i < slots; i++)
        t->merges[i].left = -1;
    for (size_t i = 0; i < count && status == 0; i++)
        status = load_merge(t, merges[i], (int32_t)i, scratch, error);
    free(scratch);
    return status;
}

struct tokenizer *tokenizer_from_gguf(const struct gguf *g, struct error *error)
{
    struct gguf_string model, *tokens = NULL, *merges = NULL;
    struct tokenizer *t = NULL;
    const unsigned char *types;
    size_t vocab, n_merges, n_types = 0, bytes = 0;
    int end = -1;

    if (gguf_get_string(g, "tokenizer.ggml.model", &model, error) != 0)
        return NULL;
    if (model.size != 4 || memcmp(model.data, "gpt2", 4) != 0) {
        fail(error, "tokenizer: model '%.*s' is not gpt2", model.size < 32 ? (int)model.size : 32, model.data);
        return NULL;
    }
    if (gguf_strings(g, "tokenizer.ggml.tokens", &tokens, &vocab, error) != 0 ||
        gguf_strings(g, "tokenizer.ggml.merges", &merges, &n_merges, error) != 0)
        goto bad;
    types = gguf_i32_array(g, "tokenizer.ggml.token_type", &n_types);
    if (vocab < 1 || vocab > 1 << 20 || n_merges > 1 << 20 || (types && n_types != vocab)) {
        fail(error, "tokenizer: %zu pieces, %zu types and %zu merges do not fit together", vocab, n_types, n_merges);
        goto bad;
    }
    if (gguf_has(g, "tokenizer.ggml.eos_token_id") && gguf_int(g, "tokenizer.ggml.eos_token_id", &end, error) != 0)
        goto bad;
    for (size_t i = 0; i < vocab; i++)
        bytes += tokens[i].size;
    t = vocabulary_new((int)vocab, bytes);
    if (t)
        t->special = malloc(vocab * sizeof *t->special);
    if (!t || !t->special) {
        fail(error, "tokenizer: out of memory");
        goto bad;
    }
    t->encode = encode;
    t->end = end;
    if (load_pieces(t, tokens, types, error) != 0 || load_merges(t, merges, n_merges, error) != 0)
        goto bad;
    free(tokens);
    free(merges);
    return t;

bad:
    free(tokens);
    free(merges);
    tokenizer_free(t);
    return NULL;
}
