//! Leases, classes, moves and quotas through the Rust API.

use kvfolio::{PoolId, Prompt};

use super::{Answer, RustMachine, absolute, done};
use crate::machine::{Outcome, Status, Value};
use crate::op::Op;

impl RustMachine {
    pub(super) fn retain(&mut self, op: &Op) -> Answer {
        match op {
            Op::Lease { lease, seq, upto, until } => {
                let seq = self.seq(*seq);
                let id = self.cache().lease(seq, *upto, absolute(*until))?;
                self.leases.insert(*lease, id);
                Ok(Outcome::OK)
            }
            Op::EndLease { lease } => {
                let id = self.leases.get(lease).copied().unwrap_or_default();
                done(self.cache().end_lease(id))
            }
            Op::SetClass { ns, tokens, class } => {
                let prompt = Prompt { namespace: self.ns(*ns), tokens, spans: &[] };
                Ok(Outcome::ok(Value::Hit(self.cache().set_class(&prompt, *class)?)))
            }
            Op::Move { ns, tokens, hot } => {
                let prompt = Prompt { namespace: self.ns(*ns), tokens, spans: &[] };
                let to = if *hot { kvfolio::Move::Hot } else { kvfolio::Move::Cold };
                Ok(Outcome::ok(Value::Hit(self.cache().reorder(&prompt, to)?)))
            }
            Op::SetQuota { ns, pool, pages } => {
                let namespace = self.ns(*ns);
                done(self.cache().set_quota(namespace, PoolId::new(*pool), *pages))
            }
            _ => Ok(Outcome::of(Status::Unsupported)),
        }
    }
}
