/* Cuts text into the pieces that byte-level BPE merges within. */
#ifndef ENGINE_SPLIT_H
#define ENGINE_SPLIT_H

#include <stddef.h>

/*
 * Returns the bytes of the first piece of text[0..size), size >= 1.
 *
 * First each number (Unicode category N) stands alone; what is between numbers is cut by the GPT-2 pattern
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * in which a number ends the text. Bytes that are not UTF-8 count as symbols.
 */
size_t split_next(const char *text, size_t size);

#endif
