//! One machine against the model.

use std::collections::BTreeMap;

use crate::machine::{Event, Machine, Oracle, Outcome, Value};
use crate::model::Model;
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
pub(super) fn counters(machine: &dyn Machine, model: &Model, spec: &Spec) -> Result<(), String> {
    for pool in 0..spec.pools.len() as u16 {
        same(machine, &format!("pool {pool}"), &machine.pool(pool), &model.pool(pool))?;
    }
    Ok(())
}

/// Compares every sequence, and every page of small pools or a sample of large ones: one page costs a
/// machine up to O(table entries).
pub(super) fn views(machine: &dyn Machine, model: &Model, spec: &Spec) -> Result<(), String> {
    for (pool, own) in (0..).zip(&spec.pools) {
        let stride = 1 + (u64::from(own.pages).pow(2) >> 21) as usize;
        for (id, wanted) in (1..).zip(&model.pages(pool)).step_by(stride) {
            let found = machine.page(pool, id);
            if found != *wanted {
                same(machine, &format!("page {id} of pool {pool}"), &found, wanted)?;
            }
        }
    }
    for seq in model.live() {
        same(machine, &format!("{seq:?}"), &machine.sequence(seq), &model.sequence(seq))?;
    }
    Ok(())
}

fn same<T: PartialEq + core::fmt::Debug>(
    machine: &dyn Machine,
    what: &str,
    found: &T,
    wanted: &T,
) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{}: {what}: {found:?}, model {wanted:?}", machine.name())) }
}
