/* Cuts text into the pieces that byte-level BPE merges within. */
#include "split.h"

#include "utf8.h"

#include <string.h>

/* Class of the code point at text[0..size) and its bytes; at the end of the text a number, which ends every run. */
static enum unicode_class look(const char *text, size_t size, size_t *bytes)
{
    uint32_t code;
    *bytes = 0;
    if (size == 0)
        return UNICODE_NUMBER;
    *bytes = utf8_next_or_byte(text, size, &code);
    return unicode_classify(code);
}

static size_t contraction(const char *text, size_t size)
{
    static const char *const endings[] = { "'s", "'t", "'re", "'ve", "'m", "'ll", "'d" };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t length = strlen(endings[i]);
        if (length <= size && memcmp(text, endings[i], length) == 0)
            return length;
    }
    return 0;
}

size_t split_next(const char *text, size_t size)
{
    size_t bytes, at = 0, last;
    enum unicode_class class = look(text, size, &bytes);

    if (class == UNICODE_NUMBER)
        return bytes;
    if (contraction(text, size) > 0)
        return contraction(text, size);

    /* " ?" before a run of letters or of symbols. */
    if (text[0] == ' ') {
        const enum unicode_class next = look(text + 1, size - 1, &bytes);
        if (next == UNICODE_LETTER || next == UNICODE_OTHER) {
            class = next;
            at = 1;
        }
    }
    if (class != UNICODE_SPACE) {
        while (look(text + at, size - at, &bytes) == class)
            at += bytes;
        return at;
    }

    /* White space: all of it at the end, else all but the last, which belongs to what follows; at least one. */
    for (last = 0; look(text + at, size - at, &bytes) == UNICODE_SPACE; at += bytes)
        last = at;
    if (look(text + at, size - at, &bytes) == UNICODE_NUMBER || last == 0)
        return at;
    return last;
}
