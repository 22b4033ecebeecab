//! A head's tokens under a policy of eviction, replayed over recorded attention.
//!
//! At each step a token comes; if there are more than the budget then, one goes; what is left shares the attention of the
//! recorded query. What a query would have paid to evicted tokens is its evicted mass.

use kvfolio::evict::{
    Counters, EvictError, External, FeatureInputs, Meter, Mlp, Placement, Protected, Random, Stream, learned_scores,
};

use super::recording::Head;

/// How tokens are scored; the rest is the same for all.
#[derive(Clone, Copy)]
pub(super) enum Scores<'a> {
    /// The oldest goes.
    Oldest,
    /// Drawn anew in each step.
    Random(Random),
    /// Attention received so far.
    H2o,
    /// A network's.
    Learned(Mlp<'a>),
}

/// What stays of a head's tokens.
pub(super) struct Policy<'a> {
    pub(super) budget: u32,
    pub(super) scores: Scores<'a>,
    pub(super) protected: Protected<'a>,
}

/// Channels of a stream.
const SCORE: u32 = 0;
const SUM: u32 = 1;
const LAST: u32 = 2;
const KEYS: u32 = 3;
const VALUES: u32 = 4;
const CHANNELS: u32 = 5;

/// What features are made of, at some point of a replay.
pub(super) fn inputs<'a>(stream: &'a Stream<'_>) -> FeatureInputs<'a> {
    FeatureInputs {
        sum: stream.channel(SUM),
        last: stream.channel(LAST),
        key_norms: stream.channel(KEYS),
        value_norms: stream.channel(VALUES),
    }
}

/// Replays a head's tokens; `look` is shown the stream after each query. Gives the evicted mass of the queries
/// that had too many tokens to see.
pub(super) fn replay(
    head: &Head<'_>,
    policy: &Policy<'_>,
    mut look: impl FnMut(usize, &Stream<'_>),
) -> Result<Meter, EvictError> {
    let (tokens, budget) = (head.key_norms.len(), policy.budget);
    // Pages of one token: what is evicted leaves no hole.
    let slots = (budget as usize).saturating_add(1).min(tokens);
    let (mut valid, mut positions) = (vec![0; slots], vec![0; slots]);
    let mut features = vec![0.0; slots * CHANNELS as usize];
    let mut keep = vec![0; slots];
    let mut stream = Stream::new(1, Counters::default(), &mut valid, &mut positions, &mut features, CHANNELS)?;
    let mut meter = Meter::default();
    let mut seen = Vec::new();
    for t in 0..tokens {
        let mut at = 0;
        stream.append(1, Placement::Behind, |slot| at = slot as usize)?;
        for (channel, norms) in [(KEYS, &head.key_norms), (VALUES, &head.value_norms)] {
            stream.channel_mut(channel).1[at] = norms[t];
        }
        if stream.counters().live > budget {
            stream.evict(&External, &policy.protected, budget, &mut keep)?;
            stream.drop_dead_columns(|_| ());
        }
        let row: Vec<f32> = head.row(t).collect();
        seen.clear();
        seen.extend(stream.slots().live().map(|(slot, position)| (slot as usize, row[position as usize])));
        let (kept, all): (f32, f32) = (seen.iter().map(|(_, x)| x).sum(), row.iter().sum());
        if t >= budget as usize {
            meter.add((1.0 - kept / all).max(0.0));
        }
        for &(slot, mass) in &seen {
            let mass = if kept > 0.0 { mass / kept * head.group as f32 } else { 0.0 };
            stream.channel_mut(LAST).1[slot] = mass;
            stream.channel_mut(SUM).1[slot] += mass;
        }
        score(&mut stream, policy.scores)?;
        look(t, &stream);
    }
    Ok(meter)
}

/// Scores all tokens for the next step.
fn score(stream: &mut Stream<'_>, scores: Scores<'_>) -> Result<(), EvictError> {
    let slots = stream.slots();
    let mut made = vec![0.0; slots.rows as usize];
    match scores {
        Scores::Oldest => {}
        Scores::Random(random) => {
            let now = Random { seed: random.seed ^ u64::from(slots.seen) << 32, ..random };
            for (slot, position) in slots.live() {
                made[slot as usize] = kvfolio::evict::Policy::newcomer(&now, position);
            }
        }
        Scores::H2o => made.copy_from_slice(&stream.channel(SUM)[..slots.rows as usize]),
        Scores::Learned(mlp) => learned_scores(&slots, &mlp, &inputs(stream), &mut made)?,
    }
    stream.channel_mut(SCORE).1[..made.len()].copy_from_slice(&made);
    Ok(())
}
