/* What both tokenizers are made of: pieces of text by id and ids by text. Private to the tokenizer's files. */
#ifndef ENGINE_VOCABULARY_H
#define ENGINE_VOCABULARY_H

#include "tokenizer.h"

struct piece {
    const char *text;
    size_t size;
};

/* One entry of the merge table: (left, right) are joined to `joined`, lower ranks first. */
struct merge_entry {
    int32_t left, right; /* left is -1 iff the entry is free */
    int32_t rank, joined;
};

struct tokenizer {
    int (*encode)(const struct tokenizer *tokenizer, const char *text, size_t size, int32_t *ids, size_t *count);
    int vocab;
    int32_t begin; /* BOS, -1 if there is none */
    int32_t end;
    struct piece *pieces; /* [vocab] bytes each id stands for in output */
    char *arena;          /* the bytes of the pieces */
    size_t longest;       /* bytes of the longest piece */

    int32_t *slots;       /* [slot_mask + 1] ids by text, open addressing, -1 = free */
    size_t slot_mask;

    /* Byte-level BPE only. */
    int32_t byte_ids[256];       /* the piece that is this byte alone, -1 = none: such bytes get no id */
    struct merge_entry *merges;  /* [merge_mask + 1], open addressing */
    size_t merge_mask;
    int32_t *special;            /* [specials] ids whose text is cut out first */
    int specials;

    /* llama2.c only. */
    float *scores;         /* [vocab] */
    struct piece *written; /* [vocab] pieces as the file writes them: byte 0x0A is "<0x0A>"; else == pieces */
};

/* Allocates a tokenizer with `vocab` empty pieces and an arena of arena_size bytes. NULL when memory runs out. */
struct tokenizer *vocabulary_new(int vocab, size_t arena_size);

/* Builds `slots` from pieces[vocab]; the lowest id wins where texts are equal. Returns -1 when memory runs out. */
int vocabulary_index(struct tokenizer *tokenizer, const struct piece *pieces);

/* Returns the id whose indexed text is a followed by b, -1 if there is none. `pieces` as given to vocabulary_index. */
int32_t vocabulary_find(const struct tokenizer *tokenizer, const struct piece *pieces, struct piece a, struct piece b);

#endif
