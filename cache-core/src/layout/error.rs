//! Why a layout is refused.

use core::ffi::CStr;
use core::fmt;

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $number:literal $text:literal;)*) => {
        /// The rule that a layout or a question to it breaks. Numbers are fixed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[repr(u32)]
        pub enum LayoutError {
            $($(#[$doc])* $name = $number,)*
        }

        impl LayoutError {
            /// All of them, in ascending order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The rule in words.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self.c_text().to_str() {
                    Ok(text) => text,
                    Err(_) => "",
                }
            }

            /// The same for C.
            #[must_use]
            pub const fn c_text(self) -> &'static CStr {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

errors! {
    /// P is not a power of two in `1..=256`.
    PageTokens = 1 c"page_tokens: a power of two from 1 to 256";
    /// No layer.
    Layers = 2 c"layers: at least 1";
    /// No KV head.
    Heads = 3 c"kv_heads: at least 1";
    /// A head of no elements, or a row whose bits do not fill bytes.
    HeadDim = 4 c"head dimension: at least 1, and rows must fill whole bytes";
    /// Not 0, 16, 32, 64 or 128.
    Align = 5 c"align: 16, 32, 64 or 128";
    /// An unknown element code, an unknown flag, or a reserved field that is not 0.
    Format = 6 c"format: not set, or not known";
    /// An axis where the format has none, or none where it needs one.
    Axis = 7 c"axis: integer formats need token or channel, others have none";
    /// A group size that the format does not have.
    Group = 8 c"group: 16, 32, 64, 128 or the whole row; along tokens never the whole row; exact formats have none";
    /// Groups along channels: G does not divide d.
    GroupDim = 9 c"group: must divide the head dimension";
    /// Groups along tokens: G does not divide P, so that a group would never fill within a page.
    GroupPage = 10 c"group: along tokens it must divide page_tokens, so pages must be at least as long";
    /// An FP8 format without a scale mode, or another one with.
    ScaleMode = 11 c"scale mode: FP8 formats need one, others have none";
    /// A scale that is fixed for a tensor or head cannot change with the tokens: pages written before would be misread.
    DynamicScale = 12 c"scale: one per tensor or head is fixed before the first page; per token and head is computed";
    /// Powers of two are offered for FP8 scales only.
    PowerOfTwo = 13 c"scale: only FP8 scales can be asked to be powers of two";
    /// Not said whether keys are stored before or after RoPE.
    Rope = 14 c"rope state: say none, pre or post";
    /// Quantised keys after RoPE cannot be rotated again.
    Rerotate = 15 c"quantised keys after RoPE cannot be rotated to another position: store them before RoPE, or exactly";
    /// An unknown rotation, a size that is no power of two, parts that do not exist, or fields without a rotation.
    Rotation = 16 c"rotation: hadamard with a size of 2, 4, 8, ... and the parts that it applies to, or nothing at all";
    /// n does not divide the head dimension of a rotated part.
    RotationDim = 17 c"rotation: its size must divide the head dimension";
    /// A rotation does not commute with RoPE.
    RotationRope = 18 c"rotation of keys: only after RoPE, and then they cannot be rotated to another position";
    /// The latent part belongs to all heads.
    MlaHeads = 19 c"MLA: one latent head";
    /// V is the latent part: it has no format and no size of its own.
    MlaValue = 20 c"MLA: values are the latent part, and have no format or dimension of their own";
    /// The rope part of MLA is kept exactly.
    MlaRope = 21 c"MLA: the rope part is exact (f32, f16 or bf16)";
    /// A rope part where there is no latent part, or none where there is one but only one of format and size.
    RopePart = 22 c"rope part: for MLA only, with format and dimension";
    /// An unknown order, or tokens outermost with groups along tokens.
    Order = 23 c"order: heads or tokens outermost; groups along tokens need heads";
    /// Offsets of some page with an id up to 2^24 would not fit 63 bits.
    TooLarge = 24 c"page: all offsets must fit 63 bits";
    /// Unknown flags.
    Flags = 25 c"flags: not known";
    /// A descriptor that `PageLayout::new` did not make, or of another version.
    Descriptor = 26 c"descriptor: not one that this version makes";
    /// A page, layer, head, token or channel that does not exist, or a part that the layout lacks.
    Index = 27 c"page, layer, tensor, head, token or channel does not exist";
    /// Pages of one layout, read under another.
    Mismatch = 28 c"the pages have another layout";
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for LayoutError {}
