//! The groups of a run along channels, up to 8 at a time.

use super::super::kind::{Form, Run};

/// Where one group lies.
#[derive(Clone, Copy)]
pub(super) struct Group {
    pub(super) x: *mut u8,
    pub(super) codes: *mut u8,
    pub(super) scale: *mut u8,
    pub(super) zero: *mut u8,
}

impl Group {
    const NONE: Self = Self {
        x: core::ptr::null_mut(),
        codes: core::ptr::null_mut(),
        scale: core::ptr::null_mut(),
        zero: core::ptr::null_mut(),
    };

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

/// Groups of a run that are still to be done.
pub(super) struct Walk {
    group: Group,
    /// Bytes from a group to the next of its block.
    steps: Steps,
    /// More bytes from the last group of a block to the next block.
    gaps: Steps,
    groups: usize,
    /// Groups that are left of the block, and blocks, that one included.
    left: usize,
    blocks: usize,
}

/// Bytes by which addresses move.
#[derive(Clone, Copy)]
struct Steps {
    x: usize,
    codes: usize,
    scale: usize,
    zero: usize,
}

impl Walk {
    /// Over groups of elements of `size` bytes. Addresses of what the form has not mean nothing.
    #[inline(always)]
    pub(super) fn new(form: &Form, run: &Run, size: usize) -> Self {
        let groups = form.block_groups();
        let steps = Steps {
            x: form.group * size,
            codes: form.group_bytes(),
            scale: form.scale_bytes(),
            zero: form.zero_bytes(),
        };
        // Blocks may overlap what is not theirs only by going back: then the gap wraps.
        let gaps = Steps {
            x: run.x_step.wrapping_sub(groups * steps.x),
            codes: run.codes_step.wrapping_sub(groups * steps.codes),
            scale: run.scales_step.wrapping_sub(groups * steps.scale),
            zero: run.zeros_step.wrapping_sub(groups * steps.zero),
        };
        let group = Group { x: run.x, codes: run.codes, scale: run.scales, zero: run.zeros };
        Self { group, steps, gaps, groups, left: groups, blocks: if groups == 0 { 0 } else { run.blocks } }
    }

    /// The next group.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Group> {
        if self.blocks == 0 {
            return None;
        }
        let group = self.group;
        self.group = group.after(self.steps);
        self.left -= 1;
        if self.left == 0 {
            self.group = self.group.after(self.gaps);
            self.left = self.groups;
            self.blocks -= 1;
        }
        Some(group)
    }

    /// Up to 8 groups, and how many.
    #[inline(always)]
    pub(super) fn batch(&mut self) -> ([Group; 8], usize) {
        let mut groups = [Group::NONE; 8];
        let mut n = 0;
        for to in &mut groups {
            let Some(group) = self.next() else { break };
            *to = group;
            n += 1;
        }
        (groups, n)
    }
}
