//! Makes a failing program short: first whole ops, then the numbers in their byte form.

use crate::bytes;
use crate::op::Op;
use crate::spec::Spec;

/// Removes ops in ever smaller stretches while `fails` still holds.
pub fn ops(spec: &Spec, ops: &[Op], fails: &dyn Fn(&Spec, &[Op]) -> bool) -> Vec<Op> {
    let mut best = ops.to_vec();
    let mut stretch = best.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut shorter = false;
        while at < best.len() {
            let mut candidate = best.clone();
            candidate.drain(at..(at + stretch).min(best.len()));
            if fails(spec, &candidate) {
                best = candidate;
                shorter = true;
            } else {
                at += stretch;
            }
        }
        if stretch == 1 && !shorter {
            return best;
        }
        stretch = (stretch / 2).max(1);
    }
}

/// Lowers single bytes of the byte form while the program still fails.
pub fn numbers(spec: &Spec, ops: &[Op], fails: &dyn Fn(&Spec, &[Op]) -> bool) -> (Spec, Vec<Op>) {
    let mut best = (spec.clone(), ops.to_vec());
    let Some(mut wire) = bytes::encode(spec, ops) else {
        return best;
    };
    for at in 1..wire.len() {
        for smaller in [0, wire[at] / 2, wire[at].saturating_sub(1)] {
            if smaller >= wire[at] {
                continue;
            }
            let mut candidate = wire.clone();
            candidate[at] = smaller;
            let (spec, ops) = bytes::decode(&candidate);
            let limits = |spec: &Spec| {
                let counts = (spec.table_chunks, spec.classes, spec.leases, spec.quotas, spec.copies);
                (counts, spec.tail, spec.scrub)
            };
            if ops.len() <= best.1.len() && limits(&spec) == limits(&best.0) && fails(&spec, &ops) {
                best = (spec, ops);
                wire = candidate;
                break;
            }
        }
    }
    best
}

/// Removes groups and pools that the failure does not need.
pub fn groups(spec: &Spec, ops: &[Op], fails: &dyn Fn(&Spec, &[Op]) -> bool) -> Spec {
    let mut best = spec.clone();
    for at in (0..best.groups.len()).rev() {
        let mut candidate = best.clone();
        candidate.groups.remove(at);
        if candidate.is_valid() && fails(&candidate, ops) {
            best = candidate;
        }
    }
    while best.pools.len() > 1 {
        let mut candidate = best.clone();
        candidate.pools.pop();
        if !candidate.is_valid() || !fails(&candidate, ops) {
            break;
        }
        best = candidate;
    }
    best
}

/// What failed, without the ids and numbers that shrinking changes.
pub fn kind(message: &str) -> String {
    let mut depth = 0;
    let outside = message.chars().filter(|c| {
        depth += i32::from(matches!(c, '{' | '[' | '('));
        let outside = depth == 0;
        depth -= i32::from(matches!(c, '}' | ']' | ')'));
        outside && !c.is_ascii_digit()
    });
    let outside: String = outside.collect();
    // Labels are single letters.
    let words = outside.split_whitespace().filter(|word| word.chars().filter(|c| c.is_alphabetic()).count() > 1);
    words.take(8).collect::<Vec<_>>().join(" ")
}

/// All of it, until nothing helps.
pub fn program(spec: &Spec, program: &[Op], fails: &dyn Fn(&Spec, &[Op]) -> bool) -> (Spec, Vec<Op>) {
    let mut best = (spec.clone(), program.to_vec());
    loop {
        let shorter = ops(&best.0, &best.1, fails);
        let fewer = groups(&best.0, &shorter, fails);
        let next = numbers(&fewer, &shorter, fails);
        if next == best {
            return best;
        }
        best = next;
    }
}

/// Says why a program fails, `None` when it does not.
pub type Reason<'r> = &'r dyn Fn(&Spec, &[Op]) -> Option<String>;

/// The shortest program found in `runs` runs that fails in the same way, and its reason. `None` when it does not fail.
pub fn shorten(spec: &Spec, ops: &[Op], reason: Reason<'_>, runs: u32) -> Option<(String, Spec, Vec<Op>)> {
    let wanted = kind(&reason(spec, ops)?);
    let left = core::cell::Cell::new(runs);
    let fails = |spec: &Spec, ops: &[Op]| {
        left.set(left.get().saturating_sub(1));
        left.get() > 0 && reason(spec, ops).is_some_and(|message| kind(&message) == wanted)
    };
    let (spec, ops) = program(spec, ops, &fails);
    Some((reason(&spec, &ops)?, spec, ops))
}
