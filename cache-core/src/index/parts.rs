//! Media spans: what stands behind placeholder tokens, as part of the key.
//!
//! A span belongs to the page in which it begins; pages inside a span need no mark of their own, since their ancestor
//! has one. Lists are kept in ascending order of their start. Positions are absolute in the sequence.

use super::INDEX;
use crate::mem::IndexSlots;

/// A run of tokens that stands for an image, a sound or the like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct MediaSpan {
    /// First token, counted from the start of the sequence.
    pub start: u32,
    /// Number of tokens, at least 1.
    pub length: u32,
    /// Digest of the content, at full width.
    pub digest: [u64; 4],
}

crate::records::zero!(MediaSpan { start, length, digest });

impl MediaSpan {
    pub(crate) fn hash(&self, seed: u64) -> u64 {
        let [a, b, c, d] = self.digest;
        let place = u64::from(self.start) << 32 | u64::from(self.length);
        [place, a, b, c, d].into_iter().fold(seed, |key, word| {
            let mixed = (key ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            mixed ^ mixed >> 29
        })
    }

    pub(crate) fn begins_in(&self, start: u32, tokens: u32) -> bool {
        self.start >= start && self.start.wrapping_sub(start) < tokens
    }
}

/// A stored span and the next of its list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct KeyPart {
    span: MediaSpan,
    next: u32,
    reserved: u32,
}

crate::records::zero!(KeyPart { span, next, reserved });

/// Spans of a request or of a stored list.
#[derive(Clone, Copy)]
pub(crate) enum Spans<'a> {
    /// Given with the call, in ascending order.
    Given(&'a [MediaSpan]),
    /// A list in the store.
    Stored(u32),
}

/// The store of spans. Entries begin at 1.
pub(crate) struct Parts<'m> {
    entries: IndexSlots<'m, KeyPart>,
    fresh: u32,
    spare: u32,
    pub(crate) free: u32,
}

impl<'m> Parts<'m> {
    pub(super) fn new(entries: &'m mut [KeyPart]) -> Self {
        let entries = IndexSlots::new(entries);
        let free = entries.len().saturating_sub(1);
        Self { entries, fresh: 1, spare: 0, free }
    }

    /// The spans of a list.
    pub(crate) fn list(&self, head: u32) -> impl Iterator<Item = MediaSpan> + '_ {
        core::iter::successors((head != 0).then_some(head), |&entry| {
            let next = self.entries.get(entry).next;
            (next != 0).then_some(next)
        })
        .take(self.entries.len() as usize)
        .map(|entry| self.entries.get(entry).span)
    }

    /// All spans, whichever way they are held.
    pub(crate) fn each<'a>(&'a self, spans: Spans<'a>) -> impl Iterator<Item = MediaSpan> + 'a {
        let (given, head) = match spans {
            Spans::Given(given) => (given, 0),
            Spans::Stored(head) => (&[][..], head),
        };
        given.iter().copied().chain(self.list(head))
    }

    /// Whether a node's list is the spans that begin in `[start, start + tokens)`.
    #[inline]
    pub(super) fn equal(&self, head: u32, spans: Spans<'_>, start: u32, tokens: u32) -> bool {
        if head == 0 && matches!(spans, Spans::Given([]) | Spans::Stored(0)) {
            return true;
        }
        self.list(head).eq(self.each(spans).filter(|span| span.begins_in(start, tokens)))
    }

    pub(super) fn hash(&self, spans: Spans<'_>, start: u32, tokens: u32, seed: u64) -> u64 {
        self.each(spans).filter(|span| span.begins_in(start, tokens)).fold(seed, |key, span| span.hash(key))
    }

    /// The start of the first span at or behind a token; `u32::MAX` when there is none.
    pub(crate) fn next_start(&self, spans: Spans<'_>, token: u32) -> u32 {
        self.each(spans).map(|span| span.start).find(|&start| start >= token).unwrap_or(u32::MAX)
    }

    /// The start of the span that a length cuts in two, or the length itself.
    pub(crate) fn before_cut(&self, spans: Spans<'_>, len: u32) -> u32 {
        let cut = self.each(spans).find(|span| span.start < len && len.wrapping_sub(span.start) < span.length);
        cut.map_or(len, |span| span.start)
    }

    /// Copies those spans that begin in `[start, start + tokens)` to a new list: its head, or `None` when the store is
    /// too small, with nothing taken.
    #[inline]
    pub(crate) fn copy(&mut self, spans: Spans<'_>, start: u32, tokens: u32) -> Option<u32> {
        if !INDEX || matches!(spans, Spans::Given([]) | Spans::Stored(0)) {
            Some(0)
        } else {
            self.copy_some(spans, start, tokens)
        }
    }

    #[inline(never)] // its stack is for those who have spans
    fn copy_some(&mut self, spans: Spans<'_>, start: u32, tokens: u32) -> Option<u32> {
        let need = self.each(spans).filter(|span| span.begins_in(start, tokens)).count();
        if need > self.free as usize {
            return None;
        }
        let (mut head, mut tail) = (0, 0);
        for nth in 0..need {
            let span = self.each(spans).filter(|span| span.begins_in(start, tokens)).nth(nth)?;
            let entry = self.take();
            self.entries.set(entry, KeyPart { span, next: 0, reserved: 0 });
            if tail == 0 {
                head = entry;
            } else {
                self.entries.with(tail, |part| part.next = entry);
            }
            tail = entry;
        }
        Some(head)
    }

    fn take(&mut self) -> u32 {
        self.free = self.free.saturating_sub(1);
        if self.spare == 0 {
            self.fresh = self.fresh.wrapping_add(1);
            return self.fresh.wrapping_sub(1);
        }
        let entry = self.spare;
        self.spare = self.entries.get(entry).next;
        entry
    }

    /// Gives a list back.
    pub(crate) fn free(&mut self, head: u32) {
        let mut entry = if INDEX { head } else { 0 };
        while entry != 0 {
            let next = self.entries.get(entry).next;
            self.entries.set(entry, KeyPart { next: self.spare, ..KeyPart::default() });
            self.spare = entry;
            self.free = self.free.saturating_add(1);
            entry = next;
        }
    }

    /// Cuts a list to the spans that begin below `len`; gives its new head.
    pub(crate) fn truncate(&mut self, head: u32, len: u32) -> u32 {
        let (mut last, mut entry) = (0, head);
        while entry != 0 && self.entries.get(entry).span.start < len {
            last = entry;
            entry = self.entries.get(entry).next;
        }
        self.free(entry);
        if last == 0 {
            return 0;
        }
        self.entries.with(last, |part| part.next = 0);
        head
    }

    /// Appends copies of spans to a list; gives its head, or `None` when the store is too small.
    pub(crate) fn append(&mut self, head: u32, spans: &[MediaSpan]) -> Option<u32> {
        let more = self.copy(Spans::Given(spans), 0, u32::MAX)?;
        if head == 0 {
            return Some(more);
        }
        let mut last = head;
        while self.entries.get(last).next != 0 {
            last = self.entries.get(last).next;
        }
        self.entries.with(last, |part| part.next = more);
        Some(head)
    }
}
