/* Pieces of text by id and ids by text. */
#include "vocabulary.h"

#include <stdlib.h>
#include <string.h>

struct tokenizer *vocabulary_new(int vocab, size_t arena_size)
{
    struct tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->vocab = vocab;
    t->begin = t->end = -1;
    t->pieces = calloc((size_t)vocab + 1, sizeof *t->pieces);
    t->arena = malloc(arena_size + 1);
    if (!t->pieces || !t->arena) {
        tokenizer_free(t);
        return NULL;
    }
    return t;
}

/* FNV-1a, continued from `hash`. */
static uint64_t hash_bytes(uint64_t hash, struct piece piece)
{
    for (size_t i = 0; i < piece.size; i++)
        hash = (hash ^ (unsigned char)piece.text[i]) * 0x100000001b3u;
    return hash;
}

static size_t first_slot(const struct tokenizer *t, struct piece a, struct piece b)
{
    const uint64_t hash = hash_bytes(hash_bytes(0xcbf29ce484222325u, a), b);
    return (size_t)(hash ^ hash >> 32) & t->slot_mask;
}

static int equal(struct piece whole, struct piece a, struct piece b)
{
    return whole.size == a.size + b.size && memcmp(whole.text, a.text, a.size) == 0 &&
           memcmp(whole.text + a.size, b.text, b.size) == 0;
}

int vocabulary_index(struct tokenizer *t, const struct piece *pieces)
{
    const struct piece nothing = { "", 0 };
    size_t slots = 16;

    while (slots < 2 * (size_t)t->vocab)
        slots *= 2;
    t->slot_mask = slots - 1;
    t->slots = malloc(slots * sizeof *t->slots);
    if (!t->slots)
        return -1;
    for (size_t i = 0; i < slots; i++)
        t->slots[i] = -1;
    for (int32_t id = 0; id < t->vocab; id++) {
        size_t slot = first_slot(t, pieces[id], nothing);
        while (t->slots[slot] >= 0 && !equal(pieces[t->slots[slot]], pieces[id], nothing))
            slot = (slot + 1) & t->slot_mask;
        if (t->slots[slot] < 0)
            t->slots[slot] = id;
    }
    return 0;
}

int32_t vocabulary_find(const struct tokenizer *t, const struct piece *pieces, struct piece a, struct piece b)
{
    size_t slot = first_slot(t, a, b);
    while (t->slots[slot] >= 0 && !equal(pieces[t->slots[slot]], a, b))
        slot = (slot + 1) & t->slot_mask;
    return t->slots[slot];
}
