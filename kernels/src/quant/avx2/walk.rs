//! The groups of a run along channels, up to 8 at a time, at equal distances.

use super::super::kind::{Form, Run};

/// Where groups lie: the first one, and the bytes from one to the next.
#[derive(Clone, Copy)]
pub(super) struct Batch {
    first: Group,
    steps: Steps,
    /// 1 to 8.
    pub(super) count: usize,
}

/// Where one group lies. Addresses of what the form has not mean nothing.
#[derive(Clone, Copy)]
pub(super) struct Group {
    pub(super) x: *mut u8,
    pub(super) codes: *mut u8,
    pub(super) scale: *mut u8,
    pub(super) zero: *mut u8,
}

/// Bytes by which addresses move.
#[derive(Clone, Copy)]
struct Steps {
    x: usize,
    codes: usize,
    scale: usize,
    zero: usize,
}

impl Steps {
    #[inline(always)]
    fn times(self, n: usize) -> Self {
        Self { x: n * self.x, codes: n * self.codes, scale: n * self.scale, zero: n * self.zero }
    }

    /// Whether these are of so many of those.
    #[inline(always)]
    fn is(self, other: Self) -> bool {
        (self.x, self.codes, self.scale, self.zero) == (other.x, other.codes, other.scale, other.zero)
    }
}

impl Group {
    #[inline(always)]
    fn after(self, steps: Steps) -> Self {
        Self {
            x: self.x.wrapping_add(steps.x),
            codes: self.codes.wrapping_add(steps.codes),
            scale: self.scale.wrapping_add(steps.scale),
            zero: self.zero.wrapping_add(steps.zero),
        }
    }
}

impl Batch {
    /// Group `nth`.
    #[inline(always)]
    pub(super) fn group(&self, nth: usize) -> Group {
        self.first.after(self.steps.times(nth))
    }

    /// The scales, if they follow each other.
    #[inline(always)]
    pub(super) fn scales(&self) -> (*mut u8, usize) {
        (self.first.scale, self.steps.scale)
    }

    /// The zeros, likewise.
    #[inline(always)]
    pub(super) fn zeros(&self) -> (*mut u8, usize) {
        (self.first.zero, self.steps.zero)
    }
}

/// Groups of a run that are still to be done.
pub(super) struct Walk {
    block: Group,
    steps: Steps,
    block_steps: Steps,
    groups: usize,
    nth: usize,
    blocks: usize,
}

impl Walk {
    /// Over groups of elements of `size` bytes.
    #[inline(always)]
    pub(super) fn new(form: &Form, run: &Run, size: usize) -> Self {
        let groups = form.block_groups();
        let steps = Steps {
            x: form.group * size,
            codes: form.group_bytes(),
            scale: form.scale_bytes(),
            zero: form.zero_bytes(),
        };
        let block_steps = Steps { x: run.x_step, codes: run.codes_step, scale: run.scales_step, zero: run.zeros_step };
        // What the form has not may lie at any distance.
        let block_steps = Steps {
            scale: if steps.scale == 0 { 0 } else { block_steps.scale },
            zero: if steps.zero == 0 { 0 } else { block_steps.zero },
            ..block_steps
        };
        let block = Group { x: run.x, codes: run.codes, scale: run.scales, zero: run.zeros };
        let walk = Self { block, steps, block_steps, groups, nth: 0, blocks: run.blocks };
        // Blocks of one group, or without gaps, are one block.
        if groups == 1 {
            Self { steps: block_steps, groups: run.blocks, blocks: 1, ..walk }
        } else if block_steps.is(steps.times(groups)) {
            Self { groups: groups * run.blocks, blocks: 1, ..walk }
        } else {
            walk
        }
    }

    /// Whether `f` holds for all groups, of which none after a failure is tried.
    #[inline(always)]
    pub(super) fn all(mut self, mut f: impl FnMut(Group) -> bool) -> bool {
        while let Some(batch) = self.next() {
            for nth in 0..batch.count {
                if !f(batch.group(nth)) {
                    return false;
                }
            }
        }
        true
    }

    /// Up to 8 groups of one block.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Batch> {
        if self.blocks == 0 || self.groups == 0 {
            return None;
        }
        let first = self.block.after(self.steps.times(self.nth));
        let count = (self.groups - self.nth).min(8);
        self.nth += count;
        if self.nth == self.groups {
            self.nth = 0;
            self.blocks -= 1;
            self.block = self.block.after(self.block_steps);
        }
        Some(Batch { first, steps: self.steps, count })
    }
}
