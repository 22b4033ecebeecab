/* text.h - lines of text without a C library */
#ifndef TEXT_H
#define TEXT_H

#include <stdint.h>

typedef struct text {
    char line[96];
    uint32_t used;
} text;

/* Both leave out what does not fit. */
void text_add(text *t, const char *words);
void text_add_number(text *t, uint32_t number);
void text_add_hex(text *t, uint64_t number); /* 16 digits */

/* Hands the line to stream_line and begins a new one. */
void text_end(text *t);

#endif
