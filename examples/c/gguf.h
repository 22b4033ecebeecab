/*
 * GGUF version 3 files: metadata and tensors of a model, checked completely when the file is opened.
 *
 * After gguf_open succeeds every string, array and tensor the accessors return lies inside the mapped file.
 * Strings are not terminated by zero.
 */
#ifndef ENGINE_GGUF_H
#define ENGINE_GGUF_H

#include "error.h"
#include "file.h"
#include "matmul.h"

#include <stdint.h>

struct gguf;

struct gguf_string {
    const char *data;
    size_t size; /* in bytes */
};

/* Maps and checks a file. NULL and a reason on failure. */
struct gguf *gguf_open(const char *path, struct error *error);

/* Frees it; harmless on NULL. */
void gguf_close(struct gguf *gguf);

/* Moves the mapping to the caller, who must keep it while anything read from the file is in use. */
struct file gguf_take_file(struct gguf *gguf);

/* Returns 1 iff metadata `key` exists. */
int gguf_has(const struct gguf *gguf, const char *key);

/* Reads metadata `key`. Any integer type will do for an integer, if the value fits; float means f32 or f64. */
int gguf_int(const struct gguf *gguf, const char *key, int *value, struct error *error);
int gguf_float(const struct gguf *gguf, const char *key, float *value, struct error *error);
int gguf_get_string(const struct gguf *gguf, const char *key, struct gguf_string *value, struct error *error);

/* Reads an array of strings; the caller frees *values. */
int gguf_strings(const struct gguf *gguf, const char *key, struct gguf_string **values, size_t *count,
                 struct error *error);

/* Returns the elements of an i32 array, which may be unaligned, NULL iff there is no such key or type. */
const unsigned char *gguf_i32_array(const struct gguf *gguf, const char *key, size_t *count);

/* Finds tensor `name` of shape [rows][cols] (one dimension is one row), of any type the engine computes with. */
int gguf_matrix(const struct gguf *gguf, const char *name, int rows, int cols, struct matrix *matrix,
                struct error *error);

/* Reads the number of rows of tensor `name`. */
int gguf_tensor_rows(const struct gguf *gguf, const char *name, int *rows, struct error *error);

/* Returns 1 iff tensor `name` exists. */
int gguf_has_tensor(const struct gguf *gguf, const char *name);

#endif
