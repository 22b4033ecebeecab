//! What a sequence would need, group by group, without promising anything.

use super::Growth;
use crate::cache::Cache;
use crate::error::Error;
use crate::ids::SequenceId;

/// What one group would need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct GroupNeed {
    /// Pages that more tokens would take, the copy of a shared last page or ring included.
    pub need: u32,
    /// Free pages of the group's pool that are not promised.
    pub have: u32,
    /// Pages that eviction would add.
    pub reclaimable: u32,
    /// Pages that transfers under way will add.
    pub pending: u32,
}

impl Cache<'_> {
    /// Says what `count` more tokens of a sequence would need in each group, in the order of the configuration. Groups that
    /// share a pool show the same pages of it: add their needs up. Gives the number of groups. O(groups).
    ///
    /// # Errors
    /// `ShortBuffer` with the number of groups; `Argument`; `Stale`.
    pub fn estimate(&self, id: SequenceId, count: u32, out: &mut [GroupNeed]) -> Result<u32, Error> {
        let holder = self.sequence(id)?;
        let growth = Growth { holder, len: self.holders.get(holder).len, count, flags: 0 };
        let groups = self.visible_groups();
        if (out.len() as u64) < u64::from(groups) {
            return Err(Error::ShortBuffer(groups));
        }
        if growth.len.checked_add(count).is_none() {
            return Err(Error::Argument);
        }
        for (index, slot) in (0..groups).zip(out.iter_mut()) {
            let group = self.groups.get(index);
            let pool = self.pages.pools.get(group.pool);
            let (from, to) = self.new_entries(index, &group, &growth);
            let copies = if count > 0 { self.copies_needed(index, &group, &growth) } else { 0 };
            *slot = GroupNeed {
                need: to.saturating_sub(from).saturating_add(copies),
                have: pool.free.saturating_sub(pool.promised),
                reclaimable: pool.cached.min(pool.available()),
                pending: pool.pending,
            };
        }
        Ok(groups)
    }
}
