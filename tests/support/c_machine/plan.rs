//! Plans through the C ABI.

use core::ptr::{null, null_mut};

use kvfolio_ffi as ffi;

use super::config::{blank, size};
use super::{CMachine, Called, absolute, done};
use crate::machine::{Copy, Outcome, PlanView, Status, Value};
use crate::op::{Accept, Op, Seq};

impl CMachine {
    pub(super) fn plan(&mut self, op: &Op) -> Called {
        let cache = self.cache;
        match op {
            Op::PlanBegin { tick } => done(call!(kvf_plan_begin(cache, absolute(*tick)))),
            Op::PlanAdd { seq, count, tokens } => done(self.add(*seq, *count, tokens.as_deref())),
            Op::Seal { seq, group, upto } => {
                let (seq, group) = (self.seq(*seq), u32::from(*group));
                done(call!(kvf_plan_seal(cache, seq, group, *upto, &mut self.shortage)))
            }
            Op::PlanFinish => self.finish(),
            Op::PlanCancel => done(call!(kvf_plan_cancel(cache))),
            // The ABI reads `accepted` ids; a list of another length cannot be said in it.
            Op::PlanCommit { accepts } if accepts.iter().any(is_odd) && self.plan_is_finished() => {
                Err(ffi::KVF_ERR_ARGUMENT)
            }
            Op::PlanCommit { accepts } => {
                let accepts: Vec<ffi::kvf_accept> = accepts
                    .iter()
                    .map(|accept| ffi::kvf_accept {
                        accepted: accept.accepted.unwrap_or(0),
                        verified: accept.verified.unwrap_or(0),
                        tokens: accept.tokens.as_deref().map_or(null(), <[u32]>::as_ptr),
                    })
                    .collect();
                done(call!(kvf_plan_commit(cache, accepts.as_ptr(), accepts.len())))
            }
            Op::PlanAbort => done(call!(kvf_plan_abort(cache))),
            Op::Reserve { seq, count, tokens } => {
                call!(kvf_plan_begin(cache, self.tick))?;
                if let Err(status) = self.add(*seq, *count, tokens.as_deref()) {
                    call!(kvf_plan_cancel(cache))?;
                    return Err(status);
                }
                self.finish()
            }
            Op::Append { seq, tokens } => {
                let seq = self.seq(*seq);
                let tokens: &[u32] = tokens;
                done(call!(kvf_seq_append(cache, seq, tokens.as_ptr(), tokens.len(), null_mut(), &mut self.shortage)))
            }
            _ => Ok(Outcome::of(Status::Unsupported)),
        }
    }

    fn add(&mut self, seq: Seq, count: u32, tokens: Option<&[u32]>) -> Result<(), ffi::kvf_status> {
        // The ABI reads `count` tokens; a list of another length cannot be said in it.
        if tokens.is_some_and(|tokens| tokens.len() != count as usize) {
            return Err(ffi::KVF_ERR_ARGUMENT);
        }
        let tokens = tokens.map_or(null(), <[u32]>::as_ptr);
        call!(kvf_plan_add(self.cache, self.seq(seq), count, tokens, &mut self.shortage))
    }

    fn finish(&mut self) -> Called {
        let mut report = ffi::kvf_plan_report { struct_size: size::<ffi::kvf_plan_report>(), ..blank() };
        call!(kvf_plan_finish(self.cache, &mut report))?;
        let (mut copies, mut n) = (vec![blank(); report.copies as usize], 0);
        call!(kvf_plan_copies(self.cache, copies.as_mut_ptr(), copies.len(), &mut n))?;
        assert_eq!(n, copies.len(), "copies");
        let mut view = PlanView::default();
        view.copies.extend(copies.iter().map(|copy| Copy {
            group: copy.group as u16,
            src: copy.source,
            dst: copy.target,
            tokens: copy.tokens,
            seals: copy.seals == 1,
        }));
        let mut scrubs: Vec<ffi::kvf_page_ref> = vec![blank(); report.scrubs as usize];
        call!(kvf_plan_scrubs(self.cache, scrubs.as_mut_ptr(), scrubs.len(), &mut n))?;
        view.scrubs.extend(scrubs.iter().map(|page| (page.pool as u16, page.page)));
        for group in 0..self.spec.groups.len() as u32 {
            let count = report.tokens as usize;
            let (mut slots, mut positions) = (vec![0; count], vec![0; count]);
            call!(kvf_table_slots(self.cache, group, slots.as_mut_ptr(), positions.as_mut_ptr(), count, &mut n))?;
            view.slots.push(slots);
            view.positions = positions;
        }
        Ok(Outcome::ok(Value::Plan(view)))
    }

    fn plan_is_finished(&self) -> bool {
        let (mut slot, mut position, mut n) = (0, 0, 0);
        let asked = call!(kvf_table_slots(self.cache, 0, &mut slot, &mut position, 0, &mut n));
        asked != Err(ffi::KVF_ERR_PLAN_STATE)
    }
}

fn is_odd(accept: &Accept) -> bool {
    accept.tokens.as_ref().is_some_and(|tokens| tokens.len() as u32 != accept.accepted.unwrap_or(0))
}
