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
}

/// Groups of a run that are still to be done.
pub(super) struct Walk<'a> {
    run: &'a Run,
    /// Of this group in the block, with the bytes to the next.
    x_bytes: usize,
    group_bytes: usize,
    scale_bytes: usize,
    zero_bytes: usize,
    groups: usize,
    block: usize,
    nth: usize,
}

impl<'a> Walk<'a> {
    /// Over groups of elements of `size` bytes.
    #[inline(always)]
    pub(super) fn new(form: &Form, run: &'a Run, size: usize) -> Self {
        let groups = form.block_groups();
        Self {
            run,
            x_bytes: form.group * size,
            group_bytes: form.group_bytes(),
            scale_bytes: form.scale_bytes(),
            zero_bytes: form.zero_bytes(),
            groups,
            block: if groups == 0 { run.blocks } else { 0 },
            nth: 0,
        }
    }

    /// The next group. Addresses of what the form has not are those of block 0.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Group> {
        if self.block >= self.run.blocks {
            return None;
        }
        let (run, block, nth) = (self.run, self.block, self.nth);
        let group = Group {
            x: run.x.wrapping_add(block * run.x_step + nth * self.x_bytes),
            codes: run.codes.wrapping_add(block * run.codes_step + nth * self.group_bytes),
            scale: run.scales.wrapping_add(block * run.scales_step + nth * self.scale_bytes),
            zero: run.zeros.wrapping_add(block * run.zeros_step + nth * self.zero_bytes),
        };
        self.nth += 1;
        if self.nth == self.groups {
            (self.nth, self.block) = (0, self.block + 1);
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
