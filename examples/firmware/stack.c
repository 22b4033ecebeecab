#include "stack.h"

#ifdef MEASURE_STACK
#include "text.h"

enum { FUNCTIONS = 64 };

static struct {
    const char *name;
    uint32_t most;
} seen[FUNCTIONS];
static uint32_t count;

static int same(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b)
        a++, b++;
    return *a == *b;
}

void stack_note(const char *function, uint32_t bytes)
{
    uint32_t i = 0;

    while (i < count && !same(seen[i].name, function))
        i++;
    if (i == FUNCTIONS)
        return;
    if (i == count)
        seen[count++].name = function;
    if (seen[i].most < bytes)
        seen[i].most = bytes;
}

void stack_report(void)
{
    text line = {.used = 0};
    uint32_t i;

    for (i = 0; i < count; i++) {
        text_add(&line, "stack ");
        text_add(&line, seen[i].name);
        text_add(&line, " ");
        text_add_number(&line, seen[i].most);
        text_end(&line);
    }
}
#endif
