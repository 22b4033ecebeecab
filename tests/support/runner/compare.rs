//! One machine against the model.

use std::collections::BTreeMap;

use crate::machine::{Event, Machine, Outcome, Value};
use crate::model::Model;
use crate::op::{Op, Owner, Seq};
use crate::spec::Spec;

/// The machine's name of each key that the model named in an event: a bijection.
#[derive(Default)]
pub(super) struct Keys {
    names: BTreeMap<u64, u64>,
    back: BTreeMap<u64, u64>,
}

impl Keys {
    fn same(&mut self, found: u64, wanted: u64) -> bool {
        if found == 0 || wanted == 0 {
            return found == wanted;
        }
        let name = *self.names.entry(wanted).or_insert(found);
        let back = *self.back.entry(found).or_insert(wanted);
        name == found && back == wanted
    }
}

/// Compares the answers to one op.
pub(super) fn outcomes(found: &Outcome, wanted: &Outcome, keys: &mut Keys) -> Result<(), String> {
    if found.status != wanted.status {
        return Err(format!("status {:?}, model {:?}", found.status, wanted.status));
    }
    match (&found.value, &wanted.value) {
        (Value::Events(found, lost), Value::Events(wanted, model_lost)) => {
            if lost != model_lost {
                return Err(format!("{lost} events lost, model {model_lost}"));
            }
            if found.len() != wanted.len() {
                return Err(format!("{} events, model {}: {found:?} / {wanted:?}", found.len(), wanted.len()));
            }
            found.iter().zip(wanted).try_for_each(|(found, wanted)| event(found, wanted, keys))
        }
        // A sugared call reports no plan.
        (Value::None, Value::Plan(_)) => Ok(()),
        (found, wanted) if found == wanted => Ok(()),
        (found, wanted) => Err(format!("{found:?}, model {wanted:?}")),
    }
}

fn event(found: &Event, wanted: &Event, keys: &mut Keys) -> Result<(), String> {
    let plain = |event: &Event| (event.kind, event.group, event.page, event.ns);
    let same =
        plain(found) == plain(wanted) && keys.same(found.key, wanted.key) && keys.same(found.parent, wanted.parent);
    if same { Ok(()) } else { Err(format!("event {found:?}, model {wanted:?}")) }
}

/// Compares the counters of all pools.
pub(super) fn counters(machines: &[Box<dyn Machine>], model: &Model) -> Result<(), String> {
    for (pool, wanted) in (0..).zip(&model.counters()) {
        for machine in machines {
            same(machine.as_ref(), format_args!("pool {pool}"), &machine.pool(pool), wanted)?;
        }
    }
    Ok(())
}

/// Compares pages: of the first machine every page of small pools, or a sample of large ones; of the others, whose equal
/// digests cover the state of every page, each `SHARE`th, another share at every step. One page costs a machine up to
/// O(table entries).
pub(super) fn pages(machines: &[Box<dyn Machine>], model: &Model, spec: &Spec, step: u32) -> Result<(), String> {
    const SHARE: u32 = 8;
    let pages = model.pages();
    for (pool, own) in (0..).zip(&spec.pools) {
        let stride = 1 + (u64::from(own.pages).pow(2) >> 21) as usize;
        for id in (1..=own.pages).step_by(stride) {
            let wanted = pages.page(pool, id);
            let asked = if id.wrapping_add(step).is_multiple_of(SHARE) { machines.len() } else { 1 };
            for machine in machines.iter().take(asked) {
                same(machine.as_ref(), format_args!("page {id} of pool {pool}"), &machine.page(pool, id), &wanted)?;
            }
        }
    }
    Ok(())
}

/// Compares sequences, their tables included.
pub(super) fn sequences(machines: &[Box<dyn Machine>], model: &Model, labels: &[Seq]) -> Result<(), String> {
    for &seq in labels {
        let wanted = model.sequence(seq);
        for machine in machines {
            same(machine.as_ref(), format_args!("{seq:?}"), &machine.sequence(seq), &wanted)?;
        }
    }
    Ok(())
}

/// The sequences that an op is about; those of a plan are told by the plan.
pub(super) fn named(op: &Op) -> Vec<Seq> {
    match op {
        Op::Open { seq, .. }
        | Op::OpenTicket { seq, .. }
        | Op::AddSpans { seq, .. }
        | Op::Truncate { seq, .. }
        | Op::Remove { seq, .. }
        | Op::Close { seq, .. }
        | Op::PlanAdd { seq, .. }
        | Op::Reserve { seq, .. }
        | Op::Append { seq, .. }
        | Op::Verify { seq, .. }
        | Op::Ring { seq, .. }
        | Op::Seal { seq, .. }
        | Op::IoBegin { owner: Owner::Seq(seq), .. } => vec![*seq],
        Op::Export { seqs } => seqs.clone(),
        Op::Fork { source, children, .. } => children.iter().chain([source]).copied().collect(),
        _ => Vec::new(),
    }
}

fn same<T: PartialEq + core::fmt::Debug>(
    machine: &dyn Machine,
    what: core::fmt::Arguments<'_>,
    found: &T,
    wanted: &T,
) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{}: {what}: {found:?}, model {wanted:?}", machine.name())) }
}
