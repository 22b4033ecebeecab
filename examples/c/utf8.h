/* UTF-8, one code point at a time, over text that may be anything. */
#ifndef ENGINE_UTF8_H
#define ENGINE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reads the code point at text[0..size), size >= 1. Returns its bytes (1..4) and sets *code.
 * Returns 0 iff the bytes so far could begin a code point that is longer than `size`.
 * Returns -n iff the first n >= 1 bytes begin no code point (to be shown as one U+FFFD).
 */
int utf8_next(const char *text, size_t size, uint32_t *code);

/* The same for callers to whom a stray byte is a code point of its own: returns 1..4, and *code 0xFFFD for strays. */
size_t utf8_next_or_byte(const char *text, size_t size, uint32_t *code);

enum unicode_class { UNICODE_OTHER, UNICODE_LETTER, UNICODE_NUMBER, UNICODE_SPACE };

/* Returns the class of a code point. */
enum unicode_class unicode_classify(uint32_t code);

#endif
