//! What a prefix cache of so many pages must hit, worked out with the collections of `std`.
//!
//! Pages form a trie: a page is known by the one before it and its tokens. A request keeps its pages while it runs; when it
//! ends they are let go from the last to the first. When pages are short, the leaf that was let go first is dropped.

use std::collections::{BTreeMap, HashMap};

const PAGE: usize = 16;
/// What is before a prompt's first page.
const ROOT: u32 = 0;

/// The page before, and the tokens.
type Key = (u32, [u32; PAGE]);

/// A cached page.
struct Node {
    key: Key,
    children: u32,
    /// When it was let go; `None` while the request runs through it.
    let_go: Option<u64>,
}

/// The request that runs.
#[derive(Default)]
struct Request {
    /// The cached pages that its tokens run through.
    path: Vec<u32>,
    /// Pages that hold its tokens.
    pages: usize,
    /// Of these, pages that only it has: the last one, until it is full, and second copies of what was cached.
    own: usize,
}

/// A cache that serves one request after another.
pub(crate) struct Lru {
    capacity: usize,
    known: HashMap<Key, u32>,
    nodes: HashMap<u32, Node>,
    /// Pages that can be dropped, by the time they were let go.
    leaves: BTreeMap<u64, u32>,
    newest: u32,
    time: u64,
    /// Tokens of prompts that were cached.
    pub(crate) hit_tokens: u64,
    /// Pages dropped to make room.
    pub(crate) dropped: u64,
}

impl Lru {
    /// An empty cache.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            known: HashMap::new(),
            nodes: HashMap::new(),
            leaves: BTreeMap::new(),
            newest: ROOT,
            time: 0,
            hit_tokens: 0,
            dropped: 0,
        }
    }

    /// Cached pages.
    pub(crate) fn pages(&self) -> usize {
        self.nodes.len()
    }

    /// A request from its prompt to its end; `None` when the cache is too small for it. At least the last token of a prompt is
    /// computed anew.
    pub(crate) fn serve(&mut self, prompt: &[u32], reply: &[u32]) -> Option<()> {
        let mut request = Request::default();
        for tokens in prompt[..prompt.len() - 1].chunks_exact(PAGE) {
            let Some(&node) = self.known.get(&key(&request, tokens)?) else { break };
            self.keep(node)?;
            request.path.push(node);
        }
        request.pages = request.path.len();
        self.hit_tokens += (request.pages * PAGE) as u64;
        self.extend(&mut request, prompt)?;
        self.extend(&mut request, &[prompt, reply].concat())?;
        request.path.iter().rev().try_for_each(|&node| self.let_go(node))
    }

    /// Gets the pages that are missing for these tokens, and caches those that are full now.
    fn extend(&mut self, request: &mut Request, tokens: &[u32]) -> Option<()> {
        let missing = tokens.len().div_ceil(PAGE) - request.pages;
        while self.nodes.len() + request.own + missing > self.capacity {
            self.drop_oldest()?;
        }
        request.pages += missing;
        request.own += missing;
        for page in tokens.chunks_exact(PAGE).skip(request.path.len()) {
            let key = key(request, page)?;
            let node = match self.known.get(&key) {
                Some(&node) => node,
                None => {
                    request.own -= 1;
                    self.insert(key)
                }
            };
            self.keep(node)?;
            request.path.push(node);
        }
        Some(())
    }

    fn insert(&mut self, key: Key) -> u32 {
        self.newest += 1;
        self.known.insert(key, self.newest);
        self.nodes.insert(self.newest, Node { key, children: 0, let_go: None });
        if let Some(parent) = self.nodes.get_mut(&key.0) {
            parent.children += 1;
        }
        self.newest
    }

    fn keep(&mut self, node: u32) -> Option<()> {
        if let Some(time) = self.nodes.get_mut(&node)?.let_go.take() {
            self.leaves.remove(&time);
        }
        Some(())
    }

    fn let_go(&mut self, node: u32) -> Option<()> {
        self.time += 1;
        let Node { children, let_go, .. } = self.nodes.get_mut(&node)?;
        *let_go = Some(self.time);
        if *children == 0 {
            self.leaves.insert(self.time, node);
        }
        Some(())
    }

    fn drop_oldest(&mut self) -> Option<()> {
        let (_, leaf) = self.leaves.pop_first()?;
        let Node { key, .. } = self.nodes.remove(&leaf)?;
        self.known.remove(&key);
        self.dropped += 1;
        if let Some(parent) = self.nodes.get_mut(&key.0) {
            parent.children -= 1;
            if let (0, Some(time)) = (parent.children, parent.let_go) {
                self.leaves.insert(time, key.0);
            }
        }
        Some(())
    }
}

fn key(request: &Request, tokens: &[u32]) -> Option<Key> {
    Some((request.path.last().copied().unwrap_or(ROOT), tokens.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(ids: &[u32]) -> Vec<u32> {
        ids.iter().flat_map(|&id| [id; PAGE]).collect()
    }

    #[test]
    fn a_prefix_is_hit_but_for_its_last_token() {
        let mut lru = Lru::new(8);
        lru.serve(&pages(&[1, 2]), &[9]).unwrap();
        lru.serve(&pages(&[1, 2]), &[9]).unwrap();
        assert_eq!((lru.hit_tokens, lru.pages()), (16, 2));
        lru.serve(&pages(&[1, 2, 3]), &[9]).unwrap();
        assert_eq!((lru.hit_tokens, lru.pages(), lru.dropped), (48, 3, 0));
    }

    #[test]
    fn the_oldest_leaf_goes_first_and_a_prefix_outlives_what_is_behind_it() {
        let mut lru = Lru::new(4);
        lru.serve(&pages(&[1, 2]), &[9]).unwrap();
        lru.serve(&pages(&[1, 3]), &[9]).unwrap();
        // Three cached; this one needs three pages. The leaves 2 and 3 go, the page before them stays.
        lru.serve(&pages(&[4, 5]), &[9]).unwrap();
        assert_eq!(lru.dropped, 2);
        lru.serve(&pages(&[1, 6]), &[]).unwrap();
        assert_eq!(lru.hit_tokens, 16 + 16);
    }

    #[test]
    fn a_request_that_does_not_fit_is_refused() {
        assert!(Lru::new(2).serve(&pages(&[1, 2]), &[9]).is_none());
        assert!(Lru::new(3).serve(&pages(&[1, 2]), &[9]).is_some());
    }
}
