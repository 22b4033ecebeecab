//! The machine's words for the errors of the cache.

use kvfolio::Error;

use crate::machine::{Outcome, Resource, Shortage, Status, Value};

fn shortage(short: &kvfolio::Shortage) -> Outcome {
    let resource = match short.resource {
        kvfolio::Resource::Pages => Resource::Pages,
        kvfolio::Resource::Quota => Resource::Quota,
        kvfolio::Resource::TableChunks => Resource::Chunks,
        kvfolio::Resource::Sequences => Resource::Sequences,
        kvfolio::Resource::Tickets => Resource::Tickets,
        kvfolio::Resource::Transfers => Resource::Transfers,
        kvfolio::Resource::KeyParts => Resource::Spans,
        kvfolio::Resource::Leases => Resource::Leases,
        kvfolio::Resource::Quotas => Resource::Quotas,
        kvfolio::Resource::Namespaces => Resource::Namespaces,
        _ => Resource::Plan,
    };
    let status = match short.outcome {
        kvfolio::Outcome::Never => Status::Never,
        kvfolio::Outcome::Pending => Status::Pending,
        kvfolio::Outcome::Retry if matches!(resource, Resource::Pages | Resource::Quota) => Status::Retry,
        kvfolio::Outcome::Retry => Status::Capacity,
    };
    let value = Value::Short(Shortage {
        resource,
        group: short.group.get(),
        need: short.need,
        have: short.have,
        reclaimable: short.reclaimable,
        pending: short.pending,
        fits: short.most,
    });
    Outcome { status, value }
}

/// The machine's word for an error of the cache.
pub(super) fn refusal(error: Error) -> Outcome {
    let status = match error {
        Error::Argument | Error::TimeWentBack => Status::Argument,
        Error::Stale => Status::Stale,
        Error::Busy | Error::Duplicate => Status::Busy,
        Error::PlanState => Status::State,
        Error::WindowLost => Status::WindowLost,
        Error::Unsupported => Status::Sealed,
        Error::Shortage(short) => return shortage(&short),
        other => panic!("{other}"),
    };
    Outcome::of(status)
}
