//! The canonical text of a program.

use core::fmt::Write;

use super::tokens::{print as list, print_owner, print_pos, print_seq, print_spans, print_time};
use crate::op::{Op, Span};
use crate::spec::{GroupKind, IndexKind, NamespaceSpec, Policy, Spec};

/// Writes a configuration and its ops as a case named `name`.
pub fn print_program(name: &str, spec: &Spec, ops: &[Op]) -> String {
    let mut text = format!("CASE {name}\n{}", print_spec(spec));
    for op in ops {
        text.push_str(&print_op(op));
        text.push('\n');
    }
    text
}

/// Writes a configuration, one line per pool, group, namespace and option.
pub fn print_spec(spec: &Spec) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    for pool in &spec.pools {
        let policy = match pool.policy {
            Policy::Lru => "",
            Policy::Fifo => " fifo",
            Policy::Lfu => " lfu",
        };
        line(format!("POOL {}{policy}", pool.pages));
    }
    for group in &spec.groups {
        let kind = match group.kind {
            GroupKind::Full => format!("full {}", group.page_tokens),
            GroupKind::Window { window, sinks } => {
                format!("window {} window {window} sinks {sinks}", group.page_tokens)
            }
        };
        let exact = if group.exact { " exact" } else { "" };
        let contiguous = if group.contiguous { " contiguous" } else { "" };
        let ring = if group.ring > 0 { format!(" ring {}", group.ring) } else { String::new() };
        let sealed = group.sealed.map_or(String::new(), |pool| format!(" sealed {pool}"));
        let sinks = if group.exact_sinks > 0 { format!(" sinks {}", group.exact_sinks) } else { String::new() };
        line(format!("GROUP {kind} pool {}{exact}{contiguous}{ring}{sealed}{sinks}", group.pool));
    }
    if spec.namespaces != [NamespaceSpec::default()] {
        for key in &spec.namespaces {
            let NamespaceSpec { salt, adapter, generation, format } = key;
            line(format!("NAMESPACE salt {salt} adapter {adapter} generation {generation} format {format}"));
        }
    }
    line(match spec.index {
        IndexKind::None => "INDEX none".into(),
        IndexKind::Flat => "INDEX flat".into(),
        IndexKind::Tree => "INDEX tree".into(),
    });
    for (on, name) in [(spec.deferred, "deferred"), (spec.tail, "tail"), (spec.scrub, "scrub")] {
        if on {
            line(format!("OPTION {name}"));
        }
    }
    let limits = [
        ("sequences", spec.sequences),
        ("tickets", spec.tickets),
        ("transfers", spec.transfers),
        ("events", spec.events),
        ("chunks", spec.table_chunks),
        ("classes", spec.classes),
        ("leases", spec.leases),
        ("quotas", spec.quotas),
        ("spans", spec.spans),
        ("nodes", spec.nodes),
        ("namespaces", spec.spaces),
        ("copies", spec.copies),
    ];
    for (name, value) in limits {
        if value != 0 {
            line(format!("LIMIT {name} {value}"));
        }
    }
    if spec.seed != 0 {
        line(format!("SEED {}", spec.seed));
    }
    text
}

/// Writes one op.
pub fn print_op(op: &Op) -> String {
    match op {
        Op::Open { seq, ns, class, spans } => {
            format!("OPEN {} ns {ns}{}{}", print_seq(*seq), of_class(*class), with(spans))
        }
        Op::OpenTicket { seq, ticket, class } => {
            format!("OPEN {} from T{}{}", print_seq(*seq), ticket.0, of_class(*class))
        }
        Op::AddSpans { seq, spans } => format!("SPANS {} {}", print_seq(*seq), print_spans(spans)),
        Op::Fork { source, children, at } => {
            let mut text = format!("FORK {} ->", print_seq(*source));
            for child in children {
                let _ = write!(text, " {}", print_seq(*child));
            }
            format!("{text} at {}", print_pos(*at))
        }
        Op::Truncate { seq, len } => format!("TRUNC {} {}", print_seq(*seq), print_pos(*len)),
        Op::Close { seq, discard } => format!("CLOSE {}{}", print_seq(*seq), if *discard { " discard" } else { "" }),
        Op::PlanBegin { tick } => format!("PLAN {}", print_time(*tick)),
        Op::PlanAdd { seq, count, tokens } => format!("ADD {} {count}{}", print_seq(*seq), optional(tokens)),
        Op::Reserve { seq, count, tokens } => format!("RESERVE {} {count}{}", print_seq(*seq), optional(tokens)),
        Op::PlanFinish => "FINISH".into(),
        Op::PlanCancel => "CANCEL".into(),
        Op::PlanCommit { accepts } => {
            let mut text = String::from("COMMIT");
            for accept in accepts {
                let _ = match accept.accepted {
                    None => write!(text, " all"),
                    Some(accepted) => write!(text, " {accepted}"),
                };
                if let Some(verified) = accept.verified {
                    let _ = write!(text, "/{verified}");
                }
                if let Some(tokens) = &accept.tokens {
                    let _ = write!(text, ":{}", list(tokens));
                }
            }
            text
        }
        Op::PlanAbort => "ABORT".into(),
        Op::Append { seq, tokens } => format!("APPEND {} {}", print_seq(*seq), list(tokens)),
        Op::Verify { seq, upto } => format!("VERIFY {} {}", print_seq(*seq), print_pos(*upto)),
        Op::Publish { budget } => format!("PUBLISH {budget}"),
        Op::Lookup { ns, tokens, limit, spans } => {
            format!("LOOKUP {} limit {limit} ns {ns}{}", list(tokens), with(spans))
        }
        Op::Match { ticket, ns, tokens, limit, spans, until } => {
            let until = until.map_or(String::new(), |time| format!(" until {}", print_time(time)));
            format!("MATCH T{} {} limit {limit} ns {ns}{}{until}", ticket.0, list(tokens), with(spans))
        }
        Op::Drop { ticket } => format!("DROP T{}", ticket.0),
        Op::Evict { pool, count } => format!("EVICT {count} pool {pool}"),
        Op::Clear { ns: None } => "CLEAR".into(),
        Op::Clear { ns: Some(ns) } => format!("CLEAR ns {ns}"),
        Op::IoBegin { transfer, owner, begin, end, load } => {
            let kind = if *load { "load" } else { "store" };
            format!("IO K{} {} {begin}..{end} {kind}", transfer.0, print_owner(*owner))
        }
        Op::IoEnd { transfer, ok } => format!("DONE K{} {}", transfer.0, if *ok { "ok" } else { "fail" }),
        Op::Advance { tick } => format!("TICK {}", print_time(*tick)),
        Op::Lease { lease, seq, upto, until } => {
            format!("LEASE L{} {} {upto} {}", lease.0, print_seq(*seq), print_time(*until))
        }
        Op::EndLease { lease } => format!("ENDLEASE L{}", lease.0),
        Op::SetClass { ns, tokens, class } => format!("CLASS {} {class} ns {ns}", list(tokens)),
        Op::Move { ns, tokens, hot } => format!("MOVE {} {} ns {ns}", list(tokens), if *hot { "hot" } else { "cold" }),
        Op::SetQuota { ns, pool, pages } => format!("QUOTA {ns} {pool} {pages}"),
        Op::CloseSpace { ns } => format!("CLOSENS {ns}"),
        Op::OpenSpace { ns } => format!("OPENNS {ns}"),
        Op::Export { seqs } => {
            format!("EXPORT{}", seqs.iter().map(|seq| format!(" {}", print_seq(*seq))).collect::<String>())
        }
        Op::Ring { seq, group, columns } => format!("RING {} {group} {columns}", print_seq(*seq)),
        Op::Remove { seq, first, mask } => format!("REMOVE {} {first} {mask}", print_seq(*seq)),
        Op::Seal { seq, group, upto } => format!("SEAL {} {group} {upto}", print_seq(*seq)),
        Op::Drain => "DRAIN".into(),
        Op::Check => "CHECK".into(),
    }
}

fn of_class(class: u8) -> String {
    if class == 0 { String::new() } else { format!(" class {class}") }
}

fn with(spans: &[Span]) -> String {
    if spans.is_empty() { String::new() } else { format!(" spans {}", print_spans(spans)) }
}

fn optional(tokens: &Option<Vec<u32>>) -> String {
    tokens.as_ref().map_or(String::new(), |tokens| format!(" {}", list(tokens)))
}
