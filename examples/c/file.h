/* Whole files in memory, read only. */
#ifndef ENGINE_FILE_H
#define ENGINE_FILE_H

#include "error.h"

#include <stddef.h>

struct file {
    const unsigned char *data; /* page aligned; NULL iff nothing is mapped */
    size_t size;               /* in bytes */
};

/* Maps the file at `path`, which must not be empty. Pages come in when they are first read. */
int file_map(struct file *file, const char *path, struct error *error);

/* Unmaps it; harmless on a zeroed struct. */
void file_unmap(struct file *file);

#endif
