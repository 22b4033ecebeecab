//! Why nothing is evicted.

use core::ffi::CStr;
use core::fmt;

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident $({ $(#[$field_doc:meta])* $field:ident })? = $number:literal $text:literal;)*) => {
        /// What is wrong with a question about eviction. Nothing has changed where one is given. Numbers are fixed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum EvictError {
            $($(#[$doc])* $name $({ $(#[$field_doc])* $field: u32 })?,)*
        }

        impl EvictError {
            /// Its number, which no other kind of error has.
            #[must_use]
            pub const fn number(self) -> u32 {
                match self {
                    $(Self::$name { .. } => $number,)*
                }
            }

            /// The rule that has a number, in words for C.
            #[must_use]
            pub const fn c_text_of(number: u32) -> Option<&'static CStr> {
                match number {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

errors! {
    /// P is not a power of two in `1..=64`, or arrays are not as long as pages, slots and channels need.
    Shape = 1 c"pages of 1, 2, 4, ... 64 tokens, and arrays as long as they need";
    /// The counters and the arrays of a stream do not belong together.
    Stream = 2 c"the counters of the stream do not fit its arrays";
    /// More slots than the arrays have.
    Full = 3 c"no slot is left in the arrays of the stream";
    /// More positions than 32 bits count, or than the model has.
    Position = 4 c"more tokens than positions";
    /// `recent` is 0: the token that was just appended would be a candidate.
    Recent = 5 c"recent: at least 1, the newest token is never a candidate";
    /// Pinned ranges are empty, overlap or do not ascend.
    Pins = 6 c"pins: ranges of positions, not empty, ascending, apart";
    /// What is protected is more than the budget, or the budget is 0.
    Budget {
        /// Tokens that are protected.
        protected
    } = 7 c"budget: at least 1 token, and all that are protected";
    /// An observation whose shape is not that of the stream, or of a kind that the policy does not take.
    Observation = 8 c"observation: not of the stream's shape, or not one that the policy takes";
    /// A parameter out of its range, or not finite.
    Parameter = 9 c"parameter: out of its range";
    /// A quantised group along tokens is immutable: its tokens can become holes, but none is overwritten or moved alone.
    GroupOfTokens = 10 c"tokens of a quantised group are not overwritten or moved one by one";
    /// Keys after RoPE that are quantised, or rotated by Hadamard, cannot be turned to another position.
    Keys = 11 c"keys after RoPE cannot be turned to another position where they are quantised or rotated by Hadamard";
    /// The layout is not one that this version makes.
    Layout = 12 c"layout: not one that this version makes";
}

impl fmt::Display for EvictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::c_text_of(self.number()).and_then(|text| text.to_str().ok()).unwrap_or_default())?;
        if let Self::Budget { protected } = self { write!(f, ", which are {protected}") } else { Ok(()) }
    }
}

impl core::error::Error for EvictError {}
