//! Ending a plan: cancel, abort, commit and what commit brings about.

use super::pages::Page;
use super::{Entry, Model, Plan};
use crate::machine::{Outcome, Status};
use crate::op::{Accept, Seq};
use crate::spec::NULL;

impl Model {
    pub(super) fn plan_cancel(&mut self) -> Result<Outcome, Outcome> {
        self.building()?;
        let plan = self.state.plan.take().expect("building");
        self.end_closing_of(&plan);
        Ok(Outcome::OK)
    }

    pub(super) fn plan_abort(&mut self) -> Result<Outcome, Outcome> {
        self.finished()?;
        let plan = self.state.plan.take().expect("finished");
        let mut loose: Vec<Page> = Vec::new();
        for entry in &plan.entries {
            for group in 0..self.spec.groups.len() {
                let pool = self.pool_of(group);
                loose.extend(entry.fresh[group].iter().map(|&id| (pool, id)));
                loose.extend(entry.copies[group].map(|(_, dst)| (pool, dst)));
                loose.extend(entry.rings[group].iter().flatten().map(|&id| (pool, id)));
                loose.extend(self.sealed_pages(entry, group));
            }
            loose.extend(&entry.kept);
        }
        for &page in &loose {
            *self.state.owners.slot(page) = Some(None);
        }
        self.settle(&loose);
        self.end_closing_of(&plan);
        Ok(Outcome::OK)
    }

    /// Carries out the closes that waited for the plan, in plan order.
    fn end_closing_of(&mut self, plan: &Plan) {
        for entry in &plan.entries {
            if let Some(discard) = self.state.sequences.get(&entry.seq).and_then(|s| s.closing) {
                self.end(entry.seq, discard);
            }
        }
    }

    pub(super) fn plan_commit(&mut self, accepts: &[Accept]) -> Result<Outcome, Outcome> {
        let plan = self.finished()?.clone();
        let legal = |(accept, entry): (&Accept, &Entry)| {
            let (accepted, verified) = (accept.accepted.unwrap_or(0), accept.verified.unwrap_or(0));
            let ids = accept.tokens.as_ref().is_none_or(|tokens| tokens.len() as u32 == accepted);
            accepted <= entry.count && verified <= accepted && ids
        };
        if accepts.len() != plan.entries.len() || !accepts.iter().zip(&plan.entries).all(legal) {
            return Err(Outcome::of(Status::Argument));
        }
        self.state.plan = None;
        for (accept, entry) in accepts.iter().zip(&plan.entries) {
            self.accept(entry, accept);
        }
        for entry in &plan.entries {
            self.publish_or_queue(entry.seq);
        }
        for entry in &plan.entries {
            self.drop_left_windows(entry.seq);
        }
        self.end_closing_of(&plan);
        Ok(Outcome::OK)
    }

    fn accept(&mut self, entry: &Entry, accept: &Accept) {
        let (accepted, verified) = (accept.accepted.unwrap_or(0), accept.verified.unwrap_or(0));
        let mut sequence = self.state.sequences[&entry.seq].clone();
        let len = sequence.len();
        let sources = self.sealed_sources(&sequence, entry);
        sequence.tables = self.planned_tables(&sequence, entry);
        sequence.sealed = self.planned_sealed(&sequence, entry);
        let tokens: Vec<Option<u32>> = match accept.tokens.as_ref().or(entry.tokens.as_ref()) {
            Some(tokens) if !entry.no_node => tokens.iter().copied().map(Some).collect(),
            _ => vec![None; entry.count as usize],
        };
        sequence.tokens.extend(&tokens[..accepted as usize]);
        if entry.no_node && accepted > 0 {
            self.leave_cut_node(&mut sequence);
        }
        if sequence.verified == len {
            sequence.verified += verified;
        }
        let mut loose: Vec<Page> = sources;
        for group in self.release_groups() {
            let pool = self.pool_of(group);
            let keep = self.row_end(&sequence, group, sequence.len()) as usize;
            let table = &mut sequence.tables[group];
            // A copy stays even when nothing was accepted: it holds the tokens below len.
            let surplus = table.drain(keep..).rev().map(|id| (pool, id));
            if let Some(ring) = &entry.rings[group] {
                loose.extend(sequence.rings[group].drain(..).map(|id| (pool, id)));
                sequence.rings[group].clone_from(ring);
            }
            loose.extend(surplus.filter(|_| !self.is_ring(group)));
            loose.extend(entry.copies[group].map(|(src, _)| (pool, src)));
        }
        loose.extend(self.end_rings(&mut sequence));
        loose.extend(&entry.kept);
        self.state.sequences.insert(entry.seq, sequence);
        self.settle(&loose);
    }

    /// Drops the pages that no query at the new length reads.
    fn drop_left_windows(&mut self, seq: Seq) {
        let mut dropped: Vec<(Page, bool)> = Vec::new();
        for group in 0..self.spec.groups.len() {
            let (spec, pool) = (self.spec.groups[group], self.pool_of(group));
            let sequence = self.state.sequences.get_mut(&seq).expect("live");
            let len = sequence.len();
            for (index, id) in (0..).zip(&mut sequence.tables[group]) {
                if *id != NULL && !spec.needs_page(index, len) {
                    let page = (pool, core::mem::replace(id, NULL));
                    dropped.extend((spec.ring == 0).then_some((page, spec.exact)));
                }
            }
        }
        if dropped.is_empty() {
            return;
        }
        let refs = self.references();
        for &(page, exact) in &dropped {
            if exact && !refs.contains(page) {
                self.unindex(page);
            }
        }
        let dropped: Vec<Page> = dropped.into_iter().map(|(page, _)| page).collect();
        self.settle(&dropped);
    }
}
