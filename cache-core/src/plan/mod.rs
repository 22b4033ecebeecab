//! Plans: one step of the engine, all or nothing.
//!
//! ```text
//!            plan_add*            plan_finish              plan_commit
//! idle --> BUILDING ------------> FINISHED ---------------> idle
//!   ^          | plan_cancel          | plan_abort
//!   `----------+----------------------'
//! ```
//!
//! While it is built a plan only promises: nothing but counts changes, and `plan_cancel` takes the counts back. Finish
//! evicts, assigns and cannot fail. Commit cannot fail once its arguments are checked.

mod add;
mod commit;
mod estimate;
mod failed_load;
mod finish;
mod in_place;
mod last_owner;
mod ring;
mod seal;
mod shortage;

pub use commit::Accept;
pub use estimate::GroupNeed;
pub use finish::{PageCopy, PlanReport};

use crate::mem::Slots;

/// One sequence of the open plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PlanEntry {
    pub(crate) holder: u32,
    /// Tokens added.
    pub(crate) count: u32,
    /// Where its tokens are staged; `u32::MAX` = none were given.
    pub(crate) staged: u32,
    /// Bit 1: the index has no node left for it. Bit 2: it takes no page.
    /// Bit 3: the ids of its tokens are known.
    pub(crate) flags: u32,
}

crate::records::zero!(PlanEntry { holder, count, staged, flags });

/// What a plan adds to a sequence of `len` tokens.
#[derive(Clone, Copy)]
pub(crate) struct Growth {
    pub(crate) holder: u32,
    pub(crate) len: u32,
    pub(crate) count: u32,
    /// As in [`PlanEntry`].
    pub(crate) flags: u32,
}

impl Growth {
    pub(crate) fn end(&self) -> u32 {
        self.len.wrapping_add(self.count)
    }
}

/// One copy of the open plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PlanCopy {
    /// Index of its plan entry.
    pub(crate) entry: u32,
    pub(crate) group: u32,
    pub(crate) source: u32,
    pub(crate) target: u32,
    pub(crate) tokens: u32,
    /// Table entry that it replaces.
    pub(crate) at: u32,
    /// What the copy is: see the constants.
    pub(crate) kind: u32,
}

crate::records::zero!(PlanCopy { entry, group, source, target, tokens, at, kind });

/// The source is shared; the target is written next.
pub(crate) const OF_SHARED: u32 = 0;
/// As that, and the source was the end of the sequence's path.
pub(crate) const OF_TIP: u32 = 1;
/// The target is the sealed form of the source.
pub(crate) const OF_SEAL: u32 = 2;

pub(crate) const NO_NODE: u32 = 2;
/// Only tokens are written: no page is taken, copied or given back.
pub(crate) const IN_PAGE: u32 = 4;
/// The ids of its tokens are known, staged or promised for commit.
pub(crate) const HAS_IDS: u32 = 8;
pub(crate) const NO_TOKENS: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Idle,
    Building,
    Finished,
}

/// The open plan, or the last one: copies and scrubs stay readable until the next begins.
pub(crate) struct Plan<'m> {
    pub(crate) state: State,
    pub(crate) entries: Slots<'m, PlanEntry>,
    pub(crate) copies: Slots<'m, PlanCopy>,
    staged: Slots<'m, u32>,
    pub(crate) scrubs: Slots<'m, u32>,
    pub(crate) entry_count: u32,
    pub(crate) copy_count: u32,
    /// Seals of the plan; their records come before the copies.
    seal_count: u32,
    pub(crate) scrub_count: u32,
    /// How many more ids of tokens this plan may carry.
    stage_room: u32,
    token_count: u32,
    /// Promised while it is built.
    pub(crate) chunks: u32,
    copies_promised: u32,
    in_place: u32,
    /// Length of the longest sequence that leaves a shared page.
    longest_leaver: u32,
    /// Closes that wait for the end of the plan.
    pub(crate) closes: u32,
}

impl<'m> Plan<'m> {
    pub(crate) fn new(
        entries: &'m mut [PlanEntry],
        copies: &'m mut [PlanCopy],
        staged: &'m mut [u32],
        scrubs: &'m mut [u32],
    ) -> Self {
        Self {
            state: State::Idle,
            entries: Slots::new(entries),
            copies: Slots::new(copies),
            staged: Slots::new(staged),
            scrubs: Slots::new(scrubs),
            entry_count: 0,
            copy_count: 0,
            seal_count: 0,
            scrub_count: 0,
            stage_room: 0,
            token_count: 0,
            chunks: 0,
            copies_promised: 0,
            in_place: 0,
            longest_leaver: 0,
            closes: 0,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state != State::Idle
    }

    pub(crate) fn is_building(&self) -> bool {
        self.state == State::Building
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// Entries of the open plan, in the order in which they were added.
    pub(crate) fn each(&self) -> impl Iterator<Item = PlanEntry> + '_ {
        (0..self.entry_count).map(|index| self.entries.get(index))
    }

    /// The first entry at or behind `nth` that needs pages.
    fn next_paged(&self, nth: u32) -> Option<u32> {
        let rest = self.entries.slice(u64::from(nth), self.entry_count.saturating_sub(nth));
        let skipped = rest.iter().position(|entry| entry.flags & IN_PAGE == 0)?;
        nth.checked_add(u32::try_from(skipped).ok()?)
    }

    fn clear(&mut self) {
        self.entry_count = 0;
        self.copy_count = 0;
        self.seal_count = 0;
        self.scrub_count = 0;
        self.stage_room = self.staged.len();
        self.token_count = 0;
        self.chunks = 0;
        self.copies_promised = 0;
        self.in_place = 0;
        self.longest_leaver = 0;
        self.closes = 0;
    }
}
