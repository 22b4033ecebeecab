//! Streams over the pages of a real cache, in simulated device memory: after each step every live slot of every stream holds
//! its own token, and the pages in use are those of the rows.
//!
//! A stream is a sequence of a cache with one group. `KVF_STEPS` says how many steps; 20,000 if it does not.

use std::collections::{BTreeMap, BTreeSet};

use kvfolio::evict::*;
use kvfolio::{
    Accept, Cache, CloseMode, Config, GroupConfig, GroupId, IndexKind, OpenParams, OwnedStorage, PageId, PoolConfig,
    PoolId, SequenceId,
};

use super::support::{Naive, Owned, Rng};

const STREAMS: usize = 6;
const SLOTS: u32 = 128;
const GROUP: GroupId = GroupId::new(0);

fn steps() -> u32 {
    std::env::var("KVF_STEPS").map_or(20_000, |n| n.parse().expect("KVF_STEPS is a number"))
}

/// One stream: its slots, its row in the cache, the plain list, and what each of its tokens is called in device memory.
struct Row {
    owned: Owned,
    sequence: SequenceId,
    naive: Naive,
    tokens: BTreeMap<u32, u64>,
}

struct World<'c, 'm> {
    cache: &'c mut Cache<'m>,
    page_tokens: u32,
    /// What lies in each slot of each page.
    memory: Vec<Option<u64>>,
    rows: Vec<Row>,
    written: u64,
    rng: Rng,
}

impl World<'_, '_> {
    fn pages(&self, sequence: SequenceId) -> Vec<u32> {
        let mut row = vec![-1; SLOTS as usize + 1];
        self.cache.export_dense(&[sequence], GROUP, SLOTS + 1, -1, &mut row).unwrap();
        row.into_iter().take_while(|&page| page >= 0).map(|page| page as u32).collect()
    }

    fn place(&self, pages: &[u32], slot: u32) -> usize {
        (pages[(slot / self.page_tokens) as usize] * self.page_tokens + slot % self.page_tokens) as usize
    }

    /// Whether somebody else uses a page of the row from a column on.
    fn is_shared(&self, pages: &[u32], from: u32) -> bool {
        let refs = |&page: &u32| self.cache.page_info(PoolId::new(0), PageId::new(page)).unwrap().refs;
        pages.iter().skip(from as usize).any(|page| refs(page) > 1)
    }

    fn open(&mut self) {
        let sequence = self.cache.open(&OpenParams::default()).unwrap();
        let owned = Owned::new(self.page_tokens, SLOTS / self.page_tokens);
        self.rows.push(Row { owned, sequence, naive: Naive::default(), tokens: BTreeMap::new() });
    }

    /// A step: `count` tokens for each of some streams, in one plan. Gives whether there was room.
    fn append(&mut self, chosen: &[usize], count: u32) -> bool {
        let mut placements = Vec::new();
        for &at in chosen {
            let row = &self.rows[at];
            let can_reuse = !self.is_shared(&self.pages(row.sequence), 0);
            let reuse = can_reuse && self.rng.below(2) == 0;
            let holes = if reuse { (row.owned.counters.rows - row.owned.counters.live).min(count) } else { 0 };
            if row.owned.counters.rows + count - holes > SLOTS {
                return false;
            }
            placements.push((at, if reuse { Placement::Reuse } else { Placement::Behind }, count - holes));
        }
        let digest = self.cache.digest();
        self.cache.plan_begin(0).unwrap();
        let planned: Vec<_> = placements.iter().filter(|(.., behind)| *behind > 0).copied().collect();
        for &(at, _, behind) in &planned {
            if self.cache.plan_add(self.rows[at].sequence, behind, None).is_err() {
                self.cache.plan_cancel().unwrap();
                assert_eq!(self.cache.digest(), digest, "all streams of a step or none");
                return false;
            }
        }
        self.cache.plan_finish().unwrap();
        let copies: Vec<_> = self.cache.copies().collect();
        for copy in copies {
            for offset in 0..copy.tokens {
                let of = |page: PageId| (page.get() * self.page_tokens + offset) as usize;
                self.memory[of(copy.target)] = self.memory[of(copy.source)];
            }
        }
        let n: u32 = planned.iter().map(|entry| entry.2).sum();
        let (mut slots, mut positions) = (vec![0; n as usize], vec![0; n as usize]);
        self.cache.export_slots(GROUP, &mut slots, &mut positions).unwrap();
        let mut behind = slots.into_iter();
        for &(at, placement, _) in &placements {
            let pages = self.pages(self.rows[at].sequence);
            let first = self.rows[at].owned.counters.rows;
            let mut placed = Vec::new();
            self.rows[at].owned.with(|stream| stream.append(count, placement, |slot| placed.push(slot))).unwrap();
            for slot in placed {
                let to = self.place(&pages, slot);
                if slot >= first {
                    assert_eq!(behind.next(), Some(to as i64), "the slots that the plan gave");
                }
                self.written += 1;
                self.memory[to] = Some(self.written);
                let row = &mut self.rows[at];
                let position = row.naive.seen;
                let score = self.rng.score();
                row.owned.scores[slot as usize] = score;
                row.naive.append(score);
                row.tokens.insert(position, self.written);
            }
        }
        let accepts: Vec<Accept<'_>> = planned.iter().map(|entry| Accept::all(entry.2)).collect();
        self.cache.plan_commit(&accepts).unwrap();
        true
    }

    fn evict(&mut self, at: usize) {
        let protected =
            Protected { pins: &[Pin { start: 9, end: 11 }], sinks: self.rng.below(3), recent: 1 + self.rng.below(3) };
        let budget = 8 + self.rng.below(40);
        let row = &mut self.rows[at];
        row.owned.with(|stream| stream.evict(&External, &protected, budget, &mut [0; SLOTS as usize])).unwrap();
        row.naive.evict(&protected, budget, |score, _| score);
    }

    /// Pages without a live token go.
    fn drop_dead(&mut self, at: usize) {
        let row = &mut self.rows[at];
        let p = self.page_tokens;
        // The last page may be dead and not full: what is taken off the end is cut, not removed.
        let full = row.owned.counters.rows / p;
        let before = row.owned.counters.rows;
        let mut dead = Vec::new();
        row.owned.with(|stream| stream.drop_dead_columns(|column| dead.push(column)));
        let tail = dead.pop_if(|column| *column >= full);
        self.cache.remove_pages(row.sequence, &dead).unwrap();
        if tail.is_some() {
            self.cache.truncate(row.sequence, row.owned.counters.rows).unwrap();
        }
        assert!(row.owned.counters.rows <= before);
    }

    fn compact(&mut self, at: usize) {
        let pages = self.pages(self.rows[at].sequence);
        let row = &self.rows[at];
        let mut moves = vec![SlotMove::default(); row.owned.counters.live as usize];
        let plan = plan_compaction(&row.owned.slots(), 1, &mut moves).unwrap();
        if self.is_shared(&pages[..plan.columns as usize], plan.first_written) {
            return; // the holes stay, each owner's own
        }
        for step in &moves[..plan.moves as usize] {
            for i in 0..step.count {
                let (from, to) = (self.place(&pages, step.from + i), self.place(&pages, step.to + i));
                self.memory[to] = self.memory[from];
            }
        }
        let row = &mut self.rows[at];
        row.owned.with(|stream| stream.commit_compaction(1)).unwrap();
        self.cache.truncate(row.sequence, plan.rows).unwrap();
        let used = self.cache.sequence_info(row.sequence).unwrap().len.div_ceil(self.page_tokens);
        assert_eq!(used, row.owned.counters.live.div_ceil(self.page_tokens), "freed at once");
    }

    fn take_back(&mut self, at: usize) {
        let row = &mut self.rows[at];
        let len = row.naive.seen - self.rng.below(5).min(row.naive.seen);
        row.owned.with(|stream| stream.truncate(len)).unwrap();
        row.naive.tokens.retain(|token| token.0 < len);
        row.naive.seen = len;
        row.tokens.retain(|&position, _| position < len);
        self.cache.truncate(row.sequence, row.owned.counters.rows).unwrap();
    }

    fn fork(&mut self, at: usize) {
        let row = &self.rows[at];
        let mut child = [SequenceId::default()];
        self.cache.fork(row.sequence, row.owned.counters.rows, &mut child).unwrap();
        let owned = Owned {
            page_tokens: row.owned.page_tokens,
            counters: row.owned.counters,
            valid: row.owned.valid.clone(),
            positions: row.owned.positions.clone(),
            scores: row.owned.scores.clone(),
        };
        let child = Row { owned, sequence: child[0], naive: row.naive.clone(), tokens: row.tokens.clone() };
        self.rows.push(child);
    }

    fn step(&mut self) {
        let at = self.rng.below(self.rows.len() as u32) as usize;
        match self.rng.below(20) {
            0..8 => {
                let chosen: Vec<usize> = (0..self.rows.len()).filter(|_| self.rng.below(3) > 0).collect();
                let count = 1 + self.rng.below(6);
                if !self.append(&chosen, count) {
                    self.evict(at);
                    self.compact(at);
                }
            }
            8..12 => self.evict(at),
            12..15 => self.drop_dead(at),
            15 | 16 => self.compact(at),
            17 => self.take_back(at),
            18 if self.rows.len() < STREAMS => self.fork(at),
            19 if self.rows.len() < STREAMS => self.open(),
            _ if self.rows.len() > 1 && self.rng.below(3) == 0 => {
                let row = self.rows.swap_remove(at);
                self.cache.close(row.sequence, CloseMode::Discard).unwrap();
            }
            _ => {}
        }
    }

    fn check(&self) {
        let mut used = BTreeSet::new();
        for row in &self.rows {
            let pages = self.pages(row.sequence);
            assert_eq!(self.cache.sequence_info(row.sequence).unwrap().len, row.owned.counters.rows);
            assert_eq!(row.owned.kept(), row.naive.kept());
            for (slot, position) in row.owned.slots().live() {
                assert_eq!(self.memory[self.place(&pages, slot)], row.tokens.get(&position).copied());
            }
            used.extend(pages);
        }
        let stats = self.cache.pool_stats(PoolId::new(0)).unwrap();
        assert_eq!((stats.used as usize, stats.cached), (used.len(), 0));
        let mut scratch = vec![0; self.cache.check_scratch(2) as usize];
        assert!(self.cache.check(2, &mut scratch).unwrap().is_ok());
    }
}

#[test]
fn live_slots_hold_their_tokens_whatever_happens_to_pages() {
    for (nth, page_tokens) in [1_u16, 4, 16, 64].into_iter().enumerate() {
        let pages = 300 / u32::from(page_tokens) + 4;
        let pools = [PoolConfig { pages, ..PoolConfig::default() }];
        let groups = [GroupConfig { page_tokens, ..GroupConfig::FULL }];
        let config = Config {
            pools: &pools,
            groups: &groups,
            sequences: STREAMS as u32,
            index: IndexKind::None,
            ..Config::new()
        };
        let mut storage = OwnedStorage::new(&config).unwrap();
        let mut cache = Cache::new(&config, storage.lend()).unwrap();
        let page_tokens = u32::from(page_tokens);
        let memory = vec![None; ((pages + 1) * page_tokens) as usize];
        let rng = Rng(31 + nth as u64);
        let mut world = World { cache: &mut cache, page_tokens, memory, rows: Vec::new(), written: 0, rng };
        world.open();
        for _ in 0..steps() / 4 {
            world.step();
            world.check();
        }
        assert!(world.written > u64::from(steps() / 4), "something was written");
    }
}
