//! Running transfers: pins that outlive their owner.
//!
//! A transfer shares the pages of its owner up to the end of its range, as a fork would.

use std::collections::BTreeMap;

use super::{Model, Running, Sequence};
use crate::machine::{Outcome, Resource, Status};
use crate::op::{Owner, Seq, Transfer};

impl Model {
    pub(super) fn io_begin(
        &mut self,
        transfer: Transfer,
        owner: Owner,
        (begin, end): (u32, u32),
        load: bool,
    ) -> Result<Outcome, Outcome> {
        let mut shared = match owner {
            Owner::Seq(seq) => self.live(seq)?.clone(),
            Owner::Ticket(ticket) => {
                let pins = self.state.tickets.get(&ticket).ok_or(Outcome::of(Status::Stale))?.clone();
                let len = pins.tokens.len() as u32;
                Sequence {
                    birth: 0,
                    ns: pins.ns,
                    verified: len,
                    published: len,
                    tokens: pins.tokens.into_iter().map(Some).collect(),
                    tables: pins.tables,
                    holds: BTreeMap::new(),
                    closing: None,
                }
            }
        };
        if begin >= end || end > shared.len() {
            return Err(Outcome::of(Status::Argument));
        }
        if let Owner::Seq(seq) = owner {
            // A pin on a plan's sequence would change what the plan must copy.
            self.idle(seq)?;
        }
        if !self.can_cut(&shared, end) {
            return Err(Outcome::of(Status::WindowLost));
        }
        if self.state.transfers.len() >= self.spec.max_transfers() {
            return Err(Outcome::capacity(Resource::Transfers, 1, 0));
        }
        let loading = (load && shared.birth != 0).then_some(shared.birth);
        self.cut(&mut shared, end);
        let anchor = self.spec.anchor().map_or(0, |anchor| self.pool_of(anchor));
        let holds = shared.holds.values().map(|&id| (anchor, id)).collect();
        let mut pinned = self.cut(&mut shared, 0);
        pinned.retain(|page| page.1 != crate::spec::NULL);
        self.state.transfers.insert(transfer, Running { ns: shared.ns, pinned, holds, load, loading });
        Ok(Outcome::OK)
    }

    pub(super) fn io_end(&mut self, transfer: Transfer, ok: bool) -> Result<Outcome, Outcome> {
        let running = self.state.transfers.get(&transfer).ok_or(Outcome::of(Status::Stale))?;
        if running.load && !ok {
            return Err(Outcome::of(Status::Unsupported));
        }
        let running = self.state.transfers.remove(&transfer).expect("checked");
        self.settle(&running.pinned);
        if let Some(birth) = running.loading {
            let mut owners = self.state.sequences.iter().filter(|(_, sequence)| sequence.birth == birth);
            let owner: Option<Seq> = owners.next().map(|(seq, _)| *seq);
            if let Some(seq) = owner {
                self.publish_or_queue(seq);
            }
        }
        Ok(Outcome::OK)
    }
}
