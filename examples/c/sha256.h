/* SHA-256 (FIPS 180-4), for comparing id lists with published ones. */
#ifndef ENGINE_SHA256_H
#define ENGINE_SHA256_H

#include <stddef.h>

/* Writes the digest of data[0..size) as 64 hexadecimal digits and a zero. */
void sha256_hex(const void *data, size_t size, char hex[65]);

#endif
