//! Lock step: every op on the model, on every other machine and on the device, everything compared.
//!
//! The model is applied first. When it refuses an op, the digests of the others must not change; when
//! a plan is cancelled, they must be those from before it began.

mod compare;
mod expected;
mod resolve;

use crate::machine::{Machine, Oracle, Outcome, Status, resolve_time};
use crate::model::Model;
use crate::op::{Op, Time};
use crate::spec::Spec;
use crate::text::print_op;
use compare::Keys;
use expected::Expected;
pub use resolve::resolve;

/// Digests of all machines before a plan began, while nothing but `plan_add` happened since.
struct Begun {
    digests: Vec<u64>,
}

/// The model and the machines that must agree with it.
pub struct Harness {
    spec: Spec,
    model: Model,
    others: Vec<Box<dyn Machine>>,
    expected: Expected,
    keys: Vec<Keys>,
    begun: Option<Begun>,
    /// Compare pages, digests and device memory after every n-th op.
    pub thorough_every: u32,
    steps: u32,
}

impl Harness {
    /// A harness for one configuration.
    ///
    /// # Errors
    /// Says what the model does not describe.
    pub fn new(spec: &Spec, others: Vec<Box<dyn Machine>>) -> Result<Self, String> {
        let keys = others.iter().map(|_| Keys::default()).collect();
        Ok(Self {
            spec: spec.clone(),
            model: Model::new(spec)?,
            others,
            expected: Expected::new(spec),
            keys,
            begun: None,
            thorough_every: 1,
            steps: 0,
        })
    }

    /// The configuration.
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What the guide of random programs looks at.
    pub fn oracle(&self) -> &dyn Oracle {
        &self.model
    }

    /// The machine that a case's expectations are read from: the first other one, else the model.
    pub fn lead(&self) -> &dyn Machine {
        self.others.first().map_or(&self.model as &dyn Machine, |machine| machine.as_ref())
    }

    /// Digest of the leading machine.
    pub fn digest(&self) -> u64 {
        self.lead().digest()
    }

    /// Applies one op everywhere.
    ///
    /// # Errors
    /// Describes the first difference.
    pub fn apply(&mut self, op: &Op) -> Result<Outcome, String> {
        self.steps = self.steps.wrapping_add(1);
        let Some(op) = resolve(op, &self.model) else {
            return Ok(Outcome::of(Status::Argument));
        };
        self.remember_begin(&op);
        let before = expected::Before::of(&self.model);
        let outcome = self.model.apply(&op);
        if outcome.status == Status::Unsupported {
            return Ok(outcome);
        }
        let refused = outcome.status != Status::Ok;
        for (machine, keys) in self.others.iter_mut().zip(&mut self.keys) {
            let digest = refused.then(|| machine.digest());
            let found = machine.apply(&op);
            let fault = |message: String| format!("{}: {}: {message}", machine.name(), print_op(&op));
            compare::outcomes(&found, &outcome, keys).map_err(fault)?;
            if digest.is_some_and(|digest| digest != machine.digest()) {
                return Err(format!("{}: {} was refused but changed the digest", machine.name(), print_op(&op)));
            }
        }
        self.check_cancel(&op, refused)?;
        self.expected.after(&op, &before, &outcome, &self.model)?;
        let thorough = self.thorough_every != 0 && self.steps.is_multiple_of(self.thorough_every);
        self.compare_state(thorough || matches!(op, Op::Check))
            .map_err(|fault| format!("after {}: {fault}", print_op(&op)))?;
        Ok(outcome)
    }

    fn remember_begin(&mut self, op: &Op) {
        match op {
            Op::PlanBegin { tick } if self.is_fresh_begin(*tick) => {
                self.begun = Some(Begun { digests: self.others.iter().map(|m| m.digest()).collect() });
            }
            Op::PlanAdd { .. } | Op::PlanCancel | Op::Lookup { .. } | Op::Drain | Op::Check => {}
            _ => self.begun = None,
        }
    }

    fn is_fresh_begin(&self, tick: Time) -> bool {
        resolve_time(tick, 0) == self.model.tick() && self.model.plan_is_finished().is_none()
    }

    fn check_cancel(&mut self, op: &Op, refused: bool) -> Result<(), String> {
        if !matches!(op, Op::PlanCancel) || refused {
            return Ok(());
        }
        let Some(begun) = self.begun.take() else {
            return Ok(());
        };
        for (machine, digest) in self.others.iter().zip(begun.digests) {
            if machine.digest() != digest {
                return Err(format!("{}: a cancelled plan changed the digest", machine.name()));
            }
        }
        Ok(())
    }

    fn compare_state(&mut self, thorough: bool) -> Result<(), String> {
        for machine in &self.others {
            compare::counters(machine.as_ref(), &self.model, &self.spec)?;
        }
        if !thorough {
            return Ok(());
        }
        self.model.check().map_err(|fault| format!("model: {fault}"))?;
        let mut digests: Vec<(u8, u64, &'static str)> = Vec::new();
        for machine in &mut self.others {
            machine.check().map_err(|fault| format!("{}: check: {fault}", machine.name()))?;
            compare::views(machine.as_ref(), &self.model, &self.spec)?;
            let (kind, digest) = (machine.digest_kind(), machine.digest());
            if let Some(other) = digests.iter().find(|other| other.0 == kind && other.1 != digest) {
                return Err(format!("digests of {} and {} differ", other.2, machine.name()));
            }
            digests.push((kind, digest, machine.name()));
        }
        let lead = self.others.first().map_or(&self.model as &dyn Machine, |machine| machine.as_ref());
        self.expected.read_back(lead, &self.model)
    }

    /// The last comparison: everything, and the events since the last drain.
    ///
    /// # Errors
    /// Describes the first difference.
    pub fn finish(&mut self) -> Result<(), String> {
        self.apply(&Op::Drain)?;
        self.apply(&Op::Check)?;
        Ok(())
    }
}
