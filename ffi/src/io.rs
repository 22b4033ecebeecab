//! Transfers
//!
//! While something outside reads or writes pages (swap, disk, another machine), a transfer keeps them: they are neither
//! evicted nor written, even if their sequence is closed. Every begin needs one end.

use kvfolio::{Direction, SequenceId, Source, TicketId, TransferId};

use crate::cache::kvf_cache;
use crate::ptr;
use crate::short::explain;
use crate::status::{KVF_ERR_ARGUMENT, Status, answer, kvf_status};
use crate::types::{kvf_seq, kvf_shortage, kvf_ticket, kvf_transfer};

/// Out of the pages.
pub const KVF_IO_STORE: u32 = 0;
/// Into the pages.
pub const KVF_IO_LOAD: u32 = 1;
/// The content is what it should be.
pub const KVF_IO_OK: u32 = 0;
/// It is not, or nobody knows.
pub const KVF_IO_FAILED: u32 = 1;

/// Begins a transfer of tokens `start` to `end` - 1 of a sequence; `direction` is KVF_IO_STORE or KVF_IO_LOAD. While a load
/// runs, nothing of the sequence is published. KVF_ERR_BUSY in an open plan, KVF_ERR_WINDOW_LOST,
/// KVF_ERR_UNSUPPORTED for an `end` inside a sealed page. O(pages).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_io_begin_seq(
    cache: *mut kvf_cache,
    seq: kvf_seq,
    start: u32,
    end: u32,
    direction: u32,
    transfer: *mut kvf_transfer,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    // SAFETY: the caller's.
    unsafe { begin(cache, Source::Sequence(SequenceId::from_bits(seq)), start, end, direction, transfer, shortage) }
}

/// The same for the tokens of a ticket.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_io_begin_ticket(
    cache: *mut kvf_cache,
    ticket: kvf_ticket,
    start: u32,
    end: u32,
    direction: u32,
    transfer: *mut kvf_transfer,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    // SAFETY: the caller's.
    unsafe { begin(cache, Source::Ticket(TicketId::from_bits(ticket)), start, end, direction, transfer, shortage) }
}

/// Ends a transfer; `result` is KVF_IO_OK or KVF_IO_FAILED. After a load that failed, its pages and all behind them leave
/// the index, and tickets for them are stale.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_io_end(cache: *mut kvf_cache, transfer: kvf_transfer, result: u32) -> kvf_status {
    let end = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        let ok = match result {
            KVF_IO_OK => true,
            KVF_IO_FAILED => false,
            _ => return Err(Status(KVF_ERR_ARGUMENT)),
        };
        Ok(cache.cache.io_end(TransferId::from_bits(transfer), ok)?)
    };
    answer(end())
}

/// # Safety
/// Rules (a), (d) and (e).
unsafe fn begin(
    cache: *mut kvf_cache,
    source: Source,
    start: u32,
    end: u32,
    direction: u32,
    transfer: *mut kvf_transfer,
    shortage: *mut kvf_shortage,
) -> kvf_status {
    let begin = || {
        // SAFETY: rules (d) and (e).
        let cache = unsafe { ptr::receiver_mut(cache) }?;
        // SAFETY: rule (a).
        let (transfer, shortage) = unsafe { (ptr::out(transfer)?, ptr::optional_output(shortage)?) };
        let direction = match direction {
            KVF_IO_STORE => Direction::Store,
            KVF_IO_LOAD => Direction::Load,
            _ => return Err(Status(KVF_ERR_ARGUMENT)),
        };
        transfer.set(explain(cache.cache.io_begin(source, start, end, direction), shortage)?.to_bits());
        Ok(())
    };
    answer(begin())
}
