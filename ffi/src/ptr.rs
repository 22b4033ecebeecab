//! From C pointers to Rust values: one function per shape of pointer, each with all its checks.
//!
//! Outputs stay raw pointers until they are written: a reference would claim memory that the caller may not have filled.
//! The exception are output buffers, which are lent to the core as slices; the bytes come from outside of Rust, so
//! they are initialised as far as Rust can know.

use core::mem::MaybeUninit;

use crate::cache::kvf_cache;
use crate::status::{
    KVF_ERR_ALIGNMENT, KVF_ERR_HANDLE, KVF_ERR_NULL, KVF_ERR_SIZE, KVF_ERR_STRUCT_SIZE, KVF_ERR_UNSUPPORTED, Status,
};

/// Longest struct that is searched for unknown fields.
const LONGEST: usize = 4096;

/// A struct that begins with `struct_size`.
///
/// # Safety
/// `repr(C)`, begins with a `u32`, and any bits are a valid value of it.
pub(crate) unsafe trait Versioned: Copy {
    /// Bytes up to the first field that may be left out.
    const REQUIRED: usize;
}

fn check<T>(pointer: *const T) -> Result<(), Status> {
    if pointer.is_null() {
        return Err(Status(KVF_ERR_NULL));
    }
    if pointer.is_aligned() { Ok(()) } else { Err(Status(KVF_ERR_ALIGNMENT)) }
}

/// Checks a buffer of `count` elements; `false` where it is empty, and then the pointer is not looked at.
fn check_many<T>(pointer: *const T, count: usize) -> Result<bool, Status> {
    if count == 0 {
        return Ok(false);
    }
    check(pointer)?;
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(true),
        _ => Err(Status(KVF_ERR_SIZE)),
    }
}

/// The receiver of a call that changes nothing.
///
/// # Safety
/// Rules (d) and (e).
pub(crate) unsafe fn receiver<'a>(cache: *const kvf_cache) -> Result<&'a kvf_cache, Status> {
    check(cache)?;
    // SAFETY: rule (e); only the mark is read until it is known to be right.
    let mark = unsafe { (&raw const (*cache).mark).read() };
    if mark != kvf_cache::mark_at(cache) {
        return Err(Status(KVF_ERR_HANDLE));
    }
    // SAFETY: the mark says that this is a cache; rule (d) that nobody changes it now.
    Ok(unsafe { &*cache })
}

/// The receiver of a call that changes the cache.
///
/// # Safety
/// Rules (d) and (e).
pub(crate) unsafe fn receiver_mut<'a>(cache: *mut kvf_cache) -> Result<&'a mut kvf_cache, Status> {
    // SAFETY: the same rules; the reference ends here.
    unsafe { receiver(cache) }?;
    // SAFETY: checked above; rule (d) says that nobody else uses it now.
    Ok(unsafe { &mut *cache })
}

/// An input buffer. NULL is good where the count is 0.
///
/// # Safety
/// Rule (a), and any bits are a valid `T`.
pub(crate) unsafe fn slice<'a, T>(pointer: *const T, count: usize) -> Result<&'a [T], Status> {
    if !check_many(pointer, count)? {
        return Ok(&[]);
    }
    // SAFETY: not NULL, aligned, of a size that exists; rule (a) for its content.
    Ok(unsafe { core::slice::from_raw_parts(pointer, count) })
}

/// An input buffer that may be left out by NULL.
///
/// # Safety
/// As [`slice`].
pub(crate) unsafe fn optional_slice<'a, T>(pointer: *const T, count: usize) -> Result<Option<&'a [T]>, Status> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's.
    unsafe { slice(pointer, count) }.map(Some)
}

/// An output buffer. NULL is good where the capacity is 0.
///
/// # Safety
/// Rules (a) and (b), and any bits are a valid `T`.
pub(crate) unsafe fn slice_mut<'a, T>(pointer: *mut T, capacity: usize) -> Result<&'a mut [T], Status> {
    if !check_many(pointer, capacity)? {
        return Ok(&mut []);
    }
    // SAFETY: not NULL, aligned, of a size that exists; rule (a) for its content, rule (b) for being the only one.
    Ok(unsafe { core::slice::from_raw_parts_mut(pointer, capacity) })
}

/// An output of one value, not written yet.
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    pub(crate) fn set(self, value: T) {
        // SAFETY: made by `out`, which checked it; rule (a) says that it is writable.
        unsafe { self.0.write(value) }
    }
}

/// An output of one value.
///
/// # Safety
/// Rule (a) until the value is set.
pub(crate) unsafe fn out<T>(pointer: *mut T) -> Result<Out<T>, Status> {
    check(pointer)?;
    Ok(Out(pointer))
}

/// An output of one value that may be left out by NULL.
///
/// # Safety
/// As [`out`].
pub(crate) unsafe fn optional_out<T>(pointer: *mut T) -> Result<Option<Out<T>>, Status> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's.
    unsafe { out(pointer) }.map(Some)
}

/// Reads the size in front of a struct.
///
/// # Safety
/// Rule (a).
unsafe fn struct_size<T: Versioned>(pointer: *const T) -> Result<usize, Status> {
    check(pointer)?;
    // SAFETY: every such struct begins with its size, and the pointer is aligned for it.
    let given = unsafe { pointer.cast::<u32>().read() } as usize;
    if (T::REQUIRED..=LONGEST).contains(&given) { Ok(given) } else { Err(Status(KVF_ERR_STRUCT_SIZE)) }
}

/// An input struct, copied: fields that the caller's version lacks are zero; bytes unknown here must be zero.
///
/// # Safety
/// Rule (a).
pub(crate) unsafe fn input<T: Versioned>(pointer: *const T) -> Result<T, Status> {
    // SAFETY: the caller's.
    let given = unsafe { struct_size(pointer) }?;
    // SAFETY: the caller's.
    unsafe { input_of_size(pointer, given) }
}

/// An input struct of a size that was checked.
///
/// # Safety
/// `given` bytes are readable.
unsafe fn input_of_size<T: Versioned>(pointer: *const T, given: usize) -> Result<T, Status> {
    let bytes = pointer.cast::<u8>();
    for at in size_of::<T>()..given {
        // SAFETY: below `given`.
        if unsafe { bytes.add(at).read() } != 0 {
            return Err(Status(KVF_ERR_UNSUPPORTED));
        }
    }
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: at most `given` bytes are read and at most the size of T written, to a local.
    unsafe { bytes.copy_to_nonoverlapping(value.as_mut_ptr().cast(), given.min(size_of::<T>())) };
    // SAFETY: every byte is set, and any bits are a valid T.
    Ok(unsafe { value.assume_init() })
}

/// An input struct that may be left out by NULL: then every field is zero.
///
/// # Safety
/// Rule (a).
pub(crate) unsafe fn optional_input<T: Versioned>(pointer: *const T) -> Result<T, Status> {
    if pointer.is_null() {
        // SAFETY: any bits are a valid T.
        return Ok(unsafe { MaybeUninit::zeroed().assume_init() });
    }
    // SAFETY: the caller's.
    unsafe { input(pointer) }
}

/// An array of input structs; they are `struct_size` bytes apart.
pub(crate) struct Inputs<T> {
    first: *const T,
    stride: usize,
    pub(crate) count: usize,
}

impl<T: Versioned> Inputs<T> {
    /// The element at `index`, which must be below `count`.
    pub(crate) fn get(&self, index: usize) -> Result<T, Status> {
        // Below `count`, so the product is below the size that `inputs` checked.
        let element = self.first.wrapping_byte_add(index.wrapping_mul(self.stride));
        // SAFETY: made by `inputs`; rule (a).
        if unsafe { struct_size(element) }? != self.stride {
            return Err(Status(KVF_ERR_STRUCT_SIZE)); // before anything behind the element is read
        }
        // SAFETY: made by `inputs`; rule (a).
        unsafe { input_of_size(element, self.stride) }
    }
}

/// An array of input structs.
///
/// # Safety
/// Rule (a), for as long as elements are read.
pub(crate) unsafe fn inputs<T: Versioned>(first: *const T, count: usize) -> Result<Inputs<T>, Status> {
    if count == 0 {
        return Ok(Inputs { first, stride: 0, count });
    }
    // SAFETY: the caller's.
    let stride = unsafe { struct_size(first) }?;
    if !stride.is_multiple_of(align_of::<T>()) {
        return Err(Status(KVF_ERR_STRUCT_SIZE));
    }
    match count.checked_mul(stride) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(Inputs { first, stride, count }),
        _ => Err(Status(KVF_ERR_SIZE)),
    }
}

/// An output struct, not written yet.
pub(crate) struct OutStruct<T> {
    target: *mut T,
    size: usize,
}

impl<T: Versioned> OutStruct<T> {
    /// Writes what fits into the caller's version. `struct_size` stays as the caller set it.
    pub(crate) fn set(self, value: &T) {
        let skip = size_of::<u32>();
        let from = (&raw const *value).cast::<u8>();
        let copy = |count: usize| {
            // SAFETY: made by `output`; at most struct_size bytes are written (rule (a)), at most the size of T read.
            unsafe { from.add(skip).copy_to_nonoverlapping(self.target.cast::<u8>().add(skip), count) };
        };
        if self.size >= size_of::<T>() {
            copy(const { size_of::<T>().saturating_sub(size_of::<u32>()) }); // a known length needs no call
        } else {
            copy(self.size.saturating_sub(skip));
        }
    }
}

/// An output struct, whose `struct_size` the caller has set.
///
/// # Safety
/// Rule (a) until the value is set.
pub(crate) unsafe fn output<T: Versioned>(pointer: *mut T) -> Result<OutStruct<T>, Status> {
    // SAFETY: the caller's.
    let size = unsafe { struct_size(pointer) }?;
    Ok(OutStruct { target: pointer, size })
}

/// An output struct that may be left out by NULL.
///
/// # Safety
/// As [`output`].
pub(crate) unsafe fn optional_output<T: Versioned>(pointer: *mut T) -> Result<Option<OutStruct<T>>, Status> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's.
    unsafe { output(pointer) }.map(Some)
}
