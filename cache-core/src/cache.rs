//! `Cache`: the one authority over pages, tables, index and plans.
//!
//! This file holds what the cache is made of and how it comes to life. What it does is next to it, one file per
//! operation: `matching`, `release`, `fork`, `publish`, `plan`, `transfer`, `retain`, `quota`, `export`, `stats`, `check`,
//! `digest`.

use crate::config::{Config, ConfigError, IndexKind, PublishMode};
use crate::error::Error;
use crate::events::{Event, Events};
use crate::group::Group;
use crate::ids::{GroupId, NamespaceId, PageId, PoolId, SequenceId, Tick};
use crate::index::{INDEX, Index, IndexArrays};
use crate::keychain::KeyChain;
use crate::limits::Limits;
use crate::mem::{IndexSlots, Slots, bump};
use crate::namespace::{NamespaceKey, Namespaces};
use crate::pages::{NULL, PageArrays, Pages, Traits};
use crate::plan::Plan;
use crate::retain::Leases;
use crate::sequence::{Holders, Kind, Sequence};
use crate::stats::Counters;
use crate::storage::{CacheStorage, StorageCounts};
use crate::table::Tables;

/// A KV-cache manager over memory lent for `'m`.
///
/// One writer: every call that changes something takes `&mut self`. Nothing blocks, allocates or reads a clock. A call
/// that fails leaves [`Cache::digest`] as it was.
pub struct Cache<'m> {
    pub(crate) limits: Limits,
    pub(crate) groups: Slots<'m, Group>,
    pub(crate) pages: Pages<'m>,
    pub(crate) index: Index<'m>,
    pub(crate) tables: Tables<'m>,
    pub(crate) holders: Holders<'m>,
    pub(crate) spaces: Namespaces<'m>,
    pub(crate) plan: Plan<'m>,
    pub(crate) leases: Leases<'m>,
    pub(crate) events: Events<'m>,
    pub(crate) counters: Counters,
    pub(crate) publish_mode: PublishMode,
    pub(crate) now: Tick,
    /// Number of the last change of any table.
    pub(crate) version: u64,
    seed: u64,
}

impl<'m> Cache<'m> {
    /// Builds an empty cache. O(pages + capacities).
    ///
    /// # Errors
    /// The first field of the configuration that is wrong, or [`ConfigError::Storage`].
    pub fn new(config: &Config<'_>, storage: CacheStorage<'m>) -> Result<Self, ConfigError> {
        let limits = Limits::of(config)?;
        let mut s = storage;
        if !s.fit(&StorageCounts::of_limits(&limits)) {
            return Err(ConfigError::Storage);
        }
        let hidden = limits.is_hidden().then_some((config.index_nodes, config.pools.first().map(|p| p.policy)));
        let sizes = config
            .pools
            .iter()
            .map(|pool| (pool.pages, pool.policy))
            .chain(hidden.map(|(nodes, policy)| (nodes, policy.unwrap_or_default())));
        let pages = Pages::new(
            &limits,
            PageArrays {
                records: s.records,
                pools: s.pools,
                words: s.free_words,
                lists: s.lists,
                filled: s.filled,
                cached_in: s.cached_in,
                quotas: s.quotas,
                traits: Traits {
                    place: IndexSlots::new(s.place),
                    pending: Slots::new(s.pending),
                    leased: IndexSlots::new(s.leased),
                    class: IndexSlots::new(s.class),
                    base: IndexSlots::new(s.base),
                    before: IndexSlots::new(s.before),
                    stamp: IndexSlots::new(s.stamp),
                    owner: Slots::new(s.owner),
                    quota_of: Slots::new(s.quota_of),
                },
            },
            sizes,
        );
        let index = Index::new(
            &limits,
            IndexArrays {
                tokens: s.tokens,
                chain: s.chain,
                probes: s.probes,
                hung: s.hung,
                place_group: s.place_group,
                keys: s.keys,
                parts: s.parts,
                parts_of: s.parts_of,
                siblings: s.siblings,
            },
            config.seed,
        );
        let mut cache = Self {
            limits,
            groups: Slots::new(s.groups),
            pages,
            index,
            tables: Tables::new(s.rows, s.chunk_links, s.entries, limits.groups),
            holders: Holders::new(s.holders, s.holder_words, [limits.sequences, limits.tickets, limits.transfers]),
            spaces: Namespaces::new(s.namespaces),
            plan: Plan::new(s.plan_entries, s.plan_copies, s.staged, s.scrubs),
            leases: Leases::new(s.leases),
            events: Events::new(s.events),
            counters: Counters::default(),
            publish_mode: config.publish,
            now: 0,
            version: 1,
            seed: config.seed,
        };
        cache.lay_out_groups(config);
        cache.set_root_key(0);
        Ok(cache)
    }

    /// Fills the groups in, and their places on a node.
    fn lay_out_groups(&mut self, config: &Config<'_>) {
        let mut place = 0_u32;
        for (index, given) in (0_u16..).zip(config.groups) {
            let mut group = Group::new(given);
            if u32::from(index) != self.limits.anchor {
                group.place = place;
                group.per_node = 1 << self.index.shift.saturating_sub(group.shift);
                if config.index != IndexKind::None && !group.is_ring() {
                    for _ in 0..group.per_node {
                        self.index.set_group_of_place(place, index);
                        place = place.saturating_add(1);
                    }
                }
            }
            self.groups.set(u32::from(index), group);
        }
        if self.limits.is_hidden() {
            self.groups.set(self.limits.anchor, Group::hidden(self.index.shift, self.limits.anchor_pool));
        }
    }

    /// The default namespace, which is always open.
    #[must_use]
    pub fn default_namespace(&self) -> NamespaceId {
        self.spaces.id(0)
    }

    /// Gives the namespace with this key, opening it if needed. O(namespaces).
    ///
    /// # Errors
    /// A shortage of namespaces.
    pub fn namespace_open(&mut self, key: &NamespaceKey) -> Result<NamespaceId, Error> {
        let id = self.spaces.open(key)?;
        let slot = self.spaces.resolve(id)?;
        self.set_root_key(slot);
        Ok(id)
    }

    /// Closes a namespace: its cached pages are freed and its handle becomes stale. O(its pages).
    ///
    /// # Errors
    /// `Busy` while it has sequences, tickets or transfers, or is the default one; `Stale`.
    pub fn namespace_close(&mut self, id: NamespaceId) -> Result<(), Error> {
        let slot = self.namespace(id)?;
        if slot == 0 || self.spaces.get(slot).users > 0 {
            return Err(Error::Busy);
        }
        self.unindex_namespace(slot);
        self.release_quota(slot);
        self.spaces.close(slot);
        Ok(())
    }

    /// The slot of a namespace; the zero handle means the default one.
    pub(crate) fn namespace(&self, id: NamespaceId) -> Result<u32, Error> {
        if id == NamespaceId::default() { Ok(0) } else { self.spaces.resolve(id) }
    }

    /// The exported key that a namespace's pages begin from: its own key, hashed with the seed.
    fn set_root_key(&mut self, slot: u32) {
        if !self.index.has_keys() {
            return;
        }
        let root = KeyChain::new(&self.spaces.key(slot), self.seed);
        self.index.set_root_key(self.pages.root(slot), root.key());
    }

    /// Moves time on. Leases and ticket deadlines below `tick` end.
    ///
    /// # Errors
    /// `TimeWentBack`.
    pub fn advance(&mut self, tick: Tick) -> Result<(), Error> {
        if tick < self.now {
            return Err(Error::TimeWentBack);
        }
        if tick > self.now {
            self.now = tick;
            self.expire_leases();
            self.expire_tickets();
        }
        Ok(())
    }

    /// Frees up to `count` cached pages of a pool, in eviction order. Gives how many were freed: the lower of `count`
    /// and what is cached. Pages promised to an open plan are left.
    ///
    /// # Errors
    /// `Argument` when there is no such pool.
    #[inline] // else whether it is inlined depends on what is linked beside it
    pub fn evict(&mut self, pool: PoolId, count: u32) -> Result<u32, Error> {
        let index = u32::from(pool.get());
        if index >= self.visible_pools() {
            return Err(Error::Argument);
        }
        let mut freed = 0_u32;
        while freed < count {
            let more = self.evict_some(index, count.saturating_sub(freed));
            if more == 0 {
                break;
            }
            freed = freed.saturating_add(more);
        }
        Ok(freed)
    }

    /// Evicts at least one of `count` pages, in their order, if there is one. Gives how many.
    pub(crate) fn evict_some(&mut self, pool: u32, count: u32) -> u32 {
        if !INDEX {
            return 0; // nothing is ever cached
        }
        if self.pages.has_one_list() && self.index.places == 0 {
            let evicted = self.index.evict_nodes(&mut self.pages, &mut self.events, pool, count);
            bump(&mut self.counters.evicted_pages, u64::from(evicted));
            return evicted;
        }
        if count == 0 {
            return 0;
        }
        let page = self.pages.victim(pool);
        u32::from(self.evict_victim(pool, page))
    }

    /// Evicts one page of a pool: the victim, or if pages of the same pool hang on it, one of those first. What is behind the
    /// last sink page is of another pool and goes with that page.
    pub(crate) fn evict_victim(&mut self, pool: u32, page: u32) -> bool {
        if self.pages.children(page) > 0 && self.evict_behind(pool, page) {
            return true;
        }
        self.evict_page(self.hung_in_pool(pool, page).unwrap_or(page))
    }

    /// Evicts what is behind a page, leaf by leaf, the lowest of several children first; or of what hangs there the first page
    /// that is of the given pool. Gives whether it found one.
    #[inline(never)] // its stack is not that of caches without sinks
    fn evict_behind(&mut self, pool: u32, page: u32) -> bool {
        loop {
            let leaf = self.index.leaf_behind(&self.pages, page);
            if leaf == page {
                return false;
            }
            let hung = self.hung_in_pool(pool, leaf);
            if !self.evict_page(hung.unwrap_or(leaf)) || hung.is_some() {
                return hung.is_some();
            }
        }
    }

    /// A cached page of another group that hangs on a node and is of the given pool.
    #[inline]
    fn hung_in_pool(&self, pool: u32, page: u32) -> Option<u32> {
        if self.index.places == 0 || page == NULL || self.pages.is_hung(page) {
            return None;
        }
        let mut hung = (0..self.index.places).map(|place| self.index.hung(page, place));
        hung.find(|&hung| self.pages.is_cached(hung) && self.pages.pool_of(hung) == pool)
    }

    pub(crate) fn evict_page(&mut self, page: u32) -> bool {
        if !self.index.is_enabled() {
            return false;
        }
        if self.limits.leases > 0 && self.pages.traits.leased.get(page) > 0 {
            self.lift_leases(page);
        }
        let done = self.index.evict_page(&mut self.pages, &mut self.events, page);
        self.counters.evicted_pages = self.counters.evicted_pages.saturating_add(u64::from(done));
        done
    }

    pub(crate) fn anchor_id(&self) -> u16 {
        u16::try_from(self.limits.anchor).unwrap_or(u16::MAX)
    }

    #[inline]
    pub(crate) fn anchor(&self) -> Group {
        self.groups.get(self.limits.anchor)
    }

    /// All groups but the anchor, ascending.
    pub(crate) fn other_groups(&self) -> impl Iterator<Item = u32> + use<> {
        let anchor = self.limits.anchor;
        (0..self.limits.groups).filter(move |&index| index != anchor)
    }

    /// Groups as the caller numbers them.
    pub(crate) fn visible_groups(&self) -> u32 {
        self.limits.groups.saturating_sub(u32::from(self.limits.is_hidden()))
    }

    /// A group of the caller.
    pub(crate) fn group(&self, id: GroupId) -> Result<(u32, Group), Error> {
        let index = u32::from(id.get());
        if index < self.visible_groups() { Ok((index, self.groups.get(index))) } else { Err(Error::Argument) }
    }

    #[inline]
    pub(crate) fn sequence(&self, id: SequenceId) -> Result<u32, Error> {
        self.holders.resolve(Kind::Sequence, id.parts())
    }

    /// A page of the common numbering, as the caller numbers it.
    #[inline]
    pub(crate) fn page_id(&self, page: u32) -> PageId {
        if page == NULL {
            return PageId::NULL;
        }
        PageId::new(page.saturating_sub(self.pages.pools.get(self.pages.pool_of(page)).base))
    }

    /// Notes that a sequence's tables changed from token `stable` on.
    pub(crate) fn touch_tables(&mut self, holder: u32, stable: u32) {
        self.version = self.version.saturating_add(1);
        let version = self.version;
        self.holders.with(holder, |sequence| {
            sequence.previous = sequence.version;
            sequence.version = version;
            sequence.stable = stable;
        });
    }

    /// Pages of the anchor group that a sequence has published and that lie wholly below its length.
    pub(crate) fn published_pages(&self, sequence: &Sequence) -> u32 {
        sequence.depth.min(sequence.len >> self.index.shift)
    }

    /// Moves the oldest events to `out`. Gives how many, and how many were lost since the last call.
    pub fn read_events(&mut self, out: &mut [Event]) -> (usize, u64) {
        self.events.read(out)
    }
}
