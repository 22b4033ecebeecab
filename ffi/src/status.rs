//! Statuses: the one list of numbers, names and meanings, and how the core's errors map to it.

use core::ffi::CStr;

use kvfolio::{Error, Outcome};

/// What a function answers: 0 = done, else a positive code. The hundreds tell the kind.
pub type kvf_status = i32;

/// One line of the list.
pub struct Entry {
    /// Number.
    pub code: kvf_status,
    /// Name in C.
    pub name: &'static CStr,
    /// Meaning.
    pub text: &'static CStr,
}

macro_rules! statuses {
    ($($code:literal $name:ident $text:literal;)*) => {
        $(#[doc = $text] pub const $name: kvf_status = $code;)*

        /// All statuses, in ascending order of their numbers.
        pub const LIST: &[Entry] = &[$(Entry { code: $code, name: terminated(concat!(stringify!($name), "\0")), text: terminated(concat!($text, "\0")) },)*];
    };
}

statuses! {
    0   KVF_OK               "done";
    100 KVF_ERR_NULL         "a required pointer is NULL";
    101 KVF_ERR_ARGUMENT     "a value is outside its range";
    102 KVF_ERR_ALIGNMENT    "a pointer is not aligned for what it points to";
    103 KVF_ERR_STRUCT_SIZE  "struct_size is too small, above 4096, or differs within an array";
    104 KVF_ERR_UNSUPPORTED  "unknown fields are not zero, or the configuration left out what the call needs";
    105 KVF_ERR_SHORT_BUFFER "a buffer is too short; what is needed was written where the function says so";
    106 KVF_ERR_SIZE         "a count of elements exceeds the address space";
    107 KVF_ERR_CONFIG       "the configuration is unusable; kvf_config_check names the field";
    108 KVF_ERR_MEMORY       "the memory is smaller than kvf_cache_required_size says";
    109 KVF_ERR_DUPLICATE    "the sequence is already in the plan";
    110 KVF_ERR_ABI          "header and library have different versions";
    111 KVF_ERR_LAYOUT       "the page layout breaks a rule; kvf_layout_make says which";
    112 KVF_ERR_RANGE        "a result needs more than 64 bits";
    200 KVF_ERR_HANDLE       "not a cache that kvf_cache_init made, or one that moved or was ended";
    201 KVF_ERR_STALE        "the sequence, ticket, transfer, namespace or lease is gone";
    202 KVF_ERR_BUSY         "the object is in use by the open plan or by a transfer";
    203 KVF_ERR_PLAN_STATE   "the plan is not in the state that the call needs";
    204 KVF_ERR_WINDOW_LOST  "a window no longer holds what this length needs: match again";
    205 KVF_ERR_TIME         "the tick is lower than the last one";
    300 KVF_RETRY            "others must give something up first";
    301 KVF_PENDING          "transfers under way will give enough: wait, preempt nobody";
    302 KVF_NEVER            "not even an empty cache could hold it";
    900 KVF_ERR_CORRUPT      "an invariant is violated: the memory was overwritten, or this is a fault of kvfolio";
    901 KVF_ERR_INTERNAL     "a failure that this library has no number for";
}

const fn terminated(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    }
}

/// A failure on its way to the caller.
#[derive(Clone, Copy)]
pub(crate) struct Status(pub(crate) kvf_status);

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Self(code_of(&error))
    }
}

/// The number of an error. One copy of this table: it would be in each function otherwise.
#[cold]
#[inline(never)]
fn code_of(error: &Error) -> kvf_status {
    match error {
        Error::Argument => KVF_ERR_ARGUMENT,
        Error::Duplicate => KVF_ERR_DUPLICATE,
        Error::ShortBuffer(_) => KVF_ERR_SHORT_BUFFER,
        Error::Unsupported => KVF_ERR_UNSUPPORTED,
        Error::Config(_) => KVF_ERR_CONFIG,
        Error::Stale => KVF_ERR_STALE,
        Error::Busy => KVF_ERR_BUSY,
        Error::PlanState => KVF_ERR_PLAN_STATE,
        Error::WindowLost => KVF_ERR_WINDOW_LOST,
        Error::TimeWentBack => KVF_ERR_TIME,
        Error::Shortage(shortage) => match shortage.outcome {
            Outcome::Retry => KVF_RETRY,
            Outcome::Pending => KVF_PENDING,
            Outcome::Never => KVF_NEVER,
        },
        Error::Corrupt => KVF_ERR_CORRUPT,
        _ => KVF_ERR_INTERNAL,
    }
}

/// The status that a call answers with.
pub(crate) fn answer(result: Result<(), Status>) -> kvf_status {
    match result {
        Ok(()) => KVF_OK,
        Err(Status(code)) => code,
    }
}
