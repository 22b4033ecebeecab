/* Reference results of a model: reads the words that scripts/reference_to_txt.py writes. */
#include "reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    char *at;
    const char *path;
    struct error *error;
    int failed; /* sticky */
};

/* Cuts the next word out of the text; "" once something is wrong. */
static char *word(struct reader *r)
{
    static char nothing[1];
    char *begin = r->at + strspn(r->at, " \n"), *end = begin + strcspn(begin, " \n");

    if (!r->failed && begin == end)
        r->failed = fail(r->error, "%s: ends too early", r->path);
    if (r->failed)
        return nothing;
    r->at = *end ? end + 1 : end;
    *end = 0;
    return begin;
}

static void expect(struct reader *r, const char *keyword)
{
    const char *found = word(r);
    if (!r->failed && strcmp(found, keyword) != 0)
        r->failed = fail(r->error, "%s: '%.40s' where '%s' should be", r->path, found, keyword);
}

static int number(struct reader *r)
{
    return atoi(word(r));
}

static void *allocate(struct reader *r, size_t bytes)
{
    void *memory = malloc(bytes + 1);
    if (!memory && !r->failed)
        r->failed = fail(r->error, "%s: out of memory", r->path);
    return memory;
}

static struct id_list id_list(struct reader *r)
{
    struct id_list list = { NULL, number(r) };
    if (list.count < 0 || list.count > 1 << 20)
        list.count = 0;
    list.ids = allocate(r, (size_t)list.count * sizeof *list.ids);
    for (int i = 0; i < list.count && !r->failed; i++)
        list.ids[i] = number(r);
    return list;
}

static struct text text(struct reader *r)
{
    const char *hex = word(r);
    const size_t digits = *hex ? strlen(hex) - 1 : 0;
    struct text text = { allocate(r, digits / 2), digits / 2 };
    for (size_t i = 0; i < text.size && !r->failed; i++) {
        const char pair[3] = { hex[1 + 2 * i], hex[2 + 2 * i], 0 };
        text.bytes[i] = (char)strtol(pair, NULL, 16);
    }
    return text;
}

static void read_run(struct reader *r, struct reference_run *run)
{
    run->name = word(r);
    run->text = text(r);
    expect(r, "prompt");
    run->prompt = id_list(r);
    expect(r, "greedy");
    run->greedy = id_list(r);
}

static void read_window(struct reader *r, struct reference_window *window)
{
    window->file = word(r);
    window->start = number(r);
    window->count = number(r);
    window->sha256 = word(r);
    window->mean_nll = atof(word(r));
    expect(r, "top");
    window->tops = number(r);
    if (window->tops > REFERENCE_POSITIONS && !r->failed)
        r->failed = fail(r->error, "%s: %d positions are too many", r->path, window->tops);
    for (int i = 0; i < window->tops && !r->failed; i++) {
        window->top[i].position = number(r);
        for (int j = 0; j < REFERENCE_TOP; j++) {
            window->top[i].ids[j] = number(r);
            window->top[i].logits[j] = (float)atof(word(r));
        }
    }
}

static char *read_file(const char *path, struct error *error)
{
    FILE *file = fopen(path, "rb");
    char *content = NULL;
    long size = -1;

    if (file && fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size >= 0)
        content = malloc((size_t)size + 1);
    if (content) {
        rewind(file);
        content[fread(content, 1, (size_t)size, file)] = 0;
    } else {
        fail(error, "%s: cannot read", path);
    }
    if (file)
        fclose(file);
    return content;
}

int reference_read(struct reference *reference, const char *path, struct error *error)
{
    struct reader r = { read_file(path, error), path, error, 0 };
    const char *kind;

    *reference = (struct reference){ 0 };
    if (!r.at)
        return -1;
    while (!r.failed && strcmp(kind = word(&r), "end") != 0) {
        if (strcmp(kind, "generation") == 0 && reference->n_runs < REFERENCE_ITEMS) {
            read_run(&r, &reference->runs[reference->n_runs++]);
        } else if (strcmp(kind, "window") == 0 && reference->n_windows < REFERENCE_ITEMS) {
            read_window(&r, &reference->windows[reference->n_windows++]);
        } else if (strcmp(kind, "case") == 0 && reference->n_cases < REFERENCE_ITEMS) {
            struct reference_case *item = &reference->cases[reference->n_cases++];
            item->text = text(&r);
            item->ids = id_list(&r);
        } else if (!r.failed) {
            r.failed = fail(error, "%s: cannot take a record '%.40s'", path, kind);
        }
    }
    return r.failed ? -1 : 0;
}
