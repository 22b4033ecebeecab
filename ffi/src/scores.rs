//! Token eviction: scores
//!
//! Policies that look at attention, or at nothing. `scores` [rows] may be a channel of the stream's features, so that scores move
//! with their tokens. A policy of one's own writes that array itself. H2O and TOVA keep scores from step to step and observe
//! each step once it has attended; what others give is new each time.

use kvfolio::evict::{External, H2o, Observation, Policy, Pool, Random, Reduce, Slots, Tova, snapkv_scores};

use crate::eviction::*;
use crate::lent::{Refused, answer, score_slots, slots};
use crate::ptr;
use crate::status::{KVF_ERR_ARGUMENT, KVF_ERR_SIZE, KVF_ERR_UNSUPPORTED, Status, kvf_status};

/// The mean over the neighbours that the kernel covers; beyond the ends there is 0.
pub const KVF_SMOOTH_AVERAGE: u32 = 0;
/// The greatest of them.
pub const KVF_SMOOTH_MAX: u32 = 1;

/// H2O: adds the attention of a step to what tokens have received. Takes probabilities, logits and column sums, these only of
/// one query where there is decay or a flag. `how` may be NULL: all zero. O(queries * heads * rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_h2o_observe(
    stream: *const kvf_stream,
    how: *const kvf_h2o,
    observation: *const kvf_observation,
    scores: *mut f32,
    reason: *mut u32,
) -> kvf_status {
    let observe = || {
        // SAFETY: rule (a).
        let mut policy = unsafe { h2o(how) }?;
        // SAFETY: rules (a) and (b).
        unsafe { observe(&mut policy, stream, observation, scores) }
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, observe) }
}

/// Turns scores of H2O into the numbers that tokens are to be ordered by: with KVF_H2O_UNBIASED means over the queries that saw
/// a token, else the same. `ordered` [rows] gets them for live slots. O(rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_h2o_order(
    stream: *const kvf_stream,
    how: *const kvf_h2o,
    scores: *const f32,
    ordered: *mut f32,
    reason: *mut u32,
) -> kvf_status {
    let order = || {
        // SAFETY: rule (a).
        let (slots, policy) = unsafe { (slots(stream)?, h2o(how)?) };
        let rows = slots.rows as usize;
        // SAFETY: rules (a) and (b).
        let (scores, ordered) = unsafe { (ptr::slice(scores, rows)?, ptr::slice_mut(ordered, rows)?) };
        policy.check()?;
        for (slot, position) in slots.live() {
            if let (Some(&score), Some(at)) = (scores.get(slot as usize), ordered.get_mut(slot as usize)) {
                *at = policy.ordered(score, position, slots.seen);
            }
        }
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, order) }
}

/// TOVA: the attention of the last query, by the mean over heads. Takes probabilities and logits, and column sums of one query.
/// O(heads * rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_tova_observe(
    stream: *const kvf_stream,
    observation: *const kvf_observation,
    scores: *mut f32,
    reason: *mut u32,
) -> kvf_status {
    // SAFETY: rules (a) and (b).
    unsafe { answer(reason, || observe(&mut Tova, stream, observation, scores)) }
}

/// Takes scores that another part of the program observed, as they are: KVF_OBSERVE_SCORES. O(rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_external_observe(
    stream: *const kvf_stream,
    observation: *const kvf_observation,
    scores: *mut f32,
    reason: *mut u32,
) -> kvf_status {
    // SAFETY: rules (a) and (b).
    unsafe { answer(reason, || observe(&mut External, stream, observation, scores)) }
}

/// An order drawn by chance, as if tokens that go were drawn without replacement. A token's draw depends on `seed`, `number`
/// (one for each stream: of request, layer and head) and its position alone. O(rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_random_scores(
    stream: *const kvf_stream,
    seed: u64,
    number: u64,
    scores: *mut f32,
    reason: *mut u32,
) -> kvf_status {
    let draw = |slots: &Slots<'_>, []: [&[f32]; 0], scores: &mut [f32]| {
        let policy = Random { seed, stream: number };
        for (slot, position) in slots.live() {
            if let Some(score) = scores.get_mut(slot as usize) {
                *score = policy.newcomer(position);
            }
        }
        Ok(())
    };
    // SAFETY: rules (a) and (b).
    unsafe { answer(reason, || score_slots(stream, [], scores, draw)) }
}

/// SnapKV: scores of a prompt from the attention that its last W queries gave, `sums` [rows]: summed over the queries, reduced
/// over heads. `smoothing` is KVF_SMOOTH_*, `kernel` an odd number of live tokens up to 63; 1 leaves the sums as they are.
/// Protect the W newest tokens. O(rows * kernel).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_snapkv_scores(
    stream: *const kvf_stream,
    sums: *const f32,
    smoothing: u32,
    kernel: u32,
    scores: *mut f32,
    reason: *mut u32,
) -> kvf_status {
    let score = |slots: &Slots<'_>, [sums]: [&[f32]; 1], scores: &mut [f32]| {
        let pool = match smoothing {
            KVF_SMOOTH_AVERAGE => Pool::Average,
            KVF_SMOOTH_MAX => Pool::Max,
            _ => return Err(Status(KVF_ERR_ARGUMENT).into()),
        };
        Ok(snapkv_scores(slots, sums, pool, kernel, scores)?)
    };
    // SAFETY: rules (a) and (b).
    unsafe { answer(reason, || score_slots(stream, [sums], scores, score)) }
}

/// Lets a policy score what was observed.
///
/// # Safety
/// Rules (a) and (b).
unsafe fn observe(
    policy: &mut impl Policy,
    stream: *const kvf_stream,
    observation: *const kvf_observation,
    scores: *mut f32,
) -> Result<(), Refused> {
    let score = |slots: &Slots<'_>, []: [&[f32]; 0], scores: &mut [f32]| {
        // SAFETY: the caller's.
        let observation = unsafe { observed(observation, slots.rows) }?;
        Ok(policy.observe(slots, &observation, scores)?)
    };
    // SAFETY: the caller's.
    unsafe { score_slots(stream, [], scores, score) }
}

/// What was observed over `rows` slots.
///
/// # Safety
/// Rule (a).
unsafe fn observed<'a>(observation: *const kvf_observation, rows: u32) -> Result<Observation<'a>, Status> {
    // SAFETY: the caller's.
    let given = unsafe { ptr::input(observation) }?;
    let kvf_observation { queries, heads, values, lse, .. } = given;
    let rows = rows as usize;
    let lines = (queries as usize).checked_mul(heads as usize).ok_or(Status(KVF_ERR_SIZE));
    let all = || lines?.checked_mul(rows).ok_or(Status(KVF_ERR_SIZE));
    match given.kind {
        KVF_OBSERVE_PROBABILITIES => {
            // SAFETY: the caller's.
            let rows = unsafe { ptr::slice(values, all()?) }?;
            Ok(Observation::Probabilities { rows, heads })
        }
        KVF_OBSERVE_LOGITS => {
            // SAFETY: the caller's.
            let (rows, lse) = unsafe { (ptr::slice(values, all()?)?, ptr::slice(lse, lines?)?) };
            Ok(Observation::Logits { rows, lse, heads })
        }
        KVF_OBSERVE_COLUMNS => {
            // SAFETY: the caller's.
            let sums = unsafe { ptr::slice(values, rows) }?;
            Ok(Observation::Columns { sums, queries })
        }
        KVF_OBSERVE_SCORES => {
            // SAFETY: the caller's.
            let scores = unsafe { ptr::slice(values, rows) }?;
            Ok(Observation::Scores(scores))
        }
        _ => Err(Status(KVF_ERR_UNSUPPORTED)),
    }
}

/// H2O's parameters.
///
/// # Safety
/// Rule (a).
unsafe fn h2o(how: *const kvf_h2o) -> Result<H2o, Status> {
    // SAFETY: the caller's.
    let given = unsafe { ptr::optional_input(how) }?;
    let reduce = match given.reduce {
        KVF_REDUCE_MEAN => Reduce::Mean,
        KVF_REDUCE_MAX => Reduce::Max,
        KVF_REDUCE_SUM => Reduce::Sum,
        _ => return Err(Status(KVF_ERR_UNSUPPORTED)),
    };
    if given.flags & !(KVF_H2O_SKIP_OWN | KVF_H2O_UNBIASED) != 0 {
        return Err(Status(KVF_ERR_UNSUPPORTED));
    }
    Ok(H2o {
        reduce,
        decay: if given.decay == 0.0 { 1.0 } else { given.decay },
        diagonal: given.flags & KVF_H2O_SKIP_OWN == 0,
        unbiased: given.flags & KVF_H2O_UNBIASED != 0,
    })
}
