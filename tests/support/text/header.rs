//! Configuration lines.

use super::tokens::number;
use crate::spec::{GroupKind, GroupSpec, IndexKind, NamespaceSpec, Policy, PoolSpec, Spec};

/// Reads one configuration line; `Ok(false)` when the line is something else.
pub(super) fn parse(line: &str, spec: &mut Spec) -> Result<bool, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match *words.as_slice() {
        ["POOL", pages] => spec.pools.push(PoolSpec { pages: number(pages)?, policy: Policy::Lru }),
        ["POOL", pages, policy] => spec.pools.push(PoolSpec { pages: number(pages)?, policy: parse_policy(policy)? }),
        ["GROUP", kind, page_tokens, ref rest @ ..] => spec.groups.push(group(kind, page_tokens, rest)?),
        ["INDEX", kind] => spec.index = index(kind)?,
        ["OPTION", ref options @ ..] => options.iter().try_for_each(|o| option(o, spec))?,
        ["LIMIT", name, value] => *limit(name, spec)? = number(value)?,
        ["SEED", seed] => spec.seed = number(seed)?,
        ["NAMESPACE", ref rest @ ..] => namespace(rest, spec)?,
        [page, pool, ref rest @ ..] if page.starts_with('P') && pool.starts_with('N') => {
            let (page_tokens, pages) = (number(&page[1..])?, number(&pool[1..])?);
            spec.groups.push(GroupSpec { page_tokens, ..GroupSpec::FULL });
            spec.pools.push(PoolSpec { pages, policy: Policy::Lru });
            match *rest {
                [] => {}
                ["noidx"] => spec.index = IndexKind::None,
                _ => return Err("after P and N only `noidx`".into()),
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn parse_policy(text: &str) -> Result<Policy, String> {
    Ok(match text {
        "lru" => Policy::Lru,
        "fifo" => Policy::Fifo,
        "lfu" => Policy::Lfu,
        _ => return Err(format!("`{text}` is not a policy")),
    })
}

fn index(text: &str) -> Result<IndexKind, String> {
    Ok(match text {
        "none" => IndexKind::None,
        "flat" => IndexKind::Flat,
        "tree" => IndexKind::Tree,
        _ => return Err(format!("`{text}` is not an index")),
    })
}

fn option(text: &str, spec: &mut Spec) -> Result<(), String> {
    match text {
        "deferred" => spec.deferred = true,
        "tail" => spec.tail = true,
        "scrub" => spec.scrub = true,
        _ => return Err(format!("`{text}` is not an option")),
    }
    Ok(())
}

fn limit<'s>(name: &str, spec: &'s mut Spec) -> Result<&'s mut u32, String> {
    Ok(match name {
        "sequences" => &mut spec.sequences,
        "tickets" => &mut spec.tickets,
        "transfers" => &mut spec.transfers,
        "events" => &mut spec.events,
        "chunks" => &mut spec.table_chunks,
        "classes" => &mut spec.classes,
        "leases" => &mut spec.leases,
        "quotas" => &mut spec.quotas,
        "spans" => &mut spec.spans,
        "nodes" => &mut spec.nodes,
        "namespaces" => &mut spec.spaces,
        "copies" => &mut spec.copies,
        _ => return Err(format!("`{name}` is not a limit")),
    })
}

fn group(kind: &str, page_tokens: &str, rest: &[&str]) -> Result<GroupSpec, String> {
    let (mut window, mut sinks, mut pool, mut ring) = (0, 0, 0, 0);
    let (mut exact, mut contiguous, mut sealed) = (false, false, None);
    let mut words = rest.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().ok_or_else(|| format!("`{word}` needs a number"));
        match word {
            "window" => window = number(value()?)?,
            "sinks" => sinks = number(value()?)?,
            "pool" => pool = number(value()?)?,
            "ring" => ring = number(value()?)?,
            "sealed" => sealed = Some(number(value()?)?),
            "exact" => exact = true,
            "contiguous" => contiguous = true,
            _ => return Err(format!("`{word}` does not belong to a group")),
        }
    }
    let kind = match kind {
        "full" => GroupKind::Full,
        "window" => GroupKind::Window { window, sinks },
        _ => return Err(format!("`{kind}` is not a kind of group")),
    };
    let exact_sinks = if kind == GroupKind::Full { sinks } else { 0 };
    Ok(GroupSpec { kind, page_tokens: number(page_tokens)?, pool, exact, contiguous, ring, sealed, exact_sinks })
}

fn namespace(rest: &[&str], spec: &mut Spec) -> Result<(), String> {
    let mut key = NamespaceSpec::default();
    for pair in rest.chunks(2) {
        let &[name, value] = pair else {
            return Err("a namespace is pairs of name and number".into());
        };
        let field = match name {
            "salt" => &mut key.salt,
            "adapter" => &mut key.adapter,
            "generation" => &mut key.generation,
            "format" => &mut key.format,
            _ => return Err(format!("`{name}` is no part of a namespace")),
        };
        *field = number(value)?;
    }
    spec.namespaces.push(key);
    Ok(())
}
