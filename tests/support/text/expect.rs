//! Expectations after `=>`, separated by `;` or given on lines of their own.

use super::tokens::{number, seq};
use crate::case::{Counter, Cursor, EventCount, Expect, PageState, Step, Sym};
use crate::machine::Status;
use crate::op::{Op, Seq};

pub(super) fn parse(text: &str, step: &mut Step) -> Result<(), String> {
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let subject = step.op.as_ref().and_then(subject);
        one(part, subject, &mut step.expects)?;
    }
    Ok(())
}

fn subject(op: &Op) -> Option<Seq> {
    match op {
        Op::Open { seq, .. }
        | Op::OpenTicket { seq, .. }
        | Op::Truncate { seq, .. }
        | Op::Remove { seq, .. }
        | Op::PlanAdd { seq, .. }
        | Op::Reserve { seq, .. }
        | Op::Append { seq, .. }
        | Op::Verify { seq, .. }
        | Op::Seal { seq, .. } => Some(*seq),
        Op::Fork { source, .. } => Some(*source),
        _ => None,
    }
}

fn one(part: &str, subject: Option<Seq>, out: &mut Vec<Expect>) -> Result<(), String> {
    let words: Vec<&str> = part.split_whitespace().collect();
    if let [word] = words.as_slice()
        && let Some(status) = status(word)
    {
        out.push(Expect::Status(status));
        return Ok(());
    }
    match *words.as_slice() {
        ["NEVER", fits] => out.extend([Expect::Status(Status::Never), Expect::Fits(number(fits)?)]),
        ["len", n] => out.push(cursor(subject, Cursor::Len, n)?),
        ["len", s, n] => out.push(cursor(Some(seq(s)?), Cursor::Len, n)?),
        ["verified", s, n] => out.push(cursor(Some(seq(s)?), Cursor::Verified, n)?),
        ["published", s, n] => out.push(cursor(Some(seq(s)?), Cursor::Published, n)?),
        ["last", s, n] => {
            let (seq, group) = member(s)?;
            out.push(Expect::Last { seq, group, value: number(n)? });
        }
        ["sealed", s, n] => {
            let (seq, group) = member(s)?;
            let (begin, end) = n.split_once("..").unwrap_or(("0", n));
            out.push(Expect::Sealed { seq, group, columns: number(begin)?..number(end)? });
        }
        ["ring", range, ..] => {
            let (first, end) = range.split_once("..").ok_or("a range is a..b")?;
            out.push(Expect::Ring { first: number(first)?, end: number(end)?, pages: symbols(part)? });
        }
        ["table", s, ..] => {
            let (seq, group) = member(s)?;
            out.push(Expect::Table { seq, group, pages: symbols(part)? });
        }
        ["refs", page, n] => out.push(Expect::Refs { page: symbol(page)?, value: number(n)? }),
        ["state", page, state] => out.push(Expect::State { page: symbol(page)?, state: page_state(state)? }),
        ["copies", ..] => out.push(copies(part)?),
        ["positions", range] => {
            let (begin, end) = range.split_once("..").ok_or("a range is a..b")?;
            out.push(Expect::Positions { begin: number(begin)?, end: number(end)? });
        }
        ["hit", n] => out.push(Expect::Hit(number(n)?)),
        ["freed" | "pages", n] => out.push(Expect::Pages(number(n)?)),
        ["same"] => out.push(Expect::Same(None)),
        ["same", mark] => out.push(Expect::Same(Some(mark.into()))),
        ["pool", pool, ref counts @ ..] => counters(number(pool)?, counts, out)?,
        _ if words.iter().all(|word| word.contains('=')) => counters(0, &words, out)?,
        _ if words.len().is_multiple_of(2) => {
            for pair in words.chunks(2) {
                let &[name, n] = pair else { break };
                let kind = match name {
                    "stored" => EventCount::Stored,
                    "removed" => EventCount::Removed,
                    "cleared" => EventCount::Cleared,
                    "lost" => EventCount::Lost,
                    _ => return Err(format!("`{part}` is no expectation")),
                };
                out.push(Expect::Events { kind, value: number(n)? });
            }
        }
        _ => return Err(format!("`{part}` is no expectation")),
    }
    Ok(())
}

fn status(word: &str) -> Option<Status> {
    Some(match word {
        "OK" => Status::Ok,
        "RETRY" => Status::Retry,
        "PENDING" => Status::Pending,
        "NEVER" => Status::Never,
        "BUSY" => Status::Busy,
        "STALE" => Status::Stale,
        "ARGUMENT" => Status::Argument,
        "STATE" => Status::State,
        "WINDOW_LOST" => Status::WindowLost,
        "SEALED" => Status::Sealed,
        "CAPACITY" => Status::Capacity,
        _ => return None,
    })
}

fn cursor(seq: Option<Seq>, cursor: Cursor, value: &str) -> Result<Expect, String> {
    let seq = seq.ok_or("this op has no sequence; name one")?;
    Ok(Expect::Cursor { seq, cursor, value: number(value)? })
}

/// `A` or `A.1`: a sequence and a group.
fn member(text: &str) -> Result<(Seq, u16), String> {
    match text.split_once('.') {
        None => Ok((seq(text)?, 0)),
        Some((s, group)) => Ok((seq(s)?, number(group)?)),
    }
}

fn symbol(text: &str) -> Result<Sym, String> {
    if text == "_" {
        return Ok(Sym::Null);
    }
    if let Ok(id) = text.parse() {
        return Ok(Sym::Exact(id));
    }
    let named = text.starts_with(|c: char| c.is_ascii_lowercase());
    if named { Ok(Sym::Name(text.into())) } else { Err(format!("`{text}` is no page")) }
}

fn symbols(part: &str) -> Result<Vec<Sym>, String> {
    let (_, list) = part.split_once('[').ok_or("a table is [..]")?;
    let list = list.strip_suffix(']').ok_or("a table is [..]")?;
    list.split_whitespace().map(symbol).collect()
}

fn page_state(text: &str) -> Result<PageState, String> {
    Ok(match text {
        "FREE" => PageState::Free,
        "CACHED" => PageState::Cached,
        "USED" => PageState::Used,
        _ => return Err(format!("`{text}` is no state")),
    })
}

/// `copies 0` or `copies 2: p1->p2 x1 p3->p4 x7`.
fn copies(part: &str) -> Result<Expect, String> {
    let rest = part.strip_prefix("copies").unwrap_or(part);
    let (count, list) = rest.split_once(':').unwrap_or((rest, ""));
    let words: Vec<&str> = list.split_whitespace().collect();
    let mut copies = Vec::new();
    for pair in words.chunks(2) {
        let &[arrow, tokens] = pair else {
            return Err("a copy is p1->p2 x1".into());
        };
        let (src, dst) = arrow.split_once("->").ok_or("a copy is p1->p2 x1")?;
        let tokens = number(tokens.strip_prefix('x').ok_or("a copy is p1->p2 x1")?)?;
        copies.push((symbol(src)?, symbol(dst)?, tokens));
    }
    if copies.len() != number::<usize>(count.trim())? {
        return Err("the number of copies and their list differ".into());
    }
    Ok(Expect::Copies(copies))
}

fn counters(pool: u16, words: &[&str], out: &mut Vec<Expect>) -> Result<(), String> {
    for word in words {
        let (name, value) = word.split_once('=').ok_or("a counter is U=2")?;
        let counter = match name {
            "U" => Counter::Used,
            "C" => Counter::Cached,
            "F" => Counter::Free,
            "PEND" => Counter::Pending,
            _ => return Err(format!("`{name}` is no counter")),
        };
        out.push(Expect::Count { pool, counter, value: number(value)? });
    }
    Ok(())
}
