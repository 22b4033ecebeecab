//! The numbers in a layout that stand for something. Fixed for ever; 0 never means a format.

use core::fmt;

/// Defines a number with names. Any number is a value, since it may come from another program; `is_known` tells.
macro_rules! code {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $number:literal $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            $($(#[$item_doc])* pub const $item: Self = Self($number);)*

            /// All that have a meaning, in ascending order.
            pub const ALL: &'static [Self] = &[$(Self($number)),*];

            /// The one with this number, known or not.
            #[must_use]
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// Its number.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Whether the number means something.
            #[must_use]
            #[allow(clippy::match_like_matches_macro)] // a pattern of numbers in a row would be asked to be a range
            pub const fn is_known(self) -> bool {
                match self.0 {
                    $($number => true,)*
                    _ => false,
                }
            }

            /// What to call it in text, such as `"int4"`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($number => $text,)*
                    _ => "unknown",
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.is_known() { f.write_str(self.name()) } else { write!(f, "unknown({})", self.0) }
            }
        }

        impl super::pod::Words for $name {
            fn put(&self, bytes: &mut super::pod::Bytes) {
                self.0.put(bytes);
            }
        }
    };
}

code! {
    /// How one element is stored.
    ElementCode {
        /// 32-bit float.
        F32 = 1 "f32";
        /// IEEE half.
        F16 = 2 "f16";
        /// bfloat16.
        BF16 = 3 "bf16";
        /// 8-bit code c with f16 scale s and zero z of its group: `c * s + z`.
        INT8 = 4 "int8";
        /// The same with 4 bits: element 2i in the low half of byte i.
        INT4 = 5 "int4";
        /// The same with 2 bits: element 4i in bits 0 and 1 of byte i.
        INT2 = 6 "int2";
        /// Signed 8-bit code in -127..=127 with f16 scale: `c * s`.
        INT8_SYMMETRIC = 7 "int8s";
        /// OCP E4M3, largest 448, NaN 0x7F and 0xFF.
        FP8_E4M3FN = 8 "e4m3fn";
        /// E4M3 with another bias, largest 240, NaN 0x80: the same byte is half of what it is in E4M3FN.
        FP8_E4M3FNUZ = 9 "e4m3fnuz";
        /// OCP E5M2, largest 57,344, with infinities.
        FP8_E5M2 = 10 "e5m2";
        /// Blocks of 34 bytes: f16 scale, 32 signed codes.
        Q8_0 = 11 "q8_0";
        /// Blocks of 18 bytes: f16 scale, 32 codes in halves; code j in the low half of byte j, code j + 16 in the high.
        Q4_0 = 12 "q4_0";
        /// E2M1 in groups of 16 with an E4M3 scale each, and one f32 for the tensor of a layer.
        NVFP4 = 13 "nvfp4";
        /// E2M1 in groups of 32 with an E8M0 scale each.
        MXFP4 = 14 "mxfp4";
    }
}

code! {
    /// Along what a group lies.
    Axis {
        /// Nothing to choose: the format has no groups, or its groups lie along channels.
        NONE = 0 "none";
        /// Each token has its own groups, of G consecutive channels. A token is complete when it is written.
        TOKEN = 1 "token";
        /// Each channel has its own groups, of G consecutive tokens. A group is complete when G tokens are there, and dies
        /// as a whole.
        CHANNEL = 2 "channel";
    }
}

code! {
    /// How far one scale of an FP8 format reaches.
    ScaleMode {
        /// Not chosen, or the format has its own rule.
        NONE = 0 "none";
        /// One for each layer's K and V, fixed before the first page is written. It lies outside pages.
        TENSOR = 1 "tensor";
        /// One for each head of these, fixed likewise.
        HEAD = 2 "head";
        /// One f32 for each G elements of a row, computed from them.
        TOKEN_HEAD = 3 "token";
    }
}

code! {
    /// What was done to keys before they were stored.
    RopeState {
        /// The model has no rotary positions.
        NONE = 1 "none";
        /// Keys are stored before RoPE; the reader rotates them.
        PRE = 2 "pre";
        /// Keys are stored after RoPE.
        POST = 3 "post";
    }
}

code! {
    /// What lies outermost in a section.
    Order {
        /// `[head][token]`: a head of a page is one run of bytes.
        HEADS = 0 "heads";
        /// `[token][head]`: a token of a page is one run of bytes.
        TOKENS = 1 "tokens";
    }
}

code! {
    /// What rows were multiplied by before they were stored.
    Rotation {
        /// Nothing.
        NONE = 0 "none";
        /// Blocks of an orthonormal Hadamard matrix, after the signs that the seed gives.
        HADAMARD = 1 "hadamard";
    }
}
