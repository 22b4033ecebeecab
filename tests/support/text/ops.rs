//! Op lines.

use super::tokens::{lease, list, number, owner, pos, seq, spans, ticket, time, transfer};
use crate::op::{Accept, Op, Pos, Seq, Span, Time};

/// Words after the fixed arguments, taken in pairs or alone.
struct Tail<'t>(Vec<&'t str>);

impl<'t> Tail<'t> {
    fn take(&mut self, key: &str) -> Result<Option<&'t str>, String> {
        let Some(at) = self.0.iter().position(|word| *word == key) else {
            return Ok(None);
        };
        if at + 1 >= self.0.len() {
            return Err(format!("`{key}` needs a value"));
        }
        self.0.remove(at);
        Ok(Some(self.0.remove(at)))
    }

    fn flag(&mut self, key: &str) -> bool {
        let found = self.0.iter().position(|word| *word == key);
        found.map(|at| self.0.remove(at)).is_some()
    }

    fn one(&mut self) -> Option<&'t str> {
        if self.0.is_empty() { None } else { Some(self.0.remove(0)) }
    }

    fn need(&mut self, what: &str) -> Result<&'t str, String> {
        self.one().ok_or_else(|| format!("{what} is missing"))
    }

    fn end(self, op: Op) -> Result<Op, String> {
        match self.0.first() {
            None => Ok(op),
            Some(word) => Err(format!("`{word}` is too much")),
        }
    }
}

/// Reads one op; `fresh` is the next token that `freshN` hands out.
pub(super) fn parse(line: &str, fresh: &mut u32) -> Result<Op, String> {
    let mut words = line.split_whitespace();
    let verb = words.next().ok_or("an empty line")?;
    let mut tail = Tail(words.collect());
    let op = match verb {
        "OPEN" | "CREATE" => open(&mut tail)?,
        "FORK" => fork(&mut tail)?,
        "TRUNC" => Op::Truncate { seq: seq(tail.need("a sequence")?)?, len: pos(tail.need("a length")?)? },
        "REMOVE" => {
            let seq = seq(tail.need("a sequence")?)?;
            let (first, mask) = (number(tail.need("a column")?)?, number(tail.need("a mask of columns")?)?);
            Op::Remove { seq, first, mask }
        }
        "CLOSE" | "FREE" => {
            let discard = tail.flag("discard");
            Op::Close { seq: seq(tail.need("a sequence")?)?, discard }
        }
        "PLAN" => Op::PlanBegin { tick: tail.one().map_or(Ok(Time::After(0)), time)? },
        "ADD" => {
            let (seq, count, tokens) = room(&mut tail, fresh)?;
            Op::PlanAdd { seq, count, tokens }
        }
        "RESERVE" => {
            let (seq, count, tokens) = room(&mut tail, fresh)?;
            Op::Reserve { seq, count, tokens }
        }
        "FINISH" => Op::PlanFinish,
        "CANCEL" => Op::PlanCancel,
        "COMMIT" => commit(&mut tail, fresh)?,
        "ABORT" => Op::PlanAbort,
        "APPEND" => Op::Append { seq: seq(tail.need("a sequence")?)?, tokens: list(tail.need("tokens")?, fresh)? },
        "VERIFY" => Op::Verify { seq: seq(tail.need("a sequence")?)?, upto: pos(tail.need("a position")?)? },
        "PUBLISH" => Op::Publish { budget: number(tail.need("a budget")?)? },
        "LOOKUP" => {
            let (ns, tokens, limit, spans) = query(&mut tail, fresh)?;
            Op::Lookup { ns, tokens, limit, spans }
        }
        "MATCH" => {
            let ticket = ticket(tail.need("a ticket")?)?;
            let until = tail.take("until")?.map(time).transpose()?;
            let (ns, tokens, limit, spans) = query(&mut tail, fresh)?;
            Op::Match { ticket, ns, tokens, limit, spans, until }
        }
        "DROP" => Op::Drop { ticket: ticket(tail.need("a ticket")?)? },
        "EVICT" => {
            let pool = tail.take("pool")?.map_or(Ok(0), number)?;
            Op::Evict { pool, count: number(tail.need("a count")?)? }
        }
        "CLEAR" => Op::Clear { ns: tail.take("ns")?.map(number).transpose()? },
        "IO" => io(&mut tail)?,
        "DONE" => {
            let transfer = transfer(tail.need("a transfer")?)?;
            Op::IoEnd { transfer, ok: word(tail.need("ok or fail")?, "ok", "fail")? }
        }
        "TICK" => Op::Advance { tick: time(tail.need("a time")?)? },
        "SPANS" => Op::AddSpans { seq: seq(tail.need("a sequence")?)?, spans: spans(tail.need("spans")?)? },
        "LEASE" => Op::Lease {
            lease: lease(tail.need("a lease")?)?,
            seq: seq(tail.need("a sequence")?)?,
            upto: number(tail.need("a position")?)?,
            until: time(tail.need("a time")?)?,
        },
        "ENDLEASE" => Op::EndLease { lease: lease(tail.need("a lease")?)? },
        "CLASS" => {
            let ns = tail.take("ns")?.map_or(Ok(0), number)?;
            let tokens = list(tail.need("tokens")?, fresh)?;
            Op::SetClass { ns, tokens, class: number(tail.need("a class")?)? }
        }
        "MOVE" => {
            let ns = tail.take("ns")?.map_or(Ok(0), number)?;
            let tokens = list(tail.need("tokens")?, fresh)?;
            Op::Move { ns, tokens, hot: word(tail.need("hot or cold")?, "hot", "cold")? }
        }
        "QUOTA" => Op::SetQuota {
            ns: number(tail.need("a namespace")?)?,
            pool: number(tail.need("a pool")?)?,
            pages: number(tail.need("a number of pages")?)?,
        },
        "CLOSENS" => Op::CloseSpace { ns: number(tail.need("a namespace")?)? },
        "OPENNS" => Op::OpenSpace { ns: number(tail.need("a namespace")?)? },
        "EXPORT" => Op::Export { seqs: sequences(&mut tail)? },
        "RING" => Op::Ring {
            seq: seq(tail.need("a sequence")?)?,
            group: number(tail.need("a group")?)?,
            columns: number(tail.need("a number of columns")?)?,
        },
        "SEAL" => Op::Seal {
            seq: seq(tail.need("a sequence")?)?,
            group: number(tail.need("a group")?)?,
            upto: number(tail.need("an entry")?)?,
        },
        "DRAIN" => Op::Drain,
        "CHECK" => Op::Check,
        _ => return Err(format!("`{verb}` is no op")),
    };
    tail.end(op)
}

fn word(text: &str, yes: &str, no: &str) -> Result<bool, String> {
    match text {
        _ if text == yes => Ok(true),
        _ if text == no => Ok(false),
        _ => Err(format!("`{text}` is neither {yes} nor {no}")),
    }
}

fn given_spans(tail: &mut Tail<'_>) -> Result<Vec<Span>, String> {
    tail.take("spans")?.map_or(Ok(Vec::new()), spans)
}

fn open(tail: &mut Tail<'_>) -> Result<Op, String> {
    let source = tail.take("from")?;
    let ns = tail.take("ns")?.map_or(Ok(0), number)?;
    let class = tail.take("class")?.map_or(Ok(0), number)?;
    let spans = given_spans(tail)?;
    let seq = seq(tail.need("a sequence")?)?;
    Ok(match source {
        None => Op::Open { seq, ns, class, spans },
        Some(source) => Op::OpenTicket { seq, ticket: ticket(source)?, class },
    })
}

fn fork(tail: &mut Tail<'_>) -> Result<Op, String> {
    let at = tail.take("at")?.map_or(Ok(Pos::Back(0)), pos)?;
    let source = seq(tail.need("a sequence")?)?;
    if tail.need("->")? != "->" {
        return Err("FORK A -> B C".into());
    }
    Ok(Op::Fork { source, children: sequences(tail)?, at })
}

fn sequences(tail: &mut Tail<'_>) -> Result<Vec<Seq>, String> {
    let mut labels = Vec::new();
    while let Some(label) = tail.one() {
        labels.push(seq(label)?);
    }
    Ok(labels)
}

fn room(tail: &mut Tail<'_>, fresh: &mut u32) -> Result<(Seq, u32, Option<Vec<u32>>), String> {
    let seq = seq(tail.need("a sequence")?)?;
    let count = number(tail.need("a count")?)?;
    let tokens = tail.one().map(|text| list(text, fresh)).transpose()?;
    Ok((seq, count, tokens))
}

fn commit(tail: &mut Tail<'_>, fresh: &mut u32) -> Result<Op, String> {
    let mut accepts = Vec::new();
    while let Some(word) = tail.one() {
        let (word, tokens) = word.split_once(':').map_or((word, None), |(word, tokens)| (word, Some(tokens)));
        let tokens = tokens.map(|tokens| list(tokens, fresh)).transpose()?;
        let (accepted, verified) = word.split_once('/').map_or((word, None), |(a, v)| (a, Some(v)));
        let accepted = if accepted == "all" { None } else { Some(number(accepted)?) };
        accepts.push(Accept { accepted, verified: verified.map(number).transpose()?, tokens });
    }
    Ok(Op::PlanCommit { accepts })
}

fn query(tail: &mut Tail<'_>, fresh: &mut u32) -> Result<(u16, Vec<u32>, u32, Vec<Span>), String> {
    let ns = tail.take("ns")?.map_or(Ok(0), number)?;
    let limit = tail.take("limit")?.map(number).transpose()?;
    let spans = given_spans(tail)?;
    let tokens = list(tail.need("tokens")?, fresh)?;
    let limit = limit.unwrap_or((tokens.len() as u32).saturating_sub(1));
    Ok((ns, tokens, limit, spans))
}

fn io(tail: &mut Tail<'_>) -> Result<Op, String> {
    let transfer = transfer(tail.need("a transfer")?)?;
    let owner = owner(tail.need("an owner")?)?;
    let range = tail.need("a range")?;
    let (begin, end) = range.split_once("..").ok_or("a range is a..b")?;
    let load = word(tail.need("load or store")?, "load", "store")?;
    Ok(Op::IoBegin { transfer, owner, begin: number(begin)?, end: number(end)?, load })
}
