//! Statistics: what the pages are doing, and what happened so far.

use crate::cache::Cache;
use crate::error::Error;
use crate::ids::{GroupId, NamespaceId, PageId, PoolId, SequenceId, Tick};
use crate::pages::NULL;
use crate::sequence::Kind;

/// Counters of what happened; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Tokens asked for in matches.
    pub queried_tokens: u64,
    /// Of these, tokens found.
    pub hit_tokens: u64,
    /// Tokens committed.
    pub committed_tokens: u64,
    /// Pages that entered the index.
    pub published_pages: u64,
    /// Pages computed a second time while another copy was published.
    pub duplicate_pages: u64,
    /// Cached pages evicted.
    pub evicted_pages: u64,
    /// Pages copied before a write.
    pub copied_pages: u64,
    /// Plans finished.
    pub plans: u64,
}

/// One pool now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Pages in all: `used + cached + free`.
    pub pages: u32,
    /// With references.
    pub used: u32,
    /// Without, but indexed: what eviction can give.
    pub cached: u32,
    /// Neither.
    pub free: u32,
    /// Of the used ones, those that only transfers keep.
    pub pending: u32,
    /// Most pages used at once so far.
    pub peak_used: u32,
}

impl PoolStats {
    /// Share of pages in use, in thousandths: `1000 * used / pages`.
    #[must_use]
    pub fn utilisation(&self) -> u32 {
        let share = u64::from(self.used).saturating_mul(1000).checked_div(u64::from(self.pages));
        u32::try_from(share.unwrap_or(0)).unwrap_or(0)
    }
}

/// The whole cache now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// What happened so far.
    pub counters: Counters,
    /// Live sequences.
    pub sequences: u32,
    /// Live tickets.
    pub tickets: u32,
    /// Transfers under way.
    pub transfers: u32,
    /// Free table chunks.
    pub free_chunks: u32,
    /// Free media span entries.
    pub free_key_parts: u32,
    /// Pages in the index, of the group that carries it.
    pub indexed_pages: u32,
    /// Events made so far.
    pub events: u64,
    /// Events waiting to be read.
    pub waiting_events: u64,
}

/// One sequence now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceInfo {
    /// Tokens in the index.
    pub published: u32,
    /// Tokens known to be final.
    pub verified: u32,
    /// Tokens of the sequence.
    pub len: u32,
    /// Tokens with slots, those of the finished plan included.
    pub written: u32,
    /// Tokens whose ids are known.
    pub known: u32,
    /// Its namespace.
    pub namespace: NamespaceId,
    /// Version of its last table change.
    pub version: u64,
    /// The caller's own word.
    pub user: u64,
}

/// State of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PageState {
    /// Not allocated.
    #[default]
    Free = 0,
    /// Without references, in the index.
    Cached = 1,
    /// With references.
    Used = 2,
}

/// One page now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageInfo {
    /// Its state.
    pub state: PageState,
    /// Whether it is in the index.
    pub indexed: bool,
    /// Table entries, ticket and transfer pins, and holds that refer to it.
    pub refs: u32,
}

impl Cache<'_> {
    /// The whole cache now. O(1).
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            counters: self.counters,
            sequences: self.holders.live(Kind::Sequence),
            tickets: self.holders.live(Kind::Ticket),
            transfers: self.holders.live(Kind::Transfer),
            free_chunks: self.tables.free_chunks(),
            free_key_parts: self.index.parts.free,
            indexed_pages: self.index.nodes,
            events: self.events.made(),
            waiting_events: self.events.waiting(),
        }
    }

    /// The latest tick that it was told.
    #[must_use]
    pub fn now(&self) -> Tick {
        self.now
    }

    /// One pool now. O(1).
    ///
    /// # Errors
    /// `Argument` when there is no such pool.
    pub fn pool_stats(&self, pool: PoolId) -> Result<PoolStats, Error> {
        let index = u32::from(pool.get());
        if index >= self.visible_pools() {
            return Err(Error::Argument);
        }
        let pool = self.pages.pools.get(index);
        Ok(PoolStats {
            pages: pool.pages,
            used: pool.used(),
            cached: pool.cached,
            free: pool.free,
            pending: pool.pending,
            peak_used: pool.peak,
        })
    }

    /// One sequence now. O(1).
    ///
    /// # Errors
    /// `Stale`.
    pub fn sequence_info(&self, id: SequenceId) -> Result<SequenceInfo, Error> {
        let sequence = self.holders.get(self.sequence(id)?);
        Ok(SequenceInfo {
            published: self.published_pages(sequence) << self.index.shift,
            verified: sequence.verified,
            len: sequence.len,
            written: self.written(sequence),
            known: sequence.known,
            namespace: self.spaces.id(sequence.namespace),
            version: sequence.version,
            user: sequence.user,
        })
    }

    /// Pages that hold a sequence in one group, resident or dropped: `N_pages = ceil(len / P)`. O(1).
    ///
    /// # Errors
    /// `Stale`, `Argument`.
    pub fn sequence_pages(&self, id: SequenceId, group: GroupId) -> Result<u32, Error> {
        let (_, group) = self.group(group)?;
        let sequence = self.holders.get(self.sequence(id)?);
        Ok(group.pages(self.written(sequence)))
    }

    /// How alike two requests are to the cache, in thousandths: `CacheHit(a, b) = 1000 * shared / max(len a, len b)`, where
    /// `shared` counts the leading tokens whose pages are the same pages. O(pages).
    ///
    /// # Errors
    /// `Stale`.
    pub fn cache_hit(&self, a: SequenceId, b: SequenceId) -> Result<u32, Error> {
        let shared = u64::from(self.shared_tokens(a, b)?);
        let len = self.holders.get(self.sequence(a)?).len.max(self.holders.get(self.sequence(b)?).len);
        let share = shared.saturating_mul(1000).checked_div(u64::from(len)).unwrap_or(0);
        Ok(u32::try_from(share).unwrap_or(0))
    }

    /// One page now, for diagnosis. O(live table entries).
    ///
    /// # Errors
    /// `Argument` when there is no such page.
    pub fn page_info(&self, pool: PoolId, page: PageId) -> Result<PageInfo, Error> {
        let index = u32::from(pool.get());
        let state = self.pages.pools.get(index);
        if index >= self.visible_pools() || page == PageId::NULL || page.get() > state.pages {
            return Err(Error::Argument);
        }
        let page = state.base.saturating_add(page.get());
        let state = if self.pages.is_used(page) {
            PageState::Used
        } else if self.pages.is_free(page) {
            PageState::Free
        } else {
            PageState::Cached
        };
        Ok(PageInfo { state, indexed: self.pages.is_indexed(page), refs: self.refs(page) })
    }

    /// References to a page, one by one: table entries, holds, and sources that the open plan keeps.
    pub(crate) fn refs(&self, page: u32) -> u32 {
        let mut refs = 0_u32;
        for kind in [Kind::Sequence, Kind::Ticket, Kind::Transfer] {
            for holder in self.holders.each(kind) {
                for group in 0..self.limits.groups {
                    let rows = self.tables.chunks_of(holder, group);
                    let here =
                        rows.flat_map(|(_, entries)| entries).filter(|entry| entry.get() == page && page != NULL);
                    refs = refs.saturating_add(u32::try_from(here.count()).unwrap_or(0));
                }
                refs = refs.saturating_add(u32::from(self.holds(holder, page)));
            }
        }
        let sources = (0..self.plan.copy_count).filter(|&nth| self.plan.copy(nth).source == page);
        let kept = if self.plan.is_finished() { sources.count() } else { 0 };
        refs.saturating_add(u32::try_from(kept).unwrap_or(0))
    }

    /// Whether a page is on a holder's path while its table shows a private duplicate instead.
    fn holds(&self, holder: u32, page: u32) -> bool {
        let state = self.holders.get(holder);
        if state.duplicates == 0 || !self.pages.is_indexed(page) || self.pages.is_hung(page) {
            return false;
        }
        let (mut node, mut entry) = (state.tip, state.depth);
        while entry > 0 && node != page {
            node = self.pages.parent(node);
            entry = entry.saturating_sub(1);
        }
        entry > 0 && self.tables.get(holder, self.limits.anchor, entry.saturating_sub(1)) != page
    }
}
