//! Cache
//!
//! The handle points into the caller's memory. The block must not be moved, copied, or changed until kvf_cache_deinit, or
//! until the cache is not used any more: there is nothing else to release.

use core::mem::MaybeUninit;

use kvfolio::{Cache, PoolId};

use crate::carve;
use crate::config::with_config;
use crate::ptr;
use crate::status::{KVF_ERR_ALIGNMENT, KVF_ERR_ARGUMENT, KVF_ERR_CONFIG, KVF_ERR_NULL, Status, answer, kvf_status};
use crate::types::{kvf_config, kvf_tick};

/// A KV-cache manager inside the caller's memory.
pub struct kvf_cache {
    /// Made from the address, so that neither foreign nor moved memory passes for a cache.
    pub(crate) mark: u64,
    pub(crate) cache: Cache<'static>,
}

impl kvf_cache {
    /// The mark of a cache at this address.
    pub(crate) fn mark_at(cache: *const Self) -> u64 {
        0x6B76_666F_6C69_6F01 ^ cache.addr() as u64
    }
}

// Rule (d) of the crate: functions with a const receiver may run at the same time.
const _: () = {
    const fn is_sync<T: Sync>() {}
    is_sync::<Cache<'static>>();
};

/// Makes an empty cache in `len` bytes at `mem`, which must be aligned and large enough as kvf_cache_required_size says.
/// The cache begins at `mem`. O(bytes).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cache_init(
    mem: *mut core::ffi::c_void,
    len: usize,
    cfg: *const kvf_config,
    cache: *mut *mut kvf_cache,
) -> kvf_status {
    let init = || {
        // SAFETY: rule (a).
        let out = unsafe { ptr::out(cache) }?;
        if mem.is_null() {
            return Err(Status(KVF_ERR_NULL));
        }
        if !mem.addr().is_multiple_of(carve::ALIGN) {
            return Err(Status(KVF_ERR_ALIGNMENT));
        }
        let place = mem.cast::<MaybeUninit<kvf_cache>>();
        let mut make = |config: &kvfolio::Config<'_>| {
            // SAFETY: aligned; rules (a) and (c) for the bytes. The cache itself is first in the walk, so the slices do not
            // touch it.
            let storage = unsafe { carve::carve(mem.cast(), len, config) }?;
            let cache = Cache::new(config, storage).map_err(|_| Status(KVF_ERR_CONFIG))?;
            // SAFETY: `carve` has found the memory large enough, and set these bytes.
            let place = unsafe { &mut *place };
            place.write(kvf_cache { mark: kvf_cache::mark_at(mem.cast()), cache });
            Ok(())
        };
        // SAFETY: rule (a).
        unsafe { with_config(cfg, &mut make) }?;
        out.set(mem.cast());
        Ok(())
    };
    answer(init())
}

/// Ends a cache: later calls with this handle answer KVF_ERR_HANDLE, and the memory is the caller's again. O(1).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cache_deinit(cache: *mut kvf_cache) -> kvf_status {
    let end = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        cache.mark = 0;
        Ok(())
    };
    answer(end())
}

/// Moves time on, as kvf_plan_begin does too. Leases and ticket deadlines below `tick` end.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cache_advance(cache: *mut kvf_cache, tick: kvf_tick) -> kvf_status {
    let advance = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        Ok(cache.cache.advance(tick)?)
    };
    answer(advance())
}

/// Frees up to `count` cached pages of a pool, in eviction order; `freed` gets how many. Pages promised to the open plan
/// are left.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cache_evict(cache: *mut kvf_cache, pool: u32, count: u32, freed: *mut u32) -> kvf_status {
    let evict = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let freed = unsafe { ptr::out(freed) }?;
        freed.set(cache.cache.evict(pool_id(pool)?, count)?);
        Ok(())
    };
    answer(evict())
}

/// A pool, as the configuration numbers them.
pub(crate) fn pool_id(pool: u32) -> Result<PoolId, Status> {
    u16::try_from(pool).map(PoolId::new).map_err(|_| Status(KVF_ERR_ARGUMENT))
}

/// A group, as the configuration numbers them.
pub(crate) fn group_id(group: u32) -> Result<kvfolio::GroupId, Status> {
    u16::try_from(group).map(kvfolio::GroupId::new).map_err(|_| Status(KVF_ERR_ARGUMENT))
}
