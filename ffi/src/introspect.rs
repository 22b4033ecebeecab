//! Statistics and diagnosis

use crate::cache::{kvf_cache, pool_id};
use crate::ptr;
use crate::short::needed;
use crate::status::{KVF_ERR_CORRUPT, Status, answer, kvf_status};
use crate::types::{kvf_page_info, kvf_pool_stats, kvf_stats, kvf_violation};

/// Reads what the whole cache is now. O(1).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_stats_read(cache: *const kvf_cache, stats: *mut kvf_stats) -> kvf_status {
    let read = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rule (a).
        let stats = unsafe { ptr::output(stats) }?;
        let now = cache.cache.stats();
        stats.set(&kvf_stats {
            struct_size: 0,
            sequences: now.sequences,
            tickets: now.tickets,
            transfers: now.transfers,
            free_chunks: now.free_chunks,
            free_key_parts: now.free_key_parts,
            indexed_pages: now.indexed_pages,
            reserved: 0,
            events: now.events,
            waiting_events: now.waiting_events,
            queried_tokens: now.counters.queried_tokens,
            hit_tokens: now.counters.hit_tokens,
            committed_tokens: now.counters.committed_tokens,
            published_pages: now.counters.published_pages,
            duplicate_pages: now.counters.duplicate_pages,
            evicted_pages: now.counters.evicted_pages,
            copied_pages: now.counters.copied_pages,
            plans: now.counters.plans,
            tick: cache.cache.now(),
        });
        Ok(())
    };
    answer(read())
}

/// Reads what a pool is now. O(1).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_pool_stats_read(
    cache: *const kvf_cache,
    pool: u32,
    stats: *mut kvf_pool_stats,
) -> kvf_status {
    let read = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rule (a).
        let stats = unsafe { ptr::output(stats) }?;
        let now = cache.cache.pool_stats(pool_id(pool)?)?;
        stats.set(&kvf_pool_stats {
            struct_size: 0,
            pages: now.pages,
            used: now.used,
            cached: now.cached,
            free_pages: now.free,
            pending: now.pending,
            peak_used: now.peak_used,
            utilisation: now.utilisation(),
        });
        Ok(())
    };
    answer(read())
}

/// Reads what a page is now, for diagnosis. O(live table entries).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_page_info_read(
    cache: *const kvf_cache,
    pool: u32,
    page: u32,
    info: *mut kvf_page_info,
) -> kvf_status {
    let read = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rule (a).
        let info = unsafe { ptr::output(info) }?;
        let now = cache.cache.page_info(pool_id(pool)?, kvfolio::PageId::new(page))?;
        info.set(&kvf_page_info {
            struct_size: 0,
            state: now.state as u32,
            indexed: u32::from(now.indexed),
            refs: now.refs,
        });
        Ok(())
    };
    answer(read())
}

/// `digest` gets 64 bits over the logical state, equal on every machine for the same calls. A call that fails leaves it as
/// it was. O(pages + table entries + tokens).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cache_digest(cache: *const kvf_cache, digest: *mut u64) -> kvf_status {
    let read = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rule (a).
        let digest = unsafe { ptr::out(digest) }?;
        digest.set(cache.cache.digest());
        Ok(())
    };
    answer(read())
}

/// Looks for a violated invariant. Level 0: counters. Level 1: pages and lists, O(pages). Level 2: references, tree and
/// tables. Level 2 needs `scratch`, which is overwritten; `n_needed`, which may be NULL, gets its length on
/// KVF_ERR_SHORT_BUFFER. Answers KVF_OK and writes rule 0 to `violation` if there is none, else KVF_ERR_CORRUPT and the
/// first one.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cache_check(
    cache: *const kvf_cache,
    level: u32,
    scratch: *mut u32,
    cap: usize,
    n_needed: *mut usize,
    violation: *mut kvf_violation,
) -> kvf_status {
    let check = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        let (scratch, n_needed, violation) =
            // SAFETY: rules (a) and (b).
            unsafe { (ptr::slice_mut(scratch, cap)?, ptr::optional_out(n_needed)?, ptr::output(violation)?) };
        match needed(cache.cache.check(level, scratch), n_needed)? {
            Ok(()) => {
                violation.set(&kvf_violation { struct_size: 0, rule: 0, index: 0 });
                Ok(())
            }
            Err(found) => {
                violation.set(&kvf_violation { struct_size: 0, rule: found.rule as u32, index: found.index });
                Err(Status(KVF_ERR_CORRUPT))
            }
        }
    };
    answer(check())
}
