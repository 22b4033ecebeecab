//! One op on the model.

use super::Model;
use crate::machine::{Outcome, Status, Value, resolve_time};
use crate::op::{Accept, Op, Pos, Seq, masked_columns};

impl Model {
    pub(super) fn step(&mut self, op: &Op) -> Result<Outcome, Outcome> {
        let now = self.state.tick;
        match op {
            Op::Open { seq, ns, class, spans } => self.open(*seq, *ns, *class, spans),
            Op::OpenTicket { seq, ticket, class } => self.open_ticket(*seq, *ticket, *class),
            Op::AddSpans { seq, spans } => self.add_spans(*seq, spans),
            Op::Fork { source, children, at } => self.fork(*source, children, self.position(*source, *at)),
            Op::Truncate { seq, len } => self.truncate(*seq, self.position(*seq, *len)),
            Op::Remove { seq, first, mask } => self.remove_pages(*seq, &masked_columns(*first, *mask)),
            Op::Close { seq, discard } => self.close(*seq, *discard),
            Op::PlanBegin { tick } => self.plan_begin(resolve_time(*tick, now)),
            Op::PlanAdd { seq, count, tokens } => self.plan_add(*seq, *count, tokens.as_deref()),
            Op::PlanFinish => self.plan_finish(),
            Op::PlanCancel => self.plan_cancel(),
            Op::PlanCommit { accepts } => self.plan_commit(accepts),
            Op::PlanAbort => self.plan_abort(),
            Op::Reserve { seq, count, tokens } => self.reserve(*seq, *count, tokens.as_deref()),
            Op::Append { seq, tokens } => self.append(*seq, tokens),
            Op::Verify { seq, upto } => self.verify(*seq, self.position(*seq, *upto)),
            Op::Publish { budget } => Ok(Outcome::ok(Value::Pages(self.publish(*budget)))),
            Op::Lookup { ns, tokens, limit, spans } => self.lookup(*ns, tokens, *limit, spans),
            Op::Match { ticket, ns, tokens, limit, spans, until } => {
                let until = until.map(|time| resolve_time(time, now));
                self.match_prefix(*ticket, (*ns, tokens, *limit), spans, until)
            }
            Op::Drop { ticket } => self.drop_ticket(*ticket),
            Op::Evict { pool, count } => self.evict_op(*pool, *count),
            Op::Clear { ns } => self.clear(*ns),
            Op::IoBegin { transfer, owner, begin, end, load } => {
                self.io_begin(*transfer, *owner, (*begin, *end), *load)
            }
            Op::IoEnd { transfer, ok } => self.io_end(*transfer, *ok),
            Op::Advance { tick } => self.advance(resolve_time(*tick, now)),
            Op::Lease { lease, seq, upto, until } => self.lease(*lease, *seq, *upto, resolve_time(*until, now)),
            Op::EndLease { lease } => self.end_lease(*lease),
            Op::SetClass { ns, tokens, class } => self.set_class(*ns, tokens, *class),
            Op::Move { ns, tokens, hot } => self.reorder(*ns, tokens, *hot),
            Op::SetQuota { ns, pool, pages } => self.set_quota(*ns, *pool, *pages),
            Op::CloseSpace { ns } => self.close_space(*ns),
            Op::OpenSpace { ns } => self.open_space(*ns),
            Op::Export { seqs } => self.export(seqs),
            Op::Ring { seq, group, columns } => self.ring_view(*seq, *group, *columns),
            Op::Seal { seq, group, upto } => self.seal(*seq, *group, *upto),
            Op::Drain => {
                let lost = core::mem::take(&mut self.lost);
                Ok(Outcome::ok(Value::Events(core::mem::take(&mut self.events), lost)))
            }
            Op::Check => Ok(Outcome::OK),
        }
    }

    fn position(&self, seq: Seq, pos: Pos) -> u32 {
        match pos {
            Pos::At(at) => at,
            Pos::Back(back) => self.state.sequences.get(&seq).map_or(0, |s| s.len().saturating_sub(back)),
        }
    }

    fn evict_op(&mut self, pool: u16, count: u32) -> Result<Outcome, Outcome> {
        if usize::from(pool) >= self.visible_pools() {
            return Err(Outcome::of(Status::Argument));
        }
        Ok(Outcome::ok(Value::Pages(self.evict(usize::from(pool), count))))
    }

    fn reserve(&mut self, seq: Seq, count: u32, tokens: Option<&[u32]>) -> Result<Outcome, Outcome> {
        self.plan_begin(self.state.tick)?;
        match self.plan_add(seq, count, tokens) {
            Ok(_) => self.plan_finish(),
            Err(refusal) => {
                self.plan_cancel()?;
                Err(refusal)
            }
        }
    }

    fn append(&mut self, seq: Seq, tokens: &[u32]) -> Result<Outcome, Outcome> {
        let plan = self.reserve(seq, tokens.len() as u32, Some(tokens))?;
        let all = Accept { accepted: Some(tokens.len() as u32), verified: Some(tokens.len() as u32), tokens: None };
        self.plan_commit(&[all])?;
        Ok(plan)
    }
}
