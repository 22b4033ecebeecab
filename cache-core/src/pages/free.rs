//! The set of free pages of one pool: a bitmap with summaries, lowest id first.
//!
//! Bit `i` of level 0 is set iff page `i` is free. Bit `j` of level `k + 1` is set iff word `j` of level `k` is not
//! zero. The last level is one word. Five levels hold 2^24 pages; every operation touches one word per level.
//!
//! ```text
//! level 1   ....1..1                 one bit per word below
//! level 0   ..1.1...  ........  ...  one bit per page
//! ```

use crate::mem::Slots;

/// Where a pool's bitmap lies in the words that all pools share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct FreeSet {
    /// First word of each level.
    level: [u32; 5],
    levels: u32,
}

crate::records::zero!(FreeSet { level, levels });

impl FreeSet {
    /// Lays the levels for ids `0..=pages` out from word `start` on; nothing is free yet.
    pub(crate) fn lay_out(start: u32, pages: u32) -> Self {
        let mut set = Self { level: [0; 5], levels: 0 };
        let (mut next, mut bits) = (start, pages.saturating_add(1));
        for level in &mut set.level {
            *level = next;
            set.levels = set.levels.saturating_add(1);
            bits = bits.div_ceil(64);
            next = next.saturating_add(bits);
            if bits <= 1 {
                break;
            }
        }
        set
    }

    fn levels(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.level.iter().take(self.levels as usize).copied()
    }

    pub(crate) fn contains(&self, words: &Slots<'_, u64>, id: u32) -> bool {
        let [first, ..] = self.level;
        words.get(first.saturating_add(id >> 6)) & bit(id) != 0
    }

    #[inline]
    pub(crate) fn insert(&self, words: &mut Slots<'_, u64>, id: u32) {
        let [level, ..] = self.level;
        let was_empty = words.with(level.wrapping_add(id >> 6), |word| {
            let was_empty = *word == 0;
            *word |= bit(id);
            was_empty
        });
        if was_empty {
            self.insert_run(words, id, 1); // and in the summaries
        }
    }

    /// Adds `count` consecutive ids.
    #[inline]
    pub(crate) fn insert_run(&self, words: &mut Slots<'_, u64>, first: u32, count: u32) {
        let (mut id, mut left) = (first, count);
        while left > 0 {
            let here = 64_u32.wrapping_sub(id & 63).min(left);
            let (mut at, mut bits) = (id, mask(here) << (id & 63));
            for level in self.levels() {
                let is_noted = words.with(level.saturating_add(at >> 6), |word| {
                    let others = *word & !bits;
                    *word |= bits;
                    others != 0
                });
                if is_noted {
                    break;
                }
                at >>= 6;
                bits = bit(at);
            }
            id = id.wrapping_add(here);
            left = left.wrapping_sub(here);
        }
    }

    /// Takes up to `most` free pages with consecutive ids, from the lowest free one on, within one word.
    /// Gives the first id and how many; zero when nothing is free.
    pub(crate) fn take_lowest(&self, words: &mut Slots<'_, u64>, most: u32) -> (u32, u32) {
        let mut word = 0;
        for level in self.levels().rev() {
            let bits = words.get(level.saturating_add(word));
            if bits == 0 {
                return (0, 0);
            }
            word = word << 6 | bits.trailing_zeros();
        }
        let [first, ..] = self.level;
        let bits = words.get(first.saturating_add(word >> 6)) >> (word & 63);
        let count = (!bits).trailing_zeros().min(most);
        self.remove_run(words, word, count);
        (word, count)
    }

    /// Takes `count` pages with consecutive ids inside one word: the lowest such run in the 64 words from the
    /// lowest free page on. Gives its first id, or zero when there is no such run.
    pub(crate) fn take_run(&self, words: &mut Slots<'_, u64>, count: u32, pages: u32) -> u32 {
        let mut lowest = 0;
        for level in self.levels().rev() {
            let bits = words.get(level.saturating_add(lowest));
            if bits == 0 {
                return 0;
            }
            lowest = lowest << 6 | bits.trailing_zeros();
        }
        let [first, ..] = self.level;
        let last = (lowest >> 6).saturating_add(63).min(pages >> 6);
        for word in lowest >> 6..=last {
            let mut starts = words.get(first.saturating_add(word));
            for by in 1..count {
                starts &= words.get(first.saturating_add(word)) >> (by & 63);
            }
            if starts != 0 {
                let run = word << 6 | starts.trailing_zeros();
                self.remove_run(words, run, count);
                return run;
            }
        }
        0
    }

    fn remove_run(&self, words: &mut Slots<'_, u64>, id: u32, count: u32) {
        let mut id = id;
        let mut mask = mask(count) << (id & 63);
        for level in self.levels() {
            let empty = words.with(level.saturating_add(id >> 6), |word| {
                *word &= !mask;
                *word == 0
            });
            if !empty {
                break;
            }
            id >>= 6;
            mask = bit(id);
        }
    }
}

#[inline]
fn bit(id: u32) -> u64 {
    1 << (id & 63)
}

/// The lowest `count` bits.
#[inline]
fn mask(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { bit(count).wrapping_sub(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::free_words_of;
    extern crate std;
    use std::vec;

    #[test]
    fn hands_out_every_id_once_and_in_order() {
        for pages in [1_u32, 63, 64, 65, 4095, 4096, 300_000] {
            let mut memory = vec![0_u64; free_words_of(pages) as usize];
            let mut words = Slots::new(&mut memory);
            let set = FreeSet::lay_out(0, pages);
            for id in (1..=pages).rev() {
                set.insert(&mut words, id);
            }
            let mut next = 1;
            loop {
                let (first, count) = set.take_lowest(&mut words, 7);
                if count == 0 {
                    break;
                }
                assert_eq!(first, next);
                next += count;
            }
            assert_eq!(next, pages + 1);
            assert!(memory.iter().all(|&word| word == 0), "summaries of an empty set are empty");
        }
    }

    #[test]
    fn a_run_lies_inside_one_word() {
        let mut memory = vec![0_u64; free_words_of(1000) as usize];
        let mut words = Slots::new(&mut memory);
        let set = FreeSet::lay_out(0, 1000);
        for id in [3, 62, 63, 64, 65, 66, 130, 131, 132, 133] {
            set.insert(&mut words, id);
        }
        assert_eq!(set.take_run(&mut words, 4, 1000), 130);
        assert_eq!(set.take_run(&mut words, 3, 1000), 64);
        assert_eq!(set.take_run(&mut words, 3, 1000), 0);
        assert_eq!(set.take_lowest(&mut words, 64), (3, 1));
        assert_eq!(set.take_lowest(&mut words, 64), (62, 2));
    }
}
