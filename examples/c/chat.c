/*
 * kvf-chat: serves several chats at once with a real model, over pages managed by kvfolio.
 *
 *     kvf-chat "What is a cache?" "What is a page?"      two chats at a time
 *     kvf-chat                                           one conversation, read from the standard input
 *
 * Exit status: 0, 1 when something failed on the way, 2 for a bad command line or a file that cannot be used.
 */
#include "cache_contiguous.h"
#include "chat_evict.h"
#include "console.h"
#include "forward.h"
#include "load.h"
#include "options.h"
#include "prompts.h"
#include "scheduler.h"
#include "step.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct chat {
    struct options options;
    struct loaded loaded;
    struct threads *threads;
    struct cache *cache;
    struct engine *engine;
    struct console *console;
    struct scheduler *scheduler;
    struct evict_weights weights;
};

static int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int complain(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("kvf-chat: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return status;
}

/* Loads the model, or says what to do. */
static int load_model(struct chat *chat)
{
    const char *name = chat->options.model;
    struct error error;

    if (strcmp(name, "random") != 0 && access(name, R_OK) != 0)
        return complain(2, "there is no model at %s\n"
                           "  scripts/fetch_model.sh fetches SmolLM2-135M-Instruct (98 MB); or name another file by\n"
                           "  --model PATH; or try --model random, which needs no file and makes no sense", name);
    if (load(&chat->loaded, name, &error) != 0)
        return complain(2, "%s", error.text);
    return 0;
}

/* Makes cache, engine and scheduler. Slots without pages get as much memory as the pages, in equal parts. */
static int start(struct chat *chat, int prefixed)
{
    const struct options *o = &chat->options;
    const struct model *model = &chat->loaded.model;
    const int context = model->shape.context;
    struct scheduler_config config = {
        .max_running = o->batch, .chunk = o->chunk, .draft = o->draft, .context = context,
        .end = o->endless ? -1 : tokenizer_end(chat->loaded.tokenizer), .on_token = console_token,
    };
    const int rows = scheduler_rows(&config);
    const struct step_config step = { o->page_tokens, o->pages, o->batch + 1, rows, o->kv };
    struct kv_groups groups;
    struct error error;
    int capacity;

    if (kv_groups_make(&groups, &model->shape, &o->kv, o->page_tokens, &error) != 0)
        return complain(2, "%s", error.text);
    config.page_tokens = o->contiguous || o->evict ? 0 : groups.page_tokens;
    capacity = o->pages * groups.page_tokens / o->batch;
    capacity = (capacity < context ? capacity : context) + o->draft + 1;
    chat->threads = threads_new(o->threads);
    if (!chat->threads)
        return complain(1, "threads cannot be started");
    chat->console = console_new(chat->loaded.tokenizer, prefixed, o->samples, &error);
    config.user = chat->console;
    chat->cache = !chat->console ? NULL
                  : o->evict ? chat_evict_new(o, &model->shape, chat->threads, rows, &chat->weights, &error)
                  : o->contiguous
                      ? cache_contiguous_new(&model->shape, chat->threads, &o->kv, o->page_tokens, o->batch, capacity,
                                             rows, &error)
                      : step_new(&step, &model->shape, chat->threads, &error);
    chat->engine = chat->cache ? engine_new(model, chat->threads, rows, &error) : NULL;
    chat->scheduler = chat->engine ? scheduler_new(&config, model, chat->engine, chat->cache, &error) : NULL;
    return chat->scheduler ? 0 : complain(2, "%s", error.text);
}

static void stop(struct chat *chat)
{
    scheduler_free(chat->scheduler);
    engine_free(chat->engine);
    if (chat->cache)
        chat->cache->free(chat->cache);
    console_free(chat->console);
    threads_free(chat->threads);
    evict_weights_free(&chat->weights);
    unload(&chat->loaded);
}

/* Submits one text. Returns the request's id, -1 when it was refused and a line says why. */
static int submit(struct chat *chat, const char *text, size_t size)
{
    const struct options *o = &chat->options;
    struct error error;
    int32_t *ids;
    size_t n;
    int id;

    if (tokenizer_encode(chat->loaded.tokenizer, text, size, &ids, &n, &error) != 0)
        return complain(-1, "%s", error.text);
    id = scheduler_submit(chat->scheduler, ids, (int)n, o->max_new, o->samples, &o->sampling, &error);
    free(ids);
    return id < 0 ? complain(-1, "%s", error.text) : id;
}

/* Steps until all requests are done. Returns 1 when one of them did not get as far as it should. */
static int run(struct chat *chat)
{
    struct error error;
    int left, cut_short = 0;

    do {
        long long done = 0, all = 0;
        left = scheduler_step(chat->scheduler, &error);
        for (int i = 0; i < scheduler_requests(chat->scheduler); i++) {
            const struct request *r = scheduler_request(chat->scheduler, i);
            all += r->state == REQUEST_DONE ? 0 : r->n_prompt;
            done += r->state == REQUEST_DONE ? 0 : r->len < r->n_prompt ? r->len : r->n_prompt;
        }
        console_progress(chat->console, done, all);
    } while (left > 0);
    for (int i = 0; i < scheduler_requests(chat->scheduler); i++)
        cut_short |= scheduler_request(chat->scheduler, i)->end == END_NO_ROOM;
    return left < 0 ? complain(1, "%s", error.text) : cut_short;
}

/* A prompt in the chat template, or as it is. */
static int write_prompt(const struct options *o, const char *prompt, struct text_buffer *text)
{
    *text = (struct text_buffer){ NULL, 0 };
    if (o->raw)
        return text_add_string(text, prompt);
    return text_add_turn(text, "system", o->system) == 0 && text_add_turn(text, "user", prompt) == 0 &&
                   text_add_opening(text) == 0
               ? 0 : -1;
}

/* Serves all prompts at the same time. */
static int serve(struct chat *chat, char **prompts, int n)
{
    int submitted = 0;

    for (int i = 0; i < n; i++) {
        struct text_buffer text;
        if (write_prompt(&chat->options, prompts[i], &text) != 0)
            return complain(1, "out of memory");
        if (n > 1)
            console_prompt(chat->console, i, prompts[i]);
        submitted += submit(chat, text.bytes, text.size) >= 0;
        free(text.bytes);
    }
    if (submitted < n)
        return 2;
    return run(chat);
}

/* Appends the text that a request made to the conversation. */
static int add_answer(struct chat *chat, int id, struct text_buffer *text)
{
    const struct request *r = scheduler_request(chat->scheduler, id);
    struct decoder decoder;
    struct error error;
    const char *piece;
    size_t size;
    int status = 0;

    if (decoder_init(&decoder, chat->loaded.tokenizer, &error) != 0)
        return -1;
    for (int i = r->n_prompt; i < r->n_tokens - (r->end == END_TOKEN) && status == 0; i++) {
        piece = decoder_push(&decoder, r->tokens[i], &size);
        status = text_add(text, piece, size);
    }
    decoder_free(&decoder);
    return status == 0 ? text_add_string(text, chat->options.raw ? "" : "<|im_end|>\n") : status;
}

/* One conversation. Each turn's prompt is all that was said, which the cache still has. */
static int converse(struct chat *chat)
{
    const struct options *o = &chat->options;
    const int terminal = isatty(STDIN_FILENO);
    struct text_buffer text = { NULL, 0 };
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    int status = o->raw ? text_add_string(&text, "") : text_add_turn(&text, "system", o->system);

    while (status == 0) {
        int id;
        if (terminal) {
            printf("> ");
            fflush(stdout);
        }
        n = getline(&line, &cap, stdin);
        if (n < 0)
            break;
        if (n > 0 && line[n - 1] == '\n')
            line[--n] = '\0';
        if (n == 0)
            continue;
        if (o->raw)
            status = text_add(&text, line, (size_t)n);
        else
            status = text_add_turn(&text, "user", line) == 0 ? text_add_opening(&text) : -1;
        if (status != 0)
            break;
        id = submit(chat, text.bytes, text.size);
        status = id < 0 ? 1 : run(chat);
        if (status == 0)
            status = add_answer(chat, id, &text);
    }
    if (terminal)
        printf("\n");
    free(line);
    free(text.bytes);
    return status < 0 ? complain(1, "out of memory") : status;
}

int main(int argc, char **argv)
{
    struct chat chat = { 0 };
    struct prompts file = { NULL, 0 };
    struct cache_usage usage;
    struct error error;
    char **prompts;
    int n, status = options_read(&chat.options, argc, argv, &error);

    if (status > 0) {
        printf(options_usage, kv_format_names());
        return 0;
    }
    if (status < 0)
        return complain(2, "%s\nTry kvf-chat --help.", error.text);
    if (chat.options.file && prompts_read(&file, chat.options.file, &error) != 0)
        return complain(2, "%s", error.text);
    prompts = chat.options.file ? file.texts : chat.options.prompts;
    n = chat.options.file ? file.n : chat.options.n_prompts;

    status = load_model(&chat);
    if (status == 0)
        status = start(&chat, n > 1 || chat.options.samples > 1);
    if (status == 0)
        status = n > 0 ? serve(&chat, prompts, n) : converse(&chat);
    if (status <= 1 && chat.scheduler && !chat.options.quiet) {
        chat.cache->usage(chat.cache, &usage);
        console_table(scheduler_counts(chat.scheduler), &usage);
        if (chat.options.evict)
            chat_evict_table(chat.cache, chat.loaded.model.shape.kv_heads);
    }
    stop(&chat);
    prompts_free(&file);
    return status;
}
