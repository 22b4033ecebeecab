//! Token lists: `0..17`, `[1,2,3]`, `7`, `fresh8`, joined by commas; labels; numbers.

use crate::op::{Lease, Owner, Pos, Seq, Span, Ticket, Time, Transfer};

/// First token that `fresh` hands out; no list written by hand reaches it.
pub(super) const FIRST_FRESH: u32 = 1_000_000;

pub(super) fn number<T: core::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

pub(super) fn list(text: &str, fresh: &mut u32) -> Result<Vec<u32>, String> {
    let mut tokens = Vec::new();
    let flat = text.replace(['[', ']'], "");
    for part in flat.split(',').filter(|part| !part.is_empty()) {
        if let Some(count) = part.strip_prefix("fresh") {
            let end = fresh.checked_add(number(count)?).ok_or("no fresh tokens left")?;
            tokens.extend(*fresh..end);
            *fresh = end;
        } else if let Some((begin, end)) = part.split_once("..") {
            tokens.extend(number::<u32>(begin)?..number::<u32>(end)?);
        } else {
            tokens.push(number(part)?);
        }
    }
    Ok(tokens)
}

/// Writes a list as runs; the inverse of [`list`].
pub(super) fn print(tokens: &[u32]) -> String {
    if tokens.is_empty() {
        return "[]".into();
    }
    let parts: Vec<String> = runs(tokens)
        .into_iter()
        .map(|(start, len)| if len == 1 { start.to_string() } else { format!("{start}..{}", start + len) })
        .collect();
    parts.join(",")
}

/// Splits a list into runs of consecutive values: (first, length).
pub(crate) fn runs(tokens: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &token in tokens {
        match runs.last_mut() {
            Some((start, len)) if start.checked_add(*len) == Some(token) => *len += 1,
            _ => runs.push((token, 1)),
        }
    }
    runs
}

pub(super) fn seq(text: &str) -> Result<Seq, String> {
    let bytes = text.as_bytes();
    match bytes {
        [letter @ b'A'..=b'Z'] => Ok(Seq(letter - b'A')),
        [b'S', ..] => Ok(Seq(number(&text[1..])?)),
        _ => Err(format!("`{text}` is not a sequence")),
    }
}

pub(super) fn print_seq(seq: Seq) -> String {
    if seq.0 < 26 { char::from(b'A' + seq.0).to_string() } else { format!("S{}", seq.0) }
}

pub(super) fn ticket(text: &str) -> Result<Ticket, String> {
    let digits = text.strip_prefix('T').ok_or_else(|| format!("`{text}` is not a ticket"))?;
    Ok(Ticket(number(digits)?))
}

pub(super) fn transfer(text: &str) -> Result<Transfer, String> {
    let digits = text.strip_prefix('K').ok_or_else(|| format!("`{text}` is not a transfer"))?;
    Ok(Transfer(number(digits)?))
}

pub(super) fn lease(text: &str) -> Result<Lease, String> {
    let digits = text.strip_prefix('L').ok_or_else(|| format!("`{text}` is not a lease"))?;
    Ok(Lease(number(digits)?))
}

/// `3+4:9,10+2:7`: from token 3 four tokens with digest 9, and so on.
pub(super) fn spans(text: &str) -> Result<Vec<Span>, String> {
    let one = |part: &str| {
        let fault = || format!("`{part}` is no span: start+length:digest");
        let (start, rest) = part.split_once('+').ok_or_else(fault)?;
        let (length, digest) = rest.split_once(':').ok_or_else(fault)?;
        Ok(Span { start: number(start)?, length: number(length)?, digest: number(digest)? })
    };
    text.split(',').map(one).collect()
}

pub(super) fn print_spans(spans: &[Span]) -> String {
    let parts: Vec<String> = spans.iter().map(|s| format!("{}+{}:{}", s.start, s.length, s.digest)).collect();
    parts.join(",")
}

pub(super) fn owner(text: &str) -> Result<Owner, String> {
    if text.len() > 1 && text.starts_with('T') { Ok(Owner::Ticket(ticket(text)?)) } else { Ok(Owner::Seq(seq(text)?)) }
}

pub(super) fn print_owner(owner: Owner) -> String {
    match owner {
        Owner::Seq(seq) => print_seq(seq),
        Owner::Ticket(ticket) => format!("T{}", ticket.0),
    }
}

pub(super) fn pos(text: &str) -> Result<Pos, String> {
    match text.strip_prefix('-') {
        Some(back) => Ok(Pos::Back(number(back)?)),
        None => Ok(Pos::At(number(text)?)),
    }
}

pub(super) fn print_pos(pos: Pos) -> String {
    match pos {
        Pos::At(at) => at.to_string(),
        Pos::Back(back) => format!("-{back}"),
    }
}

pub(super) fn time(text: &str) -> Result<Time, String> {
    if let Some(ticks) = text.strip_prefix('+') {
        return Ok(Time::After(number(ticks)?));
    }
    let at = text.strip_prefix('@').ok_or_else(|| format!("`{text}` is not a time (+n or @n)"))?;
    Ok(Time::At(number(at)?))
}

pub(super) fn print_time(time: Time) -> String {
    match time {
        Time::At(tick) => format!("@{tick}"),
        Time::After(ticks) => format!("+{ticks}"),
    }
}
