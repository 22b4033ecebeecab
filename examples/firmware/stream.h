/*
 * stream.h - a stream of random operations on one cache, the same on every machine
 *
 * Plain C, no C library, no heap, no float. Every operation goes through the C API, and every answer and output goes into
 * a checksum, so two machines that print the same lines did the same.
 */
#ifndef STREAM_H
#define STREAM_H

#include <stdint.h>

enum {
    STREAM_OPERATIONS = 10000,
    STREAM_REPORT = 1000, /* a line "op N digest X outputs Y" every so many operations */
};

/*
 * Runs the stream; `indexed` is 0 for libraries without the index. 0 = every answer was one that may be. Prints "memory
 * BYTES" first, which differs between machines.
 */
int stream_run(uint32_t seed, int indexed);

/* Where the lines go: one per call, without the end of the line. The platform has it. */
void stream_line(const char *line);

#endif
