/* What kvf-chat shows: texts as they are made, how far prompts are, and a table at the end. */
#ifndef ENGINE_CONSOLE_H
#define ENGINE_CONSOLE_H

#include "scheduler.h"
#include "tokenizer.h"

struct console;

/* `prefixed` = 1: several texts at a time, each line with its number in front. NULL and a reason on failure. */
struct console *console_new(const struct tokenizer *tokenizer, int prefixed, int samples, struct error *error);
void console_free(struct console *console);

/* Shows a prompt before its text is made. */
void console_prompt(struct console *console, int prompt_id, const char *text);

/* For scheduler_config.on_token. */
void console_token(void *console, const struct request *request, int32_t token);

/* Draws a bar on stderr, if that is a terminal, while no text is made: tokens of prompts done and in all. */
void console_progress(struct console *console, long long done, long long all);

/* Prints the table. */
void console_table(const struct scheduler_counts *counts, const struct cache_usage *usage);

#endif
