//! Token eviction's ways in and out: streams that the caller lends, and reasons for what is refused.

use kvfolio::evict::{Counters, EvictError, Pin, Protected, Slots, Stream};

use crate::eviction::{kvf_protected, kvf_stream};
use crate::ptr;
use crate::status::{
    KVF_ERR_ARGUMENT, KVF_ERR_INTERNAL, KVF_ERR_LAYOUT, KVF_ERR_SIZE, KVF_ERR_UNSUPPORTED, KVF_NEVER, KVF_OK,
    KVF_RETRY, Status, kvf_status,
};

/// A failure, with the number of the rule that was broken if there is one.
pub(crate) struct Refused {
    pub(crate) status: kvf_status,
    pub(crate) reason: Option<u32>,
}

impl From<Status> for Refused {
    fn from(Status(status): Status) -> Self {
        Self { status, reason: None }
    }
}

impl From<EvictError> for Refused {
    #[cold]
    #[inline(never)]
    fn from(error: EvictError) -> Self {
        let status = match error {
            EvictError::Full => KVF_RETRY,
            EvictError::Position => KVF_NEVER,
            EvictError::GroupOfTokens | EvictError::Keys => KVF_ERR_UNSUPPORTED,
            EvictError::Layout => KVF_ERR_LAYOUT,
            EvictError::Shape
            | EvictError::Stream
            | EvictError::Recent
            | EvictError::Pins
            | EvictError::Budget { .. }
            | EvictError::Observation
            | EvictError::Parameter => KVF_ERR_ARGUMENT,
            _ => KVF_ERR_INTERNAL,
        };
        Self { status, reason: Some(error.number()) }
    }
}

/// Answers with what `call` gives; `reason`, which may be NULL, gets the number of a rule that was broken.
///
/// # Safety
/// Rule (a).
pub(crate) unsafe fn answer(reason: *mut u32, call: impl FnOnce() -> Result<(), Refused>) -> kvf_status {
    // SAFETY: the caller's.
    let reason = match unsafe { ptr::optional_out(reason) } {
        Ok(reason) => reason,
        Err(Status(status)) => return status,
    };
    match call() {
        Ok(()) => KVF_OK,
        Err(refused) => {
            if let (Some(out), Some(number)) = (reason, refused.reason) {
                out.set(number);
            }
            refused.status
        }
    }
}

/// Counters of a stream, and the slots that its arrays have.
fn counters(given: &kvf_stream) -> Result<(Counters, usize), Refused> {
    if given.reserved != 0 {
        return Err(Status(KVF_ERR_UNSUPPORTED).into());
    }
    // Before the arrays are looked at: their length must mean something.
    if !given.page_tokens.is_power_of_two() || given.page_tokens > 64 {
        return Err(EvictError::Shape.into());
    }
    let slots = given.columns.checked_mul(given.page_tokens).ok_or(EvictError::Shape)?;
    Ok((Counters { seen: given.seen, live: given.live, rows: given.rows }, slots as usize))
}

/// The slots of a stream that is read.
///
/// # Safety
/// Rule (a).
pub(crate) unsafe fn slots<'a>(stream: *const kvf_stream) -> Result<Slots<'a>, Refused> {
    // SAFETY: the caller's.
    let given = unsafe { ptr::input(stream) }?;
    // SAFETY: the caller's.
    unsafe { slots_of(&given) }
}

/// The slots of a stream whose struct was read.
///
/// # Safety
/// Rule (a).
unsafe fn slots_of<'a>(given: &kvf_stream) -> Result<Slots<'a>, Refused> {
    let (counters, slots) = counters(given)?;
    let (valid, positions) =
        // SAFETY: the caller's.
        unsafe { (ptr::slice(given.valid, given.columns as usize)?, ptr::slice(given.positions, slots)?) };
    Ok(Slots::new(given.page_tokens, counters, valid, positions)?)
}

/// The same, and one of its channels.
///
/// # Safety
/// Rule (a).
pub(crate) unsafe fn slots_and_channel<'a>(
    given: &kvf_stream,
    channel: u32,
) -> Result<(Slots<'a>, &'a [f32]), Refused> {
    let (_, count) = counters(given)?;
    if channel >= given.channels {
        return Err(EvictError::Shape.into());
    }
    let floats = count.checked_mul(given.channels as usize).ok_or(Status(KVF_ERR_SIZE))?;
    // SAFETY: the caller's.
    let (slots, features) = unsafe { (slots_of(given)?, ptr::slice(given.features, floats)?) };
    Ok((slots, features.chunks_exact(count.max(1)).nth(channel as usize).unwrap_or_default()))
}

/// Lets `score` write the scores of a stream's slots, from arrays of a float per slot.
///
/// # Safety
/// Rules (a) and (b).
pub(crate) unsafe fn score_slots<const N: usize>(
    stream: *const kvf_stream,
    inputs: [*const f32; N],
    scores: *mut f32,
    score: impl FnOnce(&Slots<'_>, [&[f32]; N], &mut [f32]) -> Result<(), Refused>,
) -> Result<(), Refused> {
    // SAFETY: the caller's.
    let slots = unsafe { slots(stream) }?;
    let rows = slots.rows as usize;
    let mut arrays = [&[][..]; N];
    for (array, input) in arrays.iter_mut().zip(inputs) {
        // SAFETY: the caller's.
        *array = unsafe { ptr::slice(input, rows) }?;
    }
    // SAFETY: the caller's.
    let scores = unsafe { ptr::slice_mut(scores, rows) }?;
    score(&slots, arrays, scores)
}

/// A stream that a call changes.
pub(crate) struct Lent<'a> {
    pub(crate) stream: Stream<'a>,
    target: *mut kvf_stream,
}

impl Lent<'_> {
    /// Writes the counters back.
    pub(crate) fn give_back(self) {
        let Counters { seen, live, rows } = self.stream.counters();
        // SAFETY: made by `lent`, which read these fields there; rule (a) says that they are writable.
        unsafe {
            (&raw mut (*self.target).seen).write(seen);
            (&raw mut (*self.target).live).write(live);
            (&raw mut (*self.target).rows).write(rows);
        }
    }
}

/// A stream that a call changes.
///
/// # Safety
/// Rules (a) and (b), until it is given back.
pub(crate) unsafe fn lent<'a>(target: *mut kvf_stream) -> Result<Lent<'a>, Refused> {
    // SAFETY: the caller's.
    let given = unsafe { ptr::input(target) }?;
    let (counters, slots) = counters(&given)?;
    let floats = slots.checked_mul(given.channels as usize).ok_or(Status(KVF_ERR_SIZE))?;
    // SAFETY: the caller's.
    let (valid, positions, features) = unsafe {
        (
            ptr::slice_mut(given.valid, given.columns as usize)?,
            ptr::slice_mut(given.positions, slots)?,
            ptr::slice_mut(given.features, floats)?,
        )
    };
    let stream = Stream::new(given.page_tokens, counters, valid, positions, features, given.channels)?;
    Ok(Lent { stream, target })
}

/// What is protected.
///
/// # Safety
/// Rule (a).
pub(crate) unsafe fn protected<'a>(guarded: *const kvf_protected) -> Result<Protected<'a>, Status> {
    // SAFETY: the caller's.
    let given = unsafe { ptr::input(guarded) }?;
    // SAFETY: the caller's; the core's record has the same layout.
    let pins = unsafe { ptr::slice(given.pins.cast::<Pin>(), given.n_pins as usize) }?;
    Ok(Protected { pins, sinks: given.sinks, recent: given.recent })
}
