//! Prefix index
//!
//! A match finds the longest cached beginning of a prompt and pins it by a ticket. The ticket is used up by
//! kvf_seq_open_ticket, or given back by kvf_prefix_drop. A hit is confirmed by comparing tokens, never by a hash.

use kvfolio::{NamespaceId, Prompt, TicketId};

use crate::cache::kvf_cache;
use crate::ptr;
use crate::short::explain;
use crate::status::{KVF_ERR_UNSUPPORTED, Status, answer, kvf_status};
use crate::types::{kvf_media_span, kvf_prompt, kvf_shortage, kvf_tick, kvf_ticket};

/// Deadline of a ticket that stays until it is opened or dropped.
pub const KVF_NO_DEADLINE: kvf_tick = 0xFFFF_FFFF_FFFF_FFFF;

/// `tokens` gets the length of the longest prefix of the prompt that a match would give, at most `limit`. Changes nothing.
/// O(pages hit + groups).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_prefix_lookup(
    cache: *const kvf_cache,
    prompt: *const kvf_prompt,
    limit: u32,
    tokens: *mut u32,
) -> kvf_status {
    let lookup = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rule (a).
        let (prompt, tokens) = unsafe { (read_prompt(prompt)?, ptr::out(tokens)?) };
        tokens.set(cache.cache.lookup(&prompt, limit)?.tokens);
        Ok(())
    };
    answer(lookup())
}

/// Finds the longest cached prefix of at most `limit` tokens and pins it. `limit` is usually one less than the prompt, so
/// that something is left to compute. A hit of 0 tokens gives a ticket as well. The ticket is dropped once time passes
/// `deadline`, which may be KVF_NO_DEADLINE. O(pages hit + groups).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_prefix_match(
    cache: *mut kvf_cache,
    prompt: *const kvf_prompt,
    limit: u32,
    deadline: kvf_tick,
    ticket: *mut kvf_ticket,
    tokens: *mut u32,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let find = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        let (prompt, ticket, tokens, shortage) =
            // SAFETY: rule (a).
            unsafe { (read_prompt(prompt)?, ptr::out(ticket)?, ptr::out(tokens)?, ptr::optional_output(shortage)?) };
        let deadline = (deadline != KVF_NO_DEADLINE).then_some(deadline);
        let (id, hit) = explain(cache.cache.match_prefix(&prompt, limit, deadline), shortage)?;
        ticket.set(id.to_bits());
        tokens.set(hit.tokens);
        Ok(())
    };
    answer(find())
}

/// Gives a ticket back. A transfer that runs on it keeps its pages until it ends.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_prefix_drop(cache: *mut kvf_cache, ticket: kvf_ticket) -> kvf_status {
    let drop = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        Ok(cache.cache.drop_ticket(TicketId::from_bits(ticket))?)
    };
    answer(drop())
}

/// Publishes up to `budget` pages, of the sequences in the order in which they first had one to publish (mode
/// KVF_PUBLISH_DEFERRED). `published` gets how many; less than `budget` means that nothing is left that fits.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_prefix_publish(cache: *mut kvf_cache, budget: u32, published: *mut u32) -> kvf_status {
    let publish = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let published = unsafe { ptr::out(published) }?;
        published.set(cache.cache.publish(budget));
        Ok(())
    };
    answer(publish())
}

/// Reads a prompt; its arrays stay where they are.
///
/// # Safety
/// Rule (a), for as long as the prompt is used.
pub(crate) unsafe fn read_prompt<'a>(prompt: *const kvf_prompt) -> Result<Prompt<'a>, Status> {
    // SAFETY: the caller's.
    let prompt = unsafe { ptr::input(prompt) }?;
    if prompt.reserved != 0 {
        return Err(Status(KVF_ERR_UNSUPPORTED));
    }
    // SAFETY: the caller's.
    let tokens = unsafe { ptr::slice(prompt.tokens, prompt.n_tokens as usize) }?;
    // SAFETY: the caller's.
    let spans = unsafe { read_spans(prompt.spans, prompt.n_spans as usize) }?;
    Ok(Prompt { namespace: NamespaceId::from_bits(prompt.ns), tokens, spans })
}

/// Media spans, which have the core's layout.
///
/// # Safety
/// Rule (a), for as long as the spans are used.
pub(crate) unsafe fn read_spans<'a>(
    spans: *const kvf_media_span,
    count: usize,
) -> Result<&'a [kvfolio::MediaSpan], Status> {
    // SAFETY: the caller's; `types` asserts that the layouts are the same, and any bits are valid.
    unsafe { ptr::slice(spans.cast(), count) }
}
