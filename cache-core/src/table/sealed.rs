//! Which columns of a row are sealed, where rows span two pools.

/// Columns of a row whose pages are of the group's sealed pool. All others are of its own pool: before them those of the
/// sinks, which stay exact, behind them those that are not sealed yet.
///
/// ```text
///   0 .. begin       begin .. end      end ..
///   exact (sinks)    sealed            open
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealedColumns {
    /// First one, or the first that will be.
    pub begin: u32,
    /// One past the last; equal to `begin` where none is sealed.
    pub end: u32,
}

impl SealedColumns {
    /// Whether a column is one of them.
    #[must_use]
    pub const fn contains(&self, column: u32) -> bool {
        self.begin <= column && column < self.end
    }
}
