//! Token eviction: scores of keys, and learned ones
//!
//! Policies that need no attention: lengths and directions of keys. And a small network over features of a token, whose weights
//! are the caller's. `scores` [rows] is written anew by each call.

use kvfolio::evict::{FEATURES, FeatureInputs, KeySum, Mlp, Slots, features as features_of, norm as length_of};
use kvfolio::evict::{keydiff_scores, knorm_scores, learned_scores, quest_columns};

use crate::eviction::*;
use crate::lent::{Refused, answer, score_slots, slots};
use crate::ptr;
use crate::status::{KVF_ERR_SHORT_BUFFER, KVF_ERR_SIZE, KVF_ERR_UNSUPPORTED, Status, kvf_status};

/// Knorm: tokens with short keys are kept. `norms` [rows] are lengths of keys. O(rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_knorm_scores(
    stream: *const kvf_stream,
    norms: *const f32,
    scores: *mut f32,
    reason: *mut u32,
) -> kvf_status {
    let score = |slots: &Slots<'_>, [norms]: [&[f32]; 1], scores: &mut [f32]| Ok(knorm_scores(slots, norms, scores)?);
    // SAFETY: rules (a) and (b).
    unsafe { answer(reason, || score_slots(stream, [norms], scores, score)) }
}

/// KeyDiff: tokens whose keys differ from the others are kept, by the cosine of each key and the sum of unit keys (kvf_keysum_add).
/// `dots` [rows] are products of keys with the sum, `norms` [rows] their lengths, `sum_norm` is the sum's. O(rows).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_keydiff_scores(
    stream: *const kvf_stream,
    dots: *const f32,
    norms: *const f32,
    sum_norm: f32,
    scores: *mut f32,
    reason: *mut u32,
) -> kvf_status {
    let score = |slots: &Slots<'_>, [dots, norms]: [&[f32]; 2], scores: &mut [f32]| {
        Ok(keydiff_scores(slots, dots, norms, sum_norm, scores)?)
    };
    // SAFETY: rules (a) and (b).
    unsafe { answer(reason, || score_slots(stream, [dots, norms], scores, score)) }
}

/// Adds the direction of a key, `vector` [n], to `sum` [n]. O(n).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_keysum_add(vector: *const f32, n: usize, sum: *mut f32) -> kvf_status {
    // SAFETY: rules (a) and (b).
    unsafe { change(vector, n, sum, |sum, key| sum.add(key)) }
}

/// Takes the direction of a key out again, once its token is evicted. O(n).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_keysum_remove(vector: *const f32, n: usize, sum: *mut f32) -> kvf_status {
    // SAFETY: rules (a) and (b).
    unsafe { change(vector, n, sum, |sum, key| sum.remove(key)) }
}

/// The length of a vector of `n` elements: of a key, or of a sum of keys. O(n).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_keysum_norm(sum: *const f32, n: usize, norm: *mut f32) -> kvf_status {
    let ask = || {
        // SAFETY: rule (a).
        let (sum, norm) = unsafe { (ptr::slice(sum, n)?, ptr::out(norm)?) };
        norm.set(length_of(sum));
        Ok(())
    };
    crate::status::answer(ask())
}

/// The learned policy: scores of all live tokens by a network. O(rows * F * H).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_learned_scores(
    stream: *const kvf_stream,
    mlp: *const kvf_mlp,
    inputs: *const kvf_feature_inputs,
    scores: *mut f32,
    reason: *mut u32,
) -> kvf_status {
    let score = || {
        // SAFETY: rule (a).
        let (slots, mlp) = unsafe { (slots(stream)?, network(mlp)?) };
        let rows = slots.rows as usize;
        // SAFETY: rules (a) and (b).
        let (inputs, scores) = unsafe { (feature_inputs(inputs, rows)?, ptr::slice_mut(scores, rows)?) };
        Ok(learned_scores(&slots, &mlp, &inputs, scores)?)
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, score) }
}

/// The features that the network sees, for those who train one: features[live][KVF_FEATURES], live tokens in slot order. `n` gets
/// the number of floats, or on KVF_ERR_SHORT_BUFFER how many there would be. O(rows * F).
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_features(
    stream: *const kvf_stream,
    inputs: *const kvf_feature_inputs,
    features: *mut f32,
    cap: usize,
    n: *mut usize,
    reason: *mut u32,
) -> kvf_status {
    let write = || {
        // SAFETY: rule (a).
        let slots = unsafe { slots(stream) }?;
        let (inputs, features, n) =
            // SAFETY: rules (a) and (b).
            unsafe { (feature_inputs(inputs, slots.rows as usize)?, ptr::slice_mut(features, cap)?, ptr::out(n)?) };
        let floats = slots.live().count().checked_mul(FEATURES as usize).ok_or(Status(KVF_ERR_SIZE))?;
        n.set(floats);
        if floats > features.len() {
            return Err(Status(KVF_ERR_SHORT_BUFFER).into());
        }
        let room = features.chunks_exact_mut(FEATURES as usize);
        for (((slot, position), rank), at) in slots.live().zip(0_u32..).zip(room) {
            at.copy_from_slice(&features_of(&slots, &inputs, slot, position, rank));
        }
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, write) }
}

/// Quest: chooses the `count` columns with the highest bounds, each the greatest product with the query that any of its keys
/// can reach, and evicts nothing. The first `dense` columns and the last are always among them; `count` is above `dense`. Of
/// equal bounds the later column is chosen. `bounds` [n] and `chosen` [n] are one per column; `chosen` gets 1 or 0, `n_chosen`
/// how many. At most 64 passes over the columns.
#[cfg_attr(kvf_capi, unsafe(no_mangle))]
pub unsafe extern "C" fn kvf_evict_quest_columns(
    bounds: *const f32,
    n: usize,
    count: u32,
    dense: u32,
    chosen: *mut u8,
    n_chosen: *mut u32,
    reason: *mut u32,
) -> kvf_status {
    let choose = || {
        let (bounds, chosen, n_chosen) =
            // SAFETY: rules (a) and (b).
            unsafe { (ptr::slice(bounds, n)?, ptr::slice_mut(chosen, n)?, ptr::out(n_chosen)?) };
        n_chosen.set(quest_columns(bounds, count, dense, chosen)?);
        Ok(())
    };
    // SAFETY: rule (a).
    unsafe { answer(reason, choose) }
}

/// Changes a sum of unit keys.
///
/// # Safety
/// Rules (a) and (b).
unsafe fn change(
    key: *const f32,
    n: usize,
    sum: *mut f32,
    how: impl FnOnce(&mut KeySum<'_>, &[f32]) -> Result<(), kvfolio::evict::EvictError>,
) -> kvf_status {
    let change = || {
        // SAFETY: the caller's.
        let (key, sum) = unsafe { (ptr::slice(key, n)?, ptr::slice_mut(sum, n)?) };
        Ok(how(&mut KeySum { sum }, key)?)
    };
    // SAFETY: NULL is good.
    unsafe { answer(core::ptr::null_mut(), change) }
}

/// A network that the caller gives.
///
/// # Safety
/// Rule (a).
unsafe fn network<'a>(mlp: *const kvf_mlp) -> Result<Mlp<'a>, Refused> {
    // SAFETY: the caller's.
    let given = unsafe { ptr::input(mlp) }?;
    if given.reserved != 0 {
        return Err(Status(KVF_ERR_UNSUPPORTED).into());
    }
    // SAFETY: the caller's.
    let weights = unsafe { ptr::slice(given.weights, given.n_weights as usize) }?;
    Ok(Mlp::new(given.version, given.features, given.hidden, weights)?)
}

/// What features are made of, over `rows` slots.
///
/// # Safety
/// Rule (a).
unsafe fn feature_inputs<'a>(inputs: *const kvf_feature_inputs, rows: usize) -> Result<FeatureInputs<'a>, Status> {
    // SAFETY: the caller's.
    let given = unsafe { ptr::input(inputs) }?;
    if given.reserved != 0 {
        return Err(Status(KVF_ERR_UNSUPPORTED));
    }
    // SAFETY: the caller's.
    unsafe {
        Ok(FeatureInputs {
            sum: ptr::slice(given.sum, rows)?,
            last: ptr::slice(given.last, rows)?,
            key_norms: ptr::slice(given.key_norms, rows)?,
            value_norms: ptr::slice(given.value_norms, rows)?,
        })
    }
}
