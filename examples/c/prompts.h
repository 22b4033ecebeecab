/* Prompts of kvf-chat: from a file, and into the chat template. */
#ifndef ENGINE_PROMPTS_H
#define ENGINE_PROMPTS_H

#include "error.h"

#include <stddef.h>

struct prompts {
    char **texts; /* [n] */
    int n;
};

/* Reads a file: one prompt a line, or one a paragraph if the file has blank lines between lines. */
int prompts_read(struct prompts *prompts, const char *path, struct error *error);
void prompts_free(struct prompts *prompts);

/* A growing text. */
struct text_buffer {
    char *bytes; /* ends with a NUL that `size` does not count; NULL while empty */
    size_t size;
};

/* Appends `size` bytes. Returns -1 when memory is short. */
int text_add(struct text_buffer *text, const char *bytes, size_t size);
int text_add_string(struct text_buffer *text, const char *string);

/* Appends a turn of the template of SmolLM2: <|im_start|>ROLE, the text, <|im_end|>. */
int text_add_turn(struct text_buffer *text, const char *role, const char *content);

/* Appends what the assistant's answer follows. */
int text_add_opening(struct text_buffer *text);

#endif
