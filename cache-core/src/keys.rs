//! Snapshot of the exported keys: what a reader of events starts from.

use crate::cache::Cache;
use crate::error::Error;
use crate::events::{Event, EventKind};
use crate::index::INDEX;
use crate::pages::NULL;

impl Cache<'_> {
    /// Lists everything that the index holds as `Stored` records, parents before children, then the number of the last event
    /// made. Folding these and all later events gives the index. `scratch` needs one element per 32 pages of the pool that
    /// carries the index, rounded up, and one more. O(nodes * runs of their paths).
    ///
    /// # Errors
    /// `ShortBuffer` with the scratch elements, or else the records, that are needed; `Unsupported` where no events are
    /// made. Nothing is written then.
    pub fn export_keys(&self, scratch: &mut [u32], out: &mut [Event]) -> Result<(u32, u64), Error> {
        if self.limits.events == 0 {
            return Err(Error::Unsupported);
        }
        let words = (self.index.last_node() >> 5).saturating_add(1);
        if (scratch.len() as u64) < u64::from(words) {
            return Err(Error::ShortBuffer(words));
        }
        if !INDEX {
            return Ok((0, self.events.made()));
        }
        let nodes = (1..=self.index.last_node()).filter(|&page| self.is_node_page(page));
        let need = nodes.fold(0_u32, |sum, node| sum.saturating_add(1).saturating_add(self.hung_count(node)));
        if (out.len() as u64) < u64::from(need) {
            return Err(Error::ShortBuffer(need));
        }
        scratch.fill(0);
        let mut slots = out.iter_mut();
        let mut put = |event: Event| {
            if let Some(slot) = slots.next() {
                *slot = event;
            }
        };
        for page in (1..=self.index.last_node()).filter(|&page| self.is_node_page(page)) {
            // Climb to the first node that is listed already, then list downwards.
            let (mut up, mut node) = (0_u32, page);
            while !self.pages.is_root(node) && node != NULL && !is_marked(scratch, node) {
                up = up.saturating_add(1);
                node = self.pages.parent(node);
            }
            for above in (0..up).rev() {
                let node = self.index.ancestor(&self.pages, page, above);
                mark(scratch, node);
                put(self.index.event(&self.pages, EventKind::Stored, self.anchor_id(), node, node));
                for place in 0..self.index.places {
                    let hung = self.index.hung(node, place);
                    if hung != NULL {
                        let group = self.index.group_of_place(place);
                        put(self.index.event(&self.pages, EventKind::Stored, group, node, hung));
                    }
                }
            }
        }
        Ok((need, self.events.made()))
    }

    fn is_node_page(&self, page: u32) -> bool {
        self.pages.is_indexed(page) && !self.pages.is_hung(page)
    }

    fn hung_count(&self, node: u32) -> u32 {
        let places = (0..self.index.places).filter(|&place| self.index.hung(node, place) != NULL);
        u32::try_from(places.count()).unwrap_or(u32::MAX)
    }
}

fn is_marked(marks: &[u32], page: u32) -> bool {
    marks.get((page >> 5) as usize).is_some_and(|word| word >> (page & 31) & 1 != 0)
}

fn mark(marks: &mut [u32], page: u32) {
    if let Some(word) = marks.get_mut((page >> 5) as usize) {
        *word |= 1 << (page & 31);
    }
}
