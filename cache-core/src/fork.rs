//! Fork: children that share a sequence's pages.

use crate::cache::Cache;
use crate::config::PublishMode;
use crate::error::{Error, Resource, Shortage};
use crate::ids::SequenceId;
use crate::index::INDEX;
use crate::pages::{Holder, NULL};
use crate::sequence::{Kind, Sequence};

impl Cache<'_> {
    /// Opens one child per element of `children`, each with the first `at` tokens of the sequence. Pages are shared; the
    /// first write to a shared page copies it. Tokens of an open plan never pass to a child. All or none are opened.
    /// O(children * pages).
    ///
    /// # Errors
    /// `Argument` beyond the length, `Busy` in an open plan or where a load under way has not arrived, `WindowLost`, `Stale`, or a shortage of sequences, table
    /// chunks or media spans.
    pub fn fork(&mut self, id: SequenceId, at: u32, children: &mut [SequenceId]) -> Result<(), Error> {
        let parent = self.sequence(id)?;
        if self.holders.get(parent).plan != 0 {
            return Err(Error::Busy);
        }
        self.can_resume_at(parent, at)?;
        let state = self.holders.get(parent);
        if state.loads > 0 && at > state.load_from {
            return Err(Error::Busy); // a child must not publish what is still being loaded
        }
        let count = u32::try_from(children.len()).map_err(|_| Error::Argument)?;
        if count > self.holders.free(Kind::Sequence) {
            return Err(Shortage::of(Resource::Sequences, count, self.holders.free(Kind::Sequence)).into());
        }
        self.may_share(parent, at, count)?;
        for child in children.iter_mut() {
            let holder = self.share(Kind::Sequence, parent, at)?;
            if self.publish_mode == PublishMode::Deferred {
                self.publish_or_queue(holder); // what the parent has not published yet
            }
            let (generation, index) = self.holders.handle(Kind::Sequence, holder);
            *child = SequenceId::new(generation, index);
        }
        Ok(())
    }

    /// Whether `count` holders can share the first `at` tokens of another.
    pub(crate) fn may_share(&self, from: u32, at: u32, count: u32) -> Result<(), Error> {
        let state = self.holders.get(from);
        let chunks = (0..self.limits.groups).fold(0_u32, |sum, index| {
            let end = self.stored_end(index, state, at);
            sum.saturating_add(self.tables.chunks_below(from, index, end))
        });
        self.may_take_chunks(chunks.saturating_mul(count))?;
        let spans = self.index.parts.list(state.parts).filter(|span| span.start < at).count();
        let spans = u32::try_from(spans).unwrap_or(u32::MAX).saturating_mul(count);
        if spans > self.index.parts.free {
            return Err(Shortage::of(Resource::KeyParts, spans, self.index.parts.free).into());
        }
        Ok(())
    }

    /// Opens a holder that shares the first `at` tokens of another. [`Self::may_share`] has allowed it.
    pub(crate) fn share(&mut self, kind: Kind, from: u32, at: u32) -> Result<u32, Error> {
        let &Sequence { namespace, tip: end, depth: whole, duplicates: private, parts, .. } = self.holders.get(from);
        let who = if kind == Kind::Transfer { Holder::Transfer } else { Holder::Live };
        let to = self.holders.open(kind, namespace, self.pages.root(namespace))?;
        self.spaces.add_user(namespace);
        let anchor = self.limits.anchor;
        let depth = if INDEX { self.path_below(from, at).1 } else { 0 };
        let tip = self.index.ancestor(&self.pages, end, whole.saturating_sub(depth));
        self.pages.hold(tip, who);
        let mut duplicates = 0_u32;
        for index in 0..self.limits.groups {
            let stored_end = self.stored_end(index, self.holders.get(from), at);
            self.tables.copy_row(from, to, index, stored_end);
            for (base, entries) in self.tables.chunks_of(to, index) {
                for (entry, page) in (base..).zip(entries).filter(|(_, page)| !page.is_null()) {
                    let page = page.get();
                    if index != anchor || entry >= depth {
                        self.pages.hold(page, who);
                    } else if INDEX && private > 0 {
                        let up = whole.saturating_sub(entry.saturating_add(1));
                        if page != self.index.ancestor(&self.pages, end, up) {
                            self.pages.hold(page, who);
                            duplicates = duplicates.saturating_add(1);
                        }
                    }
                }
            }
        }
        for index in 0..self.limits.groups {
            let first = self.tables.first(from, index).min(self.groups.get(index).first(at));
            self.tables.set_first(to, index, first);
            self.cut_sealed(to, index, self.groups.get(index).pages(at));
        }
        let parts = self.index.parts.copy(crate::index::Spans::Stored(parts), 0, at).unwrap_or(0);
        let (verified, known, class, user) = self.holders.with(from, |parent| {
            parent.writable = 0; // its last page is shared now
            (parent.verified, parent.known, parent.class, parent.user)
        });
        self.holders.with(to, |child| {
            child.len = at;
            child.verified = verified.min(at);
            child.known = known.min(at);
            (child.tip, child.depth, child.duplicates) = (tip, depth, duplicates);
            child.inherited = depth; // what is not published yet may become the child's own
            child.class = class;
            child.user = user;
            child.parts = parts;
        });
        self.touch_tables(to, 0);
        Ok(to)
    }

    /// The common prefix of two sequences: leading tokens whose pages, in the anchor group, are the same pages.
    /// O(pages).
    ///
    /// # Errors
    /// `Stale`.
    pub fn shared_tokens(&self, a: SequenceId, b: SequenceId) -> Result<u32, Error> {
        let (a, b) = (self.sequence(a)?, self.sequence(b)?);
        let (state_a, state_b) = (self.holders.get(a), self.holders.get(b));
        let (anchor, group) = (self.limits.anchor, self.anchor());
        let len = state_a.len.min(state_b.len);
        let pages = self.row_end(anchor, state_a, len).min(self.row_end(anchor, state_b, len));
        let same = (0..pages)
            .take_while(|&entry| {
                let page = self.page_of(a, anchor, &group, entry);
                page != NULL && page == self.page_of(b, anchor, &group, entry)
            })
            .count();
        Ok(u32::try_from(same).unwrap_or(0).saturating_mul(self.index.page_tokens).min(len))
    }
}
