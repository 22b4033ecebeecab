//! Which tokens a query reads: causal, sliding window, sink tokens.
//!
//! Invariant: token j is in the mask of the query at position t iff
//! j <= t and (window == 0 or t - j < window or j < sink_tokens).
//!
//! ```text
//!   0 ........ sinks_end ........ window_begin ........ t  end
//!   |  read   |      not read    |        read           |  not read
//! ```

/// The tokens of one query: `0..sinks_end` and `window_begin..end`, disjoint and ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mask {
    pub(crate) sinks_end: u32,
    pub(crate) window_begin: u32,
    pub(crate) end: u32,
}

impl Mask {
    /// The mask of a position; a negative position reads nothing.
    pub(crate) fn new(position: i32, window: u32, sink_tokens: u32) -> Self {
        let end = u32::try_from(position).map_or(0, |t| t + 1);
        let window_begin = if window == 0 { 0 } else { end.saturating_sub(window) };
        Self { sinks_end: sink_tokens.min(window_begin), window_begin, end }
    }

    /// Tokens in the mask.
    pub(crate) fn tokens(&self) -> u32 {
        self.sinks_end + (self.end - self.window_begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_exactly_the_tokens_of_the_rule() {
        for t in -2..20i32 {
            for window in 0..22u32 {
                for sink_tokens in 0..22u32 {
                    let mask = Mask::new(t, window, sink_tokens);
                    let mut count = 0;
                    for j in 0..24u32 {
                        let reads =
                            (j as i32) <= t && (window == 0 || t - (j as i32) < window as i32 || j < sink_tokens);
                        let has = j < mask.sinks_end || (mask.window_begin..mask.end).contains(&j);
                        assert_eq!(reads, has, "t {t} window {window} sinks {sink_tokens} j {j}");
                        count += reads as u32;
                    }
                    assert_eq!(count, mask.tokens());
                    assert!(mask.sinks_end <= mask.window_begin && mask.window_begin <= mask.end);
                }
            }
        }
    }

    #[test]
    fn greatest_position() {
        let mask = Mask::new(i32::MAX, u32::MAX, u32::MAX);
        assert_eq!((mask.sinks_end, mask.window_begin, mask.end), (0, 0, 1 << 31));
        let mask = Mask::new(i32::MAX, 1, u32::MAX);
        assert_eq!((mask.sinks_end, mask.window_begin), (i32::MAX as u32, i32::MAX as u32));
    }
}
