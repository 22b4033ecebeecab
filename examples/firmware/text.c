#include "text.h"

#include "stream.h"

static void add(text *t, char c)
{
    if (t->used < sizeof t->line - 1)
        t->line[t->used++] = c;
}

void text_add(text *t, const char *words)
{
    for (; *words != '\0'; words++)
        add(t, *words);
}

void text_add_number(text *t, uint32_t number)
{
    uint32_t unit = 1;

    while (number / unit >= 10)
        unit *= 10;
    for (; unit > 0; unit /= 10)
        add(t, (char)('0' + number / unit % 10));
}

void text_add_hex(text *t, uint64_t number)
{
    int shift;

    for (shift = 60; shift >= 0; shift -= 4)
        add(t, "0123456789abcdef"[number >> shift & 15]);
}

void text_end(text *t)
{
    t->line[t->used] = '\0';
    stream_line(t->line);
    t->used = 0;
}
