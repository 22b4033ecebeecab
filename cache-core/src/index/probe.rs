//! The table of candidates at branch points: open addressing over `u32` entries.
//!
//! An entry is the number of a page that is not the first child of its parent, with seven bits of its hash above it.
//! An entry only proposes a page; `is_page` decides. Deletion shifts later entries back, so no markers build up.

use super::{Index, Spans};
use crate::pages::{NULL, Pages};

const PAGE_BITS: u32 = 25;
const PAGE_MASK: u32 = (1 << PAGE_BITS) - 1;

/// Hashes a page of tokens, as little-endian bytes.
#[inline]
pub(super) fn hash_tokens(tokens: &[u32], seed: u64) -> u64 {
    if cfg!(target_endian = "little") {
        return xxhash_rust::xxh3::xxh3_64_with_seed(bytemuck::cast_slice(tokens), seed);
    }
    let mut little = [0_u32; 256];
    for (slot, token) in little.iter_mut().zip(tokens) {
        *slot = token.to_le();
    }
    let bytes: &[u8] = bytemuck::cast_slice(&little);
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes.get(..tokens.len().saturating_mul(4)).unwrap_or(bytes), seed)
}

#[inline]
fn seed_of(seed: u64, parent: u32) -> u64 {
    seed ^ u64::from(parent).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The first slot to look at, and the entry's upper bits.
#[inline]
#[allow(clippy::cast_possible_truncation)] // the two ends of the hash
fn place(hash: u64, mask: u32) -> (u32, u32) {
    (hash as u32 & mask, (hash >> 57) as u32)
}

impl Index<'_> {
    fn mask(&self) -> u32 {
        self.probes.len().saturating_sub(1)
    }

    /// Looks a child up that is not the first of its parent.
    pub(super) fn probe(&self, pages: &Pages<'_>, parent: u32, tokens: &[u32], spans: Spans<'_>, start: u32) -> u32 {
        let mut hash = hash_tokens(tokens, seed_of(self.seed, parent));
        hash = self.parts.hash(spans, start, self.page_tokens, hash);
        let mask = self.mask();
        let (mut slot, tag) = place(hash, mask);
        for _ in 0..=mask {
            let entry = self.probes.get(slot);
            if entry == 0 {
                break;
            }
            let page = entry & PAGE_MASK;
            if entry >> PAGE_BITS == tag && pages.parent(page) == parent && self.is_page(page, tokens, spans, start) {
                return page;
            }
            slot = slot.wrapping_add(1) & mask;
        }
        NULL
    }

    fn hash_of(&self, pages: &Pages<'_>, page: u32) -> u64 {
        let mut hash = hash_tokens(self.page(page), seed_of(self.seed, pages.parent(page)));
        for part in self.parts.list(self.parts_of.get(page)) {
            hash = part.hash(hash);
        }
        hash
    }

    pub(super) fn add_probe(&mut self, pages: &Pages<'_>, page: u32) {
        let mask = self.mask();
        let (mut slot, tag) = place(self.hash_of(pages, page), mask);
        for _ in 0..=mask {
            if self.probes.get(slot) == 0 {
                self.probes.set(slot, tag << PAGE_BITS | page);
                return;
            }
            slot = slot.wrapping_add(1) & mask;
        }
    }

    pub(super) fn remove_probe(&mut self, pages: &Pages<'_>, page: u32) {
        let mask = self.mask();
        let (mut hole, _) = place(self.hash_of(pages, page), mask);
        let mut left = mask;
        while self.probes.get(hole) & PAGE_MASK != page {
            if left == 0 || self.probes.get(hole) == 0 {
                return;
            }
            left = left.wrapping_sub(1);
            hole = hole.wrapping_add(1) & mask;
        }
        let mut slot = hole;
        for _ in 0..=mask {
            slot = slot.wrapping_add(1) & mask;
            let entry = self.probes.get(slot);
            if entry == 0 {
                break;
            }
            let (home, _) = place(self.hash_of(pages, entry & PAGE_MASK), mask);
            // The entry may move to the hole iff its home does not lie behind the hole.
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(hole) & mask {
                self.probes.set(hole, entry);
                hole = slot;
            }
        }
        self.probes.set(hole, 0);
    }

    /// Whether the table leads to a page.
    pub(crate) fn is_reachable(&self, pages: &Pages<'_>, page: u32) -> bool {
        let mask = self.mask();
        let (mut slot, _) = place(self.hash_of(pages, page), mask);
        for _ in 0..=mask {
            match self.probes.get(slot) {
                0 => return false,
                entry if entry & PAGE_MASK == page => return true,
                _ => slot = slot.wrapping_add(1) & mask,
            }
        }
        false
    }
}
