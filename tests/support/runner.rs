//! Lock step: every op on the model, on every other machine and on the device, everything compared.
//!
//! The model is applied first. After every op answers, counters, the sequences that the op is about, and digests are
//! compared. When the model refuses an op, the digests of the others must not change; when a plan is cancelled, they must
//! be those from before it began. A thorough comparison adds all sequences and pages, device memory, and the machines' own
//! checks.

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

/// The model and the machines that must agree with it.
pub struct Harness {
    spec: Spec,
    model: Model,
    others: Vec<Box<dyn Machine>>,
    expected: Expected,
    keys: Vec<Keys>,
    /// Digests of the others after the last op.
    digests: Vec<u64>,
    /// Their digests before the open plan began, while nothing but `plan_add` happened since.
    begun: Option<Vec<u64>>,
    /// Compare thoroughly after every n-th op; 0 = only for `CHECK`.
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
        let digests = others.iter().map(|machine| machine.digest()).collect();
        Ok(Self {
            spec: spec.clone(),
            model: Model::new(spec)?,
            others,
            expected: Expected::new(spec),
            keys,
            digests,
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
        let before = expected::Before::of(&self.model, &op);
        let outcome = self.model.apply(&op);
        if outcome.status == Status::Unsupported {
            return Ok(outcome);
        }
        let refused = outcome.status != Status::Ok;
        for (machine, keys) in self.others.iter_mut().zip(&mut self.keys) {
            let found = machine.apply(&op);
            let fault = |message: String| format!("{}: {}: {message}", machine.name(), print_op(&op));
            compare::outcomes(&found, &outcome, keys).map_err(fault)?;
        }
        self.compare_digests(&op, refused)?;
        self.expected.after(&op, &before, &outcome, &self.model)?;
        let thorough = self.thorough_every != 0 && self.steps.is_multiple_of(self.thorough_every);
        let compared = if thorough || matches!(op, Op::Check) {
            self.compare_all()
        } else {
            let mut labels = compare::named(&op);
            labels.extend(before.planned());
            labels.retain(|seq| self.model.len(*seq).is_some());
            compare::counters(&self.others, &self.model)
                .and_then(|()| compare::sequences(&self.others, &self.model, &labels))
        };
        compared.map_err(|fault| format!("after {}: {fault}", print_op(&op)))?;
        Ok(outcome)
    }

    fn remember_begin(&mut self, op: &Op) {
        match op {
            Op::PlanBegin { tick } if self.is_fresh_begin(*tick) => {
                self.begun = Some(self.digests.clone());
            }
            Op::PlanAdd { .. }
            | Op::Seal { .. }
            | Op::PlanCancel
            | Op::Lookup { .. }
            | Op::Export { .. }
            | Op::Ring { .. }
            | Op::Drain
            | Op::Check => {}
            _ => self.begun = None,
        }
    }

    fn is_fresh_begin(&self, tick: Time) -> bool {
        resolve_time(tick, 0) == self.model.tick() && self.model.plan_is_finished().is_none()
    }

    fn compare_digests(&mut self, op: &Op, refused: bool) -> Result<(), String> {
        let old = core::mem::take(&mut self.digests);
        self.digests = self.others.iter().map(|machine| machine.digest()).collect();
        let cancelled = if refused || *op != Op::PlanCancel { None } else { self.begun.take() };
        for (nth, machine) in self.others.iter().enumerate() {
            let fault = |what: &str| Err(format!("{}: {} {what}", machine.name(), print_op(op)));
            if refused && self.digests[nth] != old[nth] {
                return fault("was refused but changed the digest");
            }
            if cancelled.as_ref().is_some_and(|begun| self.digests[nth] != begun[nth]) {
                return fault("changed the digest from before the plan");
            }
            let kind = machine.digest_kind();
            let first = self.others.iter().position(|other| other.digest_kind() == kind).unwrap_or(nth);
            if self.digests[first] != self.digests[nth] {
                return Err(format!("digests of {} and {} differ", self.others[first].name(), machine.name()));
            }
        }
        Ok(())
    }

    fn compare_all(&mut self) -> Result<(), String> {
        compare::counters(&self.others, &self.model)?;
        self.model.check().map_err(|fault| format!("model: {fault}"))?;
        for machine in &mut self.others {
            machine.check().map_err(|fault| format!("{}: check: {fault}", machine.name()))?;
        }
        compare::pages(&self.others, &self.model, &self.spec, self.steps)?;
        compare::sequences(&self.others, &self.model, &self.model.live())?;
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
