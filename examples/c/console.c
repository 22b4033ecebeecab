/* Output of kvf-chat. One text alone is printed piece by piece, several at a time line by line with their numbers. */
#include "console.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 76 }; /* bytes after which a line of several is broken at a space */

struct stream {
    struct decoder decoder;
    int open;       /* 1 iff the decoder is in use */
    char line[512];
    size_t used;
};

struct console {
    const struct tokenizer *tokenizer;
    int prefixed;
    int samples;
    struct stream **streams; /* [n], by request id */
    int n;
    int bar;                 /* 1 iff stderr is a terminal */
    int bar_shown;
};

struct console *console_new(const struct tokenizer *tokenizer, int prefixed, int samples, struct error *error)
{
    struct console *c = calloc(1, sizeof *c);
    if (!c) {
        fail(error, "out of memory");
        return NULL;
    }
    c->tokenizer = tokenizer;
    c->prefixed = prefixed;
    c->samples = samples;
    c->bar = isatty(STDERR_FILENO);
    return c;
}

void console_free(struct console *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->n; i++) {
        if (c->streams[i] && c->streams[i]->open)
            decoder_free(&c->streams[i]->decoder);
        free(c->streams[i]);
    }
    free(c->streams);
    free(c);
}

/* The stream of a request, begun when its first token comes. NULL when memory is short. */
static struct stream *stream_of(struct console *c, int id)
{
    struct error error;

    if (id >= c->n) {
        struct stream **grown = realloc(c->streams, ((size_t)id + 1) * sizeof(struct stream *));
        if (!grown)
            return NULL;
        memset(grown + c->n, 0, (size_t)(id + 1 - c->n) * sizeof(struct stream *));
        c->streams = grown;
        c->n = id + 1;
    }
    if (!c->streams[id])
        c->streams[id] = calloc(1, sizeof *c->streams[id]);
    if (c->streams[id] && !c->streams[id]->open)
        c->streams[id]->open = decoder_init(&c->streams[id]->decoder, c->tokenizer, &error) == 0;
    return c->streams[id] && c->streams[id]->open ? c->streams[id] : NULL;
}

static void hide_bar(struct console *c)
{
    if (c->bar_shown)
        fputs("\r\033[K", stderr);
    c->bar_shown = 0;
}

static void flush_line(struct console *c, const struct request *r, struct stream *s, size_t n)
{
    hide_bar(c);
    if (c->samples > 1)
        printf("[%d.%d] %.*s\n", r->prompt_id + 1, r->sample + 1, (int)n, s->line);
    else
        printf("[%d] %.*s\n", r->prompt_id + 1, (int)n, s->line);
    fflush(stdout);
    if (n < s->used && (s->line[n] == ' ' || s->line[n] == '\n'))
        n++;
    s->used -= n;
    memmove(s->line, s->line + n, s->used);
}

/* Adds text to a stream's line, and prints the line when it ends or is long enough. */
static void add_to_line(struct console *c, const struct request *r, struct stream *s, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n') {
            if (s->used > 0)
                flush_line(c, r, s, s->used);
            continue;
        }
        if (s->used >= LINE && text[i] == ' ') {
            flush_line(c, r, s, s->used);
            continue;
        }
        s->line[s->used++] = text[i];
        if (s->used == sizeof s->line)
            flush_line(c, r, s, s->used);
    }
}

static void show(struct console *c, const struct request *r, struct stream *s, const char *text, size_t size)
{
    if (size == 0)
        return;
    if (c->prefixed) {
        add_to_line(c, r, s, text, size);
        return;
    }
    hide_bar(c);
    fwrite(text, 1, size, stdout);
    fflush(stdout);
}

void console_prompt(struct console *c, int prompt_id, const char *text)
{
    int length = (int)strcspn(text, "\n");
    const int cut = length > LINE;

    for (length = cut ? LINE : length; cut && ((unsigned char)text[length] & 0xc0) == 0x80; length--)
        ; /* back to the first byte of a character */
    hide_bar(c);
    printf("[%d] > %.*s%s\n", prompt_id + 1, length, text, cut || text[length] ? " ..." : "");
}

void console_token(void *console, const struct request *r, int32_t token)
{
    struct console *c = console;
    struct stream *s = stream_of(c, r->id);
    const char *text;
    size_t size;

    if (!s)
        return;
    if (token >= 0) {
        if (r->end == END_TOKEN)
            return; /* the token that ends the turn is no text */
        text = decoder_push(&s->decoder, token, &size);
        show(c, r, s, text, size);
        return;
    }
    text = decoder_finish(&s->decoder, &size);
    show(c, r, s, text, size);
    decoder_free(&s->decoder);
    s->open = 0;
    if (s->used > 0)
        flush_line(c, r, s, s->used);
    if (!c->prefixed)
        show(c, r, s, "\n", 1);
    if (r->end == END_NO_ROOM) {
        hide_bar(c);
        fprintf(stderr, "kvf-chat: chat %d ends early: its %d tokens are more than the cache holds (try --pages)\n",
                r->prompt_id + 1, r->n_tokens);
    }
}

void console_progress(struct console *c, long long done, long long all)
{
    static const char full[] = "##############################";
    const int width = (int)sizeof full - 1;

    if (!c->bar)
        return;
    if (done >= all) {
        hide_bar(c);
        return;
    }
    fprintf(stderr, "\rprompts [%-*.*s] %lld of %lld tokens", width, (int)(done * width / all), full, done, all);
    c->bar_shown = 1;
}

/* One line of the table. */
static void line(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void line(const char *label, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%-20s ", label);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

void console_table(const struct scheduler_counts *n, const struct cache_usage *u)
{
    const double seconds = n->seconds > 0 ? n->seconds : 1;

    printf("\n");
    line("chats at a time", "%d at most", n->most_running);
    if (u->page_tokens > 0) {
        line("pages", "%d of %d used at the peak, of %d tokens each; %d in use now", u->peak, u->pages, u->page_tokens,
             u->used);
        line("peak utilisation", "%.1f %% of the pages", 100.0 * u->peak / u->pages);
        line("copies, evictions", "%lld, %lld pages", u->copies, u->evicted);
    } else {
        line("slots for chats", "%d of %d used at the peak; %d in use now", u->peak, u->pages, u->used);
    }
    line("memory at the peak", "%.1f MiB of keys and values; in f16 the same would take %.2f times as much",
         (double)u->peak_bytes / (1 << 20), u->peak_bytes ? (double)u->peak_f16_bytes / (double)u->peak_bytes : 0.0);
    if (u->token_bytes > 0)
        line("bytes a token", "%.1f planned at %d tokens; %d in f16", u->token_bytes, u->planned_tokens,
             u->f16_token_bytes);
    line("hit tokens", "%lld found in the cache", n->hit_tokens);
    line("computed tokens", "%lld", n->computed_tokens);
    if (n->forked || n->preempted)
        line("forked, preempted", "%lld, %lld chats", n->forked, n->preempted);
    if (n->drafted)
        line("drafted tokens", "%lld, of which %lld were right", n->drafted, n->accepted);
    line("made", "%lld tokens in %lld steps, %.2f s: %.1f tokens/s", n->made_tokens, n->steps, n->seconds,
         (double)n->made_tokens / seconds);
    if (u->page_tokens > 0)
        line("calls of kvfolio", "%.3f %% of the time, %.1f us a step", 100.0 * u->seconds / seconds,
             n->steps > 0 ? 1e6 * u->seconds / (double)n->steps : 0.0);
}
