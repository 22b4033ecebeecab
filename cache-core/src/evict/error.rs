//! Why nothing is evicted.

use core::fmt;

/// What is wrong with a question about eviction. Nothing has changed where one is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvictError {
    /// P is not a power of two in `1..=64`, or arrays are not as long as pages, slots and channels need.
    Shape,
    /// The counters and the arrays of a stream do not belong together.
    Stream,
    /// More slots than the arrays have.
    Full,
    /// More positions than 32 bits count, or than the model has.
    Position,
    /// `recent` is 0: the token that was just appended would be a candidate.
    Recent,
    /// Pinned ranges are empty, overlap or do not ascend.
    Pins,
    /// What is protected is more than the budget, or the budget is 0.
    Budget {
        /// Tokens that are protected.
        protected: u32,
    },
    /// An observation whose shape is not that of the stream, or of a kind that the policy does not take.
    Observation,
    /// A parameter out of its range, or not finite.
    Parameter,
    /// A quantised group along tokens is immutable: its tokens can become holes, but none is overwritten or moved alone.
    GroupOfTokens,
    /// Keys after RoPE that are quantised, or rotated by Hadamard, cannot be turned to another position.
    Keys,
    /// The layout is not one that this version makes.
    Layout,
}

impl fmt::Display for EvictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shape => "pages of 1, 2, 4, ... 64 tokens, and arrays as long as they need",
            Self::Stream => "the counters of the stream do not fit its arrays",
            Self::Full => "no slot is left in the arrays of the stream",
            Self::Position => "more tokens than positions",
            Self::Recent => "recent: at least 1, the newest token is never a candidate",
            Self::Pins => "pins: ranges of positions, not empty, ascending, apart",
            Self::Budget { protected } => {
                return write!(f, "budget: at least 1 token, and the {protected} that are protected");
            }
            Self::Observation => "observation: not of the stream's shape, or not one that the policy takes",
            Self::Parameter => "parameter: out of its range",
            Self::GroupOfTokens => "tokens of a quantised group are not overwritten or moved one by one",
            Self::Keys => {
                "keys after RoPE cannot be turned to another position where they are quantised or rotated by Hadamard"
            }
            Self::Layout => "layout: not one that this version makes",
        })
    }
}

impl core::error::Error for EvictError {}
