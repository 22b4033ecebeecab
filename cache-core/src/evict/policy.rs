//! What a policy is: a way to give tokens scores. The rest of eviction is the same for all.

use super::error::EvictError;
use super::observe::Observation;
use super::protect::Protected;
use super::select::keep_best_by;
use super::slots::Slots;
use super::stream::{Placement, Stream};

/// A policy's part: stored scores, one f32 per slot, from what the engine observes. Lower goes first.
///
/// Its own state, if it has any beside the scores, is the implementation's; all that is here is the same however tokens are
/// cut into chunks.
pub trait Policy {
    /// The score of a token that is appended.
    fn newcomer(&self, position: u32) -> f32 {
        let _ = position;
        0.0
    }

    /// Changes the stored scores by what a step's queries saw, once it has attended. The queries are those of the newest
    /// tokens, in order, and the last one is that of position `seen - 1`.
    ///
    /// # Errors
    /// `Observation` for one that the policy does not take, or of another shape; scores are then unchanged.
    fn observe(
        &mut self,
        slots: &Slots<'_>,
        observation: &Observation<'_>,
        scores: &mut [f32],
    ) -> Result<(), EvictError> {
        let _ = (slots, observation, scores);
        Ok(())
    }

    /// The number that tokens are ordered by, of a stored score.
    fn ordered(&self, score: f32, position: u32, seen: u32) -> f32 {
        let _ = (position, seen);
        score
    }
}

impl Stream<'_> {
    /// Appends as [`Stream::append`], each token with the policy's score for a newcomer in channel 0.
    ///
    /// # Errors
    /// As there.
    pub fn append_scored(
        &mut self,
        policy: &impl Policy,
        count: u32,
        placement: Placement,
        mut place: impl FnMut(u32),
    ) -> Result<(), EvictError> {
        let mut position = self.counters().seen;
        let mut scored = |stream: &mut Self, slot: u32| {
            if let Some(score) = stream.channel_mut(0).1.get_mut(slot as usize) {
                *score = policy.newcomer(position);
            }
            position = position.saturating_add(1);
            place(slot);
        };
        self.append_with(count, placement, &mut scored)
    }

    /// Lets a policy score what a step's queries saw, in channel 0.
    ///
    /// # Errors
    /// As [`Policy::observe`].
    pub fn observe(&mut self, policy: &mut impl Policy, observation: &Observation<'_>) -> Result<(), EvictError> {
        let (slots, scores) = self.channel_mut(0);
        policy.observe(&slots, observation, scores)
    }

    /// Makes holes of all but `budget` tokens, by the policy's order of the scores in channel 0. `keep` is room for a word
    /// per column. Gives how many tokens went.
    ///
    /// # Errors
    /// As [`keep_best`](super::keep_best); nothing has changed then.
    pub fn evict(
        &mut self,
        policy: &impl Policy,
        protected: &Protected<'_>,
        budget: u32,
        keep: &mut [u64],
    ) -> Result<u32, EvictError> {
        let slots = self.slots();
        let scores = self.channel(0);
        let score = |slot: u32, position| {
            policy.ordered(scores.get(slot as usize).copied().unwrap_or(0.0), position, slots.seen)
        };
        let kept = keep_best_by(&slots, score, protected, budget, keep)?;
        let gone = slots.live.saturating_sub(kept);
        self.retain(keep)?;
        Ok(gone)
    }
}

/// What is oldest goes first: with sinks StreamingLLM, without them a plain window. All scores are equal, and of equal scores
/// the older token goes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Oldest;

impl Policy for Oldest {}

/// Scores that another part of the program gives, taken as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct External;

impl Policy for External {
    fn observe(
        &mut self,
        slots: &Slots<'_>,
        observation: &Observation<'_>,
        scores: &mut [f32],
    ) -> Result<(), EvictError> {
        let &Observation::Scores(given) = observation else { return Err(EvictError::Observation) };
        let rows = slots.rows as usize;
        let (given, scores) = given.get(..rows).zip(scores.get_mut(..rows)).ok_or(EvictError::Observation)?;
        scores.copy_from_slice(given);
        Ok(())
    }
}

/// Tokens in an order drawn by chance, as if those that go were drawn without replacement. A token's draw depends on seed,
/// stream and position alone, not on calls or chunks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random {
    /// One for a run.
    pub seed: u64,
    /// One for each stream: of request, layer and head.
    pub stream: u64,
}

impl Policy for Random {
    fn newcomer(&self, position: u32) -> f32 {
        let draw = mix(self.seed ^ mix(mix(self.stream) ^ u64::from(position)));
        // 24 bits, which an f32 holds exactly.
        (draw >> 40) as f32
    }
}

/// SplitMix64: one step of its state, and the output.
const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
