/* trace_main.c - the trace on a machine without an operating system, or with TRACE_HOST on one that has one */
#include "stream.h"
#include "trace.h"

#ifdef TRACE_HOST
#include <stdio.h>

void stream_line(const char *line)
{
    puts(line);
}
#else
#include "semihosting.h"

void stream_line(const char *line)
{
    semihosting_write(line);
    semihosting_write("\n");
}
#endif

int main(void)
{
    return trace_run();
}
