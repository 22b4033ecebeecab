//! The machine's words for the statuses of the ABI.

use kvfolio_ffi as ffi;

use super::CMachine;
use crate::machine::{Outcome, Resource, Shortage, Status, Value};

impl CMachine {
    /// The machine's word for a status of the ABI.
    pub(super) fn refusal(&self, status: ffi::kvf_status) -> Outcome {
        let status = match status {
            ffi::KVF_ERR_ARGUMENT | ffi::KVF_ERR_TIME => Status::Argument,
            ffi::KVF_ERR_STALE => Status::Stale,
            ffi::KVF_ERR_BUSY | ffi::KVF_ERR_DUPLICATE => Status::Busy,
            ffi::KVF_ERR_PLAN_STATE => Status::State,
            ffi::KVF_ERR_WINDOW_LOST => Status::WindowLost,
            ffi::KVF_ERR_UNSUPPORTED => Status::Sealed,
            ffi::KVF_RETRY | ffi::KVF_PENDING | ffi::KVF_NEVER => return self.short(status),
            other => panic!("status {other}"),
        };
        Outcome::of(status)
    }

    fn short(&self, status: ffi::kvf_status) -> Outcome {
        let short = &self.shortage;
        let resource = match short.resource {
            ffi::KVF_RESOURCE_PAGES => Resource::Pages,
            ffi::KVF_RESOURCE_QUOTA => Resource::Quota,
            ffi::KVF_RESOURCE_TABLE_CHUNKS => Resource::Chunks,
            ffi::KVF_RESOURCE_SEQUENCES => Resource::Sequences,
            ffi::KVF_RESOURCE_TICKETS => Resource::Tickets,
            ffi::KVF_RESOURCE_TRANSFERS => Resource::Transfers,
            ffi::KVF_RESOURCE_KEY_PARTS => Resource::Spans,
            ffi::KVF_RESOURCE_LEASES => Resource::Leases,
            ffi::KVF_RESOURCE_QUOTAS => Resource::Quotas,
            ffi::KVF_RESOURCE_NAMESPACES => Resource::Namespaces,
            _ => Resource::Plan,
        };
        let status = match status {
            ffi::KVF_NEVER => Status::Never,
            ffi::KVF_PENDING => Status::Pending,
            _ if matches!(resource, Resource::Pages | Resource::Quota) => Status::Retry,
            _ => Status::Capacity,
        };
        let value = Value::Short(Shortage {
            resource,
            group: short.group as u16,
            need: short.need,
            have: short.have,
            reclaimable: short.reclaimable,
            pending: short.pending,
            fits: short.most,
        });
        Outcome { status, value }
    }
}
