//! The floor: what the same work costs in flat arrays and without checks.
//!
//! Pages are found by a chain of block hashes in one open-addressed table, free and cached pages share one list in order of
//! use, and nothing is verified, promised, bounded or undone. `VERIFY` adds the least that makes a hit certain: the tokens of
//! every published page and the hash of its parent, compared on each hit.

use crate::peer::Peer;

const NONE: u32 = u32::MAX;
/// Tokens per page.
const PAGE: usize = 16;
/// Words that verify one page: its parent's hash and its tokens.
const CONTENT: usize = PAGE + 2;

/// A page: 24 bytes, and two table slots of 4.
#[derive(Clone, Copy)]
struct Page {
    /// Hash of everything up to its end; 0 = not published.
    hash: u64,
    references: u32,
    /// Neighbours in the list of pages without references.
    before: u32,
    after: u32,
}

/// A running request.
pub struct Request {
    pages: Vec<u32>,
    hash: u64,
    tail: [u32; PAGE],
    filled: usize,
}

/// The manager.
pub struct Floor<const VERIFY: bool> {
    pages: Vec<Page>,
    table: Vec<u32>,
    content: Vec<u32>,
    hashes: Vec<u64>,
    mask: usize,
    first: u32,
    last: u32,
    free: usize,
    hits: u64,
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Hash of a page behind its parent's; never 0.
#[inline]
fn hash_of(parent: u64, tokens: &[u32]) -> u64 {
    let (mut even, mut odd) = (parent ^ 0x243F_6A88_85A3_08D3, parent ^ 0x1319_8A2E_0370_7344);
    for four in tokens.chunks_exact(8) {
        let word = |i: usize| u64::from(four[i]) | u64::from(four[i + 1]) << 32;
        even = fold(word(0) ^ 0xA409_3822_299F_31D0, word(2) ^ even);
        odd = fold(word(4) ^ 0x082E_FA98_EC4E_6C89, word(6) ^ odd);
    }
    fold(even ^ 0x4528_21E6_38D0_1377, odd ^ 0xBE54_66CF_34E9_0C6C) | 1
}

impl<const VERIFY: bool> Floor<VERIFY> {
    /// A manager of so many pages.
    pub fn new(pages: u32) -> Self {
        let count = pages as usize;
        let page = |i: u32| Page {
            hash: 0,
            references: 0,
            before: i.wrapping_sub(1),
            after: if i + 1 == pages { NONE } else { i + 1 },
        };
        let slots = (count * 2).next_power_of_two();
        Self {
            pages: (0..pages).map(page).collect(),
            table: vec![NONE; slots],
            content: if VERIFY { vec![0; count * CONTENT] } else { Vec::new() },
            hashes: Vec::new(),
            mask: slots - 1,
            first: 0,
            last: pages - 1,
            free: count,
            hits: 0,
        }
    }

    #[inline]
    fn unlink(&mut self, page: u32) {
        let Page { before, after, .. } = self.pages[page as usize];
        match before {
            NONE => self.first = after,
            _ => self.pages[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            _ => self.pages[after as usize].before = before,
        }
        self.free -= 1;
    }

    /// Puts a page where it is taken last.
    #[inline]
    fn link_last(&mut self, page: u32) {
        let before = core::mem::replace(&mut self.last, page);
        let record = &mut self.pages[page as usize];
        (record.before, record.after) = (before, NONE);
        match before {
            NONE => self.first = page,
            _ => self.pages[before as usize].after = page,
        }
        self.free += 1;
    }

    /// Puts a page where it is taken next.
    #[inline]
    fn link_first(&mut self, page: u32) {
        let after = core::mem::replace(&mut self.first, page);
        let record = &mut self.pages[page as usize];
        (record.before, record.after) = (NONE, after);
        match after {
            NONE => self.last = page,
            _ => self.pages[after as usize].before = page,
        }
        self.free += 1;
    }

    #[inline]
    fn is(&self, page: u32, hash: u64, parent: u64, tokens: &[u32]) -> bool {
        if self.pages[page as usize].hash != hash {
            return false;
        }
        if !VERIFY {
            return true;
        }
        let content = &self.content[page as usize * CONTENT..][..CONTENT];
        content[2..] == *tokens && content[0] == parent as u32 && content[1] == (parent >> 32) as u32
    }

    /// The slot of a published page, or the empty one where it would go.
    #[inline]
    fn slot_of(&self, hash: u64, parent: u64, tokens: &[u32]) -> usize {
        let mut slot = hash as usize >> 1 & self.mask;
        loop {
            let page = self.table[slot];
            if page == NONE || self.is(page, hash, parent, tokens) {
                return slot;
            }
            slot = (slot + 1) & self.mask;
        }
    }

    /// Publishes a page unless another one with the same prefix is published.
    #[inline]
    fn publish(&mut self, page: u32, hash: u64, parent: u64, tokens: &[u32]) {
        let slot = self.slot_of(hash, parent, tokens);
        if self.table[slot] != NONE {
            return;
        }
        self.table[slot] = page;
        self.pages[page as usize].hash = hash;
        if VERIFY {
            let content = &mut self.content[page as usize * CONTENT..][..CONTENT];
            (content[0], content[1]) = (parent as u32, (parent >> 32) as u32);
            content[2..].copy_from_slice(tokens);
        }
    }

    /// Takes a page out of the table; pages behind it that would not be found any more move up.
    fn withdraw(&mut self, page: u32) {
        let hash = core::mem::take(&mut self.pages[page as usize].hash);
        let mut slot = hash as usize >> 1 & self.mask;
        while self.table[slot] != page {
            slot = (slot + 1) & self.mask;
        }
        let mut hole = slot;
        loop {
            slot = (slot + 1) & self.mask;
            let moved = self.table[slot];
            if moved == NONE {
                break;
            }
            let home = self.pages[moved as usize].hash as usize >> 1 & self.mask;
            if slot.wrapping_sub(home) & self.mask >= slot.wrapping_sub(hole) & self.mask {
                self.table[hole] = moved;
                hole = slot;
            }
        }
        self.table[hole] = NONE;
    }

    /// The next page to be used, evicted if it was cached.
    #[inline]
    fn take(&mut self) -> Option<u32> {
        let page = self.first;
        if page == NONE {
            return None;
        }
        self.unlink(page);
        if self.pages[page as usize].hash != 0 {
            self.withdraw(page);
        }
        self.pages[page as usize].references = 1;
        Some(page)
    }

    #[inline]
    fn let_go(&mut self, page: u32) {
        let record = &mut self.pages[page as usize];
        record.references -= 1;
        if record.references > 0 {
            return;
        }
        match record.hash {
            0 => self.link_first(page),
            _ => self.link_last(page),
        }
    }

    /// Hashes a prompt and pins its cached prefix; leaves the hashes in `self.hashes`.
    #[inline]
    fn pin(&mut self, prompt: &[u32], pages: &mut Vec<u32>) {
        self.hashes.clear();
        let mut hash = 0;
        for tokens in prompt.chunks_exact(PAGE) {
            hash = hash_of(hash, tokens);
            self.hashes.push(hash);
        }
        let mut parent = 0;
        for (at, tokens) in prompt[..prompt.len() - 1].chunks_exact(PAGE).enumerate() {
            let hash = self.hashes[at];
            let page = self.table[self.slot_of(hash, parent, tokens)];
            if page == NONE {
                break;
            }
            if self.pages[page as usize].references == 0 {
                self.unlink(page);
            }
            self.pages[page as usize].references += 1;
            pages.push(page);
            parent = hash;
        }
    }

    fn let_all_go(&mut self, pages: &[u32]) {
        pages.iter().rev().for_each(|&page| self.let_go(page));
    }
}

impl<const VERIFY: bool> Peer for Floor<VERIFY> {
    type Request = Request;
    type Pin = Vec<u32>;

    #[inline]
    fn reserve(&mut self, tokens: u32) -> Option<Request> {
        let count = (tokens as usize).div_ceil(PAGE);
        if count > self.free {
            return None;
        }
        let mut pages = Vec::with_capacity(count);
        for _ in 0..count {
            pages.push(self.take()?);
        }
        Some(Request { pages, hash: 0, tail: [0; PAGE], filled: 0 })
    }

    #[inline]
    fn admit(&mut self, prompt: &[u32]) -> Option<Request> {
        let count = prompt.len().div_ceil(PAGE);
        let mut pages = Vec::with_capacity(count + PAGE);
        self.pin(prompt, &mut pages);
        let found = pages.len();
        if count - found > self.free {
            self.let_all_go(&pages);
            return None;
        }
        self.hits += (found * PAGE) as u64;
        let mut parent = if found > 0 { self.hashes[found - 1] } else { 0 };
        let full = prompt.chunks_exact(PAGE);
        let rest = full.remainder();
        for (at, tokens) in full.enumerate().skip(found) {
            let (page, hash) = (self.take()?, self.hashes[at]);
            pages.push(page);
            self.publish(page, hash, parent, tokens);
            parent = hash;
        }
        if !rest.is_empty() {
            pages.push(self.take()?);
        }
        let mut request = Request { pages, hash: parent, tail: [0; PAGE], filled: rest.len() };
        request.tail[..rest.len()].copy_from_slice(rest);
        Some(request)
    }

    #[inline]
    fn grow(&mut self, request: &mut Request, tokens: &[u32]) -> Option<()> {
        for &token in tokens {
            if request.filled == 0 {
                request.pages.push(self.take()?);
            }
            request.tail[request.filled] = token;
            request.filled += 1;
            if request.filled == PAGE {
                request.filled = 0;
                let parent = request.hash;
                request.hash = hash_of(parent, &request.tail);
                if let Some(&page) = request.pages.last() {
                    self.publish(page, request.hash, parent, &request.tail);
                }
            }
        }
        Some(())
    }

    #[inline]
    fn release(&mut self, request: Request) {
        self.let_all_go(&request.pages);
    }

    #[inline]
    fn find(&mut self, prompt: &[u32]) -> Option<Vec<u32>> {
        let mut pages = Vec::with_capacity(prompt.len() / PAGE);
        self.pin(prompt, &mut pages);
        Some(pages)
    }

    fn unpin(&mut self, pages: Vec<u32>) {
        self.let_all_go(&pages);
    }

    fn hit_tokens(&self) -> u64 {
        self.hits
    }
}
