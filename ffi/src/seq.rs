//! Sequences
//!
//! A sequence is the tokens of one request and their pages. A handle that was closed is refused with KVF_ERR_STALE.

use kvfolio::{Accept, CloseMode, NamespaceId, OpenParams, SequenceId, TicketId};

use crate::cache::{group_id, kvf_cache};
use crate::plan::{read_tokens, report_of};
use crate::prefix::read_spans;
use crate::ptr;
use crate::short::explain;
use crate::status::{KVF_ERR_ARGUMENT, KVF_ERR_UNSUPPORTED, Status, answer, kvf_status};
use crate::types::*;

/// Opens an empty sequence. `params` may be NULL: all zero.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_open(
    cache: *mut kvf_cache,
    params: *const kvf_open_params,
    seq: *mut kvf_seq,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let open = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        let (params, seq, shortage) =
            // SAFETY: rule (a).
            unsafe { (read_params(params)?, ptr::out(seq)?, ptr::optional_output(shortage)?) };
        seq.set(explain(cache.cache.open(&params), shortage)?.to_bits());
        Ok(())
    };
    answer(open())
}

/// Opens a sequence that begins with the tokens of a ticket, which is used up. On failure the ticket is still good.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_open_ticket(
    cache: *mut kvf_cache,
    ticket: kvf_ticket,
    params: *const kvf_open_params,
    seq: *mut kvf_seq,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let open = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        let (params, seq, shortage) =
            // SAFETY: rule (a).
            unsafe { (read_params(params)?, ptr::out(seq)?, ptr::optional_output(shortage)?) };
        seq.set(explain(cache.cache.open_ticket(TicketId::from_bits(ticket), &params), shortage)?.to_bits());
        Ok(())
    };
    answer(open())
}

/// Ends a sequence; `mode` is KVF_CLOSE_*. While the sequence is part of an open plan the call succeeds and is carried out
/// when the plan ends. O(pages).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_close(cache: *mut kvf_cache, seq: kvf_seq, mode: u32) -> kvf_status {
    let close = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        let mode = match mode {
            KVF_CLOSE_KEEP => CloseMode::Keep,
            KVF_CLOSE_DISCARD => CloseMode::Discard,
            _ => return Err(Status(KVF_ERR_ARGUMENT)),
        };
        Ok(cache.cache.close(SequenceId::from_bits(seq), mode)?)
    };
    answer(close())
}

/// Opens `n` children, each with the first `at` tokens of the sequence: all or none. Pages are shared; the first write to a
/// shared page copies it. KVF_ERR_BUSY in an open plan, KVF_ERR_WINDOW_LOST. O(children * pages).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_fork(
    cache: *mut kvf_cache,
    seq: kvf_seq,
    at: u32,
    children: *mut kvf_seq,
    n: usize,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let fork = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        let (children, shortage) =
            // SAFETY: rules (a) and (b); a SequenceId is a transparent u64.
            unsafe { (ptr::slice_mut(children.cast::<SequenceId>(), n)?, ptr::optional_output(shortage)?) };
        explain(cache.cache.fork(SequenceId::from_bits(seq), at, children), shortage)
    };
    answer(fork())
}

/// Cuts a sequence to `len` tokens. A published page that is cut keeps its old tokens in the index; the next write copies
/// it. KVF_ERR_BUSY in an open plan, KVF_ERR_WINDOW_LOST. O(pages dropped).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_truncate(cache: *mut kvf_cache, seq: kvf_seq, len: u32) -> kvf_status {
    let truncate = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        Ok(cache.cache.truncate(SequenceId::from_bits(seq), len)?)
    };
    answer(truncate())
}

/// Takes `n` full pages out of a sequence's row: `columns` are their numbers, ascending. Those behind move up, no byte of a
/// page moves, and the pages are given back at once. The sequence has P tokens less for each: its length counts slots, not
/// positions, from then on, and nothing behind the first of them is published. For token eviction, where a sequence is the row
/// of one layer and KV head, in a cache of one full group. KVF_ERR_UNSUPPORTED with other groups, a sealed pool or media
/// spans, or if the first page is published; KVF_ERR_ARGUMENT for columns that do not ascend, or pages that are not full of
/// verified tokens; KVF_ERR_BUSY in an open plan or while a load into the sequence runs. O(pages of the row).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_remove_pages(
    cache: *mut kvf_cache,
    seq: kvf_seq,
    columns: *const u32,
    n: usize,
) -> kvf_status {
    let remove = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let columns = unsafe { ptr::slice(columns, n) }?;
        Ok(cache.cache.remove_pages(SequenceId::from_bits(seq), columns)?)
    };
    answer(remove())
}

/// Settles provisional tokens: those below `upto` are final, and may be published from now on.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_verify(cache: *mut kvf_cache, seq: kvf_seq, upto: u32) -> kvf_status {
    let verify = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        Ok(cache.cache.verify(SequenceId::from_bits(seq), upto)?)
    };
    answer(verify())
}

/// Adds media spans to a sequence. They begin at or behind its length and behind its other spans.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_add_spans(
    cache: *mut kvf_cache,
    seq: kvf_seq,
    spans: *const kvf_media_span,
    n: usize,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let add = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let (spans, shortage) = unsafe { (read_spans(spans, n)?, ptr::optional_output(shortage)?) };
        explain(cache.cache.add_spans(SequenceId::from_bits(seq), spans), shortage)
    };
    answer(add())
}

/// Appends `n` tokens in one call: a plan of one sequence, begun, added, finished and committed, all tokens final. For
/// programs without batches. Its copies are read with kvf_plan_copies and must run before the tokens are written.
/// `report` may be NULL. Fails as kvf_plan_begin and kvf_plan_add do; nothing has changed then.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_append(
    cache: *mut kvf_cache,
    seq: kvf_seq,
    tokens: *const kvf_token,
    n: usize,
    report: *mut kvf_plan_report,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let append = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        let (tokens, report, shortage) =
            // SAFETY: rule (a).
            unsafe { (ptr::slice(tokens, n)?, ptr::optional_output(report)?, ptr::optional_output(shortage)?) };
        let done = explain(cache.cache.append(SequenceId::from_bits(seq), tokens), shortage)?;
        if let Some(report) = report {
            report.set(&report_of(&done));
        }
        Ok(())
    };
    answer(append())
}

/// Appends the tokens of `n` sequences in one call, all or none: a plan begun, added, finished and committed, all tokens
/// final. Its copies are read with kvf_plan_copies and must run before the tokens are written. `report` may be NULL. Fails
/// as kvf_plan_begin and kvf_plan_add do; nothing has changed then.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_append_batch(
    cache: *mut kvf_cache,
    items: *const kvf_plan_item,
    n: usize,
    report: *mut kvf_plan_report,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let append = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        let (items, report, shortage) =
            // SAFETY: rule (a).
            unsafe { (ptr::slice(items, n)?, ptr::optional_output(report)?, ptr::optional_output(shortage)?) };
        for item in items {
            // SAFETY: rule (a).
            unsafe { read_tokens(item) }?;
        }
        let now = cache.cache.now();
        cache.cache.plan_begin(now)?;
        let add = |item: &kvf_plan_item| {
            // SAFETY: rule (a); the loop above has found no fault.
            let tokens = unsafe { read_tokens(item) }.unwrap_or(None);
            cache.cache.plan_add(SequenceId::from_bits(item.seq), item.count, tokens)
        };
        if let Err(error) = items.iter().try_for_each(add) {
            cache.cache.plan_cancel()?;
            return explain(Err(error), shortage);
        }
        let done = cache.cache.plan_finish()?;
        cache.cache.plan_commit_each(items.iter().map(|item| Accept::all(item.count)))?;
        if let Some(report) = report {
            report.set(&report_of(&done));
        }
        Ok(())
    };
    answer(append())
}

/// Reads what a sequence is now.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_info_read(
    cache: *const kvf_cache,
    seq: kvf_seq,
    info: *mut kvf_seq_info,
) -> kvf_status {
    let read = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rule (a).
        let info = unsafe { ptr::output(info) }?;
        let now = cache.cache.sequence_info(SequenceId::from_bits(seq))?;
        info.set(&kvf_seq_info {
            struct_size: 0,
            published: now.published,
            verified: now.verified,
            len: now.len,
            written: now.written,
            known: now.known,
            ns: now.namespace.to_bits(),
            version: now.version,
            user: now.user,
        });
        Ok(())
    };
    answer(read())
}

/// `pages` gets the length of a sequence's table row in a group: pages with slots, resident or dropped.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_pages(
    cache: *const kvf_cache,
    seq: kvf_seq,
    group: u32,
    pages: *mut u32,
) -> kvf_status {
    let count = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rule (a).
        let pages = unsafe { ptr::out(pages) }?;
        let group = group_id(group)?;
        pages.set(cache.cache.sequence_pages(SequenceId::from_bits(seq), group)?);
        Ok(())
    };
    answer(count())
}

/// `tokens` gets how many leading tokens of two sequences lie in the same pages. O(pages).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_shared_tokens(
    cache: *const kvf_cache,
    a: kvf_seq,
    b: kvf_seq,
    tokens: *mut u32,
) -> kvf_status {
    let count = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rule (a).
        let tokens = unsafe { ptr::out(tokens) }?;
        tokens.set(cache.cache.shared_tokens(SequenceId::from_bits(a), SequenceId::from_bits(b))?);
        Ok(())
    };
    answer(count())
}

/// `share` gets how alike two sequences are to the cache, in thousandths: 1000 * shared / length of the longer one, where
/// shared is what kvf_seq_shared_tokens gives. O(pages).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_cache_hit(
    cache: *const kvf_cache,
    a: kvf_seq,
    b: kvf_seq,
    share: *mut u32,
) -> kvf_status {
    let compare = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rule (a).
        let share = unsafe { ptr::out(share) }?;
        share.set(cache.cache.cache_hit(SequenceId::from_bits(a), SequenceId::from_bits(b))?);
        Ok(())
    };
    answer(compare())
}

/// Which columns of a sequence's row in a group are pages of the group's sealed pool: from `begin`, which is the number of
/// pages with sinks, to before `end`. The others are of the group's own pool. Where none is sealed both are equal. O(1).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_seq_sealed_columns(
    cache: *const kvf_cache,
    seq: kvf_seq,
    group: u32,
    begin: *mut u32,
    end: *mut u32,
) -> kvf_status {
    let columns = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rule (a).
        let (begin, end) = unsafe { (ptr::out(begin)?, ptr::out(end)?) };
        let sealed = cache.cache.sealed_columns(SequenceId::from_bits(seq), group_id(group)?)?;
        begin.set(sealed.begin);
        end.set(sealed.end);
        Ok(())
    };
    answer(columns())
}

/// Reads what a new sequence begins with; NULL is all zero.
///
/// # Safety
/// Rule (a), for as long as the parameters are used.
unsafe fn read_params<'a>(params: *const kvf_open_params) -> Result<OpenParams<'a>, Status> {
    // SAFETY: the caller's.
    let params = unsafe { ptr::optional_input(params) }?;
    if params.reserved != 0 {
        return Err(Status(KVF_ERR_UNSUPPORTED));
    }
    // SAFETY: the caller's.
    let spans = unsafe { read_spans(params.spans, params.n_spans as usize) }?;
    Ok(OpenParams {
        namespace: NamespaceId::from_bits(params.ns),
        class: u8::try_from(params.eviction_class).map_err(|_| Status(KVF_ERR_ARGUMENT))?,
        user: params.user,
        spans,
    })
}
