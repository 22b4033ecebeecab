//! Where the tokens of the finished plan go.

use super::count;
use crate::cache::Cache;
use crate::error::Error;
use crate::ids::GroupId;

impl Cache<'_> {
    /// Writes, for each token of the finished plan in the order of `plan_add`, its slot `page * P + offset` in a group and its
    /// absolute position. The rest of `slots` becomes -1 (do not write), the rest of `positions` 0. Gives the number of
    /// tokens. O(tokens).
    ///
    /// # Errors
    /// `PlanState` unless a plan is finished; `ShortBuffer` with the number of tokens; `Argument` for a group that does not
    /// exist. Nothing is written then.
    pub fn export_slots(&self, group: GroupId, slots: &mut [i64], positions: &mut [i32]) -> Result<u32, Error> {
        let (index, group) = self.group(group)?;
        if !self.plan.is_finished() {
            return Err(Error::PlanState);
        }
        let need = self.plan.each().fold(0_u32, |sum, entry| sum.saturating_add(entry.count));
        if count(slots.len()) < need || count(positions.len()) < need {
            return Err(Error::ShortBuffer(need));
        }
        let base = self.pages.pools.get(group.pool).base;
        let mask = group.page_tokens().wrapping_sub(1);
        let mut out = slots.iter_mut().zip(positions.iter_mut());
        for entry in self.plan.each() {
            let len = self.holders.get(entry.holder).len;
            let mut page = 0_i64;
            for position in len..len.saturating_add(entry.count) {
                if position == len || position & mask == 0 {
                    let id = self.tables.get(entry.holder, index, group.entry_of(position >> group.shift));
                    page = i64::from(self.kernel_id(base, id));
                }
                if let Some((slot, at)) = out.next() {
                    *slot = page << group.shift | i64::from(position & mask);
                    *at = i32::try_from(position).unwrap_or(i32::MAX);
                }
            }
        }
        let used = need as usize;
        slots.iter_mut().skip(used).for_each(|slot| *slot = -1);
        positions.iter_mut().skip(used).for_each(|position| *position = 0);
        Ok(need)
    }
}
