/* Text to token ids and back, for the two tokenizers our models have. */
#ifndef ENGINE_TOKENIZER_H
#define ENGINE_TOKENIZER_H

#include "error.h"

#include <stddef.h>
#include <stdint.h>

struct gguf;
struct tokenizer;

/* Builds the byte-level BPE tokenizer of an open GGUF file. NULL and a reason on failure. */
struct tokenizer *tokenizer_from_gguf(const struct gguf *gguf, struct error *error);

/* Loads a llama2.c tokenizer file of `vocab` pieces. NULL and a reason on failure. */
struct tokenizer *tokenizer_load_llama2c(const char *path, int vocab, struct error *error);

/* Builds the tokenizer of a model without one: ids 0..255 are bytes, and nothing is merged. */
struct tokenizer *tokenizer_bytes(struct error *error);

/* Frees it; harmless on NULL. */
void tokenizer_free(struct tokenizer *tokenizer);

/* Returns the id that ends a text or a turn, -1 if there is none. */
int32_t tokenizer_end(const struct tokenizer *tokenizer);

/* Returns the number of ids. */
int tokenizer_vocab(const struct tokenizer *tokenizer);

/*
 * Encodes any bytes. The caller frees *ids. The BPE tokenizer recognises special tokens such as <|im_start|> in the
 * text and adds none; the llama2.c one begins with its BOS. A byte that no piece can spell is left out (SmolLM2 has no
 * piece for some control characters, and none for bytes that never occur in UTF-8). O(n log n).
 */
int tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t size, int32_t **ids, size_t *count,
                     struct error *error);

/* Turns a stream of ids into valid UTF-8: bytes of a character that is not complete yet are held back. */
struct decoder {
    const struct tokenizer *tokenizer;
    char *text;     /* room for the longest answer */
    char *bytes;    /* pending bytes, then those of the token at hand */
    size_t pending;
    int32_t previous;
};

/* Prepares a decoder, which borrows the tokenizer. */
int decoder_init(struct decoder *decoder, const struct tokenizer *tokenizer, struct error *error);
void decoder_free(struct decoder *decoder);

/* Feeds one id; returns the text that is now complete, valid until the next call. An unknown id gives no text. */
const char *decoder_push(struct decoder *decoder, int32_t id, size_t *size);

/* Ends the stream: returns U+FFFD iff bytes were pending, and makes the decoder ready for another stream. */
const char *decoder_finish(struct decoder *decoder, size_t *size);

#endif
