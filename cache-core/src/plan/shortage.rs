//! Why a sequence was refused: which group is short, whether waiting helps, and how many tokens could fit.

use super::Growth;
use crate::cache::Cache;
use crate::error::{Outcome, Resource, Shortage};
use crate::ids::GroupId;

impl Cache<'_> {
    /// The answer for want of pages: the lowest group whose pool is short, and whether waiting helps.
    pub(super) fn page_shortage(&self, growth: &Growth) -> Shortage {
        let is_short = |index: u32| {
            let pool = self.pages.pools.get(self.groups.get(index).pool);
            pool.asked > pool.available()
        };
        let group = (0..self.limits.groups).find(|&index| is_short(index)).unwrap_or(0);
        let pool = self.pages.pools.get(self.groups.get(group).pool);
        let waiting_helps = (0..self.limits.groups).filter(|&index| is_short(index)).all(|index| {
            let pool = self.pages.pools.get(self.groups.get(index).pool);
            pool.available().saturating_add(pool.pending) >= pool.asked
        });
        let fits = |cache: &Self, n: u32| cache.fits_alone(growth.holder, growth.len, n);
        let (outcome, most) = if !fits(self, growth.count) {
            (Outcome::Never, self.most(growth.len, fits))
        } else if waiting_helps {
            (Outcome::Pending, 0)
        } else {
            (Outcome::Retry, 0)
        };
        Shortage {
            outcome,
            resource: Resource::Pages,
            group: GroupId::new(u16::try_from(group).unwrap_or(0)),
            need: pool.asked,
            have: pool.free.saturating_sub(pool.promised),
            reclaimable: pool.cached.min(pool.available()),
            pending: pool.pending,
            most,
        }
    }

    /// Whether an empty cache could hold a sequence of `len` tokens while it gains `count`; sealed pages stay sealed.
    pub(super) fn fits_alone(&self, holder: u32, len: u32, count: u32) -> bool {
        self.turns(count)
            && (0..self.limits.pools).all(|pool| {
                let growth = Growth { holder, len, count, flags: 0 };
                self.alone_in(pool, &growth) <= u64::from(self.pages.pools.get(pool).pages)
            })
    }

    /// Pages of a pool that a sequence occupies while it grows.
    pub(crate) fn alone_in(&self, pool: u32, growth: &Growth) -> u64 {
        let &Growth { holder, len, count, .. } = growth;
        (0..self.visible_groups())
            .fold(0, |sum: u64, index| sum.saturating_add(u64::from(self.resident_in(pool, holder, index, len, count))))
    }

    fn resident_in(&self, pool: u32, holder: u32, index: u32, len: u32, count: u32) -> u32 {
        let Some(group) = self.groups.at(index) else { return 0 };
        let sealed = self.tables.sealed(holder, index);
        let open = if group.pool == pool { group.resident(len, count).saturating_sub(sealed) } else { 0 };
        open.saturating_add(if group.sealed_pool == pool.saturating_add(1) { sealed } else { 0 })
    }

    pub(super) fn chunks_alone(&self, len: u32, count: u32) -> u32 {
        (0..self.limits.groups).fold(0, |sum: u32, index| {
            let group = self.groups.get(index);
            let first = group.first(len);
            let len = len.saturating_add(count);
            if group.is_ring() {
                return sum.saturating_add(crate::table::Tables::chunks_for(0, 0, group.entries(len)));
            }
            let sinks = group.sink_pages(len).min(first);
            sum.saturating_add(crate::table::Tables::chunks_for(sinks, first, group.pages(len)))
        })
    }

    /// The largest count that passes a monotone test. O(groups * 32).
    pub(crate) fn most(&self, len: u32, fits: impl Fn(&Self, u32) -> bool) -> u32 {
        let (mut low, mut high) = (0_u32, u32::MAX.saturating_sub(len));
        while low < high {
            let span = high.wrapping_sub(low);
            let middle = low.wrapping_add(span.div_ceil(2));
            if fits(self, middle) {
                low = middle;
            } else {
                high = middle.wrapping_sub(1);
            }
        }
        low
    }
}
