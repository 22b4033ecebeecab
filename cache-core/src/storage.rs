//! The memory of a cache: typed slices lent by the caller, all listed once.
//!
//! `for_each_array` is the one list. From it come the lent slices (`CacheStorage`), their lengths (`StorageCounts`), the
//! owned form for programs with a heap (`OwnedStorage`), the static form for firmware (`static_cache!`), and in the C
//! library the walker that first counts bytes and then carves them.
//!
//! Every array is valid when all its bytes are zero. Init writes them in place, slice by slice; nothing large is ever
//! on the stack.

use crate::config::{Config, ConfigError, IndexKind};
use crate::index::INDEX;
use crate::limits::{Limits, free_words_of};

/// Calls a macro with the list of arrays, as `name: Type,` lines.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_array {
    ($apply:ident $($extra:tt)*) => {
        $crate::for_each_array! { [$apply] $($extra)* }
    };
    ([$($apply:tt)*] $($extra:tt)*) => {
        $($apply)*! {
            $($extra)*
            groups: $crate::records::Group,
            pools: $crate::records::Pool,
            records: $crate::records::PageRecord,
            free_words: u64,
            lists: $crate::records::List,
            filled: u64,
            cached_in: u32,
            place: u16,
            pending: $crate::records::Id,
            leased: u32,
            class: u8,
            base: u8,
            before: u32,
            stamp: u64,
            owner: u32,
            quota_of: u8,
            quotas: $crate::records::QuotaCell,
            tokens: u32,
            chain: u64,
            probes: u32,
            hung: u32,
            place_group: u16,
            keys: u64,
            parts: $crate::records::KeyPart,
            parts_of: u32,
            siblings: $crate::records::Sibling,
            namespaces: $crate::records::NamespaceSlot,
            holders: $crate::records::Sequence,
            holder_words: u64,
            rows: $crate::records::Row,
            chunk_links: $crate::records::ChunkLink,
            entries: $crate::records::Id,
            plan_entries: $crate::records::PlanEntry,
            plan_copies: $crate::records::PlanCopy,
            staged: u32,
            scrubs: u32,
            leases: $crate::records::Lease,
            events: $crate::records::Event,
        }
    };
}

macro_rules! define {
    ($($name:ident: $type:ty,)*) => {
        /// Slices lent to a cache. Lengths come from [`StorageCounts::of`]; content is overwritten at init.
        #[allow(missing_docs)] // one line each in `for_each_array`
        pub struct CacheStorage<'m> {
            $(pub $name: &'m mut [$type],)*
        }

        /// Elements in each array of [`CacheStorage`].
        #[allow(missing_docs)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct StorageCounts {
            $(pub $name: usize,)*
        }

        impl StorageCounts {
            /// Bytes of all arrays together, alignment between them apart.
            #[must_use]
            #[allow(clippy::arithmetic_side_effects)] // lengths are below 2^32, sizes below 2^8
            pub const fn bytes(&self) -> u64 {
                0 $(+ self.$name as u64 * size_of::<$type>() as u64)*
            }
        }

        impl CacheStorage<'_> {
            /// Cuts every slice to its length and clears it; false where one is too short.
            pub(crate) fn fit(&mut self, counts: &StorageCounts) -> bool {
                true $(&& cut(&mut self.$name, counts.$name))*
            }
        }

        /// Storage on the heap: one allocation per array.
        #[cfg(feature = "alloc")]
        pub struct OwnedStorage {
            $($name: alloc::vec::Vec<$type>,)*
        }

        #[cfg(feature = "alloc")]
        impl OwnedStorage {
            /// Allocates what a configuration needs.
            ///
            /// # Errors
            /// The first field of the configuration that is wrong.
            pub fn new(config: &Config<'_>) -> Result<Self, ConfigError> {
                let counts = StorageCounts::of(config)?;
                Ok(Self { $($name: alloc::vec![<$type>::default(); counts.$name],)* })
            }

            /// The slices to lend to [`crate::Cache::new`].
            pub fn lend(&mut self) -> CacheStorage<'_> {
                CacheStorage { $($name: &mut self.$name,)* }
            }
        }
    };
}
for_each_array!(define);

/// Cuts a slice and clears it; false where it is too short.
#[inline(never)] // one copy for each type of element
fn cut<T: Copy + Default>(slice: &mut &mut [T], count: usize) -> bool {
    let Some(part) = core::mem::take(slice).get_mut(..count) else { return false };
    part.fill(T::default());
    *slice = part;
    true
}

impl StorageCounts {
    /// What a configuration needs. This is the one place that knows how long each array is.
    ///
    /// # Errors
    /// The first field of the configuration that is wrong.
    pub const fn of(config: &Config<'_>) -> Result<Self, ConfigError> {
        let limits = match Limits::of(config) {
            Ok(limits) => limits,
            Err(error) => return Err(error),
        };
        Ok(Self::of_limits(&limits))
    }

    #[allow(clippy::arithmetic_side_effects)] // `Limits::of` bounds every product below 2^32
    pub(crate) const fn of_limits(l: &Limits) -> Self {
        let page_array = l.pages as usize + 1;
        let node_array = page_array + l.namespaces as usize;
        let indexed = l.indexed as usize + 1;
        let indexing = INDEX && !matches!(l.index, IndexKind::None);
        let sets = l.quotas as usize + 1;
        let pool_sets = l.pools as usize * sets;
        let holders = l.sequences as usize + l.tickets as usize + l.transfers as usize;
        let holder_words = free_words_of(l.sequences) + free_words_of(l.tickets) + free_words_of(l.transfers);
        let chunks = l.chunks as usize + 1;
        let owners = l.quotas > 0 || l.scrub || l.events > 0;
        Self {
            groups: l.groups as usize,
            pools: l.pools as usize,
            records: if INDEX { node_array } else { page_array },
            free_words: l.free_words as usize,
            lists: pool_sets * (l.classes as usize + 1),
            filled: pool_sets,
            cached_in: if l.quotas > 0 { pool_sets } else { 0 },
            place: if indexing && l.groups > 1 { page_array } else { 0 },
            pending: if l.transfers > 0 { page_array } else { 0 },
            leased: if indexing && l.leases > 0 { node_array } else { 0 },
            class: if indexing && (l.counted || l.leases > 0) { page_array } else { 0 },
            base: if indexing && (l.counted || l.leases > 0) { page_array } else { 0 },
            before: if indexing && l.fifo { page_array } else { 0 },
            stamp: if indexing && l.quotas > 0 { page_array } else { 0 },
            owner: if owners { page_array } else { 0 },
            quota_of: if l.quotas > 0 { l.namespaces as usize } else { 0 },
            quotas: if l.quotas > 0 { pool_sets } else { 0 },
            tokens: if indexing { indexed * l.anchor_tokens as usize } else { 0 },
            chain: if indexing { indexed.div_ceil(64) } else { 0 },
            probes: l.probe_slots as usize,
            hung: if indexing { indexed * l.places as usize } else { 0 },
            place_group: l.places as usize,
            keys: if indexing && l.events > 0 { node_array } else { 0 },
            parts: if INDEX && l.key_parts > 0 { l.key_parts as usize + 1 } else { 0 },
            parts_of: if l.key_parts > 0 && indexing { indexed } else { 0 },
            siblings: if l.partial_tail && indexing { node_array } else { 0 },
            namespaces: l.namespaces as usize,
            holders,
            holder_words: holder_words as usize,
            rows: holders * l.groups as usize,
            chunk_links: chunks,
            entries: chunks * crate::config::CHUNK_ENTRIES as usize,
            plan_entries: l.plan_sequences as usize,
            plan_copies: l.plan_copies as usize,
            staged: if indexing { l.plan_tokens as usize } else { 0 },
            scrubs: if l.scrub { l.pages as usize } else { 0 },
            leases: l.leases as usize,
            events: l.events as usize,
        }
    }
}

/// Defines a type that holds the storage of one fixed configuration, for a `static`.
///
/// Its `new` is `const` and writes only zeros, so the static lies in `.bss` and no large value is ever moved.
///
/// ```
/// use kvfolio::{Cache, Config, GroupConfig, GroupKind, PoolConfig};
///
/// const POOLS: &[PoolConfig] = &[PoolConfig { pages: 64, policy: kvfolio::Policy::Lru }];
/// const GROUPS: &[GroupConfig] = &[GroupConfig {
///     page_tokens: 4,
///     ..GroupConfig::FULL
/// }];
/// const CONFIG: Config<'static> = Config { pools: POOLS, groups: GROUPS, sequences: 4, ..Config::new() };
///
/// kvfolio::static_cache!(pub struct Storage = CONFIG);
///
/// let mut storage = Storage::new();
/// let mut cache = storage.cache().unwrap();
/// let sequence = cache.open(&kvfolio::OpenParams::default()).unwrap();
/// cache.append(sequence, &[1, 2, 3, 4, 5]).unwrap();
/// ```
#[macro_export]
macro_rules! static_cache {
    ($visibility:vis struct $name:ident = $config:expr) => {
        $crate::for_each_array!([$crate::__static_cache] @ ($visibility) ($name) ($config));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __static_cache {
    (@ ($visibility:vis) ($name:ident) ($config:expr) $($array:ident: $type:ty,)*) => {
        /// Storage of one cache.
        $visibility struct $name {
            $($array: [$type; $name::COUNTS.$array],)*
        }

        impl $name {
            /// The configuration that the storage was made for.
            $visibility const CONFIG: $crate::Config<'static> = $config;
            const COUNTS: $crate::StorageCounts = match $crate::StorageCounts::of(&Self::CONFIG) {
                Ok(counts) => counts,
                // Evaluated by the compiler: a bad configuration does not build, and no program can get here.
                Err(_) => panic!("the configuration is unusable"),
            };

            /// Storage full of zeros.
            #[must_use]
            $visibility const fn new() -> Self {
                Self { $($array: [<$type as $crate::records::Zero>::ZERO; $name::COUNTS.$array],)* }
            }

            /// Builds the cache in place.
            ///
            /// # Errors
            /// As [`Cache::new`]($crate::Cache::new).
            $visibility fn cache(&mut self) -> ::core::result::Result<$crate::Cache<'_>, $crate::ConfigError> {
                $crate::Cache::new(&Self::CONFIG, $crate::CacheStorage { $($array: &mut self.$array,)* })
            }
        }
    };
}
