//! Digest: 64 bits over the logical state, equal on every target.
//!
//! A fixed-width little-endian walk through xxh3-64. It covers whatever can change a later answer: pages by id with state,
//! references, class, owner, parent and tokens; eviction lists in order; sequences, tickets and transfers by index with
//! generations and tables; the publish queue; the open plan; leases; quotas; namespaces; time. It leaves out statistics,
//! events, versions, and how nodes, hashes and table chunks are laid out.

use crate::cache::Cache;
use crate::index::INDEX;
use crate::pages::NULL;
use crate::plan::{HAS_IDS, IN_PAGE, PlanEntry};
use crate::sequence::Kind;

/// Words of a block: as many as xxh3 hashes without a state of its own.
const BLOCK: usize = 32;

/// Words in front of the hash: each full block is hashed with the hash of the blocks before it as seed.
struct Walk {
    block: [u32; BLOCK],
    filled: usize,
    hash: u64,
}

impl Walk {
    fn put(&mut self, words: &[u32]) {
        for word in words {
            if let Some(slot) = self.block.get_mut(self.filled) {
                *slot = word.to_le();
            }
            self.filled = self.filled.wrapping_add(1);
            if self.filled >= self.block.len() {
                self.fold();
            }
        }
    }

    #[allow(clippy::cast_possible_truncation)] // the two halves of the word
    fn put_wide(&mut self, words: &[u64]) {
        for word in words {
            self.put(&[*word as u32, (*word >> 32) as u32]);
        }
    }

    fn fold(&mut self) {
        self.hash = xxhash_rust::xxh3::xxh3_64_with_seed(bytemuck::bytes_of(&self.block), self.hash);
        self.block = [0; BLOCK];
        self.filled = 0;
    }
}

impl Cache<'_> {
    /// The digest. O(pages + table entries + tokens).
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut walk = Walk { block: [0; BLOCK], filled: 0, hash: 0 };
        walk.put_wide(&[self.now]);
        self.digest_pages(&mut walk);
        self.digest_order(&mut walk);
        self.digest_holders(&mut walk);
        self.digest_plan(&mut walk);
        self.digest_spaces(&mut walk);
        walk.fold();
        walk.hash
    }

    fn digest_pages(&self, walk: &mut Walk) {
        for page in 1..=self.pages.last() {
            let indexed = self.pages.is_indexed(page);
            let state = match (self.pages.is_used(page), indexed) {
                (true, indexed) => 2_u32.saturating_add(u32::from(indexed)),
                (false, indexed) => u32::from(indexed),
            };
            walk.put(&[state, self.pages.traits.owner.get(page)]);
            if state == 0 {
                continue;
            }
            walk.put(&[
                self.pages.count(page),
                self.pages.parent(page),
                u32::from(self.pages.traits.place.get(page)),
                self.pages.traits.pending.get(page).get(),
                self.pages.traits.leased.get(page),
                u32::from(self.pages.traits.class.get(page)),
                u32::from(self.pages.traits.base.get(page)),
            ]);
            if indexed && !self.pages.is_hung(page) {
                walk.put(self.index.page(page));
                for span in self.index.parts.list(self.index.parts_of(page)) {
                    walk.put(&[span.start, span.length]);
                    walk.put_wide(&span.digest);
                }
            }
        }
    }

    fn digest_order(&self, walk: &mut Walk) {
        for pool in 0..self.limits.pools {
            for set in 0..self.pages.sets() {
                let quota = self.pages.quotas.get(self.pages.set_index(pool, set));
                walk.put(&[quota.limit, quota.charged]);
                for class in 0..self.pages.classes() {
                    for page in self.pages.list(pool, set, class) {
                        walk.put(&[page]);
                        if !self.pages.traits.stamp.is_empty() {
                            walk.put(&[self.stamp_rank(pool, set, page)]);
                        }
                    }
                    walk.put(&[NULL]);
                }
            }
        }
    }

    /// How many cold ends of other lists are older: all that comparing stamps can tell about a head.
    fn stamp_rank(&self, pool: u32, set: u32, page: u32) -> u32 {
        let stamp = self.pages.traits.stamp.get(page);
        let older = (0..self.pages.sets()).filter(|&other| other != set).flat_map(|other| {
            (0..self.pages.classes()).filter_map(move |class| self.pages.list(pool, other, class).next())
        });
        u32::try_from(older.filter(|&head| self.pages.traits.stamp.get(head) < stamp).count()).unwrap_or(0)
    }

    fn digest_holders(&self, walk: &mut Walk) {
        for kind in [Kind::Sequence, Kind::Ticket, Kind::Transfer] {
            for holder in self.holders.range(kind) {
                let s = self.holders.get(holder);
                walk.put(&[self.holders.generation(holder), s.is_live]);
                if s.is_live != 1 {
                    continue;
                }
                walk.put(&[
                    s.namespace,
                    s.len,
                    s.verified,
                    s.known,
                    s.tip,
                    s.depth,
                    s.duplicates,
                    s.inherited,
                    s.class,
                    s.plan,
                    s.closing,
                    s.loads,
                    if s.loads > 0 { s.load_from } else { 0 },
                ]);
                walk.put_wide(&[s.deadline, s.user]);
                for group in 0..self.limits.groups {
                    walk.put(&[self.tables.first(holder, group), self.tables.sealed(holder, group)]);
                    for (base, entries) in self.tables.chunks_of(holder, group) {
                        walk.put(&[base]);
                        entries.iter().for_each(|page| walk.put(&[page.get()]));
                    }
                }
                self.digest_tail(walk, holder);
                for span in self.index.parts.list(s.parts) {
                    walk.put(&[span.start, span.length]);
                    walk.put_wide(&span.digest);
                }
            }
        }
        let mut next = self.holders.queue_head;
        while INDEX && next != 0 {
            walk.put(&[next]);
            next = self.holders.get(next.saturating_sub(1)).queue_next;
        }
    }

    /// Known tokens of a holder that no indexed page holds.
    fn digest_tail(&self, walk: &mut Walk, holder: u32) {
        let s = self.holders.get(holder);
        if !self.index.is_enabled() {
            return;
        }
        for entry in s.depth..self.index.page_tokens.saturating_sub(1).saturating_add(s.known) >> self.index.shift {
            let page = self.tables.get(holder, self.limits.anchor, entry);
            let count = s.known.saturating_sub(entry << self.index.shift).min(self.index.page_tokens);
            walk.put(self.index.page(page).get(..count as usize).unwrap_or(&[]));
        }
    }

    fn digest_plan(&self, walk: &mut Walk) {
        let state = if self.plan.is_building() { 1 } else { u32::from(self.plan.is_finished()).saturating_mul(2) };
        walk.put(&[state]);
        if state == 0 {
            return;
        }
        for entry in self.plan.each() {
            walk.put(&[entry.holder, entry.count, entry.flags & !IN_PAGE]);
            walk.put(self.planned_tokens(&entry));
        }
        for seal in self.plan.seals() {
            walk.put(&[seal.entry, seal.group, seal.at, seal.tokens]);
        }
        for nth in 0..self.plan.copy_count {
            let copy = self.plan.copy(nth);
            walk.put(&[copy.entry, copy.group, copy.source, copy.target, copy.tokens, copy.at, copy.kind]);
        }
        for pool in 0..self.limits.pools {
            walk.put(&[self.pages.pools.get(pool).promised]);
        }
    }

    /// Ids that a plan was given for a sequence: staged, or in the page that it writes to.
    fn planned_tokens(&self, entry: &PlanEntry) -> &[u32] {
        if entry.flags & IN_PAGE == 0 {
            return self.plan.staged_tokens(entry);
        }
        let sequence = self.holders.get(entry.holder);
        if entry.flags & HAS_IDS == 0 || sequence.known != sequence.len {
            return &[];
        }
        let offset = (sequence.len & self.index.page_tokens.wrapping_sub(1)) as usize;
        let page = self.index.page(sequence.last_page);
        page.get(offset..offset.saturating_add(entry.count as usize)).unwrap_or(&[])
    }

    fn digest_spaces(&self, walk: &mut Walk) {
        for slot in 0..self.spaces.count() {
            let space = self.spaces.get(slot);
            let key = self.spaces.key(slot);
            walk.put(&[u32::from(self.spaces.is_open(slot)), space.users, space.owner]);
            walk.put_wide(&key.tenant);
            walk.put_wide(&[key.model, key.adapter, key.adapter_generation, key.format]);
            walk.put(&[u32::from(self.pages.traits.quota_of.get(slot))]);
        }
        for lease in self.leases.slots.iter() {
            walk.put(&[lease.node, lease.generation]);
            walk.put_wide(&[lease.until]);
        }
    }
}
