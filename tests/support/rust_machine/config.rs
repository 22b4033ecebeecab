//! From a scenario's configuration to a cache that owns its memory.

use kvfolio::{
    CHUNK_ENTRIES, Cache, Config, GroupConfig, GroupKind, IndexKind, NamespaceKey, OwnedStorage, Policy, PoolConfig,
    PublishMode, WindowKeep,
};

use crate::spec::{self, NamespaceSpec, Spec};

/// A cache and the storage that it borrows.
pub(super) struct OwnedCache {
    /// `None` only while dropping.
    cache: Option<Cache<'static>>,
    storage: *mut OwnedStorage,
    tick: u64,
}

impl OwnedCache {
    pub(super) fn new(spec: &Spec) -> Result<Self, String> {
        let pools: Vec<PoolConfig> = spec.pools.iter().map(pool).collect();
        let groups: Vec<GroupConfig> = spec.groups.iter().map(group).collect();
        let config = config(spec, &pools, &groups);
        let storage = OwnedStorage::new(&config).map_err(|error| error.to_string())?;
        let storage = Box::into_raw(Box::new(storage));
        // SAFETY: `storage` comes from a box, is used nowhere else, and is freed only in `drop`, after the cache.
        let lent = unsafe { &mut *storage }.lend();
        let mut owned = Self { cache: None, storage, tick: 0 };
        owned.cache = Some(Cache::new(&config, lent).map_err(|error| error.to_string())?);
        Ok(owned)
    }

    pub(super) fn get(&self) -> &Cache<'static> {
        self.cache.as_ref().expect("only drop takes it")
    }

    pub(super) fn get_mut(&mut self) -> &mut Cache<'static> {
        self.cache.as_mut().expect("only drop takes it")
    }

    /// The tick of the last call that carried one.
    pub(super) const fn tick(&self) -> u64 {
        self.tick
    }

    pub(super) fn note_tick(&mut self, tick: u64) {
        self.tick = self.tick.max(tick);
    }
}

impl Drop for OwnedCache {
    fn drop(&mut self) {
        self.cache = None;
        // SAFETY: the pointer came from `Box::into_raw`, and its only borrower is gone.
        drop(unsafe { Box::from_raw(self.storage) });
    }
}

fn config<'c>(spec: &Spec, pools: &'c [PoolConfig], groups: &'c [GroupConfig]) -> Config<'c> {
    Config {
        pools,
        groups,
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
            spec::IndexKind::None => IndexKind::None,
            spec::IndexKind::Flat => IndexKind::Flat,
            spec::IndexKind::Tree => IndexKind::Tree,
        },
        index_nodes: spec.max_nodes(),
        partial_tail: spec.tail,
        publish: if spec.deferred { PublishMode::Deferred } else { PublishMode::Immediate },
        scrub: spec.scrub,
        seed: u64::from(spec.seed),
        ..Config::new()
    }
}

/// Chunks of table entries: what the scenario says, else so many that they are never short.
pub(crate) fn roomy_chunks(spec: &Spec) -> u32 {
    let handles = (spec.max_sequences() + spec.max_tickets() + spec.max_transfers()) as u32;
    let pages = spec.pools.iter().map(|pool| pool.pages).max().unwrap_or(0);
    let nodes = if spec.is_hidden() { handles * (spec.max_nodes() / CHUNK_ENTRIES + 3) } else { 0 };
    let roomy = handles * spec.groups.len() as u32 * (pages / CHUNK_ENTRIES + 3) + nodes;
    if spec.table_chunks == 0 { roomy } else { spec.table_chunks }
}

const fn pool(pool: &spec::PoolSpec) -> PoolConfig {
    let policy = match pool.policy {
        spec::Policy::Lru => Policy::Lru,
        spec::Policy::Fifo => Policy::Fifo,
        spec::Policy::Lfu => Policy::Lfu,
    };
    PoolConfig { pages: pool.pages, policy }
}

const fn group(group: &spec::GroupSpec) -> GroupConfig {
    let kind = match group.kind {
        spec::GroupKind::Full => GroupKind::Full,
        spec::GroupKind::Window { window, sinks } => GroupKind::Window { window, sinks },
    };
    let window_keep = if group.exact { WindowKeep::Exact } else { WindowKeep::Cached };
    GroupConfig {
        kind,
        page_tokens: group.page_tokens as u16,
        pool: group.pool,
        window_keep,
        ring_tokens: group.ring,
        contiguous: group.contiguous,
        sealed_pool: match group.sealed {
            Some(pool) => pool + 1,
            None => 0,
        },
        sinks: group.exact_sinks,
    }
}

/// The key of a namespace.
pub(super) fn namespace(key: &NamespaceSpec) -> NamespaceKey {
    NamespaceKey {
        tenant: [u64::from(key.salt), 0, 0, 0],
        model: 0,
        adapter: u64::from(key.adapter),
        adapter_generation: u64::from(key.generation),
        format: u64::from(key.format),
    }
}
