//! Keys of pages
//!
//! What others know pages by: chained hashes of tokens, made without a cache. A router that hashes a prompt as a cache does finds
//! in that cache's events which pages it holds. Everything hashed is little-endian.

use kvfolio::{KeyChain, Sha256KeyChain};

use crate::namespace::read_key;
use crate::prefix::read_spans;
use crate::ptr;
use crate::status::{KVF_ERR_ARGUMENT, Status, answer, kvf_status};
use crate::types::{kvf_media_span, kvf_namespace_key, kvf_token};

/// Bytes of a long key.
pub const KVF_KEY_BYTES: usize = 32;

/// The key before the first page of a namespace, for a cache with this seed: xxh3-64 of the 64 bytes of tenant, model, adapter,
/// adapter_generation and format, with the seed; 1 for 0. O(1).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_keychain_begin(ns_key: *const kvf_namespace_key, seed: u64, key: *mut u64) -> kvf_status {
    let begin = || {
        // SAFETY: rule (a).
        let (namespace, key) = unsafe { (read_key(ns_key)?, ptr::out(key)?) };
        key.set(KeyChain::new(&namespace, seed).key());
        Ok(())
    };
    answer(begin())
}

/// The key of the page with these tokens, 1 to 256, that begins at token `start` behind the page with key `parent`, as kvf_event
/// has it: xxh3-64 of the tokens, 4 bytes each, with the parent for a seed; then, for each span that begins in the page and for
/// each word w of start * 2^32 + length and digest[4], k = (k ^ w) * 0x9e3779b97f4a7c15, k = k ^ (k >> 29); 1 for 0. `spans`
/// ascend. O(n + n_spans).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_keychain_next(
    parent: u64,
    start: u32,
    tokens: *const kvf_token,
    n: usize,
    spans: *const kvf_media_span,
    n_spans: usize,
    key: *mut u64,
) -> kvf_status {
    let next = || {
        // SAFETY: rule (a).
        let (tokens, spans, key) = unsafe { (read_page(tokens, n)?, read_spans(spans, n_spans)?, ptr::out(key)?) };
        key.set(KeyChain::from_key(parent, start).page(tokens, spans));
        Ok(())
    };
    answer(next())
}

/// The long key [KVF_KEY_BYTES] before the first page of a namespace: SHA-256 of "kvfolio key 1", a zero byte, and the 64 bytes
/// that kvf_keychain_begin hashes. For stores that many write to. O(1).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_keychain_begin_long(ns_key: *const kvf_namespace_key, key: *mut u8) -> kvf_status {
    let begin = || {
        // SAFETY: rules (a) and (b).
        let (namespace, key) = unsafe { (read_key(ns_key)?, ptr::slice_mut(key, KVF_KEY_BYTES)?) };
        key.copy_from_slice(&Sha256KeyChain::new(&namespace).key());
        Ok(())
    };
    answer(begin())
}

/// The long key of a page: SHA-256 of `parent` [KVF_KEY_BYTES], the number of tokens (4 bytes), the tokens, the number of spans that
/// begin in the page (4 bytes), and their start, length and digest. `key` [KVF_KEY_BYTES] may be `parent`. Arguments as for
/// kvf_keychain_next. O(n + n_spans).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_keychain_next_long(
    parent: *const u8,
    start: u32,
    tokens: *const kvf_token,
    n: usize,
    spans: *const kvf_media_span,
    n_spans: usize,
    key: *mut u8,
) -> kvf_status {
    let next = || {
        // SAFETY: rule (a).
        let (tokens, spans) = unsafe { (read_page(tokens, n)?, read_spans(spans, n_spans)?) };
        // SAFETY: rule (a); it is copied before `key`, which may be the same bytes, is borrowed.
        let parent = unsafe { ptr::slice(parent, KVF_KEY_BYTES) }?.first_chunk().copied().unwrap_or_default();
        // SAFETY: rule (b).
        let key = unsafe { ptr::slice_mut(key, KVF_KEY_BYTES) }?;
        key.copy_from_slice(&Sha256KeyChain::from_key(parent, start).page(tokens, spans));
        Ok(())
    };
    answer(next())
}

/// The tokens of a page.
///
/// # Safety
/// Rule (a).
unsafe fn read_page<'a>(tokens: *const kvf_token, n: usize) -> Result<&'a [u32], Status> {
    // SAFETY: the caller's.
    let tokens = unsafe { ptr::slice(tokens, n) }?;
    if (1..=256).contains(&n) { Ok(tokens) } else { Err(Status(KVF_ERR_ARGUMENT)) }
}
