//! From the caller's bytes to the arrays of a cache: one list, over which bytes are counted and then carved.
//!
//! ```text
//! mem                                                        mem + required_size
//! | kvf_cache | pad | groups | pad | pools | pad | ... | events | pad |
//! ^ 64              ^ 64           ^ 64
//! ```
//!
//! Each array begins at a multiple of 64 bytes. Arrays that the configuration does not need take no bytes.

use kvfolio::{CacheStorage, Config, StorageCounts, for_each_array};

use crate::cache::kvf_cache;
use crate::status::{KVF_ERR_CONFIG, KVF_ERR_MEMORY, KVF_ERR_SIZE, Status};

/// Alignment of the memory and of each array in it.
pub(crate) const ALIGN: usize = 64;

/// Where the next array begins, behind `count` elements of `size` bytes from `at` on. `None` beyond the address space.
fn behind(at: usize, count: usize, size: usize) -> Option<usize> {
    at.checked_add(count.checked_mul(size)?)?.checked_next_multiple_of(ALIGN)
}

/// Bytes of the cache and all its arrays.
fn bytes(counts: &StorageCounts) -> Option<usize> {
    macro_rules! add_all {
        ($($name:ident: $type:ty,)*) => {
            behind(0, 1, size_of::<kvf_cache>())$(.and_then(|at| behind(at, counts.$name, size_of::<$type>())))*
        };
    }
    let bytes = for_each_array!(add_all)?;
    isize::try_from(bytes).is_ok().then_some(bytes)
}

/// A position in the memory.
struct Walker {
    memory: *mut u8,
    at: usize,
}

impl Walker {
    /// The next `count` elements of `size` bytes: the first of them, with all bytes zero, and their number.
    #[inline(never)] // one copy for all types
    fn next(&mut self, count: usize, size: usize) -> (*mut u8, usize) {
        let start = self.at;
        let Some(end) = behind(start, count, size) else { return (self.memory, 0) }; // `bytes` has found that it is there
        self.at = end;
        // SAFETY: `carve` has found that all arrays fit.
        let first = unsafe { self.memory.add(start) };
        // SAFETY: the same; the product did not overflow in `behind`.
        unsafe { first.write_bytes(0, count.wrapping_mul(size)) };
        (first, count)
    }

    fn take<T>(&mut self, count: usize) -> &'static mut [T] {
        const { assert!(align_of::<T>() <= ALIGN) };
        let (first, count) = self.next(count, size_of::<T>());
        // SAFETY: `next` gives each byte out once, at a multiple of 64, as the memory is, and zero. All element types are
        // valid when all their bytes are zero (`kvfolio::records`).
        unsafe { core::slice::from_raw_parts_mut(first.cast::<T>(), count) }
    }

    /// Gives everything out.
    fn walk(mut self, counts: &StorageCounts) -> CacheStorage<'static> {
        macro_rules! take_all {
            ($($name:ident: $type:ty,)*) => {
                CacheStorage { $($name: self.take::<$type>(counts.$name),)* }
            };
        }
        self.next(1, size_of::<kvf_cache>());
        for_each_array!(take_all)
    }
}

fn counts(config: &Config<'_>) -> Result<StorageCounts, Status> {
    StorageCounts::of(config).map_err(|_| Status(KVF_ERR_CONFIG))
}

/// Bytes that a cache needs.
pub(crate) fn size(config: &Config<'_>) -> Result<usize, Status> {
    bytes(&counts(config)?).ok_or(Status(KVF_ERR_SIZE))
}

/// Cuts memory up. Its content is lost, except where an error is given.
///
/// # Safety
/// `memory` is aligned to [`ALIGN`] and valid for reads and writes of `len` bytes, by nobody else, from now on.
pub(crate) unsafe fn carve(memory: *mut u8, len: usize, config: &Config<'_>) -> Result<CacheStorage<'static>, Status> {
    let counts = counts(config)?;
    if len < bytes(&counts).ok_or(Status(KVF_ERR_SIZE))? {
        return Err(Status(KVF_ERR_MEMORY));
    }
    Ok(Walker { memory, at: 0 }.walk(&counts))
}
