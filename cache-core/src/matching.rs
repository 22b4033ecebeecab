//! Matching: from a prompt to a pinned prefix, and from there to a sequence.

use crate::cache::Cache;
use crate::error::{Error, Resource, Shortage};
use crate::ids::{NamespaceId, SequenceId, Tick, TicketId};
use crate::index::{INDEX, MediaSpan, Resume, Spans};
use crate::mem::bump;
use crate::pages::{Holder, NULL};
use crate::sequence::{Kind, Sequence};
use crate::table::Tables;

/// What is asked of the index.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prompt<'a> {
    /// Whose prefixes may answer; the zero handle means the default namespace.
    pub namespace: NamespaceId,
    /// Tokens of the prompt.
    pub tokens: &'a [u32],
    /// Media spans of the prompt in ascending order of their start, not overlapping.
    pub spans: &'a [MediaSpan],
}

/// How much of a prompt is in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hit {
    /// Tokens that every group can supply, from the first on.
    pub tokens: u32,
}

/// What a new sequence begins with.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenParams<'a> {
    /// Where its pages are published; the zero handle means the default namespace. Unused with a ticket.
    pub namespace: NamespaceId,
    /// Eviction class of the pages that it publishes.
    pub class: u8,
    /// The caller's own word, given back by `sequence_info`.
    pub user: u64,
    /// Media spans of the whole prompt in ascending order of their start, not overlapping.
    pub spans: &'a [MediaSpan],
}

/// The place in the tree where a hit ends.
#[derive(Clone, Copy)]
struct Found {
    at: Resume,
    tokens: u32,
    /// Where pages of other groups are looked for: at `at`, or below it when a larger page reaches further.
    deep: Resume,
}

impl Cache<'_> {
    /// The longest prefix of the prompt that a match would give, at most `limit` tokens. Changes nothing.
    /// O(pages hit + groups).
    ///
    /// # Errors
    /// `Stale` namespace; `Argument` for spans out of order or a prompt of 2^32 tokens.
    pub fn lookup(&self, prompt: &Prompt<'_>, limit: u32) -> Result<Hit, Error> {
        let slot = self.namespace(prompt.namespace)?;
        check_spans(prompt.spans)?;
        Ok(Hit { tokens: self.search(slot, prompt, limit)?.tokens })
    }

    fn search(&self, slot: u32, prompt: &Prompt<'_>, limit: u32) -> Result<Found, Error> {
        let count = u32::try_from(prompt.tokens.len()).map_err(|_| Error::Argument)?;
        let limit = limit.min(count);
        let root = self.pages.root(slot);
        if !self.index.is_enabled() || self.limits.rings {
            let at = Resume { node: root, depth: 0 };
            return Ok(Found { at, tokens: 0, deep: at });
        }
        let spans = Spans::Given(prompt.spans);
        let (node, depth) = self.index.walk(&self.pages, root, prompt.tokens, spans, limit >> self.index.shift);
        let end = Resume { node, depth };
        let at = self.index.resume(&self.pages, &self.groups, self.limits.anchor, end);
        let whole = Found { at, tokens: at.depth << self.index.shift, deep: at };
        if !self.limits.partial_tail || self.groups.iter().any(|group| group.sealed_pool != 0) {
            return Ok(whole);
        }
        Ok(self.partial(prompt, end, limit, whole.tokens).unwrap_or(whole))
    }

    /// The longest hit beyond `floor` that may end inside a page. Its pages lie on the path to `end`, or to that child of
    /// `end` which goes on longest with the prompt. Like a whole hit it is shortened until every group has its pages; the
    /// last one of each may be shared in part.
    fn partial(&self, prompt: &Prompt<'_>, end: Resume, limit: u32, floor: u32) -> Option<Found> {
        let spans = Spans::Given(prompt.spans);
        let start = end.depth << self.index.shift;
        let limit = limit.min(self.index.parts.next_start(spans, start));
        let rest = prompt.tokens.get(start as usize..limit as usize)?;
        let (child, run) = self.index.partial_child(&self.pages, end.node, rest);
        let below = Resume { node: child, depth: end.depth.saturating_add(1) };
        let deep = if child == NULL { end } else { below };
        let mut tokens = start.saturating_add(run);
        while tokens > floor {
            let before = tokens;
            tokens = self.index.parts.before_cut(spans, tokens);
            for index in self.other_groups() {
                tokens = self.index.supplied(&self.pages, &self.groups.get(index), deep, tokens);
            }
            if tokens == before {
                let at = self.index.climb(&self.pages, deep, self.anchor().pages(tokens));
                return Some(Found { at, tokens, deep });
            }
        }
        None
    }

    /// Finds the longest cached prefix of at most `limit` tokens and pins it until the ticket is opened or dropped.
    /// `limit` is usually one less than the prompt, so that something is left to compute. A hit of zero tokens gives a
    /// ticket as well. With a `deadline` the ticket is dropped once time passes it. O(pages hit + groups).
    ///
    /// # Errors
    /// A shortage of tickets, table chunks, or of pages promised to the open plan; `Stale`; `Argument`.
    pub fn match_prefix(
        &mut self,
        prompt: &Prompt<'_>,
        limit: u32,
        deadline: Option<Tick>,
    ) -> Result<(TicketId, Hit), Error> {
        let slot = self.namespace(prompt.namespace)?;
        check_spans(prompt.spans)?;
        let found = self.search(slot, prompt, limit)?;
        self.may_pin(found)?;
        let ticket = self.holders.open(Kind::Ticket, slot, self.pages.root(slot))?;
        self.spaces.add_user(slot);
        self.pin(ticket, found);
        self.set_deadline(ticket, deadline.unwrap_or(Tick::MAX));
        bump(&mut self.counters.queried_tokens, prompt.tokens.len() as u64);
        bump(&mut self.counters.hit_tokens, u64::from(found.tokens));
        let (generation, index) = self.holders.handle(Kind::Ticket, ticket);
        Ok((TicketId::new(generation, index), Hit { tokens: found.tokens }))
    }

    /// Whether pinning a hit leaves the open plan what it was promised.
    fn may_pin(&mut self, found: Found) -> Result<(), Error> {
        if !INDEX {
            return Ok(()); // there is no hit
        }
        let mut chunks = 0_u32;
        for index in 0..self.limits.groups {
            let group = self.groups.get(index);
            let (first, end) = (group.first(found.tokens), group.pages(found.tokens));
            let sinks = group.sink_pages(found.tokens).min(first);
            chunks = chunks.saturating_add(Tables::chunks_for(sinks, first, end));
        }
        self.may_take_chunks(chunks)?;
        if !self.plan.is_building() {
            return Ok(());
        }
        if self.plan.withdraws() {
            return Err(Shortage::of(Resource::Pages, 1, 0).into());
        }
        for index in 0..self.limits.pools {
            self.pages.pools.with(index, |pool| pool.asked = 0);
        }
        let mut node = found.at.node;
        while !self.pages.is_root(node) && self.pages.is_cached(node) {
            self.ask_for(node);
            node = self.pages.parent(node);
        }
        for index in self.other_groups() {
            let group = self.groups.get(index);
            let mut cursor = found.deep;
            for entry in self.kept_entries(index, found.tokens) {
                let page = self.index.page_at(&self.pages, &group, &mut cursor, entry);
                if self.pages.is_cached(page) {
                    self.ask_for(page);
                }
            }
        }
        for index in 0..self.limits.pools {
            let pool = self.pages.pools.get(index);
            if pool.asked > pool.available() {
                return Err(Shortage::of(Resource::Pages, pool.asked, pool.available()).into());
            }
        }
        Ok(())
    }

    fn ask_for(&mut self, page: u32) {
        let index = self.pages.pool_of(page);
        self.pages.pools.with(index, |pool| pool.asked = pool.asked.saturating_add(1));
    }

    /// Entries of a group that a sequence of `len` tokens keeps, last first.
    fn kept_entries(&self, index: u32, len: u32) -> impl Iterator<Item = u32> + use<> {
        let group = self.groups.get(index);
        let first = group.first(len);
        (first..group.pages(len)).rev().chain((0..group.sink_pages(len).min(first)).rev())
    }

    pub(crate) fn may_take_chunks(&self, need: u32) -> Result<(), Error> {
        let have = self.tables.free_chunks().saturating_sub(self.plan.chunks);
        if need > have { Err(Shortage::of(Resource::TableChunks, need, have).into()) } else { Ok(()) }
    }

    /// Gives a holder the rows and the references of a hit.
    fn pin(&mut self, holder: u32, found: Found) {
        if !INDEX {
            return;
        }
        let anchor = self.limits.anchor;
        let tables = &mut self.tables;
        self.index.path_runs(&self.pages, found.at.node, found.at.depth, |page, entry, count| {
            tables.prepend_run(holder, anchor, entry, page, count);
        });
        self.pages.hold(found.at.node, Holder::Live);
        for index in self.other_groups() {
            let group = self.groups.get(index);
            let mut cursor = found.deep;
            for entry in self.kept_entries(index, found.tokens) {
                let page = self.index.page_at(&self.pages, &group, &mut cursor, entry);
                self.tables.prepend_run(holder, index, entry, page, 1);
                self.pages.hold(page, Holder::Live);
            }
            self.tables.set_first(holder, index, group.first(found.tokens));
        }
        for (index, group) in (0..).zip(self.groups.iter()).filter(|(_, group)| group.sealed_pool != 0) {
            let sealed = group.pages(found.tokens).saturating_sub(group.sealed_columns(0).begin);
            self.tables.set_sealed(holder, index, sealed);
        }
        self.holders.with(holder, |state| {
            state.len = found.tokens;
            state.verified = found.tokens;
            state.known = found.tokens;
            state.tip = found.at.node;
            state.depth = found.at.depth;
            state.inherited = found.at.depth;
        });
    }

    /// Gives a ticket back. Its pages are touched as by a match.
    ///
    /// # Errors
    /// `Stale`.
    pub fn drop_ticket(&mut self, ticket: TicketId) -> Result<(), Error> {
        let holder = self.holders.resolve(Kind::Ticket, ticket.parts())?;
        self.drop_holder(Kind::Ticket, holder);
        Ok(())
    }

    /// Opens an empty sequence.
    ///
    /// # Errors
    /// A shortage of sequences or media spans; `Stale` namespace; `Argument`.
    pub fn open(&mut self, params: &OpenParams<'_>) -> Result<SequenceId, Error> {
        let slot = self.namespace(params.namespace)?;
        self.start(slot, params)
    }

    /// Opens a sequence that begins with the tokens of a ticket, which is used up.
    ///
    /// # Errors
    /// As [`Self::open`]; then the ticket is still good.
    pub fn open_ticket(&mut self, ticket: TicketId, params: &OpenParams<'_>) -> Result<SequenceId, Error> {
        let from = self.holders.resolve(Kind::Ticket, ticket.parts())?;
        let &Sequence { namespace, len, verified, known, tip, depth, inherited, .. } = self.holders.get(from);
        let id = self.start(namespace, params)?;
        let holder = self.sequence(id)?;
        self.tables.hand_over(from, holder);
        self.holders.with(holder, |sequence| {
            (sequence.len, sequence.verified, sequence.known) = (len, verified, known);
            (sequence.tip, sequence.depth, sequence.inherited) = (tip, depth, inherited);
        });
        self.holders.close(Kind::Ticket, from);
        self.spaces.remove_user(namespace);
        Ok(id)
    }

    fn start(&mut self, slot: u32, params: &OpenParams<'_>) -> Result<SequenceId, Error> {
        check_spans(params.spans)?;
        if u32::from(params.class) >= self.limits.classes {
            return Err(Error::Argument);
        }
        let need = u32::try_from(params.spans.len()).map_err(|_| Error::Argument)?;
        if need > self.index.parts.free {
            return Err(Shortage::of(Resource::KeyParts, need, self.index.parts.free).into());
        }
        let holder = self.holders.open(Kind::Sequence, slot, self.pages.root(slot))?;
        let parts = self.index.parts.append(0, params.spans).unwrap_or(0);
        self.spaces.add_user(slot);
        self.holders.with(holder, |sequence| {
            sequence.class = u32::from(params.class);
            sequence.user = params.user;
            sequence.parts = parts;
        });
        self.touch_tables(holder, 0);
        let (generation, index) = self.holders.handle(Kind::Sequence, holder);
        Ok(SequenceId::new(generation, index))
    }

    /// Adds media spans to a sequence. They begin at or behind its length and behind its other spans.
    ///
    /// # Errors
    /// `Argument`, `Stale`, or a shortage of media spans.
    pub fn add_spans(&mut self, id: SequenceId, spans: &[MediaSpan]) -> Result<(), Error> {
        let holder = self.sequence(id)?;
        check_spans(spans)?;
        let sequence = self.holders.get(holder);
        let end = self.index.parts.list(sequence.parts).last().map_or(0, |span| span.start.saturating_add(span.length));
        if spans.first().is_some_and(|first| first.start < end.max(sequence.len)) {
            return Err(Error::Argument);
        }
        let need = u32::try_from(spans.len()).map_err(|_| Error::Argument)?;
        match self.index.parts.append(sequence.parts, spans) {
            Some(parts) if INDEX || need == 0 => {
                self.holders.with(holder, |sequence| sequence.parts = parts);
                Ok(())
            }
            _ => Err(Shortage::of(Resource::KeyParts, need, self.index.parts.free).into()),
        }
    }

    fn set_deadline(&mut self, ticket: u32, deadline: Tick) {
        self.holders.with(ticket, |state| state.deadline = deadline);
        self.holders.next_deadline = self.holders.next_deadline.min(deadline);
    }

    /// Drops the tickets whose deadline has passed. O(1) while none has, else O(tickets).
    pub(crate) fn expire_tickets(&mut self) {
        if self.holders.next_deadline >= self.now {
            return;
        }
        let mut next = Tick::MAX;
        for holder in self.holders.range(Kind::Ticket) {
            let state = self.holders.get(holder);
            if state.is_live == 1 && state.deadline < self.now {
                self.drop_holder(Kind::Ticket, holder);
            } else if state.is_live == 1 {
                next = next.min(state.deadline);
            }
        }
        self.holders.next_deadline = next;
    }
}

/// Spans must be ascending, not empty, and not overlap.
fn check_spans(spans: &[MediaSpan]) -> Result<(), Error> {
    let mut end = 0_u32;
    for span in spans {
        if span.start < end || span.length == 0 {
            return Err(Error::Argument);
        }
        end = span.start.checked_add(span.length).ok_or(Error::Argument)?;
    }
    Ok(())
}
