//! Publishing verified full pages, parent first.

use super::index::Key;
use super::{Model, Sequence};
use crate::op::Seq;
use crate::spec::NULL;

impl Model {
    /// Whether the sequence has a full page that may enter the index now.
    pub(super) fn publishable(&self, seq: Seq) -> bool {
        let Some(anchor) = self.spec.anchor() else {
            return false;
        };
        let sequence = &self.state.sequences[&seq];
        let step = self.page_tokens(anchor);
        let index = sequence.published / step;
        let end = (index + 1) * step;
        let may_enter = end <= sequence.verified && self.is_final(sequence, anchor, index);
        may_enter && sequence.known(end).is_some() && !self.is_loading(sequence)
    }

    /// Whether a load into the sequence runs.
    pub(super) fn is_loading(&self, sequence: &Sequence) -> bool {
        self.state.transfers.values().any(|running| running.loading == Some(sequence.birth))
    }

    /// After tokens became final: publishes now or later, as configured.
    pub(super) fn publish_or_queue(&mut self, seq: Seq) {
        if !self.spec.deferred {
            self.publish_sequence(seq, u32::MAX);
            self.leave_queue_if_done(seq);
        } else {
            self.enqueue(seq);
        }
    }

    /// Media span entries that nothing uses.
    pub(super) fn free_spans(&self) -> u32 {
        let step = self.spec.anchor().map_or(1, |anchor| self.page_tokens(anchor));
        let begin = |key: &&Key| key.tokens.len() as u32 - step;
        let nodes = self.state.index.nodes.keys();
        let stored: usize = nodes.map(|key| key.spans.iter().filter(|span| span.start >= begin(&key)).count()).sum();
        let kept: usize = self.state.sequences.values().map(|sequence| sequence.spans.len()).sum();
        let shared: usize = self.state.transfers.values().map(|running| running.spans.len()).sum();
        self.spec.spans - (stored + kept + shared) as u32
    }

    /// Whether the media spans that begin in the next page can be stored with it. They need no room when its key
    /// exists already.
    fn spans_fit(&self, seq: Seq) -> bool {
        let (sequence, Some(anchor)) = (&self.state.sequences[&seq], self.spec.anchor()) else {
            return false;
        };
        if sequence.spans.is_empty() {
            return true;
        }
        let step = self.page_tokens(anchor);
        let begin = sequence.published / step * step;
        let key = sequence.key(begin + step).expect("publishable");
        let own = key.spans.iter().filter(|span| span.start >= begin).count() as u32;
        self.state.index.at(&key, (anchor, 0)).is_some() || own <= self.free_spans()
    }

    /// Publishes up to `budget` pages; returns how many anchor pages it got past.
    pub(super) fn publish_sequence(&mut self, seq: Seq, budget: u32) -> u32 {
        let mut done = 0;
        while done < budget && self.publishable(seq) && self.spans_fit(seq) && !self.would_break_promise(seq) {
            self.publish_page(seq);
            done += 1;
        }
        done
    }

    /// Whether the next page's hold would take a cached page that the plan being built was promised.
    fn would_break_promise(&self, seq: Seq) -> bool {
        let anchor = self.spec.anchor().expect("publishable");
        let step = self.page_tokens(anchor);
        let sequence = &self.state.sequences[&seq];
        let index = sequence.published / step;
        let pool = self.indexed_pool(anchor, index);
        let key = sequence.key((index + 1) * step).expect("publishable");
        let own = &self.state.pools[pool];
        let takes = self.indexed_page(&key, anchor, index).is_some_and(|id| own.cached.contains(&id));
        takes && self.promised()[pool] >= own.free_count() + own.cached_count()
    }

    fn publish_page(&mut self, seq: Seq) {
        let anchor = self.spec.anchor().expect("publishable");
        let step = self.page_tokens(anchor);
        let sequence = self.state.sequences[&seq].clone();
        let index = sequence.published / step;
        let (begin, end) = (index * step, (index + 1) * step);
        let key = sequence.key(end).expect("publishable");
        let parent = key.upto(begin);
        assert!(begin == 0 || self.state.index.nodes.contains_key(&parent), "a node without its parent");
        let own = sequence.tables[anchor][index as usize];
        match self.state.index.at(&key, (anchor, 0)) {
            None => self.hang(&key, (anchor, 0), own, sequence.birth, sequence.class),
            Some(stored) if stored.id == own => self.state.index.take_over(&key, (anchor, step), sequence.birth),
            Some(stored) => {
                self.wake((self.indexed_pool(anchor, index), stored.id));
                let sequence = self.state.sequences.get_mut(&seq).expect("live");
                let old = sequence.holds.insert(index, stored.id);
                assert!(old.is_none(), "a second hold on one page index");
            }
        }
        for group in (0..self.spec.groups.len()).filter(|g| *g != anchor) {
            if self.is_ring(group) {
                continue;
            }
            let own_tokens = self.page_tokens(group);
            for page in 0..end / own_tokens {
                let (node_end, place) = self.locate(group, page);
                let id = sequence.tables[group][page as usize];
                // A page smaller than the anchor's may end below two nodes: it hangs at the first.
                let homeless = self.state.index.home(self.pool_at(&sequence, group, page), id).is_none();
                let is_final = self.is_final(&sequence, group, page);
                if node_end == end && id != NULL && homeless && is_final && self.state.index.at(&key, place).is_none() {
                    self.hang(&key, place, id, sequence.birth, 0);
                }
            }
        }
        self.state.sequences.get_mut(&seq).expect("live").published = end;
    }

    /// Puts a sequence in the queue when it has something to publish, takes it out when not.
    pub(super) fn enqueue(&mut self, seq: Seq) {
        if self.publishable(seq) && !self.state.queue.contains(&seq) {
            self.state.queue.push(seq);
        }
    }

    /// Takes a sequence that has nothing to publish out of the queue.
    pub(super) fn leave_queue_if_done(&mut self, seq: Seq) {
        if !self.publishable(seq) {
            self.state.queue.retain(|other| *other != seq);
        }
    }

    /// One slice of deferred publishing.
    pub(super) fn publish(&mut self, budget: u32) -> u32 {
        let mut done = 0;
        while done < budget
            && let Some(&seq) = self.state.queue.first()
        {
            done += self.publish_sequence(seq, budget - done);
            if done < budget {
                // It is done, or waits: for its load, or for room.
                self.state.queue.remove(0);
            } else {
                self.leave_queue_if_done(seq);
            }
        }
        done
    }
}
