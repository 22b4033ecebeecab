//! Opening, forking, cutting and ending sequences.

use std::collections::BTreeMap;

use super::pages::Page;
use super::{Model, Sequence};
use crate::machine::{Outcome, Resource, Status};
use crate::op::{Seq, Span};
use crate::spec::{GroupKind, NULL};

impl Model {
    /// A live sequence that is not about to end.
    pub(super) fn live(&self, seq: Seq) -> Result<&Sequence, Outcome> {
        match self.state.sequences.get(&seq) {
            Some(sequence) if sequence.closing.is_none() => Ok(sequence),
            _ => Err(Outcome::of(Status::Stale)),
        }
    }

    /// Tokens of a sequence that lie in whole published pages.
    pub(super) fn published_pages(&self, sequence: &Sequence) -> u32 {
        let step = self.spec.anchor().map_or(1, |anchor| self.page_tokens(anchor));
        sequence.published / step * step
    }

    pub(super) fn in_plan(&self, seq: Seq) -> bool {
        self.state.plan.iter().flat_map(|plan| &plan.entries).any(|entry| entry.seq == seq)
    }

    pub(super) fn idle(&self, seq: Seq) -> Result<&Sequence, Outcome> {
        let sequence = self.live(seq)?;
        if self.in_plan(seq) { Err(Outcome::of(Status::Busy)) } else { Ok(sequence) }
    }

    pub(super) fn room_for_sequences(&self, count: usize) -> Result<(), Outcome> {
        let free = self.spec.max_sequences() - self.state.sequences.len();
        let short = || Outcome::capacity(Resource::Sequences, count as u32, free as u32);
        if count <= free { Ok(()) } else { Err(short()) }
    }

    pub(super) fn birth(&mut self) -> u64 {
        self.state.births += 1;
        self.state.births
    }

    /// Room for `count` media spans.
    pub(super) fn room_for_spans(&self, count: usize) -> Result<(), Outcome> {
        let free = self.free_spans();
        let short = || Outcome::capacity(Resource::Spans, count as u32, free);
        if count as u32 <= free { Ok(()) } else { Err(short()) }
    }

    /// Whether a sequence of this class, with these spans, can be opened.
    pub(super) fn may_open(&self, class: u8, spans: &[Span]) -> Result<(), Outcome> {
        check_spans(spans)?;
        if class >= self.classes() {
            return Err(Outcome::of(Status::Argument));
        }
        self.room_for_spans(spans.len())?;
        self.room_for_sequences(1)
    }

    pub(super) fn add_spans(&mut self, seq: Seq, spans: &[Span]) -> Result<Outcome, Outcome> {
        let sequence = self.live(seq)?;
        check_spans(spans)?;
        let end = sequence.spans.last().map_or(0, |span| span.start + span.length);
        if spans.first().is_some_and(|first| first.start < end.max(sequence.len())) {
            return Err(Outcome::of(Status::Argument));
        }
        self.room_for_spans(spans.len())?;
        self.state.sequences.get_mut(&seq).expect("live").spans.extend(spans);
        Ok(Outcome::OK)
    }

    pub(super) fn open(&mut self, seq: Seq, ns: u16, class: u8, spans: &[Span]) -> Result<Outcome, Outcome> {
        self.space(ns)?;
        self.may_open(class, spans)?;
        let birth = self.birth();
        let sequence = Sequence {
            birth,
            ns,
            verified: 0,
            published: 0,
            tokens: Vec::new(),
            tables: vec![Vec::new(); self.spec.groups.len()],
            rings: vec![Vec::new(); self.spec.groups.len()],
            sealed: self.all_sealed(0),
            holds: BTreeMap::new(),
            closing: None,
            class,
            spans: spans.to_vec(),
        };
        self.state.sequences.insert(seq, sequence);
        Ok(Outcome::OK)
    }

    /// Whether every window group of the sequence can resume at `at`.
    pub(super) fn can_cut(&self, sequence: &Sequence, at: u32) -> bool {
        (0..self.spec.groups.len()).all(|group| match self.spec.groups[group].kind {
            GroupKind::Full => true,
            GroupKind::Window { .. } => {
                let table = &sequence.tables[group];
                self.resume_pages(group, at).into_iter().all(|index| table[index as usize] != NULL)
            }
        })
    }

    pub(super) fn fork(&mut self, source: Seq, children: &[Seq], at: u32) -> Result<Outcome, Outcome> {
        let parent = self.idle(source)?.clone();
        if at > parent.len() {
            return Err(Outcome::of(Status::Argument));
        }
        self.may_cut(&parent, at)?;
        let loads = self.state.transfers.values().filter(|running| running.loading == Some(parent.birth));
        if loads.map(|running| running.begin).min().is_some_and(|begin| at > begin) {
            // A child must not publish what has not arrived.
            return Err(Outcome::of(Status::Busy));
        }
        self.room_for_sequences(children.len())?;
        self.room_for_chunks(self.chunks_below(&parent, at) * children.len() as u32)?;
        self.room_for_spans(parent.spans.iter().filter(|span| span.start < at).count() * children.len())?;
        for &child in children {
            let mut sequence = parent.clone();
            sequence.birth = self.birth();
            self.cut(&mut sequence, at);
            self.state.sequences.insert(child, sequence);
            if self.spec.deferred {
                self.enqueue(child); // what the parent has not published yet
            }
        }
        Ok(Outcome::OK)
    }

    /// Shortens a sequence record and returns the pages that it gave up, in the order of release.
    pub(super) fn cut(&self, sequence: &mut Sequence, at: u32) -> Vec<Page> {
        let mut dropped = Vec::new();
        for group in self.release_groups() {
            let page_tokens = self.page_tokens(group);
            let keep = self.row_end(sequence, group, at);
            for index in (0..sequence.tables[group].len() as u32).rev() {
                if index >= keep {
                    let pool = self.pool_at(sequence, group, index);
                    let page = sequence.tables[group].pop().map(|id| (pool, id));
                    dropped.extend(page.filter(|_| !self.is_ring(group)));
                }
                if Some(group) == self.spec.anchor() && (index + 1) * page_tokens > at {
                    let pool = self.indexed_pool(group, index);
                    dropped.extend(sequence.holds.remove(&index).map(|id| (pool, id)));
                }
            }
            let sealed = &mut sequence.sealed[group];
            sealed.end = sealed.end.min(keep).max(sealed.start);
        }
        sequence.tokens.truncate(at as usize);
        sequence.spans.retain(|span| span.start < at);
        sequence.verified = sequence.verified.min(at);
        sequence.published = sequence.published.min(at);
        dropped.extend(self.end_rings(sequence));
        dropped
    }

    pub(super) fn truncate(&mut self, seq: Seq, at: u32) -> Result<Outcome, Outcome> {
        let mut sequence = self.idle(seq)?.clone();
        if at > sequence.len() {
            return Err(Outcome::of(Status::Argument));
        }
        self.may_cut(&sequence, at)?;
        if at == sequence.len() {
            return Ok(Outcome::OK);
        }
        let dropped = self.cut(&mut sequence, at);
        self.state.sequences.insert(seq, sequence);
        self.settle(&dropped);
        self.leave_queue_if_done(seq);
        Ok(Outcome::OK)
    }

    /// Takes full pages out of a row; the sequence becomes the list of the others.
    pub(super) fn remove_pages(&mut self, seq: Seq, columns: &[u32]) -> Result<Outcome, Outcome> {
        let mut sequence = self.idle(seq)?.clone();
        let [group] = &self.spec.groups[..] else { return Err(Outcome::of(Status::Sealed)) };
        if group.kind != GroupKind::Full || group.sealed.is_some() || !sequence.spans.is_empty() {
            return Err(Outcome::of(Status::Sealed));
        }
        if self.is_loading(&sequence) {
            return Err(Outcome::of(Status::Busy));
        }
        let Some((&first, &last)) = columns.first().zip(columns.last()) else { return Ok(Outcome::OK) };
        let step = group.page_tokens;
        if last >= sequence.verified / step {
            return Err(Outcome::of(Status::Argument));
        }
        if first < sequence.published / step {
            return Err(Outcome::of(Status::Sealed));
        }
        sequence.tokens[(first * step) as usize..].fill(None);
        sequence.published = sequence.published.min(first * step); // a copy of a published page that was cut is private
        let mut dropped: Vec<Page> = Vec::new();
        for &column in columns.iter().rev() {
            dropped.push((self.pool_of(0), sequence.tables[0].remove(column as usize)));
            sequence.tokens.drain((column * step) as usize..((column + 1) * step) as usize);
            sequence.verified -= step;
        }
        self.state.sequences.insert(seq, sequence);
        self.settle(&dropped);
        self.leave_queue_if_done(seq);
        Ok(Outcome::OK)
    }

    pub(super) fn close(&mut self, seq: Seq, discard: bool) -> Result<Outcome, Outcome> {
        self.live(seq)?;
        if self.in_plan(seq) {
            self.state.sequences.get_mut(&seq).expect("live").closing = Some(discard);
        } else {
            self.end(seq, discard);
        }
        Ok(Outcome::OK)
    }

    /// Ends a sequence that is in no plan.
    pub(super) fn end(&mut self, seq: Seq, discard: bool) {
        if discard {
            self.discard(seq);
        } else {
            self.publish_sequence(seq, u32::MAX);
        }
        let mut sequence = self.state.sequences.remove(&seq).expect("live");
        self.state.queue.retain(|other| *other != seq);
        let dropped = self.cut(&mut sequence, 0);
        self.settle(&dropped);
    }

    /// Unindexes, leaf first, the nodes that only this sequence published and nobody else uses. A node goes
    /// as a whole: whoever holds its anchor page has computed the other groups' pages too.
    fn discard(&mut self, seq: Seq) {
        let Some(anchor) = self.spec.anchor() else {
            return;
        };
        let sequence = self.state.sequences[&seq].clone();
        let row: Vec<Page> = self.row_pages(&sequence, anchor).collect();
        for (pool, id) in row.into_iter().rev() {
            let Some((key, place)) = self.state.index.home(pool, id).cloned() else {
                continue;
            };
            let own = self.state.index.at(&key, place).is_some_and(|stored| stored.publisher == sequence.birth);
            let alone = self.references().of((pool, id)) == 1;
            if own && alone && !self.state.index.has_children((pool, id)) {
                self.unindex((pool, id));
            }
        }
    }

    pub(super) fn verify(&mut self, seq: Seq, upto: u32) -> Result<Outcome, Outcome> {
        let sequence = self.live(seq)?;
        if upto > sequence.len() || upto < sequence.verified {
            return Err(Outcome::of(Status::Argument));
        }
        self.state.sequences.get_mut(&seq).expect("live").verified = upto;
        self.publish_or_queue(seq);
        Ok(Outcome::OK)
    }
}

/// Media spans ascend, are not empty, do not overlap and end below 2^32.
pub(super) fn check_spans(spans: &[Span]) -> Result<(), Outcome> {
    let mut end = 0;
    for span in spans {
        let next = span.start.checked_add(span.length).filter(|_| span.start >= end && span.length > 0);
        end = next.ok_or(Outcome::of(Status::Argument))?;
    }
    Ok(())
}
