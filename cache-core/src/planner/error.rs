//! Why the planner gives no number.

use core::fmt;

use crate::config::ConfigError;

/// What is wrong with a question to the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlannerError {
    /// More than 64 bits of bytes.
    Overflow,
    /// A layout that [`PageLayout::new`](crate::layout::PageLayout::new) did not make.
    Layout,
    /// A window of no tokens, or a ring without a window.
    Window,
    /// No token is added at a time.
    Chunk,
    /// A residual in a window group, with a layout that is exact already, or with an exact one of another shape; or, in the
    /// manner of KIVI, a residual length that is no multiple of the group of K, or groups of V along tokens.
    Residual,
    /// K and V keep different tokens, so that no page holds both: only row bytes are defined.
    NoPages,
    /// No group.
    Groups,
    /// The configuration of the manager.
    Config(ConfigError),
}

impl fmt::Display for PlannerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overflow => "more bytes than 64 bits can count",
            Self::Layout => "layout: not one that this version makes",
            Self::Window => "window: at least 1 token; a ring needs a window",
            Self::Chunk => "chunk: at least 1 token is added at a time",
            Self::Residual => {
                "residual: needs a quantised layout without a window and an exact one of the same shape; in the manner of KIVI \
                 also a length that the group of K divides, and groups of V along channels"
            },
            Self::NoPages => "K and V keep different tokens: no page holds both",
            Self::Groups => "groups: at least 1",
            Self::Config(error) => return error.fmt(f),
        })
    }
}

impl core::error::Error for PlannerError {}

impl From<ConfigError> for PlannerError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}
