/* host.c - the stream on a machine with an operating system: host SEED INDEXED */
#include <stdio.h>
#include <stdlib.h>

#include "stream.h"

void stream_line(const char *line)
{
    puts(line);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: host SEED INDEXED\n");
        return 2;
    }
    return stream_run((uint32_t)strtoul(argv[1], NULL, 10), atoi(argv[2]));
}
