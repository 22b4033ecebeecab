//! What can be wrong with the arguments of a kernel.
//!
//! Invariant: a kernel that returns an error has written nothing, unless it says
//! what stays. Codes are those of `kvfolio_kernels.h` and are never reused.

use core::ffi::CStr;

macro_rules! errors {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:literal, $c_name:literal;)+) => {
        /// Argument error of a kernel; the number is the C status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[repr(i32)]
        pub enum Error {
            $($(#[doc = $doc])+ $name = $code,)+
        }

        /// Name of a status in C, for [`crate::capi`].
        pub(crate) fn status_name(status: i32) -> &'static CStr {
            match status {
                0 => c"KVF_KERNEL_OK",
                $($code => $c_name,)+
                _ => c"KVF_KERNEL_ERR_UNKNOWN",
            }
        }
    };
}

errors! {
    /// A required pointer is NULL.
    Null = 150, c"KVF_KERNEL_ERR_NULL";
    /// A struct is too small, or has unknown bytes that are not zero.
    StructSize = 151, c"KVF_KERNEL_ERR_STRUCT_SIZE";
    /// Unknown element type.
    Dtype = 152, c"KVF_KERNEL_ERR_DTYPE";
    /// P is not a power of two in 1..=256, or above 64 with bits of slots.
    PageTokens = 153, c"KVF_KERNEL_ERR_PAGE_TOKENS";
    /// A size is zero or too large, does not fit its buffer, or H is no multiple of Hk.
    Shape = 154, c"KVF_KERNEL_ERR_SHAPE";
    /// Strides overlap, or the memory exceeds its buffer or the address space.
    Stride = 155, c"KVF_KERNEL_ERR_STRIDE";
    /// An address or a stride is no multiple of the element size.
    Align = 156, c"KVF_KERNEL_ERR_ALIGN";
    /// A row, head or token range is outside its array.
    Range = 157, c"KVF_KERNEL_ERR_RANGE";
    /// A table row is out of range, or too short for the position.
    Table = 158, c"KVF_KERNEL_ERR_TABLE";
    /// A page id is negative or above N.
    Page = 159, c"KVF_KERNEL_ERR_PAGE";
    /// Page 0 where a page must be present.
    NullPage = 160, c"KVF_KERNEL_ERR_NULL_PAGE";
    /// A slot id is in page 0, above page N, or below -1; a slot of a move is not below P.
    Slot = 161, c"KVF_KERNEL_ERR_SLOT";
    /// A copy of more than P tokens, or of a page onto itself; a move of a part of a group.
    Tokens = 162, c"KVF_KERNEL_ERR_TOKENS";
    /// The scratch buffer is too small.
    Scratch = 163, c"KVF_KERNEL_ERR_SCRATCH";
    /// `scale` or `soft_cap` is not finite, `soft_cap` is negative, or an unknown number of an instruction set or of what
    /// encoders do with values that are not finite.
    Value = 164, c"KVF_KERNEL_ERR_VALUE";
    /// A page layout that was not made by the library, or that this kernel does not read.
    Layout = 165, c"KVF_KERNEL_ERR_LAYOUT";
    /// A NaN or an infinity where values are needed.
    NonFinite = 166, c"KVF_KERNEL_ERR_NONFINITE";
    /// A scale that is not finite and above 0.
    Scale = 167, c"KVF_KERNEL_ERR_SCALE";
}

impl Error {
    /// The C status of this error.
    pub const fn code(self) -> i32 {
        self as i32
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(status_name(self.code()).to_str().unwrap_or_default())
    }
}

impl core::error::Error for Error {}

/// `Ok` iff the condition holds.
#[inline]
pub(crate) fn ensure(condition: bool, error: Error) -> Result<(), Error> {
    if condition { Ok(()) } else { Err(error) }
}
