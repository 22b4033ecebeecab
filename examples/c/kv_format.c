/* The formats of keys and values. */
#include "kv_format.h"

#include <stdio.h>
#include <string.h>

/* An element without groups, in groups of G channels of a token (0 = the whole row), in groups of G tokens. */
#define PLAIN(e) { KVF_ELEMENT_##e, KVF_AXIS_NONE, 0, KVF_SCALE_NONE, 0, 0 }
#define ALONG_CHANNELS(e, g) { KVF_ELEMENT_##e, KVF_AXIS_TOKEN, g, KVF_SCALE_NONE, 0, 0 }
#define ALONG_TOKENS(e, g) { KVF_ELEMENT_##e, KVF_AXIS_CHANNEL, g, KVF_SCALE_NONE, 0, 0 }
/* FP8 with a scale for each token and head, from what is stored. */
#define SCALED(e) { KVF_ELEMENT_##e, KVF_AXIS_NONE, 0, KVF_SCALE_TOKEN_HEAD, KVF_FORMAT_DYNAMIC, 0 }
#define BOTH(f) f, f

static const struct kv_format formats[KV_FORMATS] = {
    { "f32", KV_EXACT, BOTH(PLAIN(F32)), 1, 0, 0 },
    { "f16", KV_EXACT, BOTH(PLAIN(F16)), 1, 0, 0 },
    { "bf16", KV_EXACT, BOTH(PLAIN(BF16)), 1, 0, 0 },
    { "int8", KV_DIRECT, BOTH(ALONG_CHANNELS(INT8, 0)), 1, 0, 0 },
    { "int8-g32", KV_DIRECT, BOTH(ALONG_CHANNELS(INT8, 32)), 1, 0, 0 },
    { "int8s", KV_DIRECT, BOTH(ALONG_CHANNELS(INT8_SYMMETRIC, 0)), 1, 0, 0 },
    { "int4", KV_DIRECT, BOTH(ALONG_CHANNELS(INT4, 0)), 1, 0, 0 },
    { "int4-g32", KV_DIRECT, BOTH(ALONG_CHANNELS(INT4, 32)), 1, 0, 0 },
    { "int4-channel", KV_SEALED, ALONG_TOKENS(INT4, 32), ALONG_CHANNELS(INT4, 0), 32, 0, 0 },
    { "kivi2", KV_SEALED, ALONG_TOKENS(INT2, 32), ALONG_CHANNELS(INT2, 32), 32, 128, 0 },
    { "fp8", KV_DIRECT, BOTH(SCALED(FP8_E4M3FN)), 1, 0, 0 },
    { "fp8-e5m2", KV_DIRECT, BOTH(SCALED(FP8_E5M2)), 1, 0, 0 },
    { "q8_0", KV_DIRECT, BOTH(PLAIN(Q8_0)), 1, 0, 0 },
    { "q4_0", KV_DIRECT, BOTH(PLAIN(Q4_0)), 1, 0, 0 },
    { "nvfp4", KV_DIRECT, BOTH(PLAIN(NVFP4)), 1, 0, 0 },
    { "mxfp4", KV_DIRECT, BOTH(PLAIN(MXFP4)), 1, 0, 0 },
    { "int4-had", KV_DIRECT, BOTH(ALONG_CHANNELS(INT4, 0)), 1, 0, 1 },
};

const char *kv_format_names(void)
{
    static char names[KV_FORMATS * 16];
    size_t at = 0;

    for (int i = 0; i < KV_FORMATS && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s",
                               i == 0 ? "" : i + 1 < KV_FORMATS ? ", " : " or ", formats[i].name);
    return names;
}

const struct kv_format *kv_format_at(int n)
{
    return &formats[n];
}

const struct kv_format *kv_format_find(const char *name, size_t length)
{
    for (int i = 0; i < KV_FORMATS; i++) {
        if (strlen(formats[i].name) == length && memcmp(formats[i].name, name, length) == 0)
            return &formats[i];
    }
    return NULL;
}
