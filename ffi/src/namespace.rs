//! Namespaces
//!
//! Nothing is shared between two namespaces: tenants, models, adapters and formats are kept apart by them. The default one
//! (0) has the all-zero key and is always open.

use kvfolio::{NamespaceId, NamespaceKey};

use crate::cache::{kvf_cache, pool_id};
use crate::ptr;
use crate::short::explain;
use crate::status::{KVF_ERR_UNSUPPORTED, Status, answer, kvf_status};
use crate::types::{kvf_namespace, kvf_namespace_key, kvf_shortage};

/// Gives the namespace with this key, opening it if needed. O(namespaces).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_namespace_open(
    cache: *mut kvf_cache,
    key: *const kvf_namespace_key,
    ns: *mut kvf_namespace,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let open = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let (key, ns, shortage) = unsafe { (read_key(key)?, ptr::out(ns)?, ptr::optional_output(shortage)?) };
        ns.set(explain(cache.cache.namespace_open(&key), shortage)?.to_bits());
        Ok(())
    };
    answer(open())
}

/// Closes a namespace: its cached pages are freed. KVF_ERR_BUSY while it has sequences, tickets or transfers, or is the
/// default one. O(its pages).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_namespace_close(cache: *mut kvf_cache, ns: kvf_namespace) -> kvf_status {
    let close = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        Ok(cache.cache.namespace_close(NamespaceId::from_bits(ns))?)
    };
    answer(close())
}

/// Limits the pages of a pool that a namespace may keep, used and cached together. 0 lifts the limit. Set the first one
/// before the namespace has pages: else KVF_ERR_BUSY.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_namespace_set_quota(
    cache: *mut kvf_cache,
    ns: kvf_namespace,
    pool: u32,
    pages: u32,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let limit = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let shortage = unsafe { ptr::optional_output(shortage) }?;
        let pool = pool_id(pool)?;
        explain(cache.cache.set_quota(NamespaceId::from_bits(ns), pool, pages), shortage)
    };
    answer(limit())
}

/// Withdraws everything of a namespace from the index. Pages in use become private, cached ones free, tickets stale.
/// Sequences go on, but publish nothing any more. KVF_ERR_BUSY while a plan is open. O(pages).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_namespace_clear(cache: *mut kvf_cache, ns: kvf_namespace) -> kvf_status {
    let clear = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        Ok(cache.cache.clear(Some(NamespaceId::from_bits(ns)))?)
    };
    answer(clear())
}

/// Does so for all namespaces.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_namespace_clear_all(cache: *mut kvf_cache) -> kvf_status {
    let clear = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        Ok(cache.cache.clear(None)?)
    };
    answer(clear())
}

/// A namespace's identity.
///
/// # Safety
/// Rule (a).
pub(crate) unsafe fn read_key(key: *const kvf_namespace_key) -> Result<NamespaceKey, Status> {
    // SAFETY: the caller's.
    let key = unsafe { ptr::input(key) }?;
    if key.reserved != 0 {
        return Err(Status(KVF_ERR_UNSUPPORTED));
    }
    Ok(NamespaceKey {
        tenant: key.tenant,
        model: key.model,
        adapter: key.adapter,
        adapter_generation: key.adapter_generation,
        format: key.format,
    })
}
