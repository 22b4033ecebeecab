//! Holders: sequences, tickets and transfers, each a path into the index and one table row per group.
//!
//! The three are one record, since each keeps the same things alive: a ticket is a sequence that cannot grow, a
//! transfer one whose pages may outlive their owner. Indices are handed out lowest first.
//!
//! Cursors: `published <= verified <= len`. `published` follows from `depth`: it is not stored.

use crate::error::{Error, Resource, Shortage};
use crate::ids::Tick;
use crate::mem::Slots;
use crate::pages::FreeSet;

/// One sequence, ticket or transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[cfg_attr(target_pointer_width = "64", repr(align(64)))] // what a step reads and writes is the first cache line
pub struct Sequence {
    /// `generation` while its handle is good, else 0.
    handle: u32,
    generation: u32,
    pub(crate) is_live: u32,
    /// 1 + how to close it once the plan ends; 0 = not closing.
    pub(crate) closing: u32,
    /// Its entry in the open plan + 1; 0 = none.
    pub(crate) plan: u32,
    /// Committed tokens.
    pub(crate) len: u32,
    /// Tokens known to be final.
    pub(crate) verified: u32,
    /// Tokens whose ids are known; from here on the sequence is opaque.
    pub(crate) known: u32,
    /// Pages from the root to the tip. The tip may be only partly valid: then `depth * P > len`.
    pub(crate) depth: u32,
    /// Tokens below this can be written without a new page or a copy in any group; 0 = look.
    pub(crate) writable: u32,
    /// The anchor page of token `writable - 1`.
    pub(crate) last_page: u32,
    /// Deepest indexed page that it keeps, or its namespace's root.
    pub(crate) tip: u32,
    pub(crate) namespace: u32,
    /// Transfers under way on it that load.
    pub(crate) loads: u32,
    /// First of its media spans.
    pub(crate) parts: u32,
    /// Entries below `depth` that are private pages, their key being published on another page.
    pub(crate) duplicates: u32,
    /// Anchor pages that it took over by match or fork.
    pub(crate) inherited: u32,
    /// Class given to the pages that it publishes.
    pub(crate) class: u32,
    /// While there are any: no token below this is being loaded.
    pub(crate) load_from: u32,
    /// Neighbours in the publish queue.
    pub(crate) queue_prev: u32,
    pub(crate) queue_next: u32,
    /// Table entries of tokens below this are as they were in `previous`.
    pub(crate) stable: u32,
    /// Version of its last table change and of the one before.
    pub(crate) version: u64,
    pub(crate) previous: u64,
    /// Ticket: tick after which it may be dropped by `advance`; transfer: start of the range.
    pub(crate) deadline: Tick,
    /// The caller's own word.
    pub(crate) user: u64,
}

crate::records::zero!(Sequence {
    handle,
    generation,
    is_live,
    namespace,
    len,
    verified,
    known,
    tip,
    depth,
    duplicates,
    inherited,
    class,
    plan,
    closing,
    parts,
    loads,
    load_from,
    writable,
    last_page,
    queue_prev,
    queue_next,
    stable,
    version,
    previous,
    deadline,
    user
});

static NOBODY: Sequence = <Sequence as crate::records::Zero>::ZERO;

/// Which table of handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sequence = 0,
    Ticket = 1,
    Transfer = 2,
}

/// All holders: sequences first, then tickets, then transfers.
pub(crate) struct Holders<'m> {
    slots: Slots<'m, Sequence>,
    words: Slots<'m, u64>,
    tables: [HandleTable; 3],
    /// Sequences with pages to publish, oldest first. Holder + 1; 0 = none.
    pub(crate) queue_head: u32,
    pub(crate) queue_tail: u32,
    /// No ticket's deadline is earlier.
    pub(crate) next_deadline: Tick,
}

#[derive(Clone, Copy, Default)]
struct HandleTable {
    start: u32,
    count: u32,
    live: u32,
    free: FreeSet,
}

impl<'m> Holders<'m> {
    pub(crate) fn new(slots: &'m mut [Sequence], words: &'m mut [u64], counts: [u32; 3]) -> Self {
        let (mut start, mut word) = (0_u32, 0_u32);
        let mut words = Slots::new(words);
        let tables = counts.map(|count| {
            let free = FreeSet::lay_out(word, count);
            for id in 1..=count {
                free.insert(&mut words, id);
            }
            let table = HandleTable { start, count, live: 0, free };
            start = start.saturating_add(count);
            word = word.saturating_add(crate::limits::free_words_of(count));
            table
        });
        Self { slots: Slots::new(slots), words, tables, queue_head: 0, queue_tail: 0, next_deadline: Tick::MAX }
    }

    #[inline]
    fn table(&self, kind: Kind) -> &HandleTable {
        let [sequences, tickets, transfers] = &self.tables;
        match kind {
            Kind::Sequence => sequences,
            Kind::Ticket => tickets,
            Kind::Transfer => transfers,
        }
    }

    fn count_live(&mut self, kind: Kind, by: i32) {
        let [sequences, tickets, transfers] = &mut self.tables;
        let table = match kind {
            Kind::Sequence => sequences,
            Kind::Ticket => tickets,
            Kind::Transfer => transfers,
        };
        table.live = table.live.saturating_add_signed(by);
    }

    /// The holder of a handle, as its generation and index within its table.
    #[inline]
    pub(crate) fn resolve(&self, kind: Kind, (generation, index): (u32, u32)) -> Result<u32, Error> {
        let table = self.table(kind);
        let holder = table.start.wrapping_add(index);
        match self.slots.at(holder) {
            Some(slot) if index < table.count && slot.handle == generation && generation != 0 => Ok(holder),
            _ => Err(Error::Stale),
        }
    }

    /// The sequence of a live handle, and its holder.
    #[inline]
    pub(crate) fn sequence_mut(&mut self, id: crate::SequenceId) -> Option<(u32, &mut Sequence)> {
        let (generation, holder) = id.parts();
        let [sequences, ..] = &self.tables;
        let slot = self.slots.at_mut(holder)?; // sequences come first
        (holder < sequences.count && slot.handle == generation && generation != 0).then_some((holder, slot))
    }

    /// The sequence that a load goes into, if it still is there: also when a plan's end is to close it, and its handle is
    /// stale already.
    pub(crate) fn owner_of_load(&self, owner: u64) -> Option<u32> {
        let (generation, index) = crate::SequenceId::from_bits(owner).parts();
        let [sequences, ..] = &self.tables;
        let slot = self.slots.at(index)?; // sequences come first
        (index < sequences.count && slot.is_live == 1 && slot.generation == generation).then_some(index)
    }

    /// Makes a sequence's handle stale; it will be closed when the plan ends.
    pub(crate) fn close_later(&mut self, holder: u32, closing: u32) {
        self.slots.with(holder, |slot| (slot.handle, slot.closing) = (0, closing));
    }

    /// Times that it was opened, so that old handles are told apart.
    pub(crate) fn generation(&self, holder: u32) -> u32 {
        self.get(holder).generation
    }

    /// Generation and index of a holder's handle.
    pub(crate) fn handle(&self, kind: Kind, holder: u32) -> (u32, u32) {
        (self.get(holder).generation, holder.wrapping_sub(self.table(kind).start))
    }

    /// Opens the lowest free one, at the root of a namespace.
    pub(crate) fn open(&mut self, kind: Kind, namespace: u32, root: u32) -> Result<u32, Error> {
        let table = *self.table(kind);
        let (id, count) = table.free.take_lowest(&mut self.words, 1);
        if count == 0 {
            let resource = match kind {
                Kind::Sequence => Resource::Sequences,
                Kind::Ticket => Resource::Tickets,
                Kind::Transfer => Resource::Transfers,
            };
            return Err(Shortage::of(resource, 1, 0).into());
        }
        let holder = table.start.wrapping_add(id).wrapping_sub(1);
        // Field by field: a whole record is much for a small stack.
        self.slots.with(holder, |slot| {
            let generation = slot.generation.wrapping_add(1).max(1);
            *slot = Sequence::default();
            (slot.handle, slot.generation, slot.is_live) = (generation, generation, 1);
            (slot.namespace, slot.tip) = (namespace, root);
        });
        self.count_live(kind, 1);
        Ok(holder)
    }

    /// Ends a holder whose rows and path have been released.
    pub(crate) fn close(&mut self, kind: Kind, holder: u32) {
        self.slots.with(holder, |slot| {
            let generation = slot.generation;
            *slot = Sequence::default();
            slot.generation = generation;
        });
        let table = *self.table(kind);
        table.free.insert(&mut self.words, holder.wrapping_sub(table.start).wrapping_add(1));
        self.count_live(kind, -1);
    }

    /// A holder; one without any state where there is none.
    #[inline]
    pub(crate) fn get(&self, holder: u32) -> &Sequence {
        self.slots.at(holder).unwrap_or(&NOBODY)
    }

    #[inline]
    pub(crate) fn at(&self, holder: u32) -> Option<&Sequence> {
        self.slots.at(holder)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, holder: u32) -> Option<&mut Sequence> {
        self.slots.at_mut(holder)
    }

    #[inline]
    pub(crate) fn with<R: Default>(&mut self, holder: u32, change: impl FnOnce(&mut Sequence) -> R) -> R {
        self.slots.with(holder, change)
    }

    pub(crate) fn live(&self, kind: Kind) -> u32 {
        self.table(kind).live
    }

    pub(crate) fn free(&self, kind: Kind) -> u32 {
        let table = self.table(kind);
        table.count.saturating_sub(table.live)
    }

    /// First holder of a kind and one past the last.
    pub(crate) fn range(&self, kind: Kind) -> core::ops::Range<u32> {
        let table = self.table(kind);
        table.start..table.start.saturating_add(table.count)
    }

    /// All live holders of a kind, by index.
    pub(crate) fn each(&self, kind: Kind) -> impl Iterator<Item = u32> + '_ {
        self.range(kind).filter(|&holder| self.get(holder).is_live == 1)
    }

    /// Puts a sequence at the end of the publish queue unless it is in it.
    pub(crate) fn enqueue(&mut self, holder: u32) {
        let id = holder.wrapping_add(1);
        if self.get(holder).queue_prev != 0 || self.queue_head == id {
            return;
        }
        let tail = self.queue_tail;
        self.slots.with(holder, |slot| (slot.queue_prev, slot.queue_next) = (tail, 0));
        match tail {
            0 => self.queue_head = id,
            _ => self.slots.with(tail.wrapping_sub(1), |slot| slot.queue_next = id),
        }
        self.queue_tail = id;
    }

    /// Takes a sequence out of the publish queue if it is in it.
    pub(crate) fn dequeue(&mut self, holder: u32) {
        let &Sequence { queue_prev, queue_next, .. } = self.get(holder);
        let id = holder.wrapping_add(1);
        if queue_prev == 0 && self.queue_head != id {
            return;
        }
        match queue_prev {
            0 => self.queue_head = queue_next,
            prev => self.slots.with(prev.wrapping_sub(1), |prev| prev.queue_next = queue_next),
        }
        match queue_next {
            0 => self.queue_tail = queue_prev,
            next => self.slots.with(next.wrapping_sub(1), |next| next.queue_prev = queue_prev),
        }
        self.slots.with(holder, |slot| (slot.queue_prev, slot.queue_next) = (0, 0));
    }
}
