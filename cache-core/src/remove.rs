//! Pages out of the middle of a row: what token eviction leaves without a live token goes back, and no byte moves.

use crate::cache::Cache;
use crate::error::Error;
use crate::ids::SequenceId;
use crate::pages::{Holder, NULL};

impl Cache<'_> {
    /// Takes full pages out of a sequence's row; `entries` are their columns, ascending. Those behind move up, so that the
    /// sequence has P tokens less for each, and its length counts slots rather than positions from then on. It is opaque from
    /// the first of them on: nothing there is published. For caches of one full group, in which a sequence is the row of one
    /// layer and head. O(pages of the row).
    ///
    /// # Errors
    /// `Unsupported` where there are other groups, a sealed pool or media spans, or where the first of the pages is published;
    /// `Argument` for columns that do not ascend, or pages not full of verified tokens; `Busy` in an open plan or while a load
    /// into the sequence runs; `Stale`. Nothing changes then.
    pub fn remove_pages(&mut self, id: SequenceId, entries: &[u32]) -> Result<(), Error> {
        let holder = self.sequence(id)?;
        let (index, group) = (self.limits.anchor, self.groups.get(self.limits.anchor));
        let sequence = *self.holders.get(holder);
        if sequence.plan != 0 {
            return Err(Error::Busy);
        }
        let is_alone = self.limits.groups == 1 && !self.limits.is_hidden() && group.is_full() && group.sealed_pool == 0;
        if !is_alone || sequence.parts != 0 {
            return Err(Error::Unsupported);
        }
        if sequence.loads > 0 {
            return Err(Error::Busy);
        }
        let Some((&first, &last)) = entries.first().zip(entries.last()) else { return Ok(()) };
        if !entries.is_sorted_by(|a, b| a < b) || last >= sequence.verified >> group.shift {
            return Err(Error::Argument);
        }
        if first < sequence.depth {
            return Err(Error::Unsupported);
        }
        for &entry in entries.iter().rev() {
            self.pages.unhold(self.tables.get(holder, index, entry), Holder::Live);
        }
        let end = group.pages(sequence.len);
        let (mut rest, mut to) = (entries, first);
        for from in first..end {
            if let Some(after) = rest.strip_prefix(&[from]) {
                rest = after;
                continue;
            }
            let page = self.tables.get(holder, index, from);
            self.tables.set(holder, index, to, page);
            to = to.saturating_add(1);
        }
        for entry in (to..end).rev() {
            self.tables.set(holder, index, entry, NULL); // its page has moved up
            self.tables.drop_entry(holder, index, entry);
        }
        let gone = end.wrapping_sub(to) << group.shift;
        self.holders.with(holder, |sequence| {
            sequence.len = sequence.len.saturating_sub(gone);
            sequence.verified = sequence.verified.saturating_sub(gone);
            sequence.known = sequence.known.min(first << group.shift);
            (sequence.writable, sequence.last_page) = (0, NULL);
        });
        self.touch_tables(holder, first << group.shift);
        self.unqueue_if_done(holder);
        Ok(())
    }
}
