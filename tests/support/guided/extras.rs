//! Ops on namespaces, and exports.

use super::Guide;
use crate::op::{Op, Owner};
use crate::rng::Rng;
use crate::spec::GroupKind;

impl Guide<'_> {
    /// Opens a namespace, or closes one; what uses it goes first.
    pub(super) fn space(&self, rng: &mut Rng) -> Op {
        let ns = rng.below(self.spec.namespaces.len() as u64) as u16;
        if self.state.opening(ns).is_none() && rng.below(8) != 0 || rng.below(16) == 0 {
            return Op::OpenSpace { ns };
        }
        match self.state.user(ns) {
            Some(Owner::Seq(seq)) if rng.below(4) != 0 => Op::Close { seq, discard: rng.below(4) == 0 },
            Some(Owner::Ticket(ticket)) if rng.below(4) != 0 => Op::Drop { ticket },
            _ => Op::CloseSpace { ns },
        }
    }

    /// Seals full pages of a planned sequence, mostly.
    pub(super) fn seal(&self, rng: &mut Rng) -> Op {
        let planned = self.state.plan();
        let groups = (0..).zip(&self.spec.groups).filter(|(_, group)| group.sealed.is_some());
        let groups: Vec<u16> = groups.map(|(nth, _)| nth).collect();
        let (Some(entry), true) = (planned.get(rng.below(planned.len() as u64) as usize), rng.below(16) != 0) else {
            return Op::Seal { seq: self.live(rng), group: rng.below(3) as u16, upto: rng.below(4) as u32 };
        };
        let group = groups[rng.below(groups.len() as u64) as usize];
        let full = self.state.len(entry.0).unwrap_or(0) / self.spec.groups[usize::from(group)].page_tokens;
        let sealed = self.state.sealed(entry.0, group).end;
        let more = match rng.below(4) {
            0 => 1,
            1 => 1 + rng.below(u64::from(full.saturating_sub(sealed)) + 1) as u32,
            _ => full.saturating_sub(sealed),
        };
        Op::Seal { seq: entry.0, group, upto: sealed + more }
    }

    /// Takes full pages out of a row, mostly behind what is published.
    pub(super) fn remove(&self, rng: &mut Rng) -> Op {
        let seq = self.live(rng);
        let pages = self.state.len(seq).unwrap_or(0) / self.step() as u32;
        let first = rng.below(u64::from(pages) + 1) as u32;
        let near = pages.saturating_sub(first).min(8);
        let mask = (rng.below(256) as u8) & (((1_u32 << near) - 1) as u8);
        Op::Remove { seq, first, mask: if rng.below(8) == 0 { 0x81 } else { mask } }
    }

    /// Brings the caller's first rows up to date, often with the occupants that they have.
    pub(super) fn export(&self, rng: &mut Rng) -> Op {
        let live = self.state.live();
        let first = if rng.below(4) == 0 { rng.below(live.len() as u64 + 1) as usize } else { 0 };
        let mut seqs: Vec<_> = live.into_iter().skip(first).take(1 + rng.below(6) as usize).collect();
        if rng.below(16) == 0 {
            seqs.push(self.live(rng));
        }
        Op::Export { seqs }
    }

    /// A window as a ring, mostly with as many columns as it needs for what the plan adds.
    pub(super) fn ring(&self, rng: &mut Rng) -> Op {
        let seq = self.live(rng);
        let windows = (0..).zip(&self.spec.groups).filter(|(_, group)| group.kind != GroupKind::Full);
        let windows: Vec<u16> = windows.map(|(nth, _)| nth).collect();
        let any = rng.below(self.spec.groups.len() as u64) as u16;
        let group = windows.get(rng.below(windows.len() as u64) as usize).copied().unwrap_or(any);
        let planned = self.state.plan().into_iter().find(|entry| entry.0 == seq).map_or(0, |entry| entry.1);
        let columns = match self.spec.groups[usize::from(group)] {
            _ if rng.below(4) == 0 => rng.below(10) as u32,
            own if own.ring > 0 => own.ring_columns(),
            own => own.columns(planned + rng.below(3) as u32),
        };
        Op::Ring { seq, group, columns }
    }
}
