//! Failures that carry details: a shortage goes to the caller's `kvf_shortage`, a needed length to its counter.

use kvfolio::{Error, Shortage};

use crate::ptr::{Out, OutStruct};
use crate::status::Status;
use crate::types::kvf_shortage;

/// The caller's place for the details of a shortage.
pub(crate) type ShortageOut = Option<OutStruct<kvf_shortage>>;

/// Writes the details of a shortage, if it is one and they are wanted.
pub(crate) fn explain<T>(result: Result<T, Error>, out: ShortageOut) -> Result<T, Status> {
    if let (Err(Error::Shortage(shortage)), Some(out)) = (&result, out) {
        out.set(&describe(shortage));
    }
    result.map_err(Status::from)
}

/// Writes the length that a short buffer should have had.
pub(crate) fn needed<T>(result: Result<T, Error>, out: Option<Out<usize>>) -> Result<T, Status> {
    if let (Err(Error::ShortBuffer(need)), Some(out)) = (&result, out) {
        out.set(*need as usize);
    }
    result.map_err(Status::from)
}

pub(crate) fn describe(shortage: &Shortage) -> kvf_shortage {
    kvf_shortage {
        struct_size: 0,
        resource: shortage.resource as u32,
        group: u32::from(shortage.group.get()),
        need: shortage.need,
        have: shortage.have,
        reclaimable: shortage.reclaimable,
        pending: shortage.pending,
        most: shortage.most,
    }
}
