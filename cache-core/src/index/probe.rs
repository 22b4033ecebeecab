//! The table of candidates at branch points: open addressing over `u32` entries.
//!
//! An entry is the number of a page that is not the first child of its parent. Above it are seven bits: how far behind the
//! slot of its hash it lies. So a search looks only at pages with the same slot, and a deletion shifts later entries back,
//! leaving no markers, without hashing any of them. An entry only proposes a page; `is_page` decides.

use super::{Index, Spans};
use crate::keychain::hash_tokens;
use crate::pages::{NULL, Pages};

const PAGE_BITS: u32 = 25;
const PAGE_MASK: u32 = (1 << PAGE_BITS) - 1;
/// Distances from here on are not told apart.
const FAR: u32 = (1 << (32 - PAGE_BITS)) - 1;

/// Under this seed unit tests give all pages one hash.
const CONSTANT: u64 = u64::MAX;

/// The slots of the table as a ring.
#[derive(Clone, Copy)]
struct Ring {
    slots: u32,
}

impl Ring {
    /// The slot of a hash: its upper half, scaled to the size of the table, which need not be a power of two. So the table
    /// is equally full for any number of pages.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // below `slots`
    fn home(self, hash: u64) -> u32 {
        ((hash >> 32).wrapping_mul(u64::from(self.slots)) >> 32) as u32
    }

    /// The slot `distance < slots` behind another.
    #[inline]
    fn behind(self, slot: u32, distance: u32) -> u32 {
        let to_end = self.slots.wrapping_sub(slot);
        if distance < to_end { slot.wrapping_add(distance) } else { distance.wrapping_sub(to_end) }
    }

    /// How far a slot lies behind another.
    #[inline]
    fn distance(self, from: u32, to: u32) -> u32 {
        if to >= from { to.wrapping_sub(from) } else { to.wrapping_add(self.slots).wrapping_sub(from) }
    }
}

impl Index<'_> {
    #[inline]
    fn ring(&self) -> Ring {
        Ring { slots: self.probes.len() }
    }

    #[inline]
    fn hash_child(&self, parent: u32, tokens: &[u32]) -> u64 {
        if cfg!(test) && self.seed == CONSTANT {
            return 0;
        }
        hash_tokens(tokens, self.seed ^ u64::from(parent).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Looks a child up that is not the first of its parent.
    pub(super) fn probe(&self, pages: &Pages<'_>, parent: u32, tokens: &[u32], spans: Spans<'_>, start: u32) -> u32 {
        let mut hash = self.hash_child(parent, tokens);
        hash = self.parts.hash(spans, start, self.page_tokens, hash);
        let ring = self.ring();
        let home = ring.home(hash);
        for distance in 0..ring.slots {
            let entry = self.probes.get(ring.behind(home, distance));
            if entry == 0 {
                break;
            }
            let page = entry & PAGE_MASK;
            if entry >> PAGE_BITS == distance.min(FAR)
                && pages.parent(page) == parent
                && self.is_page(page, tokens, spans, start)
            {
                return page;
            }
        }
        NULL
    }

    fn hash_of(&self, pages: &Pages<'_>, page: u32) -> u64 {
        let mut hash = self.hash_child(pages.parent(page), self.page(page));
        for part in self.parts.list(self.parts_of.get(page)) {
            hash = part.hash(hash);
        }
        hash
    }

    pub(super) fn add_probe(&mut self, pages: &Pages<'_>, page: u32) {
        let ring = self.ring();
        let home = ring.home(self.hash_of(pages, page));
        for distance in 0..ring.slots {
            let slot = ring.behind(home, distance);
            if self.probes.get(slot) == 0 {
                self.probes.set(slot, distance.min(FAR) << PAGE_BITS | page);
                return;
            }
        }
    }

    pub(super) fn remove_probe(&mut self, pages: &Pages<'_>, page: u32) {
        let ring = self.ring();
        let Some(mut hole) = self.slot_of(pages, page) else { return };
        let mut slot = hole;
        for _ in 0..ring.slots {
            slot = ring.behind(slot, 1);
            let entry = self.probes.get(slot);
            if entry == 0 {
                break;
            }
            let mut distance = entry >> PAGE_BITS;
            if distance == FAR {
                distance = ring.distance(ring.home(self.hash_of(pages, entry & PAGE_MASK)), slot);
            }
            // The entry may move to the hole iff its home does not lie behind the hole.
            let gap = ring.distance(hole, slot);
            if distance >= gap {
                self.probes.set(hole, distance.wrapping_sub(gap).min(FAR) << PAGE_BITS | entry & PAGE_MASK);
                hole = slot;
            }
        }
        self.probes.set(hole, 0);
    }

    /// Where the table leads to a page.
    fn slot_of(&self, pages: &Pages<'_>, page: u32) -> Option<u32> {
        let ring = self.ring();
        let home = ring.home(self.hash_of(pages, page));
        for distance in 0..ring.slots {
            let slot = ring.behind(home, distance);
            match self.probes.get(slot) {
                0 => return None,
                entry if entry == distance.min(FAR) << PAGE_BITS | page => return Some(slot),
                _ => {}
            }
        }
        None
    }

    /// Whether the table leads to a page.
    pub(crate) fn is_reachable(&self, pages: &Pages<'_>, page: u32) -> bool {
        self.slot_of(pages, page).is_some()
    }
}

#[cfg(all(test, feature = "alloc", feature = "index"))]
mod tests {
    extern crate std;
    use super::CONSTANT;
    use crate::{Cache, CloseMode, Config, GroupConfig, OpenParams, OwnedStorage, PoolConfig, PoolId, Prompt};
    use std::vec::Vec;

    type Failure = std::boxed::Box<dyn core::error::Error>;

    /// Hits and evictions of 400 siblings that come and go.
    fn run(seed: u64) -> Result<Vec<u32>, Failure> {
        let pools = [PoolConfig { pages: 400, ..PoolConfig::default() }];
        let groups = [GroupConfig { page_tokens: 2, ..GroupConfig::FULL }];
        let config = Config { pools: &pools, groups: &groups, sequences: 2, seed, ..Config::new() };
        let mut storage = OwnedStorage::new(&config)?;
        let mut cache = Cache::new(&config, storage.lend())?;
        let mut hits = Vec::new();
        for step in 0..3000_u32 {
            let tokens = [step.wrapping_mul(2_654_435_761) >> 22, 1, 9];
            let prompt = Prompt { tokens: &tokens, ..Prompt::default() };
            hits.push(cache.lookup(&prompt, 2)?.tokens);
            let sequence = cache.open(&OpenParams::default())?;
            cache.append(sequence, &tokens[..2])?;
            cache.close(sequence, CloseMode::Keep)?;
            if step % 64 == 0 {
                hits.push(cache.evict(PoolId::new(0), 40)?);
                let mut scratch = std::vec![0; cache.check_scratch(2) as usize];
                assert_eq!(cache.check(2, &mut scratch), Ok(Ok(())), "step {step}");
            }
        }
        Ok(hits)
    }

    #[test]
    fn results_do_not_depend_on_the_hash() -> Result<(), Failure> {
        assert_eq!(run(7)?, run(CONSTANT)?);
        Ok(())
    }
}
