//! The prefix index: a node is its namespace and its whole token prefix.

use std::collections::BTreeMap;

use super::Model;
use super::pages::Page;
use super::per_page::{Counts, PerPage};
use crate::machine::{Event, EventKind};
use crate::op::Span;
use crate::rng::mix;
use crate::spec::GroupKind;

/// Namespace, tokens from the root, and the media spans that begin in them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) ns: u16,
    pub(super) tokens: Vec<u32>,
    pub(super) spans: Vec<Span>,
}

/// Group, event key and namespace of an indexed page.
pub type IndexKey = (u16, u64, u16);

/// A place at a node: a group, and which of its pages when it has several there.
pub(super) type Place = (usize, u32);

/// A page at a node and the birth of the sequence that published it; 0 = of several.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Stored {
    pub(super) id: u32,
    pub(super) publisher: u64,
}

/// All nodes, and where each indexed page is.
#[derive(Default, Hash)]
pub(super) struct Index {
    pub(super) nodes: BTreeMap<Key, BTreeMap<Place, Stored>>,
    pub(super) homes: PerPage<(Key, Place)>,
    /// The anchor's page before an indexed page of the anchor.
    pub(super) parents: PerPage<Page>,
    /// How many indexed pages of the anchor follow on one.
    pub(super) children: Counts,
}

impl Index {
    /// Where a page is indexed.
    pub(super) fn home(&self, pool: usize, id: u32) -> Option<&(Key, Place)> {
        self.homes.get((pool, id))
    }

    pub(super) fn at(&self, key: &Key, place: Place) -> Option<Stored> {
        self.nodes.get(key)?.get(&place).copied()
    }

    /// A sequence got past a page that another owner has published: what it published before on the way there is not its own
    /// alone any more.
    pub(super) fn take_over(&mut self, key: &Key, (anchor, step): (usize, u32), birth: u64) {
        for len in (step..=key.tokens.len() as u32).step_by(step as usize) {
            let node = self.nodes.get_mut(&key.upto(len)).and_then(|node| node.get_mut(&(anchor, 0)));
            if let Some(stored) = node.filter(|stored| stored.publisher == birth) {
                stored.publisher = 0;
            }
        }
    }

    /// Whether another node continues the one of an anchor page.
    pub(super) fn has_children(&self, page: Page) -> bool {
        self.children.contains(page)
    }
}

impl Key {
    /// The key of a prompt's first `len` tokens.
    pub(super) fn of(ns: u16, tokens: &[u32], spans: &[Span], len: u32) -> Self {
        let spans = spans.iter().copied().filter(|span| span.start < len).collect();
        Self { ns, tokens: tokens[..len as usize].to_vec(), spans }
    }

    /// The key of its first `len` tokens.
    pub(super) fn upto(&self, len: u32) -> Self {
        Self::of(self.ns, &self.tokens, &self.spans, len)
    }

    /// Whether it is `top` or continues it.
    pub(super) fn is_below(&self, top: &Self) -> bool {
        let len = top.tokens.len() as u32;
        self.ns == top.ns && self.tokens.starts_with(&top.tokens) && self.upto(len).spans == top.spans
    }

    /// A name of the key for events.
    fn name(&self) -> u64 {
        let seed = mix(u64::from(self.ns) ^ 0x6B65_7900_0000_0000);
        let spans = self.spans.iter().flat_map(|span| [span.start, span.length, span.digest]);
        let seed = spans.fold(seed, |hash, part| mix(hash.wrapping_add(u64::from(part))));
        self.tokens.iter().fold(seed, |hash, &token| mix(hash ^ mix(u64::from(token)))).max(1)
    }

    fn parent(&self, page_tokens: u32) -> u64 {
        let len = self.tokens.len() - page_tokens as usize;
        if len == 0 { 0 } else { self.upto(len as u32).name() }
    }
}

impl Model {
    /// The anchor's page before an indexed page of the anchor.
    pub(super) fn parent_page(&self, page: Page) -> Option<Page> {
        self.state.index.parents.get(page).copied()
    }

    /// The node end and the place of page `index` of a group.
    pub(super) fn locate(&self, group: usize, index: u32) -> (u32, Place) {
        let anchor = self.spec.anchor().expect("only an index has places");
        let (own, node) = (self.page_tokens(group), self.page_tokens(anchor));
        if own >= node {
            ((index + 1) * own, (group, 0))
        } else {
            let begin = index * own;
            ((begin / node + 1) * node, (group, begin % node / own))
        }
    }

    /// Pages of a group that a resume at `len` reads.
    pub(super) fn resume_pages(&self, group: usize, len: u32) -> Vec<u32> {
        let spec = self.spec.groups[group];
        (0..len.div_ceil(spec.page_tokens)).filter(|&index| spec.needs_page(index, len)).collect()
    }

    /// The indexed page of a group below a prefix.
    pub(super) fn indexed_page(&self, prompt: &Key, group: usize, index: u32) -> Option<u32> {
        let (end, place) = self.locate(group, index);
        let key = (end as usize <= prompt.tokens.len()).then(|| prompt.upto(end))?;
        self.state.index.at(&key, place).map(|stored| stored.id)
    }

    /// Length of the longest hit: the longest multiple of every page size at which each group resumes.
    pub(super) fn hit_len(&self, prompt: &Key, limit: u32) -> u32 {
        let Some(anchor) = self.spec.anchor() else {
            return 0;
        };
        if self.spec.groups.iter().any(|group| group.ring > 0) {
            return 0; // the pages of a ring are nobody else's
        }
        let most = limit.min(prompt.tokens.len() as u32);
        let step = self.page_tokens(anchor);
        let path = (0..most / step).take_while(|&i| self.indexed_page(prompt, anchor, i).is_some()).count();
        let mut hit = path as u32 * step;
        while hit > 0 {
            if hit.is_multiple_of(self.spec.hit_step()) && self.can_resume(prompt, hit) {
                return hit;
            }
            hit -= step;
        }
        0
    }

    pub(super) fn can_resume(&self, prompt: &Key, len: u32) -> bool {
        (0..self.spec.groups.len()).all(|group| {
            let pages = match self.spec.groups[group].kind {
                GroupKind::Full => (0..len / self.page_tokens(group)).collect(),
                GroupKind::Window { .. } => self.resume_pages(group, len),
            };
            pages.into_iter().all(|index| self.indexed_page(prompt, group, index).is_some())
        })
    }

    /// How many pages of each group the index has under each event key.
    pub fn indexed(&self) -> BTreeMap<IndexKey, u32> {
        let mut indexed = BTreeMap::new();
        for (_, (key, (group, _))) in self.state.index.homes.iter() {
            *indexed.entry((*group as u16, key.name(), key.ns)).or_insert(0) += 1;
        }
        indexed
    }

    fn event(&self, kind: EventKind, key: &Key, group: usize, id: u32) -> Event {
        let anchor = self.spec.anchor().expect("events come from an index");
        Event {
            kind,
            group: group as u16,
            page: id,
            ns: Some(key.ns),
            key: key.name(),
            parent: key.parent(self.page_tokens(anchor)),
        }
    }

    /// Hangs a page at an empty place and announces it.
    pub(super) fn hang(&mut self, key: &Key, place: Place, id: u32, publisher: u64, class: u8) {
        let page = (self.home_pool(key, place), id);
        let node = self.state.index.nodes.entry(key.clone()).or_default();
        let old = node.insert(place, Stored { id, publisher });
        assert!(old.is_none(), "a place is filled twice");
        let old = self.state.index.homes.slot(page).replace((key.clone(), place));
        assert!(old.is_none(), "a page is indexed twice");
        if let Some(anchor) = self.spec.anchor().filter(|&anchor| anchor == place.0) {
            let before = key.upto(key.tokens.len() as u32 - self.page_tokens(anchor));
            if let Some(above) = self.state.index.at(&before, (anchor, 0)) {
                let parent = (self.home_pool(&before, (anchor, 0)), above.id);
                *self.state.index.parents.slot(page) = Some(parent);
                self.state.index.children.add(parent);
            }
        }
        self.enter_order(page, class);
        let event = self.event(EventKind::Stored, key, place.0, id);
        self.emit(event);
    }

    /// Takes one page out of the index and announces it. CACHED becomes FREE, USED becomes private.
    /// Taking the anchor's page takes the other groups' pages of the node first.
    pub(super) fn unindex(&mut self, (pool, id): Page) {
        let Some((key, place)) = self.state.index.home(pool, id).cloned() else {
            return;
        };
        if Some(place.0) == self.spec.anchor() {
            assert!(!self.state.index.has_children((pool, id)), "an inner node leaves the index");
            let hung: Vec<(Place, Stored)> = self.state.index.nodes[&key].iter().map(|(p, s)| (*p, *s)).collect();
            for (other, stored) in hung {
                if other.0 != place.0 {
                    self.unindex_one(&key, other, stored.id, true);
                }
            }
            self.lift_leases(&key);
            let parent = self.parent_page((pool, id));
            self.unindex_one(&key, place, id, true);
            self.state.index.nodes.remove(&key);
            self.settle(parent.as_slice());
        } else {
            self.unindex_one(&key, place, id, true);
        }
    }

    /// Empties one place.
    pub(super) fn unindex_one(&mut self, key: &Key, place: Place, id: u32, announce: bool) {
        let pool = self.home_pool(key, place);
        *self.state.index.homes.slot((pool, id)) = None;
        if let Some(parent) = self.state.index.parents.slot((pool, id)).take() {
            self.state.index.children.remove(parent);
        }
        if let Some(node) = self.state.index.nodes.get_mut(key) {
            node.remove(&place);
        }
        if announce {
            let event = self.event(EventKind::Removed, key, place.0, id);
            self.emit(event);
        }
        let cached = self.state.pools[pool].cached.contains(&id);
        self.leave_order((pool, id));
        if cached {
            self.state.pools[pool].free.set(id as usize, true);
        }
    }
}
