//! Keys of pages by which others know them: chained hashes of tokens, made with a cache or without one.
//!
//! A router that hashes a prompt as the cache does finds out which of its machines hold which pages of it. Keys are for
//! finding: the cache itself compares tokens.

use crate::index::MediaSpan;
use crate::namespace::NamespaceKey;

/// The keys that [`Event`](crate::Event)s carry, 64 bits each.
///
/// All numbers are little-endian. The first parent is `xxh3_64(tenant[4], model, adapter, adapter_generation, format)`, 64
/// bytes, with the cache's seed. A page's key is `xxh3_64(tokens)`, 4 bytes each, with the key of the page before it for a seed;
/// then for each span that begins in the page, and in it for each word `w` of `start << 32 | length, digest[4]`:
/// `k = (k ^ w) * 0x9e3779b97f4a7c15 mod 2^64, k = k ^ (k >> 29)`. A hash of 0 counts as 1.
///
/// ```
/// use kvfolio::{KeyChain, NamespaceKey};
///
/// let mut chain = KeyChain::new(&NamespaceKey::default(), 7);
/// let first = chain.page(&[1, 2, 3, 4], &[]);
/// let second = chain.page(&[5, 6, 7, 8], &[]);
/// assert_eq!(chain.tokens(), 8);
/// // The same tokens behind others are another page.
/// assert_ne!(first, KeyChain::new(&NamespaceKey::default(), 7).page(&[5, 6, 7, 8], &[]));
/// assert_ne!(first, second);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyChain {
    key: u64,
    len: u32,
}

impl KeyChain {
    /// Begins at a namespace of a cache with this seed. O(1).
    #[must_use]
    pub fn new(namespace: &NamespaceKey, seed: u64) -> Self {
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(bytemuck::cast_slice(&words_of(namespace)), seed);
        Self { key: hash.max(1), len: 0 }
    }

    /// Goes on from a page whose key is known, with `len` tokens up to its end.
    #[must_use]
    pub const fn from_key(key: u64, len: u32) -> Self {
        Self { key, len }
    }

    /// The key of the next page, which has these tokens, 1 to 256. Of `spans`, in ascending order, those count that begin in it; their
    /// starts are from the beginning of the sequence. O(tokens + spans).
    pub fn page(&mut self, tokens: &[u32], spans: &[MediaSpan]) -> u64 {
        let count = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let begins_here = |span: &&MediaSpan| span.begins_in(self.len, count);
        let key = spans.iter().filter(begins_here).fold(hash_tokens(tokens, self.key), |key, span| span.hash(key));
        self.key = key.max(1);
        self.len = self.len.saturating_add(count);
        self.key
    }

    /// The key of the last page, or of the beginning.
    #[must_use]
    pub const fn key(&self) -> u64 {
        self.key
    }

    /// Tokens so far.
    #[must_use]
    pub const fn tokens(&self) -> u32 {
        self.len
    }
}

/// Keys of 256 bits, for stores that many write to and nobody compares tokens in.
///
/// All numbers are little-endian. The first parent is the SHA-256 of `kvfolio key 1`, a zero byte, and `tenant[4], model, adapter,
/// adapter_generation, format`, 8 bytes each. A page's key is the SHA-256 of its parent's key, the number of tokens (u32), the
/// tokens, the number of spans that begin in it (u32), and of each span `start, length` (u32) and `digest[4]`.
#[cfg(feature = "sha256")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sha256KeyChain {
    key: [u8; 32],
    len: u32,
}

#[cfg(feature = "sha256")]
impl Sha256KeyChain {
    /// Begins at a namespace. O(1).
    #[must_use]
    pub fn new(namespace: &NamespaceKey) -> Self {
        use sha2::Digest;
        let words = words_of(namespace);
        let hash =
            sha2::Sha256::new().chain_update(b"kvfolio key 1\0").chain_update(bytemuck::cast_slice::<u64, u8>(&words));
        Self { key: hash.finalize().into(), len: 0 }
    }

    /// Goes on from a page whose key is known, with `len` tokens up to its end.
    #[must_use]
    pub const fn from_key(key: [u8; 32], len: u32) -> Self {
        Self { key, len }
    }

    /// The key of the next page: as [`KeyChain::page`]. O(tokens + spans).
    pub fn page(&mut self, tokens: &[u32], spans: &[MediaSpan]) -> [u8; 32] {
        use sha2::Digest;
        let count = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let mut hash = sha2::Sha256::new().chain_update(self.key).chain_update(count.to_le_bytes());
        tokens.iter().for_each(|token| hash.update(token.to_le_bytes()));
        let here = || spans.iter().filter(|span| span.begins_in(self.len, count));
        hash.update(u32::try_from(here().count()).unwrap_or(u32::MAX).to_le_bytes());
        for span in here() {
            hash.update(span.start.to_le_bytes());
            hash.update(span.length.to_le_bytes());
            span.digest.iter().for_each(|word| hash.update(word.to_le_bytes()));
        }
        self.key = hash.finalize().into();
        self.len = self.len.saturating_add(count);
        self.key
    }

    /// The key of the last page, or of the beginning.
    #[must_use]
    pub const fn key(&self) -> [u8; 32] {
        self.key
    }

    /// Tokens so far.
    #[must_use]
    pub const fn tokens(&self) -> u32 {
        self.len
    }
}

/// A namespace's key as words that lie in memory little-endian.
fn words_of(key: &NamespaceKey) -> [u64; 8] {
    let [a, b, c, d] = key.tenant;
    [a, b, c, d, key.model, key.adapter, key.adapter_generation, key.format].map(u64::to_le)
}

/// Hashes the tokens of a page, at most 256, as little-endian bytes.
#[inline]
pub(crate) fn hash_tokens(tokens: &[u32], seed: u64) -> u64 {
    if cfg!(target_endian = "little") {
        return xxhash_rust::xxh3::xxh3_64_with_seed(bytemuck::cast_slice(tokens), seed);
    }
    let mut little = [0_u32; 256];
    for (slot, token) in little.iter_mut().zip(tokens) {
        *slot = token.to_le();
    }
    let bytes: &[u8] = bytemuck::cast_slice(&little);
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes.get(..tokens.len().saturating_mul(4)).unwrap_or(bytes), seed)
}
