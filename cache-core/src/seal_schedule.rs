//! When exact pages are sealed: a function of the position alone, so that chunks of any size read what single tokens would.

/// Keeps at least the last `recent` tokens exact, and seals whole pages behind them.
///
/// The query at position `t` reads as sealed the pages that are full before its own token is written and end at or before
/// token `t + 1 - recent`; its own token is never sealed. A chunk is cut where that number changes ([`Self::run`]): then
/// every query in it reads the same pages in the same form as if tokens came one by one.
///
/// ```
/// use kvfolio::SealSchedule;
///
/// let schedule = SealSchedule { page_tokens: 32, recent: 128 };
/// assert_eq!((schedule.sealed_at(158), schedule.sealed_at(159)), (0, 1));
/// assert_eq!(schedule.run(100, 64), 59); // positions 100 to 158
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealSchedule {
    /// P, a power of two.
    pub page_tokens: u32,
    /// Fewest recent tokens that stay exact, the query's own included.
    pub recent: u32,
}

impl SealSchedule {
    /// Pages of a row that the query at a position reads as sealed. Never falls as the position rises. O(1).
    #[must_use]
    pub const fn sealed_at(&self, position: u32) -> u32 {
        let shift = self.page_tokens.trailing_zeros();
        let old = position.saturating_sub(self.recent.saturating_sub(1)).wrapping_shr(shift);
        let full = position.wrapping_shr(shift);
        if old < full { old } else { full }
    }

    /// How many of `count` tokens from a position on read the same pages as sealed: at least 1 of them. O(1).
    #[must_use]
    pub const fn run(&self, position: u32, count: u32) -> u32 {
        let next = self.sealed_at(position).saturating_add(1).saturating_mul(self.page_tokens);
        // The first position that reads one page more: both conditions hold there.
        let old = next.saturating_add(self.recent.saturating_sub(1));
        let first = if old > next { old } else { next };
        let run = first.saturating_sub(position);
        if run < count { run } else { count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_where_the_number_changes() {
        for page_tokens in [1, 4, 32] {
            for recent in [0, 1, 2, 31, 32, 33, 128] {
                let schedule = SealSchedule { page_tokens, recent };
                for position in 0..300 {
                    let sealed = schedule.sealed_at(position);
                    let tokens = sealed * page_tokens;
                    assert!(tokens <= position && tokens <= (position + 1).saturating_sub(recent.max(1)));
                    let more = tokens + page_tokens;
                    assert!(more > position || more > (position + 1).saturating_sub(recent), "as many as may be");
                    let run = schedule.run(position, 1000);
                    assert!(run > 0);
                    assert_eq!(schedule.sealed_at(position + run - 1), sealed);
                    assert_eq!(schedule.sealed_at(position + run), sealed + 1);
                    assert_eq!(schedule.run(position, 1), 1);
                }
            }
        }
        let schedule = SealSchedule { page_tokens: 256, recent: u32::MAX };
        assert_eq!((schedule.sealed_at(u32::MAX), schedule.run(u32::MAX, 9)), (0, 0));
    }
}
