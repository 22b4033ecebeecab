/* Check: ids of the reference's texts, and that decoding gives the text back. */
#include "check.h"

#include "file.h"
#include "sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct id_list encode(const struct check *check, const char *text, size_t size)
{
    struct id_list list;
    struct error error;
    size_t count;

    if (tokenizer_encode(check->loaded.tokenizer, text, size, &list.ids, &count, &error) != 0)
        die("%s", error.text);
    list.count = (int)count;
    return list;
}

static int is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int starts(const char *text, size_t size, const char *with)
{
    return size >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* The reference's ids of a file of stories: each trimmed, with straight quotes, encoded on its own, then joined. */
static struct id_list encode_stories(const struct check *check, const char *text, size_t size)
{
    static const char separator[] = "<|endoftext|>";
    struct id_list all = { malloc((size + 16) * 2 * sizeof *all.ids), 0 };
    char *story = malloc(size + 1);

    if (!all.ids || !story)
        die("out of memory");
    for (size_t at = 0; at < size; at += strlen(separator)) {
        size_t n = 0, begin = 0;
        for (; at < size && !starts(text + at, size - at, separator); at++) {
            if (starts(text + at, size - at, "\xe2\x80\x9c") || starts(text + at, size - at, "\xe2\x80\x9d")) {
                story[n++] = '"';
                at += 2;
            } else {
                story[n++] = text[at];
            }
        }
        while (begin < n && is_blank(story[begin]))
            begin++;
        while (n > begin && is_blank(story[n - 1]))
            n--;
        if (n > begin) {
            const struct id_list ids = encode(check, story + begin, n - begin);
            memcpy(all.ids + all.count, ids.ids, (size_t)ids.count * sizeof *ids.ids);
            all.count += ids.count;
            free(ids.ids);
        }
    }
    free(story);
    return all;
}

struct id_list window_ids(const struct check *check, const struct reference_window *window)
{
    struct id_list list;
    struct file file;
    struct error error;
    char path[4096];

    snprintf(path, sizeof path, "%s/text/%s", check->data, window->file);
    if (file_map(&file, path, &error) != 0)
        die("%s", error.text);
    list = strncmp(window->file, "tinystories", 11) == 0 ? encode_stories(check, (const char *)file.data, file.size)
                                                         : encode(check, (const char *)file.data, file.size);
    file_unmap(&file);
    return list;
}

/* Returns 1 iff `ids` decode to text. */
static int decodes_to(const struct check *check, struct id_list ids, struct text text)
{
    struct decoder decoder;
    struct error error;
    size_t at = 0, size = 0;
    int same = 1;

    if (decoder_init(&decoder, check->loaded.tokenizer, &error) != 0)
        die("%s", error.text);
    for (int i = 0; i <= ids.count && same; i++) {
        const char *piece = i < ids.count ? decoder_push(&decoder, ids.ids[i], &size) : decoder_finish(&decoder, &size);
        same = size <= text.size - at && memcmp(text.bytes + at, piece, size) == 0;
        at += size;
    }
    decoder_free(&decoder);
    return same && at == text.size;
}

int check_tokenizer(struct check *check)
{
    int failures = 0;

    for (int i = 0; i < check->reference.n_cases; i++) {
        const struct reference_case *item = &check->reference.cases[i];
        const struct id_list ids = encode(check, item->text.bytes, item->text.size);
        const int same = ids.count == item->ids.count &&
                         memcmp(ids.ids, item->ids.ids, (size_t)ids.count * sizeof *ids.ids) == 0;
        const int back = decodes_to(check, ids, item->text);
        printf("tokenizer %s case %d: %d ids %s, text %s\n", check->model_name, i, ids.count,
               same ? "agree" : "differ", back ? "comes back" : "is lost");
        failures += !same || !back;
        free(ids.ids);
    }
    for (int i = 0; i < check->reference.n_windows; i++) {
        const struct reference_window *window = &check->reference.windows[i];
        const struct id_list ids = window_ids(check, window);
        char digest[65] = "too few ids";
        if (window->start + window->count <= ids.count)
            sha256_hex(ids.ids + window->start, (size_t)window->count * sizeof *ids.ids, digest);
        printf("tokenizer %s %s %d..%d of %d ids: sha256 %s\n", check->model_name, window->file, window->start,
               window->start + window->count, ids.count, strcmp(digest, window->sha256) == 0 ? "agrees" : "differs");
        failures += strcmp(digest, window->sha256) != 0;
        free(ids.ids);
    }
    return failures;
}
