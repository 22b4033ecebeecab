//! Events
//!
//! What entered and left the index, for routers. Folding all events over (group, key) gives the index. The ring never
//! blocks: when it is full the oldest event is lost and counted.

use kvfolio::Event;

use crate::cache::kvf_cache;
use crate::ptr;
use crate::status::{answer, kvf_status};
use crate::types::kvf_event;

/// Events moved at a time.
const BATCH: usize = 8;

/// Moves the oldest events to `events`, at most `cap`. `n` gets how many, `lost` how many were lost since the last call.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_events_read(
    cache: *mut kvf_cache,
    events: *mut kvf_event,
    cap: usize,
    n: *mut usize,
    lost: *mut u64,
) -> kvf_status {
    let read = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rules (a) and (b).
        let (events, n, lost) = unsafe { (ptr::slice_mut(events, cap)?, ptr::out(n)?, ptr::out(lost)?) };
        let mut batch = [Event::default(); BATCH];
        let (mut total, mut all_lost) = (0_usize, 0_u64);
        for slots in events.chunks_mut(BATCH) {
            let (count, lost) = cache.cache.read_events(batch.get_mut(..slots.len()).unwrap_or(&mut []));
            for (slot, event) in slots.iter_mut().zip(batch.iter().take(count)) {
                *slot = event_of(event);
            }
            total = total.saturating_add(count);
            all_lost = all_lost.saturating_add(lost);
            if count < slots.len() {
                break;
            }
        }
        n.set(total);
        lost.set(all_lost);
        Ok(())
    };
    answer(read())
}

fn event_of(event: &Event) -> kvf_event {
    kvf_event {
        number: event.sequence,
        key: event.key,
        parent_key: event.parent_key,
        page: event.page,
        namespace_slot: event.namespace,
        group: u32::from(event.group),
        kind: event.kind as u32,
    }
}
