/* Text to token ids and back: what does not depend on the kind of tokenizer. */
#include "tokenizer.h"

#include "utf8.h"
#include "vocabulary.h"

#include <stdlib.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

void tokenizer_free(struct tokenizer *t)
{
    if (!t)
        return;
    if (t->written != t->pieces)
        free(t->written);
    free(t->pieces);
    free(t->arena);
    free(t->slots);
    free(t->merges);
    free(t->special);
    free(t->scores);
    free(t);
}

int32_t tokenizer_end(const struct tokenizer *t)
{
    return t->end;
}

int tokenizer_vocab(const struct tokenizer *t)
{
    return t->vocab;
}

int tokenizer_encode(const struct tokenizer *t, const char *text, size_t size, int32_t **ids, size_t *count,
                     struct error *error)
{
    *ids = NULL;
    if (size > INT32_MAX / 4)
        return fail(error, "tokenizer: %zu bytes of text are too many", size);
    *ids = malloc((size + 2) * sizeof **ids); /* never more ids than bytes, a BOS and a first space */
    if (!*ids || t->encode(t, text, size, *ids, count) != 0) {
        free(*ids);
        *ids = NULL;
        return fail(error, "tokenizer: out of memory for %zu bytes of text", size);
    }
    return 0;
}

static int encode_bytes(const struct tokenizer *t, const char *text, size_t size, int32_t *ids, size_t *count)
{
    (void)t;
    for (size_t i = 0; i < size; i++)
        ids[i] = (unsigned char)text[i];
    *count = size;
    return 0;
}

struct tokenizer *tokenizer_bytes(struct error *error)
{
    struct tokenizer *t = vocabulary_new(256, 256);
    if (!t) {
        fail(error, "tokenizer: out of memory");
        return NULL;
    }
    for (int id = 0; id < 256; id++) {
        t->arena[id] = (char)id;
        t->pieces[id] = (struct piece){ t->arena + id, 1 };
    }
    t->written = t->pieces;
    t->longest = 1;
    t->encode = encode_bytes;
    return t;
}

/* ---- Decoding ---- */

int decoder_init(struct decoder *d, const struct tokenizer *t, struct error *error)
{
    *d = (struct decoder){ .tokenizer = t, .previous = -1 };
    d->bytes = malloc(t->longest + 4);
    d->text = malloc(3 * (t->longest + 4)); /* every byte may become a U+FFFD */
    if (!d->bytes || !d->text) {
        decoder_free(d);
        return fail(error, "decoder: out of memory");
    }
    return 0;
}

void decoder_free(struct decoder *d)
{
    free(d->bytes);
    free(d->text);
    *d = (struct decoder){ 0 };
}

const char *decoder_push(struct decoder *d, int32_t id, size_t *size)
{
    const struct tokenizer *t = d->tokenizer;
    struct piece piece = { "", 0 };
    size_t total, at = 0;

    *size = 0;
    if (id >= 0 && id < t->vocab)
        piece = t->pieces[id];
    /* The space that llama2.c puts before a text is not part of it. */
    if (d->previous >= 0 && d->previous == t->begin && piece.size > 0 && piece.text[0] == ' ') {
        piece.text++;
        piece.size--;
    }
    d->previous = id;
    memcpy(d->bytes + d->pending, piece.text, piece.size);
    total = d->pending + piece.size;
    while (at < total) {
        uint32_t code;
        const int length = utf8_next(d->bytes + at, total - at, &code);
        if (length == 0)
            break;
        if (length > 0) {
            memcpy(d->text + *size, d->bytes + at, (size_t)length);
            *size += (size_t)length;
            at += (size_t)length;
        } else {
            memcpy(d->text + *size, replacement, 3);
            *size += 3;
            at += (size_t)-length;
        }
    }
    d->pending = total - at;
    memmove(d->bytes, d->bytes + at, d->pending);
    return d->text;
}

const char *decoder_finish(struct decoder *d, size_t *size)
{
    *size = d->pending > 0 ? 3 : 0;
    d->pending = 0;
    d->previous = -1;
    return replacement;
}
