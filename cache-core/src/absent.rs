//! Arrays that only an index needs, in builds without one.

use core::marker::PhantomData;

/// Stands for [`crate::mem::Slots`] of no elements: a read gives the zero value, a write does nothing. Since this is known when
/// the code is compiled, what works on such arrays alone is left out of the program.
pub(crate) struct Absent<'m, T>(PhantomData<&'m mut [T]>);

#[allow(clippy::unused_self)] // as in the arrays that exist
impl<'m, T: Copy + Default> Absent<'m, T> {
    pub(crate) fn new(_slice: &'m mut [T]) -> Self {
        Self(PhantomData)
    }

    pub(crate) fn get(&self, _index: u32) -> T {
        T::default()
    }

    pub(crate) fn set(&mut self, _index: u32, _value: T) {}

    pub(crate) fn with<R: Default>(&mut self, _index: u32, _change: impl FnOnce(&mut T) -> R) -> R {
        R::default()
    }

    pub(crate) fn slice(&self, _start: u64, _count: u32) -> &[T] {
        &[]
    }

    pub(crate) fn put(&mut self, _start: u64, _values: &[T]) {}

    pub(crate) fn copy(&mut self, _from: u64, _to: u64, _count: u32) {}

    pub(crate) fn is_empty(&self) -> bool {
        true
    }

    pub(crate) fn len(&self) -> u32 {
        0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = T> {
        core::iter::empty()
    }
}
