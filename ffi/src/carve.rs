//! From the caller's bytes to the arrays of a cache: one walk, which counts bytes or carves them.
//!
//! ```text
//! mem                                                        mem + required_size
//! | kvf_cache | pad | groups | pad | pools | pad | ... | events | pad |
//! ^ 64              ^ 64           ^ 64
//! ```
//!
//! Each array begins at a multiple of 64 bytes. Arrays that the configuration does not need take no bytes.

use core::mem::MaybeUninit;

use kvfolio::{CacheStorage, Config, StorageCounts, for_each_array};

use crate::cache::kvf_cache;
use crate::status::{KVF_ERR_CONFIG, KVF_ERR_MEMORY, KVF_ERR_SIZE, Status};

/// Alignment of the memory and of each array in it.
pub(crate) const ALIGN: usize = 64;

/// A position in the memory. Without memory it only counts.
struct Walker {
    memory: Option<*mut u8>,
    at: usize,
}

impl Walker {
    /// The next `count` elements, all bytes zero; none when counting.
    fn take<T>(&mut self, count: usize) -> Option<&'static mut [T]> {
        const { assert!(align_of::<T>() <= ALIGN) };
        let start = self.at;
        let bytes = count.checked_mul(size_of::<T>())?;
        self.at = start.checked_add(bytes)?.checked_next_multiple_of(ALIGN)?;
        let Some(memory) = self.memory else { return Some(&mut []) };
        // SAFETY: `carve` was told that so many bytes are there; `start` is a multiple of 64, as the memory is. Each walk
        // gives each byte out once. All element types are valid when all their bytes are zero (`kvfolio::records`).
        unsafe {
            let first = memory.add(start).cast::<T>();
            first.write_bytes(0, count);
            Some(core::slice::from_raw_parts_mut(first, count))
        }
    }

    /// Walks over everything. `None` where the bytes exceed the address space.
    fn walk(&mut self, counts: &StorageCounts) -> Option<CacheStorage<'static>> {
        macro_rules! take_all {
            ($($name:ident: $type:ty,)*) => {
                CacheStorage { $($name: self.take::<$type>(counts.$name)?,)* }
            };
        }
        self.take::<MaybeUninit<kvf_cache>>(1)?;
        Some(for_each_array!(take_all))
    }
}

fn counts(config: &Config<'_>) -> Result<StorageCounts, Status> {
    StorageCounts::of(config).map_err(|_| Status(KVF_ERR_CONFIG))
}

/// Bytes that a cache needs.
pub(crate) fn size(config: &Config<'_>) -> Result<usize, Status> {
    let mut walker = Walker { memory: None, at: 0 };
    let walked = walker.walk(&counts(config)?);
    if walked.is_none() || isize::try_from(walker.at).is_err() { Err(Status(KVF_ERR_SIZE)) } else { Ok(walker.at) }
}

/// Cuts memory up. Its content is lost, except where an error is given.
///
/// # Safety
/// `memory` is aligned to [`ALIGN`] and valid for reads and writes of `len` bytes, by nobody else, from now on.
pub(crate) unsafe fn carve(memory: *mut u8, len: usize, config: &Config<'_>) -> Result<CacheStorage<'static>, Status> {
    if len < size(config)? {
        return Err(Status(KVF_ERR_MEMORY));
    }
    Walker { memory: Some(memory), at: 0 }.walk(&counts(config)?).ok_or(Status(KVF_ERR_SIZE))
}
