//! Publishing: committed full pages enter the index, in order, each with all its key parts.
//!
//! A page whose key exists on another page stays private, and the sequence holds the published one from then on.

use crate::cache::Cache;
use crate::config::PublishMode;
use crate::error::Error;
use crate::events::EventKind;
use crate::ids::SequenceId;
use crate::index::{INDEX, Spans};
use crate::mem::bump;
use crate::pages::{Holder, NULL};
use crate::sequence::Sequence;

/// How far a sequence has published.
struct Path {
    tip: u32,
    depth: u32,
}

impl Cache<'_> {
    /// Publishes up to `budget` pages, of the sequences in the order in which they first had one to publish. Gives how many
    /// it published; less than `budget` means that nothing is left that fits. O(pages published).
    pub fn publish(&mut self, budget: u32) -> u32 {
        let mut left = budget;
        while INDEX && left > 0 && self.holders.queue_head != 0 {
            let holder = self.holders.queue_head.saturating_sub(1);
            left = left.saturating_sub(self.publish_some(holder, left));
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
        match self.publish_mode {
            PublishMode::Immediate => self.publish_all(holder),
            PublishMode::Deferred if self.can_publish(holder) => self.holders.enqueue(holder),
            PublishMode::Deferred => {}
        }
    }

    pub(crate) fn publish_all(&mut self, holder: u32) {
        self.publish_some(holder, u32::MAX);
        self.unqueue_if_done(holder);
    }

    pub(crate) fn unqueue_if_done(&mut self, holder: u32) {
        if INDEX && self.holders.queue_head != 0 && !self.can_publish(holder) {
            self.holders.dequeue(holder);
        }
    }

    /// Whether the page behind the path is full, of known tokens, and final.
    #[inline]
    fn can_publish(&self, holder: u32) -> bool {
        let Some(sequence) = self.holders.at(holder) else { return false };
        let end = sequence.verified.min(sequence.known);
        self.index.is_enabled()
            && sequence.loads == 0
            && sequence.depth < end >> self.index.shift
            && sequence.depth < self.final_end(holder, self.limits.anchor)
    }

    /// Publishes up to `budget` pages of a sequence. Gives how many; fewer where its key parts do not fit or a pin would
    /// take what is promised.
    fn publish_some(&mut self, holder: u32, budget: u32) -> u32 {
        if !self.can_publish(holder) {
            return 0;
        }
        let Some(&Sequence { tip, depth, verified, known, parts, .. }) = self.holders.at(holder) else { return 0 };
        let end = verified.min(known) >> self.index.shift;
        let anchor = self.limits.anchor;
        let end = end.min(self.final_end(holder, anchor));
        let mut path = Path { tip, depth };
        let mut cursor = self.tables.cursor(holder, anchor, depth);
        let limit = depth.saturating_add(budget).min(end);
        let plain = parts == 0 && self.index.keeps_links_only() && self.pages.has_one_list();
        while path.depth < limit {
            let rest = self.tables.rest(&mut cursor, path.depth);
            if plain && self.pages.children(path.tip) == 0 {
                // Nothing is behind a new page, so nothing need be looked up.
                let rest = rest.get(..limit.wrapping_sub(path.depth) as usize).unwrap_or(rest);
                let count = self.index.link_chain(&mut self.pages, path.tip, rest);
                let Some(tip) = count.checked_sub(1).and_then(|last| rest.get(last as usize)) else { break };
                path = Path { tip: tip.get(), depth: path.depth.wrapping_add(count) };
                bump(&mut self.counters.published_pages, u64::from(count));
                continue;
            }
            let page = rest.first().map_or(NULL, |page| page.get());
            if page == NULL || !self.publish_page(holder, &mut path, page, Spans::Stored(parts)) {
                break;
            }
        }
        self.holders.with(holder, |sequence| (sequence.tip, sequence.depth) = (path.tip, path.depth));
        path.depth.wrapping_sub(depth)
    }

    /// Publishes the page behind a sequence's path, and moves the path on. False when that must wait.
    #[inline]
    fn publish_page(&mut self, holder: u32, path: &mut Path, page: u32, spans: Spans<'_>) -> bool {
        let Path { tip, depth: entry } = *path;
        let start = entry << self.index.shift;
        let existing = self.index.find(&self.pages, tip, self.index.page(page), spans, start);
        if existing == NULL {
            let Some(parts) = self.index.parts.copy(spans, start, self.index.page_tokens) else { return false };
            // The table entry's reference becomes the tip's. The parent loses a tip and gains a used child.
            self.index.link(&mut self.pages, tip, page, parts);
            if !self.pages.has_one_list() {
                self.pages.enter_order(page);
                let class = self.holders.with(holder, |sequence| sequence.class);
                self.pages.published(page, class);
            }
            let anchor = self.anchor_id();
            self.events.push(|| self.index.event(&self.pages, EventKind::Stored, anchor, page, page));
            bump(&mut self.counters.published_pages, 1);
            *path = Path { tip: page, depth: entry.wrapping_add(1) };
        } else {
            let duplicate = existing != page;
            if duplicate && !self.may_hold(existing) {
                return false;
            }
            if duplicate {
                self.pages.hold(existing, Holder::Live);
                bump(&mut self.counters.duplicate_pages, 1);
            }
            self.pages.unhold(tip, Holder::Live);
            *path = Path { tip: existing, depth: entry.wrapping_add(1) };
            self.holders.with(holder, |sequence| {
                sequence.duplicates = sequence.duplicates.saturating_add(u32::from(duplicate));
                if !duplicate {
                    sequence.inherited = entry.saturating_add(1); // another owner of the page published it
                }
            });
        }
        if self.index.places > 0 {
            self.hang_pages(holder, path);
        }
        true
    }

    /// Whether a published page may be pinned without taking what the plan being built was promised.
    fn may_hold(&self, page: u32) -> bool {
        !self.plan.is_building()
            || !self.pages.is_cached(page)
            || self.pages.pools.get(self.pages.pool_of(page)).available() > 0
    }

    /// Hangs the sequence's pages of other groups that end with a node on it, where the place is empty.
    fn hang_pages(&mut self, holder: u32, path: &Path) {
        let node = path.tip;
        let end = path.depth << self.index.shift;
        for index in self.other_groups() {
            let group = self.groups.get(index);
            if end & group.page_tokens().wrapping_sub(1) != 0 || group.is_ring() {
                continue;
            }
            let (last, final_end) = (end >> group.shift, self.final_end(holder, index));
            for sub in 0..group.per_node {
                let entry = last.saturating_sub(group.per_node).saturating_add(sub);
                let place = group.place.saturating_add(sub);
                let page = self.tables.get(holder, index, entry);
                if page == NULL
                    || entry >= final_end
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
