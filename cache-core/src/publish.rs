//! Publishing: committed full pages enter the index, in order, each with all its key parts.
//!
//! A page whose key exists on another page stays private, and the sequence holds the published one from then on.

use crate::cache::Cache;
use crate::config::PublishMode;
use crate::error::Error;
use crate::events::EventKind;
use crate::ids::SequenceId;
use crate::index::Spans;
use crate::mem::bump;
use crate::pages::{Holder, NULL};
use crate::sequence::Sequence;

impl Cache<'_> {
    /// Publishes up to `budget` pages, of the sequences in the order in which they first had one to publish. Gives how many
    /// it published; less than `budget` means that nothing is left that fits. O(pages published).
    pub fn publish(&mut self, budget: u32) -> u32 {
        let mut left = budget;
        while left > 0 && self.holders.queue_head != 0 {
            let holder = self.holders.queue_head.saturating_sub(1);
            while left > 0 && self.publish_next(holder) {
                left = left.saturating_sub(1);
            }
            if left > 0 {
                self.holders.dequeue(holder); // done, or its key parts do not fit
            } else {
                self.unqueue_if_done(holder);
            }
        }
        budget.saturating_sub(left)
    }

    /// Settles provisional tokens: those below `upto` are final. They may be published from now on.
    ///
    /// # Errors
    /// `Argument` below what is verified already or beyond the length, `Stale`.
    pub fn verify(&mut self, id: SequenceId, upto: u32) -> Result<(), Error> {
        let holder = self.sequence(id)?;
        let sequence = self.holders.get(holder);
        if upto < sequence.verified || upto > sequence.len {
            return Err(Error::Argument);
        }
        self.holders.with(holder, |sequence| sequence.verified = upto);
        self.publish_or_queue(holder);
        Ok(())
    }

    /// After tokens became final: publishes now or later, as configured.
    pub(crate) fn publish_or_queue(&mut self, holder: u32) {
        if !self.can_publish(&self.holders.get(holder)) {
            return;
        }
        match self.publish_mode {
            PublishMode::Immediate => self.publish_all(holder),
            PublishMode::Deferred => self.holders.enqueue(holder),
        }
    }

    pub(crate) fn publish_all(&mut self, holder: u32) {
        while self.publish_next(holder) {}
        self.unqueue_if_done(holder);
    }

    pub(crate) fn unqueue_if_done(&mut self, holder: u32) {
        if !self.can_publish(&self.holders.get(holder)) {
            self.holders.dequeue(holder);
        }
    }

    /// Whether the page behind the path is full, final and of known tokens.
    #[inline]
    fn can_publish(&self, sequence: &Sequence) -> bool {
        let end = sequence.verified.min(sequence.known);
        self.index.is_enabled() && sequence.loads == 0 && sequence.depth < end >> self.index.shift
    }

    /// Publishes the next page of a sequence. False when there is none or its key parts do not fit.
    fn publish_next(&mut self, holder: u32) -> bool {
        let sequence = self.holders.get(holder);
        if !self.can_publish(&sequence) {
            return false;
        }
        let entry = sequence.depth;
        let page = self.tables.get(holder, self.limits.anchor, entry);
        if page == NULL || !self.is_publishable(holder, self.limits.anchor, entry) {
            return false;
        }
        let start = entry << self.index.shift;
        let spans = Spans::Stored(sequence.parts);
        let existing = self.index.find(&self.pages, sequence.tip, self.index.page(page), spans, start);
        if existing == NULL {
            let Some(parts) = self.index.parts.copy(spans, start, self.index.page_tokens) else { return false };
            // The table entry's reference becomes the tip's. The parent loses a tip and gains a used child.
            self.index.link(&mut self.pages, sequence.tip, page, parts);
            self.pages.enter_order(page);
            if !self.pages.traits.class.is_empty() {
                self.pages.published(page, sequence.class);
            }
            let anchor = self.anchor_id();
            self.events.push(|| self.index.event(&self.pages, EventKind::Stored, anchor, page, page));
            bump(&mut self.counters.published_pages, 1);
            self.holders.with(holder, |sequence| (sequence.tip, sequence.depth) = (page, entry.saturating_add(1)));
        } else {
            let duplicate = existing != page;
            if duplicate && !self.may_hold(existing) {
                return false;
            }
            if duplicate {
                self.pages.hold(existing, Holder::Live);
                bump(&mut self.counters.duplicate_pages, 1);
            }
            self.pages.unhold(sequence.tip, Holder::Live);
            self.holders.with(holder, |sequence| {
                (sequence.tip, sequence.depth) = (existing, entry.saturating_add(1));
                sequence.duplicates = sequence.duplicates.saturating_add(u32::from(duplicate));
                if !duplicate {
                    sequence.inherited = entry.saturating_add(1); // another owner of the page published it
                }
            });
        }
        if self.index.places > 0 {
            self.hang_pages(holder, entry);
        }
        true
    }

    /// Whether a published page may be pinned without taking what the plan being built was promised.
    fn may_hold(&self, page: u32) -> bool {
        !self.plan.is_building()
            || !self.pages.is_cached(page)
            || self.pages.pools.get(self.pages.pool_of(page)).available() > 0
    }

    /// Whether a full page of a group may be published: where pages are sealed, only sealed ones.
    fn is_publishable(&self, holder: u32, index: u32, entry: u32) -> bool {
        self.groups.get(index).sealed_pool == 0 || entry < self.tables.sealed(holder, index)
    }

    /// Hangs the sequence's pages of other groups that end with a node on it, where the place is empty.
    fn hang_pages(&mut self, holder: u32, entry: u32) {
        let node = self.holders.get(holder).tip;
        let end = entry.saturating_add(1) << self.index.shift;
        for index in self.other_groups() {
            let group = self.groups.get(index);
            if end & group.page_tokens().wrapping_sub(1) != 0 || group.is_ring() {
                continue;
            }
            let last = end >> group.shift;
            for sub in 0..group.per_node {
                let entry = last.saturating_sub(group.per_node).saturating_add(sub);
                let place = group.place.saturating_add(sub);
                let page = self.tables.get(holder, index, entry);
                if page == NULL
                    || !self.is_publishable(holder, index, entry)
                    || self.pages.is_indexed(page)
                    || self.index.hung(node, place) != NULL
                {
                    continue;
                }
                let Ok(mark) = u16::try_from(place.saturating_add(1)) else { continue };
                self.pages.hang(node, page, mark);
                self.index.set_hung(node, place, page);
                self.pages.enter_order(page);
                let id = self.index.group_of_place(place);
                self.events.push(|| self.index.event(&self.pages, EventKind::Stored, id, node, page));
            }
        }
    }
}
