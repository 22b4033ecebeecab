/*
 * trace.h - the first requests of a real trace, served one after another: match, compute the rest, reply, close
 *
 * The requests are an array that trace.py writes from a file of the trace. Prompts and replies are those of the workload W6:
 * lengths and blocks a sixteenth of the trace's, token ids drawn from block ids.
 */
#ifndef TRACE_H
#define TRACE_H

#include <stdint.h>

enum {
    TRACE_BLOCK = 32,   /* tokens of a block */
    TRACE_REPORT = 100, /* a line "requests N hits H evicted E digest X" every so many requests */
};

typedef struct trace_request {
    uint32_t prompt; /* tokens of the prompt, */
    uint32_t reply;  /* and of the reply */
    uint32_t first;  /* its blocks are trace_blocks[first] and so on */
} trace_request;

/* From trace.py. */
extern const uint32_t trace_requests_count, trace_blocks[];
extern const trace_request trace_requests[];

/* Serves them. 0 = every call succeeded. */
int trace_run(void);

#endif
