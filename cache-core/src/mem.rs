//! Lent memory: slices that cannot be read or written out of bounds.
//!
//! The core indexes with ids that it made itself, so a miss means a fault elsewhere. It must then neither panic nor
//! touch a neighbour: a read gives the zero value, a write does nothing, and `check` finds the cause.

/// Arrays that only an index needs: without the feature there are none, whatever is lent.
#[cfg(feature = "index")]
pub(crate) use self::Slots as IndexSlots;
#[cfg(not(feature = "index"))]
pub(crate) use crate::absent::Absent as IndexSlots;

/// A slice lent by the caller, indexed by `u32` ids.
pub(crate) struct Slots<'m, T>(&'m mut [T]);

impl<'m, T: Copy + Default> Slots<'m, T> {
    pub(crate) fn new(slice: &'m mut [T]) -> Self {
        Self(slice)
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> T {
        self.0.get(index as usize).copied().unwrap_or_default()
    }

    /// The element itself, where copying it would cost.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<&T> {
        self.0.get(index as usize)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        self.0.get_mut(index as usize)
    }

    #[inline]
    pub(crate) fn set(&mut self, index: u32, value: T) {
        if let Some(slot) = self.0.get_mut(index as usize) {
            *slot = value;
        }
    }

    /// Changes the element in place.
    #[inline]
    pub(crate) fn with<R: Default>(&mut self, index: u32, change: impl FnOnce(&mut T) -> R) -> R {
        self.0.get_mut(index as usize).map(change).unwrap_or_default()
    }

    /// `count` elements from `start` on, or none where they do not all exist.
    #[inline]
    pub(crate) fn slice(&self, start: u64, count: u32) -> &[T] {
        let Ok(start) = usize::try_from(start) else { return &[] };
        self.0.get(start..start.saturating_add(count as usize)).unwrap_or(&[])
    }

    #[inline]
    pub(crate) fn slice_mut(&mut self, start: u64, count: u32) -> &mut [T] {
        let Ok(start) = usize::try_from(start) else { return &mut [] };
        self.0.get_mut(start..start.saturating_add(count as usize)).unwrap_or(&mut [])
    }

    /// Writes elements from `start` on, or none where they do not all fit.
    #[inline]
    pub(crate) fn put(&mut self, start: u64, values: &[T]) {
        let Ok(start) = usize::try_from(start) else { return };
        if let ([value], Some(slot)) = (values, self.0.get_mut(start)) {
            *slot = *value; // the common case, without a call
        } else if let Some(slots) = self.0.get_mut(start..).and_then(|slots| slots.get_mut(..values.len())) {
            for (slot, value) in slots.iter_mut().zip(values) {
                *slot = *value;
            }
        }
    }

    /// Copies `count` elements inside the slice; nothing where the ranges overlap or do not exist.
    #[inline]
    pub(crate) fn copy(&mut self, from: u64, to: u64, count: u32) {
        let (Ok(from), Ok(to)) = (usize::try_from(from), usize::try_from(to)) else { return };
        let count = count as usize;
        let Some((head, tail)) = self.0.split_at_mut_checked(from.max(to)) else { return };
        let (Some(low), Some(high)) = (head.get_mut(from.min(to)..), tail.get_mut(..count)) else { return };
        let Some(low) = low.get_mut(..count) else { return };
        let (source, target) = if from < to { (low, high) } else { (high, low) };
        for (to, from) in target.iter_mut().zip(source) {
            *to = *from;
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of elements; storage never holds more than `u32::MAX`.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        self.0.iter().copied()
    }
}

/// Adds to a statistic; it stays at its largest value rather than wrap.
#[inline]
pub(crate) fn bump(counter: &mut u64, by: u64) {
    *counter = counter.saturating_add(by);
}
