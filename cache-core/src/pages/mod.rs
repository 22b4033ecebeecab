//! Pages of all pools: one record each, states, references, and the order in which cached ones go.
//!
//! Pages of all pools share one numbering (the pool that carries the index first), so that a record, a link or a
//! table entry is one `u32`. Record 0 is NULL; the records behind the last page are the roots of the namespaces.
//!
//! A page is in exactly one state:
//!
//! | state | refs | indexed | its record |
//! |---|---|---|---|
//! | FREE | 0 | no | all zero, its bit in the free set is set |
//! | USED | > 0 | either | the count |
//! | CACHED | 0 | yes | links of its eviction list |

mod free;
mod links;
mod nodes;
mod order;
#[cfg_attr(not(feature = "index"), path = "plain.rs")]
mod record;
mod refs;
mod runs;

pub(crate) use free::FreeSet;
pub(crate) use order::End;
pub use order::List;
pub use record::PageRecord;
pub(crate) use refs::Holder;
pub(crate) use runs::Victims;

use crate::config::Policy;
use crate::index::INDEX;
use crate::limits::Limits;
use crate::mem::{IndexSlots, Slots};
use crate::quota::QuotaCell;
use crate::width::Id;
use nodes::NodePools;

/// The page that does not exist.
pub(crate) const NULL: u32 = 0;
/// One pool: where its pages lie in the common numbering, and how many are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pool {
    /// Page with id 1 is record `base + 1`.
    pub(crate) base: u32,
    pub(crate) pages: u32,
    pub(crate) free: u32,
    pub(crate) cached: u32,
    /// Used by transfers only.
    pub(crate) pending: u32,
    /// Promised to the open plan.
    pub(crate) promised: u32,
    /// What the sequence being added would need; meaningful inside one call.
    pub(crate) asked: u32,
    /// Most pages ever used at once.
    pub(crate) peak: u32,
    pub(crate) policy: u32,
    set: FreeSet,
}

crate::records::zero!(Pool { base, pages, free, cached, pending, promised, asked, peak, policy, set });

impl Pool {
    pub(crate) fn used(&self) -> u32 {
        self.pages.saturating_sub(self.free).saturating_sub(self.cached)
    }

    /// Pages that a plan could still be promised.
    pub(crate) fn available(&self) -> u32 {
        self.free.saturating_add(self.cached).saturating_sub(self.promised)
    }

    fn is(&self, policy: Policy) -> bool {
        self.policy == policy as u32
    }
}

/// Optional properties of pages; an array that its option does not need is empty and reads as zero.
pub(crate) struct Traits<'m> {
    /// 0 = anchor page; else 1 + the place on its node.
    pub(crate) place: IndexSlots<'m, u16>,
    /// References by transfers only, counted as `refs` counts all.
    pub(crate) pending: Slots<'m, Id>,
    /// Leases that end here, plus children that are leased.
    pub(crate) leased: IndexSlots<'m, u32>,
    /// Class in force, never below that of a child.
    pub(crate) class: IndexSlots<'m, u8>,
    /// Class of the page itself, or its use count under LFU.
    pub(crate) base: IndexSlots<'m, u8>,
    /// Previous list entry under FIFO, whose lists keep used pages.
    pub(crate) before: IndexSlots<'m, u32>,
    /// When it entered its list, where lists must be compared.
    pub(crate) stamp: IndexSlots<'m, u64>,
    /// Namespace that allocated it first.
    pub(crate) owner: Slots<'m, u32>,
    /// Quota list set of each namespace slot, 0 = none.
    pub(crate) quota_of: Slots<'m, u8>,
}

/// Pages of all pools.
pub(crate) struct Pages<'m> {
    records: Slots<'m, PageRecord>,
    pub(crate) pools: Slots<'m, Pool>,
    words: Slots<'m, u64>,
    pub(crate) traits: Traits<'m>,
    lists: IndexSlots<'m, List>,
    /// Per pool and list set: the classes whose list is not empty.
    filled: IndexSlots<'m, u64>,
    /// Cached pages per pool and list set, beyond set 0.
    pub(crate) cached_in: IndexSlots<'m, u32>,
    /// Limits per pool and list set, where namespaces have quotas.
    pub(crate) quotas: Slots<'m, QuotaCell>,
    next_stamp: u64,
    last: u32,
    pool_count: u32,
    sets: u32,
    classes: u32,
    /// No classes, leases, quotas or FIFO, and all nodes of one pool: each pool has one list, of its cached pages, and a path
    /// enters it as a run.
    has_one_list: bool,
    nodes: NodePools,
    /// References that transfers have now.
    by_transfers: u32,
}

/// The arrays that [`Pages`] is made of.
pub(crate) struct PageArrays<'m> {
    pub(crate) records: &'m mut [PageRecord],
    pub(crate) pools: &'m mut [Pool],
    pub(crate) words: &'m mut [u64],
    pub(crate) lists: &'m mut [List],
    pub(crate) filled: &'m mut [u64],
    pub(crate) cached_in: &'m mut [u32],
    pub(crate) quotas: &'m mut [QuotaCell],
    pub(crate) traits: Traits<'m>,
}

impl<'m> Pages<'m> {
    /// All pages free. `sizes` gives pages and policy of each pool in configuration order.
    pub(crate) fn new(
        limits: &Limits,
        arrays: PageArrays<'m>,
        sizes: impl Iterator<Item = (u32, Policy)> + Clone,
    ) -> Self {
        let traits = &arrays.traits;
        let has_one_list = limits.quotas == 0
            && traits.class.is_empty()
            && traits.leased.is_empty()
            && traits.before.is_empty()
            && traits.stamp.is_empty()
            && limits.exact_nodes == 0;
        let mut pages = Self {
            records: Slots::new(arrays.records),
            pools: Slots::new(arrays.pools),
            words: Slots::new(arrays.words),
            traits: arrays.traits,
            lists: IndexSlots::new(arrays.lists),
            filled: IndexSlots::new(arrays.filled),
            cached_in: IndexSlots::new(arrays.cached_in),
            quotas: Slots::new(arrays.quotas),
            next_stamp: 1 << 63,
            last: limits.pages,
            pool_count: limits.pools,
            sets: limits.quotas.saturating_add(1),
            classes: limits.classes.saturating_add(1),
            has_one_list,
            nodes: NodePools { exact: limits.exact_nodes, open: limits.open_pool, sealed: limits.anchor_pool },
            by_transfers: 0,
        };
        // The pools whose pages hold tokens come first: nodes, then what is not sealed yet.
        let (mut base, mut word) = (limits.indexed, 0);
        let nodes = sizes.clone().nth(limits.anchor_pool as usize).map_or(0, |(count, _)| count);
        for (index, (count, policy)) in (0..limits.pools).zip(sizes) {
            let at = if index == limits.anchor_pool {
                0
            } else if index == limits.open_pool {
                nodes
            } else {
                base = base.saturating_add(count);
                base.saturating_sub(count)
            };
            let set = FreeSet::lay_out(word, count);
            word = word.saturating_add(crate::limits::free_words_of(count));
            for id in 1..=count {
                set.insert(&mut pages.words, id);
            }
            pages.pools.set(
                index,
                Pool { base: at, pages: count, free: count, policy: policy as u32, set, ..Pool::default() },
            );
        }
        pages
    }

    /// Highest page of the common numbering; records above it are roots.
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    pub(crate) fn root(&self, namespace: u32) -> u32 {
        self.last.saturating_add(1).saturating_add(namespace)
    }

    pub(crate) fn is_root(&self, page: u32) -> bool {
        page > self.last
    }

    /// The pool of a page.
    #[inline]
    pub(crate) fn pool_of(&self, page: u32) -> u32 {
        if self.pool_count <= 1 {
            return 0;
        }
        (0..self.pool_count)
            .find(|&index| {
                let pool = self.pools.get(index);
                page > pool.base && page <= pool.base.saturating_add(pool.pages)
            })
            .unwrap_or(0)
    }

    #[inline]
    pub(crate) fn parent(&self, page: u32) -> u32 {
        self.records.get(page).parent()
    }

    #[inline]
    pub(crate) fn is_indexed(&self, page: u32) -> bool {
        self.parent(page) != NULL
    }

    #[inline]
    pub(crate) fn is_used(&self, page: u32) -> bool {
        self.records.get(page).is_used()
    }

    /// Neither used nor free.
    pub(crate) fn is_cached(&self, page: u32) -> bool {
        let record = self.records.get(page);
        !record.is_used() && record.parent() != NULL
    }

    /// References as its record counts them: see [`PageRecord`].
    #[inline]
    pub(crate) fn count(&self, page: u32) -> u32 {
        self.records.get(page).count()
    }

    /// Whether it hangs on a node as the page of a group other than the anchor.
    #[inline]
    pub(crate) fn is_hung(&self, page: u32) -> bool {
        INDEX && self.traits.place.get(page) != 0
    }

    /// Entries of a private page that the open plan has replaced already.
    pub(crate) fn replaced(&self, page: u32) -> u32 {
        self.records.get(page).replaced()
    }

    /// Forgets the replaced entries of a page once a plan has ended.
    pub(crate) fn set_replaced_if_private(&mut self, page: u32) {
        if !self.is_indexed(page) {
            self.set_replaced(page, 0);
        }
    }

    pub(crate) fn set_replaced(&mut self, page: u32, count: u32) {
        self.records.with(page, |record| record.set_replaced(count));
    }

    /// Takes up to `most` free pages with consecutive ids, lowest first: gives the first and how many.
    pub(crate) fn take(&mut self, pool: u32, most: u32) -> (u32, u32) {
        let words = &mut self.words;
        let (id, count) = self.pools.with(pool, |pool| pool.set.take_lowest(words, most));
        self.taken(pool, id, count)
    }

    /// Takes `count` pages with consecutive ids inside one aligned block of 64, or none.
    pub(crate) fn take_run(&mut self, pool: u32, count: u32) -> (u32, u32) {
        let Some(&Pool { set, pages, .. }) = self.pools.at(pool) else { return (NULL, 0) };
        let id = set.take_run(&mut self.words, count, pages);
        self.taken(pool, id, if id == 0 { 0 } else { count })
    }

    fn taken(&mut self, pool: u32, id: u32, count: u32) -> (u32, u32) {
        let first = self.pools.with(pool, |state| {
            state.free = state.free.saturating_sub(count);
            state.peak = state.peak.max(state.used());
            state.base.saturating_add(id)
        });
        self.records.slice_mut(u64::from(first), count).fill(PageRecord::taken());
        (first, count)
    }

    /// Gives a page back to its free set. It has no references and is not indexed.
    pub(crate) fn free(&mut self, page: u32) {
        let index = self.pool_of(page);
        self.discharge(page);
        self.records.set(page, PageRecord::default());
        let words = &mut self.words;
        self.pools.with(index, |pool| {
            pool.free = pool.free.saturating_add(1);
            pool.set.insert(words, page.saturating_sub(pool.base));
        });
    }

    pub(crate) fn is_free(&self, page: u32) -> bool {
        let pool = self.pools.get(self.pool_of(page));
        pool.set.contains(&self.words, page.saturating_sub(pool.base))
    }
}
