//! Ops on the wire.

use super::kinds::{blank, code_of, kind_of};
use super::wire::{Reader, Wire, Writer};
use crate::op::{Accept, Op, Owner, Pos, Seq, Span, Ticket, Time};
use crate::spec::Spec;
use crate::text::runs;

/// Most tokens in one list.
const MAX_TOKENS: usize = 1 << 16;
/// Most tokens in one run.
const MAX_RUN: u32 = 1 << 12;
/// Largest count or position.
const MAX_POS: u32 = 1 << 16;

pub(super) fn read(reader: &mut Reader<'_>, spec: &Spec, version: u8) -> Op {
    let mut op = blank(kind_of(reader.byte(), version));
    visit(reader, &mut op, spec);
    op
}

pub(super) fn write(writer: &mut Writer, op: &Op, spec: &Spec) {
    writer.byte(code_of(op));
    visit(writer, &mut op.clone(), spec);
}

fn visit(wire: &mut impl Wire, op: &mut Op, spec: &Spec) {
    let spaces = spec.namespaces.len() as u8;
    let pools = spec.pools.len() as u8;
    let classes = spec.classes.clamp(1, 63) as u8;
    let groups = spec.groups.len().min(64) as u8;
    match op {
        Op::Open { seq, ns, class, spans } => {
            wire.u8(&mut seq.0, 8);
            wire.u16(ns, spaces);
            wire.u8(class, classes);
            span_list(wire, spans, spec, 0);
        }
        Op::OpenTicket { seq, ticket, class } => {
            wire.u8(&mut seq.0, 8);
            wire.u8(&mut ticket.0, 4);
            wire.u8(class, classes);
        }
        Op::AddSpans { seq, spans } => {
            wire.u8(&mut seq.0, 8);
            span_list(wire, spans, spec, 1);
        }
        Op::Fork { source, children, at } => {
            wire.u8(&mut source.0, 8);
            wire.list(children, 3, 63, 1, Seq(0));
            children.iter_mut().for_each(|child| wire.u8(&mut child.0, 8));
            pos(wire, at);
        }
        Op::Truncate { seq, len } => {
            wire.u8(&mut seq.0, 8);
            pos(wire, len);
        }
        Op::Close { seq, discard } => {
            wire.u8(&mut seq.0, 8);
            wire.flag(discard, 2);
        }
        Op::PlanBegin { tick } | Op::Advance { tick } => time(wire, tick),
        Op::PlanAdd { seq, count, tokens } | Op::Reserve { seq, count, tokens } => room(wire, seq, count, tokens),
        Op::CloseSpace { ns } | Op::OpenSpace { ns } => wire.u16(ns, spaces),
        Op::Export { seqs } => {
            wire.list(seqs, 4, 63, 0, Seq(0));
            seqs.iter_mut().for_each(|seq| wire.u8(&mut seq.0, 8));
        }
        Op::Ring { seq, group, columns } => {
            wire.u8(&mut seq.0, 8);
            wire.u16(group, groups);
            wire.u32(columns, 12, MAX_POS);
        }
        Op::Seal { seq, group, upto } => {
            wire.u8(&mut seq.0, 8);
            wire.u16(group, groups);
            wire.u32(upto, 6, MAX_POS);
        }
        Op::Remove { seq, first, mask } => {
            wire.u8(&mut seq.0, 8);
            wire.u32(first, 6, MAX_POS);
            wire.u8(mask, 255);
        }
        Op::PlanFinish | Op::PlanCancel | Op::PlanAbort | Op::Drain | Op::Check => {}
        Op::PlanCommit { accepts } => {
            wire.list(accepts, 3, 63, 0, Accept::default());
            for accept in accepts {
                option(wire, &mut accept.accepted, 6);
                option(wire, &mut accept.verified, 3);
                let mut some = accept.tokens.is_some();
                wire.flag(&mut some, 1);
                accept.tokens = some.then(|| accept.tokens.take().unwrap_or_default());
                if let Some(tokens) = &mut accept.tokens {
                    list(wire, tokens);
                }
            }
        }
        Op::Append { seq, tokens } => {
            wire.u8(&mut seq.0, 8);
            list(wire, tokens);
        }
        Op::Verify { seq, upto } => {
            wire.u8(&mut seq.0, 8);
            pos(wire, upto);
        }
        Op::Publish { budget } => wire.u32(budget, 8, MAX_POS),
        Op::Lookup { ns, tokens, limit, spans } => {
            wire.u16(ns, spaces);
            query(wire, tokens, limit);
            span_list(wire, spans, spec, 0);
        }
        Op::Match { ticket, ns, tokens, limit, spans, until } => {
            wire.u8(&mut ticket.0, 4);
            wire.u16(ns, spaces);
            query(wire, tokens, limit);
            span_list(wire, spans, spec, 0);
            let mut some = until.is_some();
            wire.flag(&mut some, 1);
            *until = some.then(|| until.unwrap_or(Time::After(0)));
            if let Some(until) = until {
                time(wire, until);
            }
        }
        Op::Drop { ticket } => wire.u8(&mut ticket.0, 4),
        Op::Evict { pool, count } => {
            wire.u16(pool, pools);
            wire.u32(count, 6, MAX_POS);
        }
        Op::Clear { ns } => {
            let mut code = ns.map_or(0, |ns| ns + 1);
            wire.u16(&mut code, spaces + 1);
            *ns = code.checked_sub(1);
        }
        Op::IoBegin { transfer, owner, begin, end, load } => {
            wire.u8(&mut transfer.0, 3);
            own(wire, owner);
            wire.u32(begin, 8, MAX_POS);
            let mut len = end.wrapping_sub(*begin);
            wire.u32(&mut len, 24, MAX_POS);
            *end = begin.wrapping_add(len);
            wire.flag(load, 2);
        }
        Op::IoEnd { transfer, ok } => {
            wire.u8(&mut transfer.0, 3);
            let mut fail = !*ok;
            wire.flag(&mut fail, 2);
            *ok = !fail;
        }
        Op::Lease { lease, seq, upto, until } => {
            wire.u8(&mut lease.0, 4);
            wire.u8(&mut seq.0, 8);
            wire.u32(upto, 24, MAX_POS);
            time(wire, until);
        }
        Op::EndLease { lease } => wire.u8(&mut lease.0, 4),
        Op::SetClass { ns, tokens, class } => {
            wire.u16(ns, spaces);
            list(wire, tokens);
            wire.u8(class, classes);
        }
        Op::Move { ns, tokens, hot } => {
            wire.u16(ns, spaces);
            list(wire, tokens);
            wire.flag(hot, 2);
        }
        Op::SetQuota { ns, pool, pages } => {
            wire.u16(ns, spaces);
            wire.u16(pool, pools);
            wire.u32(pages, 12, MAX_POS);
        }
    }
}

fn room(wire: &mut impl Wire, seq: &mut Seq, count: &mut u32, tokens: &mut Option<Vec<u32>>) {
    wire.u8(&mut seq.0, 8);
    // 0 and 1: as many tokens as are given. 2: without tokens. 3: count apart from the list.
    let code = match tokens {
        Some(list) if list.len() as u32 == *count => 0,
        Some(_) => 3,
        None => 2,
    };
    let code = wire.num(code, 3, 3);
    if code >= 2 {
        wire.u32(count, 20, MAX_POS);
    }
    if code == 2 {
        *tokens = None;
        return;
    }
    let mut tokens_now = tokens.take().unwrap_or_default();
    list(wire, &mut tokens_now);
    if code != 3 {
        *count = tokens_now.len() as u32;
    }
    *tokens = Some(tokens_now);
}

/// Spans: at least `least`, each beginning a little behind the one before. Without room for spans noise has none.
fn span_list(wire: &mut impl Wire, spans: &mut Vec<Span>, spec: &Spec, least: usize) {
    wire.list(spans, if spec.spans == 0 { 1 } else { 3 }, 255, least, Span { start: 0, length: 1, digest: 0 });
    let mut end = 0;
    for span in spans {
        let mut gap = span.start.wrapping_sub(end);
        wire.u32(&mut gap, 12, u32::MAX);
        span.start = end.wrapping_add(gap);
        wire.u32(&mut span.length, 6, u32::MAX);
        wire.u32(&mut span.digest, 2, u32::MAX);
        end = span.start.wrapping_add(span.length);
    }
}

fn query(wire: &mut impl Wire, tokens: &mut Vec<u32>, limit: &mut u32) {
    list(wire, tokens);
    // 0: the length less one. 1: the length. 2 and up: a number.
    let len = tokens.len() as u32;
    let code = match *limit {
        limit if limit == len.saturating_sub(1) => 0,
        limit if limit == len => 1,
        limit => u64::from(limit) + 2,
    };
    *limit = match wire.num(code, 2, u64::from(MAX_POS) + 2) {
        0 => len.saturating_sub(1),
        1 => len,
        code => (code - 2) as u32,
    };
}

fn list(wire: &mut impl Wire, tokens: &mut Vec<u32>) {
    let mut parts = runs(tokens);
    wire.list(&mut parts, 4, 255, 0, (0, 0));
    tokens.clear();
    for (mut start, mut len) in parts {
        wire.u32(&mut start, 4, u32::MAX - MAX_RUN);
        wire.u32(&mut len, 18, MAX_RUN);
        let len = (len as usize).min(MAX_TOKENS.saturating_sub(tokens.len())) as u32;
        tokens.extend(start..start + len);
    }
}

fn option(wire: &mut impl Wire, value: &mut Option<u32>, base: u8) {
    let mut code = value.map_or(0, |value| value.saturating_add(1));
    wire.u32(&mut code, base, MAX_POS);
    *value = code.checked_sub(1);
}

fn pos(wire: &mut impl Wire, pos: &mut Pos) {
    let (code, mut value) = match *pos {
        Pos::At(at) => (0, at),
        Pos::Back(back) => (1, back),
    };
    let code = wire.num(code, 4, 3);
    wire.u32(&mut value, 20, MAX_POS);
    *pos = if code == 0 { Pos::At(value) } else { Pos::Back(value) };
}

fn time(wire: &mut impl Wire, time: &mut Time) {
    let (code, value) = match *time {
        Time::After(ticks) => (0, ticks),
        Time::At(tick) => (1, tick),
    };
    let code = wire.num(code, 1, 1);
    let value = wire.num(value, 3, u64::MAX);
    *time = if code == 0 { Time::After(value) } else { Time::At(value) };
}

fn own(wire: &mut impl Wire, owner: &mut Owner) {
    let (code, mut label) = match *owner {
        Owner::Seq(seq) => (0, seq.0),
        Owner::Ticket(ticket) => (3, ticket.0),
    };
    let code = wire.num(code, 4, 3);
    wire.u8(&mut label, if code < 3 { 8 } else { 4 });
    *owner = if code < 3 { Owner::Seq(Seq(label)) } else { Owner::Ticket(Ticket(label)) };
}
