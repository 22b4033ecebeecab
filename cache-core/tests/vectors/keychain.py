"""Keys of pages in Python: prints keychain.json, which tests in Rust and C read.

    pip install xxhash
    python3 cache-core/tests/vectors/keychain.py > cache-core/tests/vectors/keychain.json
"""

import hashlib
import json
import struct

import xxhash

WORD = (1 << 64) - 1


def words(namespace):
    return struct.pack("<8Q", *namespace)


class KeyChain:
    """The keys that events carry."""

    def __init__(self, namespace, seed):
        self.key = max(xxhash.xxh3_64_intdigest(words(namespace), seed=seed), 1)
        self.len = 0

    def page(self, tokens, spans=()):
        key = xxhash.xxh3_64_intdigest(struct.pack(f"<{len(tokens)}I", *tokens), seed=self.key)
        for start, length, digest in spans:
            if self.len <= start < self.len + len(tokens):
                for word in (start << 32 | length, *digest):
                    key = (key ^ word) * 0x9E3779B97F4A7C15 & WORD
                    key ^= key >> 29
        self.len += len(tokens)
        self.key = max(key, 1)
        return self.key


class Sha256KeyChain:
    """Keys of 256 bits."""

    def __init__(self, namespace):
        self.key = hashlib.sha256(b"kvfolio key 1\0" + words(namespace)).digest()
        self.len = 0

    def page(self, tokens, spans=()):
        here = [span for span in spans if self.len <= span[0] < self.len + len(tokens)]
        data = self.key + struct.pack(f"<I{len(tokens)}II", len(tokens), *tokens, len(here))
        for start, length, digest in here:
            data += struct.pack("<II4Q", start, length, *digest)
        self.len += len(tokens)
        self.key = hashlib.sha256(data).digest()
        return self.key


def case(namespace, seed, page_tokens, tokens, spans):
    short, long = KeyChain(namespace, seed), Sha256KeyChain(namespace)
    keys, digests = [], []
    for at in range(0, len(tokens) - page_tokens + 1, page_tokens):
        keys.append(f"{short.page(tokens[at:at + page_tokens], spans):016x}")
        digests.append(long.page(tokens[at:at + page_tokens], spans).hex())
    return {
        "namespace": [f"{word:016x}" for word in namespace],
        "seed": f"{seed:016x}",
        "page_tokens": page_tokens,
        "tokens": tokens,
        "spans": [[start, length, [f"{word:016x}" for word in digest]] for start, length, digest in spans],
        "xxh3_64": keys,
        "sha256": digests,
    }


def cases():
    tenant = [0x0123456789ABCDEF, WORD, 0, 1 << 63, 7, 3, 2, 0xF16]
    text = [(i * 2654435761) % 151936 for i in range(64)]
    digest = [0xDEADBEEF, WORD, 0, 0x8000000000000001]
    spans = [(3, 1, digest), (4, 30, digest[::-1]), (47, 1, [0] * 4)]
    yield case([0] * 8, 0, 1, [0, 1, (1 << 32) - 1], [])
    yield case([0] * 8, 1, 4, text[:11], [])
    yield case(tenant, WORD, 16, text, [])
    yield case(tenant, 0x5EED, 16, text, spans)
    yield case(tenant, 0x5EED, 4, text, spans)
    yield case([0] * 8, 42, 256, [(i * i) % 50257 for i in range(512)], [])


print("[")
print(",\n".join(json.dumps(case) for case in cases()))
print("]")
