/* Prompts of kvf-chat. */
#include "prompts.h"

#include "file.h"

#include <stdlib.h>
#include <string.h>

/* Adds text[size] without the line ends around it, unless nothing is left. */
static int add(struct prompts *prompts, const char *text, size_t size)
{
    char **texts, *copy;

    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
        size--;
    while (size > 0 && (*text == '\n' || *text == '\r'))
        text++, size--;
    if (size == 0)
        return 0;
    texts = realloc(prompts->texts, ((size_t)prompts->n + 1) * sizeof *texts);
    if (texts)
        prompts->texts = texts;
    copy = malloc(size + 1);
    if (!texts || !copy) {
        free(copy);
        return -1;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    prompts->texts[prompts->n++] = copy;
    return 0;
}

/* Returns the end of the prompt that begins at `at`. */
static const char *prompt_end(const char *at, const char *end, int paragraphs)
{
    for (; at < end; at++) {
        if (*at == '\n' && (!paragraphs || at + 1 == end || at[1] == '\n' || (at[1] == '\r' && at + 2 < end)))
            return at;
    }
    return end;
}

/* Returns 1 iff a blank line stands between two lines. */
static int has_paragraphs(const char *at, const char *end)
{
    while (end > at && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    while (at < end && (*at == '\n' || *at == '\r'))
        at++;
    for (; at + 1 < end; at++) {
        if (at[0] == '\n' && (at[1] == '\n' || (at[1] == '\r' && at[2] == '\n')))
            return 1;
    }
    return 0;
}

int prompts_read(struct prompts *prompts, const char *path, struct error *error)
{
    struct file file;
    const char *at, *end;
    int paragraphs, status = 0;

    *prompts = (struct prompts){ NULL, 0 };
    if (file_map(&file, path, error) != 0)
        return -1;
    at = (const char *)file.data;
    end = at + file.size;
    paragraphs = has_paragraphs(at, end);
    while (status == 0 && at < end) {
        const char *stop = prompt_end(at, end, paragraphs);
        status = memchr(at, '\0', (size_t)(stop - at)) ? fail(error, "%s is not a text file", path)
                 : add(prompts, at, (size_t)(stop - at)) != 0 ? fail(error, "out of memory for the prompts of %s", path)
                                                              : 0;
        at = stop + 1;
    }
    if (status == 0 && prompts->n == 0)
        status = fail(error, "%s has no prompts", path);
    file_unmap(&file);
    if (status != 0)
        prompts_free(prompts);
    return status;
}

void prompts_free(struct prompts *prompts)
{
    for (int i = 0; i < prompts->n; i++)
        free(prompts->texts[i]);
    free(prompts->texts);
    *prompts = (struct prompts){ NULL, 0 };
}

int text_add(struct text_buffer *text, const char *bytes, size_t size)
{
    char *grown = realloc(text->bytes, text->size + size + 1);
    if (!grown)
        return -1;
    memcpy(grown + text->size, bytes, size);
    text->bytes = grown;
    text->size += size;
    grown[text->size] = '\0';
    return 0;
}

int text_add_string(struct text_buffer *text, const char *string)
{
    return text_add(text, string, strlen(string));
}

int text_add_turn(struct text_buffer *text, const char *role, const char *content)
{
    return text_add_string(text, "<|im_start|>") == 0 && text_add_string(text, role) == 0 &&
                   text_add_string(text, "\n") == 0 && text_add_string(text, content) == 0 &&
                   text_add_string(text, "<|im_end|>\n") == 0
               ? 0 : -1;
}

int text_add_opening(struct text_buffer *text)
{
    return text_add_string(text, "<|im_start|>assistant\n");
}
