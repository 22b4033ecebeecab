//! Random programs, and running a program on machines.

use crate::bytes;
use crate::guided;
use crate::machine::Machine;
use crate::model::Model;
use crate::op::Op;
use crate::rng::Rng;
use crate::runner::{self, Harness};
use crate::spec::Spec;

/// Makes the machines that must agree with the model on a configuration.
pub type Build<'b> = &'b dyn Fn(&Spec) -> Result<Vec<Box<dyn Machine>>, String>;

/// Where and why a program failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Index of the op; the number of ops when the closing comparison failed.
    pub op: usize,
    /// The first difference.
    pub message: String,
}

/// The program of one seed, kept to what the model describes.
pub fn random_program(seed: u64, len: usize) -> (Spec, Vec<Op>) {
    let mut rng = Rng::new(seed);
    let (mut spec, mut ops) = bytes::decode(&rng.bytes(len));
    spec.pools.iter_mut().for_each(|pool| pool.pages = pool.pages.min(64));
    (spec.leases, spec.spans, spec.nodes) = (spec.leases.min(16), spec.spans.min(256), spec.nodes.min(256));
    spec.spaces = spec.spaces.min(64);
    spec.groups.truncate(6);
    let limits =
        [&mut spec.sequences, &mut spec.tickets, &mut spec.transfers, &mut spec.events, &mut spec.table_chunks];
    limits.into_iter().for_each(|limit| *limit = 0);
    spec.copies = spec.copies.min(1 << 10);
    (spec.classes, spec.leases, spec.quotas) = (0, 0, 0);
    ops.retain(op_is_small);
    (spec, ops)
}

/// Keeps a scenario from anywhere to what the model describes, and to a size that runs in milliseconds.
pub fn bound(spec: &mut Spec, ops: &mut Vec<Op>) {
    spec.pools.iter_mut().for_each(|pool| pool.pages = pool.pages.min(64));
    spec.groups.truncate(6);
    for limit in [&mut spec.sequences, &mut spec.tickets, &mut spec.transfers, &mut spec.leases] {
        *limit = (*limit).min(32);
    }
    (spec.events, spec.spans, spec.nodes) = (spec.events.min(1 << 10), spec.spans.min(256), spec.nodes.min(1 << 10));
    spec.spaces = spec.spaces.min(64);
    spec.table_chunks = spec.table_chunks.min(1 << 12);
    spec.copies = spec.copies.min(1 << 10);
    ops.retain(op_is_small);
}

/// Keeps escapes of the byte form from asking for unreasonably much.
fn op_is_small(op: &Op) -> bool {
    match op {
        Op::Open { spans, .. } | Op::AddSpans { spans, .. } => spans.len() <= 16,
        Op::Match { tokens, spans, .. } | Op::Lookup { tokens, spans, .. } => tokens.len() <= 256 && spans.len() <= 16,
        Op::Append { tokens, .. } => tokens.len() <= 256,
        Op::PlanAdd { count, tokens, .. } | Op::Reserve { count, tokens, .. } => {
            *count <= 256 && tokens.as_ref().is_none_or(|tokens| tokens.len() <= 256)
        }
        Op::PlanCommit { accepts } => accepts.len() <= 16,
        _ => true,
    }
}

/// A guided program: made while the model runs it.
pub fn guided_program(seed: u64, spec: Option<Spec>, count: usize) -> (Spec, Vec<Op>) {
    let mut rng = Rng::new(seed);
    let spec = spec.unwrap_or_else(|| guided::spec(&mut rng));
    let mut model = Model::new(&spec).expect("a guided configuration is modelled");
    let mut ops = Vec::with_capacity(count);
    for _ in 0..count {
        let op = guided::op(&mut rng, &spec, &model);
        let resolved = runner::resolve(&op, &model);
        ops.push(op);
        if let Some(op) = resolved {
            // A broken model panics: the program ends with the op that shows it.
            let step = core::panic::AssertUnwindSafe(|| drop(model.apply(&op)));
            if std::panic::catch_unwind(step).is_err() {
                break;
            }
        }
    }
    (spec, ops)
}

/// Runs a program; `Ok` carries the leading machine's digest at the end.
///
/// # Errors
/// The first difference.
pub fn run(spec: &Spec, ops: &[Op], build: Build<'_>, thorough_every: u32) -> Result<u64, Failure> {
    let fail = |op: usize, message: String| Failure { op, message };
    let machines = build(spec).map_err(|message| fail(0, message))?;
    let mut harness = Harness::new(spec, machines).map_err(|message| fail(0, message))?;
    harness.thorough_every = thorough_every;
    for (at, op) in ops.iter().enumerate() {
        harness.apply(op).map_err(|message| fail(at, message))?;
    }
    harness.finish().map_err(|message| fail(ops.len(), message))?;
    Ok(harness.digest())
}

/// As [`run`], with a panic of any machine turned into a failure.
///
/// # Errors
/// The first difference or panic.
pub fn run_caught(spec: &Spec, ops: &[Op], build: Build<'_>, thorough_every: u32) -> Result<u64, Failure> {
    let run = core::panic::AssertUnwindSafe(|| run(spec, ops, build, thorough_every));
    std::panic::catch_unwind(run)
        .unwrap_or_else(|cause| Err(Failure { op: 0, message: format!("panic: {}", panic_text(cause.as_ref())) }))
}

/// What a panic said, on one line.
pub(crate) fn panic_text(cause: &(dyn core::any::Any + Send)) -> String {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| cause.downcast_ref::<&str>().copied());
    text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}
