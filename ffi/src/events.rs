//! Events
//!
//! What entered and left the index, for routers. Folding all events over (group, key) gives the index. The ring never
//! blocks: when it is full the oldest event is lost and counted.

use kvfolio::{Error, Event};

use crate::cache::kvf_cache;
use crate::ptr;
use crate::short::needed;
use crate::status::{answer, kvf_status};
use crate::types::kvf_event;

/// Events moved at a time.
const BATCH: usize = 4;

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

/// Lists everything that the index holds as KVF_EVENT_STORED records of number 0, parents before children: what a reader starts from,
/// or starts again from after lost events. `n` gets how many, `last` the number of the last event made; folding the records
/// and all later events gives the index. `scratch` needs 1 + pages / 32 elements for the pages of the pool that carries the
/// index (or index_nodes), and is overwritten. On KVF_ERR_SHORT_BUFFER `n` gets the elements needed, of `scratch` while that
/// is too short, else of `events`. KVF_ERR_UNSUPPORTED where no events are made. O(nodes * runs of their paths).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_events_keys(
    cache: *const kvf_cache,
    scratch: *mut u32,
    scratch_cap: usize,
    events: *mut kvf_event,
    cap: usize,
    n: *mut usize,
    last: *mut u64,
) -> kvf_status {
    let list = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver(cache) }?;
        // SAFETY: rules (a) and (b).
        let (scratch, events, n, last) = unsafe {
            (ptr::slice_mut(scratch, scratch_cap)?, ptr::slice_mut(events, cap)?, ptr::out(n)?, ptr::out(last)?)
        };
        // Asked first with no room for events, so that none is touched unless all of them fit.
        let need = match cache.cache.export_keys(scratch, &mut []) {
            Err(Error::ShortBuffer(need)) if scratch_is_enough(cache, scratch) => need as usize,
            Ok(_) => 0,
            Err(error) => return needed(Err(error), Some(n)),
        };
        let Some(room) = events.get_mut(..need) else {
            return needed(Err(Error::ShortBuffer(u32::try_from(need).unwrap_or(u32::MAX))), Some(n));
        };
        let (_, made) = cache.cache.export_keys(scratch, as_core(room))?;
        for record in room {
            to_c(record);
        }
        n.set(need);
        last.set(made);
        Ok(())
    };
    answer(list())
}

/// Whether `export_keys` asks for events, not for scratch.
fn scratch_is_enough(cache: &kvf_cache, scratch: &[u32]) -> bool {
    // Without any room it names the scratch elements that it needs.
    match cache.cache.export_keys(&mut [], &mut []) {
        Err(Error::ShortBuffer(words)) => scratch.len() >= words as usize,
        _ => true,
    }
}

const _: () = assert!(size_of::<kvf_event>() == size_of::<Event>() && align_of::<kvf_event>() == align_of::<Event>());

/// The caller's records as the core's, all of them zero.
fn as_core(records: &mut [kvf_event]) -> &mut [Event] {
    let (first, count) = (records.as_mut_ptr().cast::<Event>(), records.len());
    // SAFETY: both have the same size and alignment, and zero bytes are a valid Event (`kvfolio::records`).
    unsafe {
        first.write_bytes(0, count);
        core::slice::from_raw_parts_mut(first, count)
    }
}

/// Turns a record that the core wrote into the caller's form, in its place.
fn to_c(record: &mut kvf_event) {
    // SAFETY: `as_core` made it an Event, and the core wrote only Events; the size and the alignment are the same.
    let event = unsafe { (&raw const *record).cast::<Event>().read() };
    *record = event_of(&event);
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
