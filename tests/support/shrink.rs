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
            if ops.len() <= best.1.len() && fails(&spec, &ops) {
                best = (spec, ops);
                wire = candidate;
                break;
            }
        }
    }
    best
}

/// Both, until neither helps.
pub fn program(spec: &Spec, program: &[Op], fails: &dyn Fn(&Spec, &[Op]) -> bool) -> (Spec, Vec<Op>) {
    let mut best = (spec.clone(), program.to_vec());
    loop {
        let shorter = ops(&best.0, &best.1, fails);
        let next = numbers(&best.0, &shorter, fails);
        if next == best {
            return best;
        }
        best = next;
    }
}
