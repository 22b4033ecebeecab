//! From a scenario's configuration to a cache behind the C ABI, in memory of its own.

use kvfolio_ffi as ffi;

use crate::rust_machine::roomy_chunks;
use crate::spec::{self, NamespaceSpec, Spec};

/// A unit of the memory that the cache lives in.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Block([u8; 64]);

/// Size of a struct of the header, for its `struct_size`.
pub(super) const fn size<T>() -> u32 {
    size_of::<T>() as u32
}

/// A struct of the header that is all zeros: in it zero is the default, and NULL.
pub(super) fn blank<T: Record>() -> T {
    // SAFETY: a `Record` has only integers and raw pointers.
    unsafe { core::mem::zeroed() }
}

/// Marks structs of the header.
///
/// # Safety
/// All fields are integers or raw pointers.
pub(super) unsafe trait Record: Copy {}

macro_rules! records {
    ($($name:ident),*) => {$(
        // SAFETY: the header has only integers and pointers in this struct.
        unsafe impl Record for ffi::$name {}
    )*};
}

records! {
    kvf_accept, kvf_config, kvf_delta_report, kvf_event, kvf_group_config, kvf_namespace_key, kvf_open_params, kvf_page_copy, kvf_page_info, kvf_page_ref,
    kvf_plan_report, kvf_pool_config, kvf_pool_stats, kvf_prompt, kvf_ring_report, kvf_row_delta, kvf_row_query, kvf_seq_info, kvf_shortage, kvf_stats, kvf_violation
}

/// Makes a cache; the memory must outlive it and not move.
pub(super) fn init(spec: &Spec) -> Result<(Vec<Block>, *mut ffi::kvf_cache), String> {
    let pools: Vec<ffi::kvf_pool_config> = spec.pools.iter().map(pool).collect();
    let groups: Vec<ffi::kvf_group_config> = spec.groups.iter().map(group).collect();
    let config = config(spec, &pools, &groups);
    let (mut bytes, mut align) = (0, 0);
    // SAFETY: the configuration and its arrays are alive; the outputs are locals.
    let status = unsafe { ffi::kvf_cache_required_size(&config, &mut bytes, &mut align) };
    if status != ffi::KVF_OK {
        return Err(format!("required size: status {status}"));
    }
    assert!(align <= align_of::<Block>(), "alignment {align}");
    let mut memory = vec![Block([0xA5; 64]); bytes.div_ceil(size_of::<Block>())];
    let mut cache = core::ptr::null_mut();
    // SAFETY: the memory is `bytes` long, aligned, and lent to this cache alone.
    let status = unsafe { ffi::kvf_cache_init(memory.as_mut_ptr().cast(), bytes, &config, &mut cache) };
    if status == ffi::KVF_OK { Ok((memory, cache)) } else { Err(format!("init: status {status}")) }
}

fn config(spec: &Spec, pools: &[ffi::kvf_pool_config], groups: &[ffi::kvf_group_config]) -> ffi::kvf_config {
    ffi::kvf_config {
        struct_size: size::<ffi::kvf_config>(),
        abi_version: ffi::KVF_ABI_VERSION,
        pools: pools.as_ptr(),
        groups: groups.as_ptr(),
        n_pools: pools.len() as u32,
        n_groups: groups.len() as u32,
        sequences: spec.max_sequences() as u32,
        tickets: spec.max_tickets() as u32,
        transfers: spec.max_transfers() as u32,
        namespaces: spec.max_spaces() as u32,
        table_chunks: roomy_chunks(spec),
        plan_tokens: 1 << 17,
        plan_copies: spec.max_copies(),
        events: spec.max_events() as u32,
        key_parts: spec.spans,
        leases: spec.leases,
        quotas: spec.quotas,
        classes: spec.classes,
        index: match spec.index {
            spec::IndexKind::None => ffi::KVF_INDEX_NONE,
            spec::IndexKind::Flat => ffi::KVF_INDEX_FLAT,
            spec::IndexKind::Tree => ffi::KVF_INDEX_TREE,
        },
        index_nodes: spec.max_nodes(),
        publish: if spec.deferred { ffi::KVF_PUBLISH_DEFERRED } else { ffi::KVF_PUBLISH_IMMEDIATE },
        flags: if spec.tail { ffi::KVF_CONFIG_PARTIAL_TAIL } else { 0 }
            | if spec.scrub { ffi::KVF_CONFIG_SCRUB } else { 0 },
        seed: u64::from(spec.seed),
        ..blank()
    }
}

fn pool(pool: &spec::PoolSpec) -> ffi::kvf_pool_config {
    let policy = match pool.policy {
        spec::Policy::Lru => ffi::KVF_POLICY_LRU,
        spec::Policy::Fifo => ffi::KVF_POLICY_FIFO,
        spec::Policy::Lfu => ffi::KVF_POLICY_LFU,
    };
    ffi::kvf_pool_config { struct_size: size::<ffi::kvf_pool_config>(), pages: pool.pages, policy }
}

fn group(group: &spec::GroupSpec) -> ffi::kvf_group_config {
    let (kind, window, sinks) = match group.kind {
        spec::GroupKind::Full => (ffi::KVF_GROUP_FULL, 0, group.exact_sinks),
        spec::GroupKind::Window { window, sinks } => (ffi::KVF_GROUP_WINDOW, window, sinks),
    };
    ffi::kvf_group_config {
        struct_size: size::<ffi::kvf_group_config>(),
        kind,
        page_tokens: group.page_tokens,
        pool: u32::from(group.pool),
        window,
        sinks,
        ring_tokens: group.ring,
        sealed_pool: group.sealed.map_or(0, |pool| u32::from(pool) + 1),
        flags: if group.contiguous { ffi::KVF_GROUP_CONTIGUOUS } else { 0 },
        window_keep: if group.exact { ffi::KVF_WINDOW_EXACT } else { ffi::KVF_WINDOW_CACHED },
    }
}

/// The key of a namespace.
pub(super) fn namespace(key: &NamespaceSpec) -> ffi::kvf_namespace_key {
    ffi::kvf_namespace_key {
        struct_size: size::<ffi::kvf_namespace_key>(),
        tenant: [u64::from(key.salt), 0, 0, 0],
        adapter: u64::from(key.adapter),
        adapter_generation: u64::from(key.generation),
        format: u64::from(key.format),
        ..blank()
    }
}
