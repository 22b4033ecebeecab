//! Prefix index: the token tree of the anchor group, one node per page, the node being the page's record.
//!
//! A child is told apart by its whole page of tokens and the media spans that begin in it. The first child of a page is
//! found through its record; further ones through a table of candidates (`probe`), or a scan where the index is flat.
//! Tokens decide, never a hash.
//!
//! `chain` bit `p` is set only if the one child of page `p` is page `p + 1` and no media span begins in it. Pages with
//! consecutive ids have adjacent token areas, so a run of set bits is compared as one slice, without reading a record.
//!
//! ```text
//! root -> 5 -> 6 -> 7 -> 8          chain bits 5, 6, 7
//!              `--> 31 -> 32        6 has two children: bit 6 clear, 31 is in the table
//! ```

mod leave;
mod parts;
mod probe;
mod resume;
mod walk;

pub use parts::{KeyPart, MediaSpan};
pub(crate) use parts::{Parts, Spans};
pub(crate) use resume::Resume;

use crate::config::IndexKind;
use crate::events::{Event, EventKind};
use crate::keychain::hash_tokens;
use crate::limits::Limits;
use crate::mem::IndexSlots;
use crate::pages::{NULL, Pages};
use crate::table::Tables;
use crate::width::Id;

/// Whether this build has an index. Without one nothing is published, cached or evicted, and what this constant guards is
/// left out when the code is compiled.
pub(crate) const INDEX: bool = cfg!(feature = "index");

/// Tokens, links and hung pages of the index.
pub(crate) struct Index<'m> {
    kind: IndexKind,
    /// The group whose pages are the nodes.
    anchor: u16,
    tokens: IndexSlots<'m, u32>,
    /// Tokens per anchor page, and its logarithm.
    pub(crate) page_tokens: u32,
    pub(crate) shift: u32,
    chain: IndexSlots<'m, u64>,
    probes: IndexSlots<'m, u32>,
    seed: u64,
    /// Pages of other groups, `places` per node.
    hung: IndexSlots<'m, u32>,
    pub(crate) places: u32,
    /// Which group each place belongs to.
    place_group: IndexSlots<'m, u16>,
    /// Exported key of each node, kept where events are made.
    keys: IndexSlots<'m, u64>,
    pub(crate) parts: Parts<'m>,
    /// First media span that begins in a node.
    parts_of: IndexSlots<'m, u32>,
    /// Children of each node as a list, kept where a hit may end inside a page.
    siblings: IndexSlots<'m, Sibling>,
    /// Pages that are indexed, of the anchor group.
    pub(crate) nodes: u32,
}

/// The arrays that [`Index`] is made of.
pub(crate) struct IndexArrays<'m> {
    pub(crate) tokens: &'m mut [u32],
    pub(crate) chain: &'m mut [u64],
    pub(crate) probes: &'m mut [u32],
    pub(crate) hung: &'m mut [u32],
    pub(crate) place_group: &'m mut [u16],
    pub(crate) keys: &'m mut [u64],
    pub(crate) parts: &'m mut [KeyPart],
    pub(crate) parts_of: &'m mut [u32],
    pub(crate) siblings: &'m mut [Sibling],
}

/// Links of a node in the list of its parent's children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sibling {
    /// Its own first child.
    eldest: u32,
    next: u32,
    prev: u32,
}

crate::records::zero!(Sibling { eldest, next, prev });

impl<'m> Index<'m> {
    pub(crate) fn new(limits: &Limits, arrays: IndexArrays<'m>, seed: u64) -> Self {
        Self {
            kind: limits.index,
            anchor: u16::try_from(limits.anchor).unwrap_or(u16::MAX),
            tokens: IndexSlots::new(arrays.tokens),
            page_tokens: limits.anchor_tokens,
            shift: limits.anchor_tokens.trailing_zeros(),
            chain: IndexSlots::new(arrays.chain),
            probes: IndexSlots::new(arrays.probes),
            seed,
            hung: IndexSlots::new(arrays.hung),
            places: limits.places,
            place_group: IndexSlots::new(arrays.place_group),
            keys: IndexSlots::new(arrays.keys),
            parts: Parts::new(arrays.parts),
            parts_of: IndexSlots::new(arrays.parts_of),
            siblings: IndexSlots::new(arrays.siblings),
            nodes: 0,
        }
    }

    /// Whether pages are published at all.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        INDEX && self.kind != IndexKind::None
    }

    /// The tokens of one page.
    #[inline]
    pub(crate) fn page(&self, page: u32) -> &[u32] {
        self.tokens.slice(u64::from(page) << self.shift, self.page_tokens)
    }

    /// Stores tokens from an offset of a page on, and in the pages with the ids behind it.
    #[inline]
    pub(crate) fn store(&mut self, page: u32, offset: u32, tokens: &[u32]) {
        self.tokens.put((u64::from(page) << self.shift) | u64::from(offset), tokens);
    }

    /// Stores tokens of a holder from a position on, as far as its row of the anchor group reaches.
    pub(crate) fn store_from(&mut self, tables: &Tables<'_>, anchor: u32, holder: u32, from: u32, tokens: &[u32]) {
        if !self.is_enabled() || tokens.is_empty() {
            return;
        }
        let mut cursor = tables.cursor(holder, anchor, from >> self.shift);
        let (mut position, mut rest) = (from, tokens);
        while !rest.is_empty() {
            let pages = tables.rest(&mut cursor, position >> self.shift);
            let Some(page) = pages.first().map(|page| page.get()).filter(|&page| page != NULL) else { break };
            // Pages with consecutive ids have adjacent token areas.
            let run = pages.iter().zip(page..).take_while(|&(page, next)| page.get() == next).count();
            let offset = position & self.page_tokens.wrapping_sub(1);
            let room = (u32::try_from(run).unwrap_or(0) << self.shift).wrapping_sub(offset);
            let (here, behind) = rest.split_at_checked(room as usize).unwrap_or((rest, &[]));
            self.store(page, offset, here);
            position = position.wrapping_add(room);
            rest = behind;
        }
    }

    /// Copies the first tokens of a page to another page.
    pub(crate) fn copy_tokens(&mut self, from: u32, to: u32, count: u32) {
        self.tokens.copy(u64::from(from) << self.shift, u64::from(to) << self.shift, count.min(self.page_tokens));
    }

    pub(crate) fn has_parts(&self, page: u32) -> bool {
        self.parts_of.get(page) != 0
    }

    pub(crate) fn parts_of(&self, page: u32) -> u32 {
        self.parts_of.get(page)
    }

    /// The child of `parent` with these tokens and spans, or NULL. The page begins at token `start`.
    #[inline]
    pub(crate) fn find(&self, pages: &Pages<'_>, parent: u32, tokens: &[u32], spans: Spans<'_>, start: u32) -> u32 {
        if pages.children(parent) == 0 { NULL } else { self.find_among(pages, parent, tokens, spans, start) }
    }

    fn find_among(&self, pages: &Pages<'_>, parent: u32, tokens: &[u32], spans: Spans<'_>, start: u32) -> u32 {
        let first = pages.inline_child(parent);
        if first != NULL && self.is_page(first, tokens, spans, start) {
            return first;
        }
        if pages.children(parent) <= u32::from(first != NULL) {
            return NULL;
        }
        match self.kind {
            IndexKind::Tree => self.probe(pages, parent, tokens, spans, start),
            _ => self.scan(pages, parent, |page| self.is_page(page, tokens, spans, start)),
        }
    }

    /// The lowest child of `parent` that passes a test. O(nodes).
    fn scan(&self, pages: &Pages<'_>, parent: u32, test: impl Fn(u32) -> bool) -> u32 {
        (1..=self.last_node())
            .find(|&page| pages.parent(page) == parent && !pages.is_hung(page) && test(page))
            .unwrap_or(NULL)
    }

    /// Highest page number that can be a node.
    pub(crate) fn last_node(&self) -> u32 {
        (self.tokens.len() >> self.shift).saturating_sub(1)
    }

    fn is_page(&self, page: u32, tokens: &[u32], spans: Spans<'_>, start: u32) -> bool {
        self.page(page) == tokens && self.parts.equal(self.parts_of.get(page), spans, start, self.page_tokens)
    }

    /// Makes a page that holds its tokens a child of `parent`. Its spans are in the list `parts`, which it takes over.
    #[inline]
    pub(crate) fn link(&mut self, pages: &mut Pages<'_>, parent: u32, page: u32, parts: u32) {
        self.parts_of.set(page, parts);
        if !self.keys.is_empty() {
            let key = self.key_of(parent, self.page(page), parts);
            self.keys.set(page, key);
        }
        if !self.siblings.is_empty() {
            self.join_siblings(parent, page);
        }
        let (siblings, is_inline) = pages.add_child(parent, page);
        if siblings > 0 {
            self.clear_chain(parent);
        } else if page == parent.wrapping_add(1) && parts == 0 && !pages.is_root(parent) {
            self.set_chain(parent);
        }
        if !is_inline && self.kind == IndexKind::Tree {
            self.add_probe(pages, page);
            pages.set_probed(page);
        }
        self.nodes = self.nodes.saturating_add(1);
    }

    /// Makes pages one chain behind a node without children, as far as all of them exist. Gives how many. No media span
    /// begins in them, and links are all that is kept of a node.
    pub(crate) fn link_chain(&mut self, pages: &mut Pages<'_>, tip: u32, chain: &[Id]) -> u32 {
        let (mut parent, mut count) = (tip, 0_u32);
        for page in chain.iter().take_while(|page| !page.is_null()).map(|page| page.get()) {
            pages.add_only_child(parent, page);
            if page == parent.wrapping_add(1) && !pages.is_root(parent) {
                self.set_chain(parent);
            }
            parent = page;
            count = count.wrapping_add(1);
        }
        self.nodes = self.nodes.saturating_add(count);
        count
    }

    /// Whether links are all that is kept of a node.
    #[inline]
    pub(crate) fn keeps_links_only(&self) -> bool {
        self.places == 0 && self.keys.is_empty() && self.siblings.is_empty()
    }

    /// Takes a page without children out of the tree.
    #[inline(always)] // eviction is a loop of these
    pub(crate) fn unlink(&mut self, pages: &mut Pages<'_>, page: u32) {
        let parent = pages.parent(page);
        if pages.is_probed(page) {
            self.remove_probe(pages, page);
        }
        let (left, only) = pages.remove_child(parent, page);
        if !self.siblings.is_empty() {
            self.leave_siblings(parent, page);
        }
        if !self.parts_of.is_empty() {
            self.parts.free(self.parts_of.get(page));
            self.parts_of.set(page, 0);
        }
        if left == 1 && only == parent.wrapping_add(1) && !self.has_parts(only) {
            self.set_chain(parent);
        } else {
            self.clear_chain(parent);
        }
        self.nodes = self.nodes.saturating_sub(1);
    }

    fn join_siblings(&mut self, parent: u32, page: u32) {
        let next = self.siblings.with(parent, |parent| core::mem::replace(&mut parent.eldest, page));
        self.siblings.with(next, |next| next.prev = page);
        self.siblings.set(page, Sibling { eldest: NULL, next, prev: NULL });
    }

    fn leave_siblings(&mut self, parent: u32, page: u32) {
        let Sibling { next, prev, .. } = self.siblings.get(page);
        match prev {
            NULL => self.siblings.with(parent, |parent| parent.eldest = next),
            _ => self.siblings.with(prev, |prev| prev.next = next),
        }
        if next != NULL {
            self.siblings.with(next, |next| next.prev = prev);
        }
    }

    /// Whether the one child of a page is the next page.
    pub(crate) fn is_chained(&self, page: u32) -> bool {
        self.chain.get(page >> 6) >> (page & 63) & 1 != 0
    }

    fn set_chain(&mut self, page: u32) {
        self.chain.with(page >> 6, |word| *word |= 1 << (page & 63));
    }

    fn clear_chain(&mut self, page: u32) {
        self.chain.with(page >> 6, |word| *word &= !(1 << (page & 63)));
    }

    /// The page hung on a place of a node, or NULL.
    #[inline]
    pub(crate) fn hung(&self, node: u32, place: u32) -> u32 {
        if place >= self.places { NULL } else { self.hung.get(node.wrapping_mul(self.places).wrapping_add(place)) }
    }

    pub(crate) fn set_hung(&mut self, node: u32, place: u32, page: u32) {
        if place < self.places {
            self.hung.set(node.wrapping_mul(self.places).wrapping_add(place), page);
        }
    }

    pub(crate) fn group_of_place(&self, place: u32) -> u16 {
        self.place_group.get(place)
    }

    pub(crate) fn set_group_of_place(&mut self, place: u32, group: u16) {
        self.place_group.set(place, group);
    }

    /// The record of a change to `page`, which is or hangs on `node`.
    pub(crate) fn event(&self, pages: &Pages<'_>, kind: EventKind, group: u16, node: u32, page: u32) -> Event {
        let pool = pages.pools.get(pages.pool_of(page));
        let parent = pages.parent(node);
        Event {
            sequence: 0,
            key: self.keys.get(node),
            parent_key: if pages.is_root(parent) { 0 } else { self.keys.get(parent) },
            page: page.saturating_sub(pool.base),
            namespace: self.namespace_of(pages, node),
            group,
            kind,
            reserved: [0; 5],
        }
    }

    /// Exported key of a node, as [`crate::KeyChain`] makes it.
    fn key_of(&self, parent: u32, tokens: &[u32], parts: u32) -> u64 {
        let mut key = hash_tokens(tokens, if self.keys.get(parent) == 0 { self.seed } else { self.keys.get(parent) });
        for part in self.parts.list(parts) {
            key = part.hash(key);
        }
        key.max(1)
    }

    /// Whether exported keys are kept.
    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Sets the key that the pages of a namespace begin from.
    pub(crate) fn set_root_key(&mut self, root: u32, key: u64) {
        self.keys.set(root, key);
    }

    fn namespace_of(&self, pages: &Pages<'_>, node: u32) -> u32 {
        crate::namespace::slot_of_owner(pages.traits.owner.get(node))
    }
}
