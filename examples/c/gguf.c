/*
 * GGUF version 3 files, little endian:
 *     "GGUF", u32 version, u64 tensors, u64 pairs,
 *     pairs   x { string key, u32 type, value },
 *     tensors x { string name, u32 n, u64 dims[n] (innermost first), u32 type, u64 offset },
 *     padding to the alignment, tensor data.
 * A string is u64 size and bytes; an array is u32 element type, u64 count and elements.
 *
 * Everything is read through a cursor that cannot leave the file.
 */
#include "gguf.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, TYPES };

static const unsigned char scalar_bytes[TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

struct pair {
    struct gguf_string key;
    uint32_t type;             /* of the value, or of the elements if `array` */
    int array;
    uint64_t count;            /* elements; 1 if not an array */
    const unsigned char *data; /* the first element */
    const unsigned char *end;  /* behind the last one */
};

struct tensor {
    struct gguf_string name;
    uint32_t type;
    uint64_t rows, cols;       /* rows: the product of all outer dimensions */
    uint64_t offset;           /* from the start of the tensor data */
    const unsigned char *data; /* NULL iff the type is not one the engine computes with */
};

struct gguf {
    struct file file;
    struct pair *pairs;
    size_t n_pairs;
    struct tensor *tensors;
    size_t n_tensors;
};

/* ---- Cursor ---- */

struct cursor {
    const unsigned char *at;
    const unsigned char *end;
    int failed; /* sticky: once a read did not fit, all reads give zeros */
};

static const unsigned char *take(struct cursor *c, uint64_t bytes)
{
    const unsigned char *at = c->at;
    if (c->failed || bytes > (uint64_t)(c->end - c->at)) {
        c->failed = 1;
        return NULL;
    }
    c->at += bytes;
    return at;
}

static uint64_t take_integer(struct cursor *c, int bytes)
{
    const unsigned char *at = take(c, (uint64_t)bytes);
    uint64_t value = 0;
    for (int i = 0; at && i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static struct gguf_string take_string(struct cursor *c)
{
    struct gguf_string s = { NULL, (size_t)take_integer(c, 8) };
    s.data = (const char *)take(c, s.size);
    if (!s.data)
        s.size = 0;
    return s;
}

static int same(struct gguf_string s, const char *text)
{
    return s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

/* ---- Parsing ---- */

static int parse_pair(struct cursor *c, struct pair *pair, struct error *error)
{
    pair->key = take_string(c);
    pair->type = (uint32_t)take_integer(c, 4);
    pair->count = 1;
    if (pair->type == ARRAY) {
        pair->array = 1;
        pair->type = (uint32_t)take_integer(c, 4);
        pair->count = take_integer(c, 8);
    }
    if (c->failed)
        return fail(error, "gguf: the file ends inside the metadata");
    if (pair->type >= TYPES || pair->type == ARRAY)
        return fail(error, "gguf: metadata '%.*s' has type %u, which is unknown or nested",
                    pair->key.size < 64 ? (int)pair->key.size : 64, pair->key.data, (unsigned)pair->type);
    pair->data = c->at;
    if (pair->type == STRING) {
        for (uint64_t i = 0; i < pair->count && !c->failed; i++)
            take_string(c);
    } else if (pair->count > UINT64_MAX / 8) {
        c->failed = 1;
    } else {
        take(c, pair->count * scalar_bytes[pair->type]);
    }
    if (c->failed)
        return fail(error, "gguf: metadata '%.*s' runs past the end of the file",
                    pair->key.size < 64 ? (int)pair->key.size : 64, pair->key.data);
    pair->end = c->at;
    return 0;
}

static int parse_tensor(struct cursor *c, struct tensor *tensor, struct error *error)
{
    uint32_t dims;

    tensor->name = take_string(c);
    dims = (uint32_t)take_integer(c, 4);
    if (c->failed || dims < 1 || dims > 4)
        return fail(error, "gguf: a tensor is cut off or has %u dimensions, not 1..4", (unsigned)dims);
    tensor->cols = take_integer(c, 8);
    tensor->rows = 1;
    for (uint32_t i = 1; i < dims; i++)
        if (__builtin_mul_overflow(tensor->rows, take_integer(c, 8), &tensor->rows))
            return fail(error, "gguf: the shape of a tensor overflows");
    tensor->type = (uint32_t)take_integer(c, 4);
    tensor->offset = take_integer(c, 8);
    if (c->failed)
        return fail(error, "gguf: the file ends inside the list of tensors");
    return 0;
}

/* Translates GGUF's number of a tensor type; -1 for those the engine does not compute with. */
static int engine_type(uint32_t type)
{
    return type == 0 ? TENSOR_F32 : type == 3 ? TENSOR_Q4_1 : type == 8 ? TENSOR_Q8_0 : -1;
}

/* Points a tensor at its data in [data, end). */
static int place_tensor(struct tensor *t, const unsigned char *data, const unsigned char *end, uint32_t alignment,
                        struct error *error)
{
    const int name = t->name.size < 64 ? (int)t->name.size : 64, type = engine_type(t->type);
    uint64_t bytes;

    if (type < 0)
        return 0;
    if (t->cols == 0 || t->cols > INT_MAX || t->rows == 0 || t->rows > INT_MAX)
        return fail(error, "gguf: tensor '%.*s' has an unusable shape", name, t->name.data);
    bytes = tensor_row_bytes((enum tensor_type)type, (int)t->cols);
    if (bytes == 0)
        return fail(error, "gguf: rows of tensor '%.*s' are not whole blocks", name, t->name.data);
    bytes *= t->rows; /* below 2^31 * 2^33 */
    if (t->offset % alignment != 0)
        return fail(error, "gguf: tensor '%.*s' is not aligned", name, t->name.data);
    if (t->offset > (uint64_t)(end - data) || bytes > (uint64_t)(end - data) - t->offset)
        return fail(error, "gguf: tensor '%.*s' runs past the end of the file", name, t->name.data);
    t->data = data + t->offset;
    return 0;
}

static int parse(struct gguf *g, struct error *error)
{
    const unsigned char *start = g->file.data;
    struct cursor c = { start, start + g->file.size, 0 };
    const unsigned char *magic = take(&c, 4);
    const uint64_t version = take_integer(&c, 4), tensors = take_integer(&c, 8), pairs = take_integer(&c, 8);
    int alignment = 32;
    size_t data;

    if (c.failed || memcmp(magic, "GGUF", 4) != 0)
        return fail(error, "gguf: not a GGUF file");
    if (version != 3)
        return fail(error, "gguf: version %llu, only 3 is supported", (unsigned long long)version);
    /* A pair takes at least 13 bytes, a tensor 32: no count makes us allocate more than a few times the file. */
    if (pairs > g->file.size / 13 || tensors > g->file.size / 32)
        return fail(error, "gguf: the file is too short for its counts");
    g->pairs = calloc((size_t)pairs + 1, sizeof *g->pairs);
    g->tensors = calloc((size_t)tensors + 1, sizeof *g->tensors);
    if (!g->pairs || !g->tensors)
        return fail(error, "gguf: out of memory");
    for (; g->n_pairs < pairs; g->n_pairs++)
        if (parse_pair(&c, &g->pairs[g->n_pairs], error) != 0)
            return -1;
    for (; g->n_tensors < tensors; g->n_tensors++)
        if (parse_tensor(&c, &g->tensors[g->n_tensors], error) != 0)
            return -1;

    if (gguf_has(g, "general.alignment") && gguf_int(g, "general.alignment", &alignment, error) != 0)
        return -1;
    if (alignment < 8 || alignment > 1 << 20 || (alignment & (alignment - 1)) != 0)
        return fail(error, "gguf: alignment %d is not a power of two from 8 on", alignment);
    data = ((size_t)(c.at - start) + (size_t)alignment - 1) / (size_t)alignment * (size_t)alignment;
    if (data > g->file.size)
        data = g->file.size;
    for (size_t i = 0; i < g->n_tensors; i++)
        if (place_tensor(&g->tensors[i], start + data, c.end, (uint32_t)alignment, error) != 0)
            return -1;
    return 0;
}

struct gguf *gguf_open(const char *path, struct error *error)
{
    struct gguf *g = calloc(1, sizeof *g);
    if (!g) {
        fail(error, "gguf: out of memory");
        return NULL;
    }
    if (file_map(&g->file, path, error) != 0 || parse(g, error) != 0) {
        gguf_close(g);
        return NULL;
    }
    return g;
}

void gguf_close(struct gguf *g)
{
    if (!g)
        return;
    free(g->pairs);
    free(g->tensors);
    file_unmap(&g->file);
    free(g);
}

struct file gguf_take_file(struct gguf *g)
{
    const struct file file = g->file;
    g->file = (struct file){ 0 };
    return file;
}

/* ---- Access ---- */

static const struct pair *find(const struct gguf *g, const char *key)
{
    for (size_t i = 0; i < g->n_pairs; i++)
        if (same(g->pairs[i].key, key))
            return &g->pairs[i];
    return NULL;
}

/* A cursor on a pair's data; parse_pair() has checked the bounds already. */
static struct cursor reread(const struct pair *pair)
{
    return (struct cursor){ pair->data, pair->end, 0 };
}

int gguf_has(const struct gguf *g, const char *key)
{
    return find(g, key) != NULL;
}

int gguf_int(const struct gguf *g, const char *key, int *value, struct error *error)
{
    const struct pair *pair = find(g, key);
    struct cursor c;
    int64_t wide;

    if (!pair)
        return fail(error, "gguf: metadata '%s' is missing", key);
    if (pair->array || pair->type == F32 || pair->type == F64 || pair->type == STRING)
        return fail(error, "gguf: metadata '%s' is not an integer", key);
    c = reread(pair);
    wide = (int64_t)take_integer(&c, scalar_bytes[pair->type]);
    if (pair->type == I8)
        wide = (int8_t)wide;
    else if (pair->type == I16)
        wide = (int16_t)wide;
    else if (pair->type == I32)
        wide = (int32_t)wide;
    if (wide < INT_MIN || wide > INT_MAX)
        return fail(error, "gguf: metadata '%s' is out of range", key);
    *value = (int)wide;
    return 0;
}

int gguf_float(const struct gguf *g, const char *key, float *value, struct error *error)
{
    const struct pair *pair = find(g, key);
    double wide;

    if (!pair)
        return fail(error, "gguf: metadata '%s' is missing", key);
    if (pair->array || (pair->type != F32 && pair->type != F64))
        return fail(error, "gguf: metadata '%s' is not a float", key);
    if (pair->type == F32) {
        memcpy(value, pair->data, sizeof *value);
    } else {
        memcpy(&wide, pair->data, sizeof wide);
        *value = (float)wide;
    }
    return 0;
}

int gguf_get_string(const struct gguf *g, const char *key, struct gguf_string *value, struct error *error)
{
    const struct pair *pair = find(g, key);
    struct cursor c;

    if (!pair)
        return fail(error, "gguf: metadata '%s' is missing", key);
    if (pair->array || pair->type != STRING)
        return fail(error, "gguf: metadata '%s' is not a string", key);
    c = reread(pair);
    *value = take_string(&c);
    return 0;
}

int gguf_strings(const struct gguf *g, const char *key, struct gguf_string **values, size_t *count,
                 struct error *error)
{
    const struct pair *pair = find(g, key);
    struct cursor c;

    if (!pair || !pair->array || pair->type != STRING)
        return fail(error, "gguf: metadata '%s' is missing or not an array of strings", key);
    *count = (size_t)pair->count;
    *values = calloc(*count + 1, sizeof **values);
    if (!*values)
        return fail(error, "gguf: out of memory for '%s'", key);
    c = reread(pair);
    for (size_t i = 0; i < *count; i++)
        (*values)[i] = take_string(&c);
    return 0;
}

const unsigned char *gguf_i32_array(const struct gguf *g, const char *key, size_t *count)
{
    const struct pair *pair = find(g, key);
    if (!pair || !pair->array || pair->type != I32)
        return NULL;
    *count = (size_t)pair->count;
    return pair->data;
}

static const struct tensor *find_tensor(const struct gguf *g, const char *name)
{
    for (size_t i = 0; i < g->n_tensors; i++)
        if (same(g->tensors[i].name, name))
            return &g->tensors[i];
    return NULL;
}

int gguf_has_tensor(const struct gguf *g, const char *name)
{
    return find_tensor(g, name) != NULL;
}

int gguf_tensor_rows(const struct gguf *g, const char *name, int *rows, struct error *error)
{
    const struct tensor *t = find_tensor(g, name);
    if (!t || t->rows > INT_MAX)
        return fail(error, "gguf: tensor '%s' is missing or too large", name);
    *rows = (int)t->rows;
    return 0;
}

int gguf_matrix(const struct gguf *g, const char *name, int rows, int cols, struct matrix *matrix, struct error *error)
{
    const struct tensor *t = find_tensor(g, name);
    if (!t)
        return fail(error, "gguf: tensor '%s' is missing", name);
    if (t->rows != (uint64_t)rows || t->cols != (uint64_t)cols)
        return fail(error, "gguf: tensor '%s' is [%llu][%llu], not [%d][%d]", name, (unsigned long long)t->rows,
                    (unsigned long long)t->cols, rows, cols);
    if (!t->data)
        return fail(error, "gguf: tensor '%s' has type %u; F32 (0), Q4_1 (3) and Q8_0 (8) are supported", name,
                    (unsigned)t->type);
    *matrix = (struct matrix){ t->data, (enum tensor_type)engine_type(t->type), rows, cols };
    return 0;
}
