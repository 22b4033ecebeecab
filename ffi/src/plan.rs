//! Plans
//!
//! A plan is one step of the engine over many sequences.
//!
//! ```text
//!         kvf_plan_add*             kvf_plan_finish              kvf_plan_commit
//! idle --> BUILDING -----------------> FINISHED -------------------> idle
//!    ^        | kvf_plan_cancel            | kvf_plan_abort
//!    `--------+----------------------------'
//! ```
//!
//! While a plan is built, only counts are promised: cancelling leaves the digest unchanged. Finish evicts and assigns; it
//! cannot fail. Then the engine scrubs, copies, and computes to the slots that kvf_table_slots gives. Commit says how many
//! tokens of each sequence were accepted; once its arguments are checked it cannot fail.
//!
//! On KVF_RETRY end or preempt a sequence and ask again; on KVF_PENDING wait for transfers; on KVF_NEVER split or reject.

use kvfolio::{Accept, Error, GroupNeed, PageCopy, PlanReport, SealSchedule, SequenceId};

use crate::cache::{group_id, kvf_cache};
use crate::ptr;
use crate::short::{describe, explain, needed};
use crate::status::{KVF_ERR_ARGUMENT, KVF_ERR_SHORT_BUFFER, KVF_ERR_UNSUPPORTED, KVF_OK, Status, answer, kvf_status};
use crate::types::*;

/// Begins a plan and moves time on to `tick`. KVF_ERR_PLAN_STATE when one is open, KVF_ERR_TIME when `tick` is too low.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_plan_begin(cache: *mut kvf_cache, tick: kvf_tick) -> kvf_status {
    let begin = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        Ok(cache.cache.plan_begin(tick)?)
    };
    answer(begin())
}

/// Promises room for `count` more tokens of a sequence, drafts included. `tokens` are their ids, or NULL where they are not
/// known yet: then kvf_plan_commit may give them. If neither does, the sequence publishes nothing from there on. A sequence
/// can be added once: KVF_ERR_DUPLICATE. O(groups).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_plan_add(
    cache: *mut kvf_cache,
    seq: kvf_seq,
    count: u32,
    tokens: *const kvf_token,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let add = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        let (tokens, shortage) =
            // SAFETY: rule (a).
            unsafe { (ptr::optional_slice(tokens, count as usize)?, ptr::optional_output(shortage)?) };
        explain(cache.cache.plan_add(SequenceId::from_bits(seq), count, tokens), shortage)
    };
    answer(add())
}

/// Adds `n` sequences in order, each as by kvf_plan_add. `statuses` gets one status per item: items that do not fit are
/// left out and do not stop those behind them. `n_added` gets how many were added, `shortage` the first shortage. The call
/// itself fails, without adding any, only where a pointer or a reserved field is wrong.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_plan_add_batch(
    cache: *mut kvf_cache,
    items: *const kvf_plan_item,
    n: usize,
    statuses: *mut kvf_status,
    n_added: *mut usize,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let add = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rules (a) and (b).
        let (items, statuses, n_added, mut shortage) = unsafe {
            (ptr::slice(items, n)?, ptr::slice_mut(statuses, n)?, ptr::out(n_added)?, ptr::optional_output(shortage)?)
        };
        for item in items {
            // SAFETY: rule (a).
            unsafe { read_tokens(item) }?;
        }
        let mut added = 0_usize;
        for (item, status) in items.iter().zip(statuses) {
            // SAFETY: rule (a).
            let tokens = unsafe { read_tokens(item) }?;
            let result = cache.cache.plan_add(SequenceId::from_bits(item.seq), item.count, tokens);
            if let Err(Error::Shortage(short)) = &result
                && let Some(out) = shortage.take()
            {
                out.set(&describe(short));
            }
            *status = match result {
                Ok(()) => {
                    added = added.saturating_add(1);
                    KVF_OK
                }
                Err(error) => Status::from(error).0,
            };
        }
        n_added.set(added);
        Ok(())
    };
    answer(add())
}

/// The tokens of an item.
///
/// # Safety
/// Rule (a), for as long as they are used.
pub(crate) unsafe fn read_tokens<'a>(item: &kvf_plan_item) -> Result<Option<&'a [u32]>, Status> {
    if item.reserved != 0 {
        return Err(Status(KVF_ERR_UNSUPPORTED));
    }
    // SAFETY: the caller's.
    unsafe { ptr::optional_slice(item.tokens, item.count as usize) }
}

/// Says what `count` more tokens of a sequence would take in each group, in the order of the configuration: for schedulers,
/// before or while a plan is built. Groups that share a pool show the same pages of it: add their needs up. `n` gets the
/// number of groups, also on KVF_ERR_SHORT_BUFFER, when nothing else is written. Changes nothing. O(groups).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_plan_estimate(
    cache: *const kvf_cache,
    seq: kvf_seq,
    count: u32,
    needs: *mut kvf_group_need,
    cap: usize,
    n: *mut usize,
) -> kvf_status {
    let estimate = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rules (a) and (b); `layout` asserts that the record has the core's layout, and any bits are valid.
        let (needs, n) = unsafe { (ptr::slice_mut(needs.cast::<GroupNeed>(), cap)?, ptr::out(n)?) };
        match cache.cache.estimate(SequenceId::from_bits(seq), count, needs) {
            Ok(groups) => n.set(groups as usize),
            Err(error) => needed(Err(error), Some(n))?,
        }
        Ok(())
    };
    answer(estimate())
}

/// Promises that the pages below entry `upto` of a sequence's row move to the group's sealed pool in this plan. The sequence
/// is in the plan, and these pages are full of committed tokens. Their copies are among those of kvf_plan_copies; after
/// commit the old pages are free. Once per sequence and group: KVF_ERR_DUPLICATE. KVF_ERR_ARGUMENT for a group without a
/// sealed pool, or when `upto` is sealed already or not full. KVF_RETRY, KVF_PENDING or KVF_NEVER where pages,
/// the quota, or copies are short, of which a seal takes one more than it has pages. O(1).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_plan_seal(
    cache: *mut kvf_cache,
    seq: kvf_seq,
    group: u32,
    upto: u32,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let seal = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let shortage = unsafe { ptr::optional_output(shortage) }?;
        let group = group_id(group)?;
        explain(cache.cache.plan_seal(SequenceId::from_bits(seq), group, upto), shortage)
    };
    answer(seal())
}

/// When to seal, as a function of the position alone: the last `recent` tokens stay exact, whole pages behind them are sealed.
/// `pages` gets how many pages of a row the query at `position` reads as sealed: what kvf_plan_seal is to be given in the step
/// of that token. `run` gets how many of `count` tokens from there on read the same: cut chunks there, and a prompt gives the
/// same results in chunks of any size. KVF_ERR_ARGUMENT when page_tokens is no power of two from 1 to 256. Needs no cache.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_plan_seal_schedule(
    page_tokens: u32,
    recent: u32,
    position: u32,
    count: u32,
    pages: *mut u32,
    run: *mut u32,
) -> kvf_status {
    let schedule = || {
        // SAFETY: rule (a).
        let (pages, run) = unsafe { (ptr::out(pages)?, ptr::out(run)?) };
        if !page_tokens.is_power_of_two() || page_tokens > 256 {
            return Err(Status(KVF_ERR_ARGUMENT));
        }
        let schedule = SealSchedule { page_tokens, recent };
        pages.set(schedule.sealed_at(position));
        run.set(schedule.run(position, count));
        Ok(())
    };
    answer(schedule())
}

/// Gives a plan up while it is built.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_plan_cancel(cache: *mut kvf_cache) -> kvf_status {
    let cancel = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        Ok(cache.cache.plan_cancel()?)
    };
    answer(cancel())
}

/// Evicts what is missing, assigns pages and copies, and writes them into the tables: from now on all kvf_table_ functions
/// show the new tokens. `report` may be NULL. O(sequences * groups + pages).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_plan_finish(cache: *mut kvf_cache, report: *mut kvf_plan_report) -> kvf_status {
    let finish = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let report = unsafe { ptr::optional_output(report) }?;
        let done = cache.cache.plan_finish()?;
        if let Some(report) = report {
            report.set(&report_of(&done));
        }
        Ok(())
    };
    answer(finish())
}

/// Lists the copies of the last finished plan. All must run before any write of the step. `n` gets how many there are, also
/// on KVF_ERR_SHORT_BUFFER, when nothing else is written.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_plan_copies(
    cache: *const kvf_cache,
    copies: *mut kvf_page_copy,
    cap: usize,
    n: *mut usize,
) -> kvf_status {
    let list = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rules (a) and (b).
        let (copies, n) = unsafe { (ptr::slice_mut(copies, cap)?, ptr::out(n)?) };
        let count = cache.cache.copies().count();
        n.set(count);
        if count > copies.len() {
            return Err(Status(KVF_ERR_SHORT_BUFFER));
        }
        for (slot, copy) in copies.iter_mut().zip(cache.cache.copies()) {
            *slot = copy_of(&copy);
        }
        Ok(())
    };
    answer(list())
}

/// Lists the pages of the last finished plan that still hold what another namespace wrote (flag KVF_CONFIG_SCRUB). Overwrite
/// them before the copies. `n` gets how many there are, also on KVF_ERR_SHORT_BUFFER, when nothing else is written.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_plan_scrubs(
    cache: *const kvf_cache,
    pages: *mut kvf_page_ref,
    cap: usize,
    n: *mut usize,
) -> kvf_status {
    let list = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rules (a) and (b).
        let (pages, n) = unsafe { (ptr::slice_mut(pages, cap)?, ptr::out(n)?) };
        let count = cache.cache.scrubs().count();
        n.set(count);
        if count > pages.len() {
            return Err(Status(KVF_ERR_SHORT_BUFFER));
        }
        for (slot, (pool, page)) in pages.iter_mut().zip(cache.cache.scrubs()) {
            *slot = kvf_page_ref { pool: u32::from(pool.get()), page: page.get() };
        }
        Ok(())
    };
    answer(list())
}

/// Ends a finished plan. `accepts` has one element per sequence, in the order in which they were added. Surplus pages go
/// back, full final pages are published (KVF_PUBLISH_IMMEDIATE), pages that left a window are dropped, and closes that
/// waited are carried out. With a wrong argument (KVF_ERR_ARGUMENT) the plan stays open and unchanged.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_plan_commit(cache: *mut kvf_cache, accepts: *const kvf_accept, n: usize) -> kvf_status {
    let commit = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let given = unsafe { ptr::slice(accepts, n) }?;
        if given.len() != cache.cache.planned()? as usize {
            return Err(Status(KVF_ERR_ARGUMENT));
        }
        for accept in given {
            // SAFETY: rule (a).
            unsafe { ptr::optional_slice(accept.tokens, accept.accepted as usize) }?;
        }
        Ok(cache.cache.plan_commit_each(given.iter().map(|accept| {
            // SAFETY: rule (a), for as long as the call lasts; the loop above has checked the pointer.
            let tokens = unsafe { ptr::optional_slice(accept.tokens, accept.accepted as usize) }.unwrap_or_default();
            Accept { accepted: accept.accepted, verified: accept.verified, tokens }
        }))?)
    };
    answer(commit())
}

/// Takes a finished plan back, when the device no longer executes it: sequences are as before kvf_plan_finish. Pages that
/// were evicted for it stay free.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_plan_abort(cache: *mut kvf_cache) -> kvf_status {
    let abort = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        Ok(cache.cache.plan_abort()?)
    };
    answer(abort())
}

pub(crate) fn report_of(report: &PlanReport) -> kvf_plan_report {
    kvf_plan_report {
        struct_size: 0,
        sequences: report.sequences,
        tokens: report.tokens,
        copies: report.copies,
        scrubs: report.scrubs,
        evicted: report.evicted,
    }
}

fn copy_of(copy: &PageCopy) -> kvf_page_copy {
    kvf_page_copy {
        group: u32::from(copy.group.get()),
        source: copy.source.get(),
        target: copy.target.get(),
        tokens: copy.tokens,
        seals: u32::from(copy.seals),
    }
}
