/* The command line of kvf-chat. */
#ifndef ENGINE_OPTIONS_H
#define ENGINE_OPTIONS_H

#include "error.h"
#include "kv_groups.h"
#include "sampler.h"

struct options {
    const char *model;     /* a path, or "random" */
    const char *file;      /* of prompts, NULL if none */
    const char *system;    /* system text of the chat template */
    char **prompts;        /* [n_prompts] what is left of argv */
    int n_prompts;
    int raw;               /* 1 = the prompts are the text, without a template */
    int contiguous;        /* 1 = no pages */
    struct kv_spec kv;     /* how keys and values are kept */
    int page_tokens, pages; /* page_tokens 0 = what the format needs */
    int chunk, threads, batch, samples, draft, max_new;
    int endless;           /* 1 = the token that ends a turn does not end it */
    const char *evict;     /* the name of a policy, NULL = all tokens stay */
    const char *removal;
    const char *evict_weights; /* a path, NULL = none */
    int budget, slack, sinks, recent; /* -1 = the policy's own; budget 0 = not given */
    int evict_before, meter;
    int quiet;             /* 1 = no table at the end */
    struct sampling sampling;
};

extern const char options_usage[]; /* for printf, with kv_format_names() */

/* Reads argv. Returns 0; 1 if help was asked for; -1 and a reason. */
int options_read(struct options *options, int argc, char **argv, struct error *error);

#endif
