//! Token eviction: which tokens of a row stay when there is no room for all, and how pages follow.
//!
//! A [`Stream`] is the slots of one row of pages: of a sequence, of one layer or KV head or of all that share a table. One
//! engine serves every policy:
//!
//! 1. **Score.** A [`Policy`] keeps an f32 per slot: [`Oldest`] (StreamingLLM, window), [`H2o`], [`Tova`], [`Random`],
//!    [`External`]; [`snapkv_scores`], [`knorm_scores`], [`keydiff_scores`] and [`learned_scores`] make scores of other
//!    inputs. Whoever has a better one writes the array himself.
//! 2. **Protect.** [`Protected`]: pins, sinks and the newest tokens are no candidates, whatever the policy.
//! 3. **Order.** By score, then position ([`key`]): NaN is lowest, of equal scores the older goes.
//! 4. **Keep.** [`Stream::evict`] or [`keep_best`] within a budget, [`keep_above`] a threshold; [`keep_union`] where several share a table.
//!    [`uniform`], [`pyramid`], [`by_weight`] and [`by_head_scores`] share budgets among layers and heads.
//! 5. **Remove.** [`Stream::retain`] makes holes; [`Stream::drop_dead_columns`] frees pages without a live token;
//!    [`Placement::Reuse`] writes new tokens into holes; [`plan_compaction`] closes them. [`check_sound`] says what a page
//!    layout allows.
//!
//! Steps 1 to 4 are pure. A budget counts the token that was just appended. Scores are of the state *after* a step's
//! attention, which is when to evict; who wants at most so many tokens *in* the attention appends, evicts, attends and then
//! observes: the newest token is protected either way.
//!
//! [`deltas`] and [`PositionMode`] are for positions that are ranks, [`quest_columns`] chooses pages without evicting,
//! [`Meter`] says what was lost.
//!
//! ```
//! use kvfolio::evict::{Counters, Oldest, Placement, Protected, Stream};
//!
//! let (mut valid, mut positions, mut scores) = ([0; 3], [0; 12], [0.0; 12]);
//! let mut stream = Stream::new(4, Counters::default(), &mut valid, &mut positions, &mut scores, 1)?;
//! stream.append(9, Placement::Behind, |_slot| ())?;
//! // A budget of five: one sink, and the newest four.
//! let protected = Protected { pins: &[], sinks: 1, recent: 1 };
//! assert_eq!(stream.evict(&Oldest, &protected, 5, &mut [0; 3])?, 4);
//! let live: Vec<u32> = stream.slots().live().map(|(_, position)| position).collect();
//! assert_eq!(live, [0, 5, 6, 7, 8]);
//! # Ok::<(), kvfolio::evict::EvictError>(())
//! ```

mod budget;
mod compact;
mod error;
mod h2o;
mod heads;
mod keys;
mod learned;
mod meter;
mod observe;
mod order;
mod policy;
mod protect;
mod quest;
mod relative;
mod select;
mod slots;
mod snapkv;
mod sound;
mod stream;

pub use budget::{Bounds, by_weight, pyramid, uniform};
pub use compact::{Compaction, SlotMove, is_sparse, plan_compaction, plan_moves};
pub use error::EvictError;
pub use h2o::{H2o, Tova};
pub use heads::{Head, by_head_scores, by_scores_of};
pub use keys::{KeySum, keydiff_scores, knorm_scores, norm};
pub use learned::{FEATURES, FeatureInputs, Mlp, features, learned_scores};
pub use meter::{Meter, mass_of_lse, mass_of_row, output_error};
pub use observe::{Observation, Reduce};
pub use order::{key, rank};
pub use policy::{External, Oldest, Policy, Random};
pub use protect::{Pin, Protected};
pub use quest::quest_columns;
pub use relative::{PositionMode, deltas};
pub use select::{keep_above, keep_best, keep_best_by, keep_union};
pub use slots::Slots;
pub use snapkv::{Pool, snapkv_scores};
pub use sound::{Removal, check_sound, move_unit};
pub use stream::{Counters, Placement, Stream};
