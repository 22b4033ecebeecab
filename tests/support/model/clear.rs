//! What leaves the index with a namespace.

use super::Model;
use super::index::Key;
use super::pages::Page;
use crate::op::{Seq, Ticket};
use crate::spec::IndexKind;

impl Model {
    /// Unindexes the namespaces that pass a test.
    pub(super) fn unindex_spaces(&mut self, hit: &dyn Fn(u16) -> bool) {
        let mut loose: Vec<Page> = Vec::new();
        for lease in &mut self.state.leases {
            lease.key = lease.key.take().filter(|key| !hit(key.ns));
        }
        let keys: Vec<Key> = self.state.index.nodes.keys().filter(|key| hit(key.ns)).cloned().collect();
        for key in keys {
            let places: Vec<_> = self.state.index.nodes[&key].iter().map(|(p, s)| (*p, s.id)).collect();
            for (place, id) in places {
                loose.push((self.home_pool(&key, place), id));
                self.unindex_one(&key, place, id, false);
            }
            self.state.index.nodes.remove(&key);
        }
        // Without an index there is nothing to clear: tickets hold no pages and stay.
        let indexes = self.spec.index != IndexKind::None;
        let of_index = self.state.tickets.iter().filter(|(_, pins)| indexes && hit(pins.ns));
        let tickets: Vec<Ticket> = of_index.map(|(ticket, _)| *ticket).collect();
        for ticket in tickets {
            let pins = self.state.tickets.remove(&ticket).expect("listed");
            loose.extend(self.pages_of(&pins.tables));
        }
        if let Some(anchor) = self.spec.anchor() {
            let labels: Vec<Seq> = self.state.sequences.keys().copied().collect();
            for seq in labels {
                let sequence = self.state.sequences.get_mut(&seq).expect("listed");
                if hit(sequence.ns) {
                    // What was computed before must not come back: the sequence is opaque from here.
                    sequence.published = 0;
                    let holds = core::mem::take(&mut sequence.holds);
                    loose.extend(holds.into_iter().map(|(index, id)| (self.indexed_pool(anchor, index), id)));
                    loose.extend(self.forget(seq, 0));
                }
            }
        }
        // A hold keeps a path used, not data: without an index it means nothing.
        for running in self.state.transfers.values_mut().filter(|running| hit(running.ns)) {
            loose.extend(running.drop_path(0, self.hidden.map(|group| usize::from(self.spec.groups[group].pool))));
            running.tip = None;
        }
        self.settle(&loose);
        self.announce_cleared(hit);
    }
}
