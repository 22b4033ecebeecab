//! Makes positions, ticks and accept lists absolute, and filters label clashes.

use crate::machine::{Oracle, pad_accepts, resolve_time};
use crate::model::Model;
use crate::op::{Op, Owner, Pos, Seq, Time};

/// The op as machines see it; `None` when it would give a label in use a second meaning.
pub fn resolve(op: &Op, model: &Model) -> Option<Op> {
    let live = |seq: Seq| model.is_live(Owner::Seq(seq));
    let at = |seq: Seq, pos: Pos| match pos {
        Pos::At(at) => Pos::At(at),
        Pos::Back(back) => Pos::At(model.len(seq).unwrap_or(0).saturating_sub(back)),
    };
    let time = |time: Time| Time::At(resolve_time(time, model.tick()));
    let mut op = op.clone();
    match &mut op {
        Op::Open { seq, .. } | Op::OpenTicket { seq, .. } if live(*seq) => return None,
        Op::Fork { source, children, at: pos } => {
            let twice = (1..children.len()).any(|i| children[..i].contains(&children[i]));
            if children.is_empty() || twice || children.iter().any(|child| live(*child)) {
                return None;
            }
            *pos = at(*source, *pos);
        }
        Op::OpenSpace { ns } if usize::from(*ns) >= model.spaces() => return None,
        Op::Match { ticket, .. } if model.is_live(Owner::Ticket(*ticket)) => return None,
        Op::Lease { lease, .. } if model.is_leased(*lease) => return None,
        Op::Match { until: Some(until), .. } => *until = time(*until),
        Op::IoBegin { transfer, .. } if model.is_running(*transfer) => return None,
        Op::Truncate { seq, len } => *len = at(*seq, *len),
        Op::Verify { seq, upto } => *upto = at(*seq, *upto),
        Op::PlanBegin { tick } | Op::Advance { tick } => *tick = time(*tick),
        Op::Lease { until, .. } => *until = time(*until),
        Op::PlanCommit { accepts } => {
            let counts: Vec<u32> = model.plan().iter().map(|entry| entry.1).collect();
            *accepts = pad_accepts(accepts, &counts);
        }
        _ => {}
    }
    Some(op)
}
