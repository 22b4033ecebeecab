//! Configuration and memory
//!
//! A cache lives in one block of the caller's memory: ask for its size, lend a block, get a handle.
//!
//! ```c
//! kvf_pool_config pool = { sizeof pool, 1024, KVF_POLICY_LRU };
//! kvf_group_config group = { .struct_size = sizeof group, .page_tokens = 16 };
//! kvf_config cfg = { .struct_size = sizeof cfg, .abi_version = KVF_ABI_VERSION,
//!                    .pools = &pool, .groups = &group, .n_pools = 1, .n_groups = 1,
//!                    .sequences = 64, .tickets = 64 };
//! size_t bytes, align;
//! kvf_cache *cache;
//! if (kvf_cache_required_size(&cfg, &bytes, &align) != KVF_OK) ...
//! void *mem = aligned_alloc(align, bytes);
//! if (kvf_cache_init(mem, bytes, &cfg, &cache) != KVF_OK) ...
//! ```
//!
//! In a configuration zero is the default, and the comment says what zero means.

use kvfolio::{
    Config, ConfigError, GroupConfig, GroupKind, IndexKind, MAX_GROUPS, MAX_POOLS, Policy, PoolConfig, PublishMode,
    WindowKeep,
};

use crate::carve;
use crate::ptr::{self, Inputs};
use crate::status::{KVF_ERR_ABI, KVF_ERR_CONFIG, KVF_ERR_UNSUPPORTED, Status, answer, kvf_status};
use crate::types::*;
use crate::version::KVF_ABI_VERSION;

/// Says whether a configuration is usable. On KVF_ERR_CONFIG `field`, which may be NULL, gets the number of what is wrong:
/// 1 pools, 2 groups, 3 page_tokens, 4 pool of a group, 5 window, 6 sequences, 7 tickets, transfers, namespaces or leases,
/// 8 quotas, 9 classes, 10 index_nodes, 11 an array of more than 2^32 - 1 elements,
/// 13 an index, or key_parts, but the library was built without one,
/// 14 more pages in all pools, table chunks, or sequences, tickets and transfers together, than a library with 16-bit ids can
/// number.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_config_check(cfg: *const kvf_config, field: *mut u32) -> kvf_status {
    let check = || {
        // SAFETY: rule (a).
        let field = unsafe { ptr::optional_out(field) }?;
        let mut wrong = None;
        // SAFETY: rule (a).
        let read = unsafe {
            with_config(cfg, &mut |config| {
                wrong = kvfolio::StorageCounts::of(config).err();
                Ok(())
            })
        };
        match read {
            Err(Refused::Field(field)) => wrong = Some(field),
            Err(Refused::Status(status)) => return Err(status),
            Ok(()) => {}
        }
        let Some(wrong) = wrong else { return Ok(()) };
        if let Some(field) = field {
            field.set(wrong as u32);
        }
        Err(Status(KVF_ERR_CONFIG))
    };
    answer(check())
}

/// Bytes of memory that a cache needs, and the alignment of their address (64).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_cache_required_size(
    cfg: *const kvf_config,
    bytes: *mut usize,
    align: *mut usize,
) -> kvf_status {
    let measure = || {
        // SAFETY: rule (a).
        let (bytes, align) = unsafe { (ptr::out(bytes)?, ptr::out(align)?) };
        let mut size = 0;
        // SAFETY: rule (a).
        unsafe {
            with_config(cfg, &mut |config| {
                size = carve::size(config)?;
                Ok(())
            })
        }?;
        bytes.set(size);
        align.set(carve::ALIGN);
        Ok(())
    };
    answer(measure())
}

/// Why a configuration did not come through.
pub(crate) enum Refused {
    Field(ConfigError),
    Status(Status),
}

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Field(_) => Self(KVF_ERR_CONFIG),
            Refused::Status(status) => status,
        }
    }
}

/// Reads a configuration and hands it on. Its arrays lie on the stack, in one of three sizes, so that a firmware with a few
/// pools and groups needs little.
///
/// # Safety
/// Rule (a).
pub(crate) unsafe fn with_config(cfg: *const kvf_config, run: Run<'_>) -> Result<(), Refused> {
    // SAFETY: rule (a).
    let cfg = unsafe { ptr::input(cfg) }?;
    if cfg.abi_version != KVF_ABI_VERSION {
        return Err(Status(KVF_ERR_ABI).into());
    }
    if cfg.flags & !(KVF_CONFIG_PARTIAL_TAIL | KVF_CONFIG_SCRUB) != 0 || cfg.reserved != 0 {
        return Err(Status(KVF_ERR_UNSUPPORTED).into());
    }
    if cfg.n_pools as usize > MAX_POOLS {
        return Err(Refused::Field(ConfigError::Pools));
    }
    if cfg.n_groups as usize > MAX_GROUPS {
        return Err(Refused::Field(ConfigError::Groups));
    }
    let (pools, groups) =
        // SAFETY: rule (a).
        unsafe { (ptr::inputs(cfg.pools, cfg.n_pools as usize)?, ptr::inputs(cfg.groups, cfg.n_groups as usize)?) };
    let given = Given { cfg: &cfg, pools, groups };
    let result = match (given.pools.count, given.groups.count) {
        (0..=4, 0..=8) => with_arrays::<4, 8>(&given, run),
        (_, 0..=64) => with_arrays::<MAX_POOLS, 64>(&given, run),
        _ => with_arrays::<MAX_POOLS, MAX_GROUPS>(&given, run),
    };
    Ok(result?)
}

/// What to do with a configuration.
type Run<'a> = &'a mut dyn FnMut(&Config<'_>) -> Result<(), Status>;

/// A configuration as it was given.
struct Given<'a> {
    cfg: &'a kvf_config,
    pools: Inputs<kvf_pool_config>,
    groups: Inputs<kvf_group_config>,
}

#[inline(never)]
fn with_arrays<const POOLS: usize, const GROUPS: usize>(given: &Given<'_>, run: Run<'_>) -> Result<(), Status> {
    convert(given, &mut [PoolConfig::default(); POOLS], &mut [GroupConfig::FULL; GROUPS], run)
}

fn convert(
    given: &Given<'_>,
    pool_array: &mut [PoolConfig],
    group_array: &mut [GroupConfig],
    run: Run<'_>,
) -> Result<(), Status> {
    let Given { cfg, pools, groups } = given;
    for (index, slot) in pool_array.iter_mut().enumerate().take(pools.count) {
        *slot = pool(&pools.get(index)?)?;
    }
    for (index, slot) in group_array.iter_mut().enumerate().take(groups.count) {
        *slot = group(&groups.get(index)?)?;
    }
    run(&Config {
        pools: pool_array.get(..pools.count).unwrap_or(&[]),
        groups: group_array.get(..groups.count).unwrap_or(&[]),
        sequences: cfg.sequences,
        tickets: cfg.tickets,
        transfers: cfg.transfers,
        namespaces: cfg.namespaces,
        table_chunks: cfg.table_chunks,
        plan_sequences: cfg.plan_sequences,
        plan_tokens: cfg.plan_tokens,
        plan_copies: cfg.plan_copies,
        key_parts: cfg.key_parts,
        events: cfg.events,
        leases: cfg.leases,
        quotas: cfg.quotas,
        classes: cfg.classes,
        index: match cfg.index {
            KVF_INDEX_TREE => IndexKind::Tree,
            KVF_INDEX_FLAT => IndexKind::Flat,
            KVF_INDEX_NONE => IndexKind::None,
            _ => return Err(Status(KVF_ERR_UNSUPPORTED)),
        },
        index_nodes: cfg.index_nodes,
        partial_tail: cfg.flags & KVF_CONFIG_PARTIAL_TAIL != 0,
        publish: match cfg.publish {
            KVF_PUBLISH_IMMEDIATE => PublishMode::Immediate,
            KVF_PUBLISH_DEFERRED => PublishMode::Deferred,
            _ => return Err(Status(KVF_ERR_UNSUPPORTED)),
        },
        scrub: cfg.flags & KVF_CONFIG_SCRUB != 0,
        seed: cfg.seed,
    })
}

fn pool(given: &kvf_pool_config) -> Result<PoolConfig, Status> {
    let policy = match given.policy {
        KVF_POLICY_LRU => Policy::Lru,
        KVF_POLICY_FIFO => Policy::Fifo,
        KVF_POLICY_LFU => Policy::Lfu,
        _ => return Err(Status(KVF_ERR_UNSUPPORTED)),
    };
    Ok(PoolConfig { pages: given.pages, policy })
}

fn group(given: &kvf_group_config) -> Result<GroupConfig, Status> {
    let kind = match given.kind {
        KVF_GROUP_FULL => GroupKind::Full,
        KVF_GROUP_WINDOW => GroupKind::Window { window: given.window, sinks: given.sinks },
        _ => return Err(Status(KVF_ERR_UNSUPPORTED)),
    };
    let window_keep = match given.window_keep {
        KVF_WINDOW_CACHED => WindowKeep::Cached,
        KVF_WINDOW_EXACT => WindowKeep::Exact,
        _ => return Err(Status(KVF_ERR_UNSUPPORTED)),
    };
    if given.flags & !KVF_GROUP_CONTIGUOUS != 0 {
        return Err(Status(KVF_ERR_UNSUPPORTED));
    }
    // What does not fit into 16 bits is far above every limit, so the core refuses the largest value as it would this one.
    let narrow = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
    Ok(GroupConfig {
        kind,
        page_tokens: if given.page_tokens == 0 { GroupConfig::FULL.page_tokens } else { narrow(given.page_tokens) },
        pool: narrow(given.pool),
        sealed_pool: narrow(given.sealed_pool),
        sinks: if given.kind == KVF_GROUP_FULL { given.sinks } else { 0 },
        window_keep,
        ring_tokens: given.ring_tokens,
        contiguous: given.flags & KVF_GROUP_CONTIGUOUS != 0,
    })
}
