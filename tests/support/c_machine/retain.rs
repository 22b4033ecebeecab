//! Leases, classes, moves and quotas through the C ABI.

use kvfolio_ffi as ffi;

use super::{CMachine, Called, absolute, done};
use crate::machine::{Outcome, Status, Value};
use crate::op::Op;

impl CMachine {
    pub(super) fn retain(&mut self, op: &Op) -> Called {
        let (cache, mut id, mut len) = (self.cache, 0, 0);
        match op {
            Op::Lease { lease, seq, upto, until } => {
                let seq = self.seq(*seq);
                call!(kvf_retain_lease(cache, seq, *upto, absolute(*until), &mut id, &mut self.shortage))?;
                self.leases.insert(*lease, id);
                Ok(Outcome::OK)
            }
            Op::EndLease { lease } => {
                let lease = self.leases.get(lease).copied().unwrap_or(0);
                done(call!(kvf_retain_end(cache, lease)))
            }
            Op::SetClass { ns, tokens, class } => {
                call!(kvf_retain_set_class(cache, &self.prompt(*ns, tokens, &[]), u32::from(*class), &mut len))?;
                Ok(Outcome::ok(Value::Hit(len)))
            }
            Op::Move { ns, tokens, hot } => {
                let to = if *hot { ffi::KVF_MOVE_HOT } else { ffi::KVF_MOVE_COLD };
                call!(kvf_retain_move(cache, &self.prompt(*ns, tokens, &[]), to, &mut len))?;
                Ok(Outcome::ok(Value::Hit(len)))
            }
            Op::SetQuota { ns, pool, pages } => {
                let (ns, pool) = (self.ns(*ns), u32::from(*pool));
                done(call!(kvf_namespace_set_quota(cache, ns, pool, *pages, &mut self.shortage)))
            }
            _ => Ok(Outcome::of(Status::Unsupported)),
        }
    }
}
