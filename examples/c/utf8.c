/* UTF-8, one code point at a time, over text that may be anything. */
#include "utf8.h"

#include "unicode_table.h"

int utf8_next(const char *text, size_t size, uint32_t *code)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned low = 0x80, high = 0xbf; /* what the second byte may be */
    int length;

    if (p[0] < 0x80) {
        *code = p[0];
        return 1;
    }
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return -1;
    length = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (p[0] == 0xe0)
        low = 0xa0; /* no overlong forms */
    else if (p[0] == 0xed)
        high = 0x9f; /* no surrogates */
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f; /* nothing above U+10FFFF */
    *code = p[0] & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if ((size_t)i == size)
            return 0;
        if (p[i] < low || p[i] > high)
            return -i;
        *code = *code << 6 | (p[i] & 0x3fu);
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

size_t utf8_next_or_byte(const char *text, size_t size, uint32_t *code)
{
    const int length = utf8_next(text, size, code);
    if (length > 0)
        return (size_t)length;
    *code = 0xfffd;
    return 1;
}

static int contains(const struct unicode_range *ranges, size_t count, uint32_t code)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (code > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && code >= ranges[low].first;
}

#define CONTAINS(table, code) contains(table, sizeof(table) / sizeof *(table), code)

enum unicode_class unicode_classify(uint32_t code)
{
    if (CONTAINS(unicode_letters, code))
        return UNICODE_LETTER;
    if (CONTAINS(unicode_spaces, code))
        return UNICODE_SPACE;
    return CONTAINS(unicode_numbers, code) ? UNICODE_NUMBER : UNICODE_OTHER;
}
