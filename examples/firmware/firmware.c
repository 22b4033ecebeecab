/* firmware.c - the stream on a machine without an operating system; SEED and INDEXED are chosen when it is compiled */
#include "semihosting.h"
#include "stream.h"

void stream_line(const char *line)
{
    semihosting_write(line);
    semihosting_write("\n");
}

int main(void)
{
    return stream_run(SEED, INDEXED);
}
