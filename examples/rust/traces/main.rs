//! `kvf-traces [--requests N [--pages P]]`: real request traces, one request in flight, in pools of 1, 5, 20 and 100 % of their
//! working set or in one of P pages; the first N requests of each or all. Prints hit rates and fails where they are not what
//! `lru` works out.
//!
//! The working set is the number of different full pages of prompts and replies. A pool holds the longest request at least.
//! Traces are read below `KVF_DATA` (default `../shared/data`); those that are not there are skipped, counted, and with
//! `CI=true` a failure.

mod lru;

use core::error::Error;
use std::env;

use kvfolio_examples::manager;
use kvfolio_examples::workload::{PAGE_TOKENS, Trace};

use lru::Lru;

type Result<T> = core::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (most, pages) = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => (usize::MAX, None),
        ["--requests", n] => (n.parse()?, None),
        ["--requests", n, "--pages", pages] => (n.parse()?, Some(pages.parse()?)),
        _ => return Err("usage: kvf-traces [--requests N [--pages P]]".into()),
    };
    let (mut passed, mut skipped) = (0, 0);
    for (name, file) in [("conversations", Trace::CONVERSATIONS), ("synthetic", Trace::SYNTHETIC)] {
        let Some(mut trace) = Trace::find(file)? else {
            println!("{name}: skipped, {file} is not below KVF_DATA");
            skipped += 1;
            continue;
        };
        trace.requests.truncate(most);
        passed += replay(name, &trace, pages)?;
    }
    println!("{passed} passed, 0 failed, {skipped} skipped");
    if skipped > 0 && env::var("CI").is_ok_and(|ci| ci == "true") {
        return Err("traces are missing".into());
    }
    Ok(())
}

/// Serves a trace from pools of four sizes, or of one, and compares; gives how many.
fn replay(name: &'static str, trace: &Trace, wanted: Option<usize>) -> Result<u32> {
    let working_set = serve(trace, usize::MAX)?.pages();
    let tokens_of = |request: usize| trace.prompt(request).len() + trace.reply(request).len();
    let longest = (0..trace.requests.len()).map(tokens_of).max().unwrap_or(0).div_ceil(PAGE_TOKENS as usize);
    let prompts: usize = (0..trace.requests.len()).map(|request| trace.prompt(request).len()).sum();
    println!(
        "{name}: {} requests, {prompts} tokens in prompts, working set {working_set} pages, longest request {longest} pages\n\
         {:>6}{:>10}{:>14}{:>10}{:>12}  digest",
        trace.requests.len(),
        "pool",
        "pages",
        "hit tokens",
        "hit rate",
        "evicted"
    );
    let pools = match wanted {
        Some(pages) => vec![(pages.saturating_mul(100) / working_set.max(1), pages)],
        None => [1, 5, 20, 100].map(|share| (share, (working_set * share).div_ceil(100))).to_vec(),
    };
    for &(share, pages) in &pools {
        let pages = pages.max(longest);
        let work = trace.workload(name, u32::try_from(pages)?, 1, 0);
        let is = manager::run(&work)?;
        let must = serve(trace, pages)?;
        println!(
            "{share:>4} %{pages:>10}{:>14}{:>8.2} %{:>12}  {:016x}",
            is.hit_tokens,
            is.hit_tokens as f64 / prompts as f64 * 100.0,
            is.evicted_pages,
            is.digest
        );
        if (is.hit_tokens, is.evicted_pages) != (must.hit_tokens, must.dropped) {
            return Err(format!("expected {} hit tokens and {} evictions", must.hit_tokens, must.dropped).into());
        }
    }
    Ok(pools.len() as u32)
}

/// The trace in the independent cache.
fn serve(trace: &Trace, pages: usize) -> Result<Lru> {
    let mut lru = Lru::new(pages);
    for request in 0..trace.requests.len() {
        lru.serve(&trace.prompt(request), &trace.reply(request)).ok_or("a request does not fit into the pool")?;
    }
    Ok(lru)
}
