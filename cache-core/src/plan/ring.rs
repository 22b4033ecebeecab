//! Fixed rings: a window group whose sequences own their pages.
//!
//! The row of such a group holds the sink pages and then the ring's columns, whole from the sequence's first token on: page
//! `i` is in column `i % R`, so that the next page is the one `R` pages back, which the window has left. Nothing is taken or
//! given back as the window moves.
//!
//! ```text
//! R = 3, one sink page     row [s | a b c]
//! pages 0..4               table [s b c a]      page 3 is in column 0
//! page 4 begins            table [s _ c a b]    page 1 has left the window
//! ```
//!
//! A fork shares the whole row, and so does a transfer. Who writes next while it is shared gets a ring of its own, into which
//! all that it still reads is copied.

use super::{Growth, OF_SHARED, PlanCopy};
use crate::cache::Cache;
use crate::error::{Error, Outcome, Resource, Shortage};
use crate::group::Group;
use crate::ids::GroupId;

impl Cache<'_> {
    /// Pages of a group that must be copied before the next token is written.
    pub(super) fn copies_needed(&self, index: u32, group: &Group, growth: &Growth) -> u32 {
        let copies = self.needs_copy(index, group, growth);
        if group.is_ring() && copies { group.entries(growth.len) } else { u32::from(copies) }
    }

    /// Whether every fixed ring takes so many tokens at a time.
    pub(super) fn turns(&self, count: u32) -> bool {
        !self.limits.rings || self.groups.iter().all(|group| !group.is_ring() || count <= group.ring_tokens)
    }

    /// Refuses more tokens than a fixed ring takes in one plan.
    pub(super) fn may_turn(&self, growth: &Growth) -> Result<(), Error> {
        let &Growth { holder, len, count, .. } = growth;
        let mut groups = (0_u16..).zip(self.groups.iter());
        let Some((index, group)) = groups.find(|(_, group)| group.is_ring() && count > group.ring_tokens) else {
            return Ok(());
        };
        let most = self.most(len, |cache, n| cache.fits_alone(holder, len, n));
        let (need, have) = (group.ring(count), group.ring(group.ring_tokens));
        let shortage = Shortage { outcome: Outcome::Never, most, ..Shortage::of(Resource::Pages, need, have) };
        Err(Shortage { group: GroupId::new(index), ..shortage }.into())
    }

    /// Gives a sequence that shares its ring one of its own; says whether its table changes with the tokens of the plan.
    #[inline(never)] // its stack is not that of plans without rings
    pub(super) fn turn_ring(&mut self, nth: u32, index: u32, group: &Group, growth: &Growth) -> bool {
        let &Growth { holder, len, .. } = growth;
        if self.needs_copy(index, group, growth) {
            let namespace = self.holders.get(holder).namespace;
            for at in 0..group.entries(len) {
                let source = self.tables.get(holder, index, at);
                let (target, _) = self.pages.take(group.pool, 1);
                self.own(target, namespace);
                self.tables.set(holder, index, at, target);
                self.pages.set_replaced(source, self.pages.replaced(source).saturating_add(1));
                let tokens = self.tokens_in(holder, index, group, len, at);
                self.plan.note_copy(PlanCopy { entry: nth, group: index, source, target, tokens, at, kind: OF_SHARED });
            }
            self.touch_tables(holder, 0);
        }
        group.pages(len) < group.pages(growth.end())
    }

    /// Tokens that an entry of a ring holds and a query at `len` may read.
    fn tokens_in(&self, holder: u32, index: u32, group: &Group, len: u32, entry: u32) -> u32 {
        let first = self.tables.first(holder, index);
        let page =
            group.page_in(entry, group.pages(len)).filter(|&page| page < group.sink_pages(u32::MAX) || page >= first);
        page.map_or(0, |page| len.saturating_sub(page << group.shift).min(group.page_tokens()))
    }
}
