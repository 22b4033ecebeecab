/*
 * The llama2.c tokenizer (tok512.bin): u32 longest piece, then per piece { f32 score, i32 size, bytes }.
 *
 * Ids 0, 1, 2 are unknown, BOS and EOS; 3..258 are the bytes, written "<0x00>".."<0xFF>". Text is cut into characters,
 * then the adjacent pair whose join has the highest score is joined, until no join is a piece.
 */
#include "file.h"
#include "merge.h"
#include "utf8.h"
#include "vocabulary.h"

#include <stdlib.h>
#include <string.h>

enum { BEGIN = 1, END = 2, FIRST_BYTE = 3, FIRST_TEXT = FIRST_BYTE + 256 };

static const struct piece nothing = { "", 0 };

static int find_join(const void *context, int32_t left, int32_t right, double *priority, int32_t *joined)
{
    const struct tokenizer *t = context;
    *joined = vocabulary_find(t, t->written, t->written[left], t->written[right]);
    if (*joined >= 0)
        *priority = -(double)t->scores[*joined];
    return *joined >= 0;
}

static int encode(const struct tokenizer *t, const char *text, size_t size, int32_t *ids, size_t *count)
{
    const struct merge_rules rules = { t, find_join };
    const int32_t space = vocabulary_find(t, t->written, (struct piece){ " ", 1 }, nothing);
    size_t n = 0;

    ids[n++] = BEGIN;
    if (size > 0 && space >= 0)
        ids[n++] = space;
    for (size_t at = 0; at < size;) {
        uint32_t code;
        const size_t length = utf8_next_or_byte(text + at, size - at, &code);
        const int32_t id = vocabulary_find(t, t->written, (struct piece){ text + at, length }, nothing);
        if (id >= 0)
            ids[n++] = id;
        for (size_t i = 0; id < 0 && i < length; i++)
            ids[n++] = (unsigned char)text[at + i] + FIRST_BYTE;
        at += length;
    }
    n = merge_pairs(ids + 1, n - 1, &rules);
    *count = n + 1;
    return n == SIZE_MAX ? -1 : 0;
}

/* Reads the pieces; `at` points behind the first field. */
static int load(struct tokenizer *t, const unsigned char *at, const unsigned char *end, struct error *error)
{
    char *out = t->arena;

    for (int32_t id = 0; id < t->vocab; id++) {
        int32_t size;
        if (end - at < 8)
            return fail(error, "tokenizer: the file ends at piece %d of %d", (int)id, t->vocab);
        memcpy(&t->scores[id], at, 4);
        memcpy(&size, at + 4, 4);
        at += 8;
        if (size < 0 || size > end - at)
            return fail(error, "tokenizer: piece %d has %d bytes", (int)id, (int)size);
        if (t->scores[id] != t->scores[id])
            return fail(error, "tokenizer: the score of piece %d is not a number", (int)id);
        memcpy(out, at, (size_t)size);
        t->written[id] = (struct piece){ out, (size_t)size };
        out += size;
        at += size;

        t->pieces[id] = id < FIRST_BYTE ? nothing : t->written[id];
        if (id >= FIRST_BYTE && id < FIRST_TEXT) {
            *out = (char)(id - FIRST_BYTE);
            t->pieces[id] = (struct piece){ out++, 1 };
        }
        t->longest = t->pieces[id].size > t->longest ? t->pieces[id].size : t->longest;
    }
    return vocabulary_index(t, t->written) == 0 ? 0 : fail(error, "tokenizer: out of memory");
}

struct tokenizer *tokenizer_load_llama2c(const char *path, int vocab, struct error *error)
{
    struct tokenizer *t = NULL;
    struct file file;

    if (file_map(&file, path, error) != 0)
        return NULL;
    if (vocab < FIRST_TEXT || vocab > 1 << 20 || file.size < 4) {
        fail(error, "tokenizer: %d pieces from a file of %zu bytes", vocab, file.size);
        goto bad;
    }
    t = vocabulary_new(vocab, file.size + 256);
    if (t) {
        t->scores = malloc((size_t)vocab * sizeof *t->scores);
        t->written = calloc((size_t)vocab, sizeof *t->written);
    }
    if (!t || !t->scores || !t->written) {
        fail(error, "tokenizer: out of memory");
        goto bad;
    }
    t->encode = encode;
    t->begin = BEGIN;
    t->end = END;
    if (load(t, file.data + 4, file.data + file.size, error) != 0)
        goto bad;
    file_unmap(&file);
    return t;

bad:
    file_unmap(&file);
    tokenizer_free(t);
    return NULL;
}
