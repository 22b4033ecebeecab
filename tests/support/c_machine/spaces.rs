//! Namespaces, and the events that name them, through the C ABI.

use kvfolio_ffi as ffi;

use super::config::{self, blank, size};
use super::{CMachine, Called};
use crate::machine::{Event, EventKind, Outcome, Value};

impl CMachine {
    pub(super) fn open_space(&mut self, ns: u16) -> Called {
        let key = config::namespace(&self.spec.namespaces[usize::from(ns)]);
        let mut stats = ffi::kvf_stats { struct_size: size::<ffi::kvf_stats>(), ..blank() };
        let mut id = 0;
        call!(kvf_namespace_open(self.cache, &key, &mut id, &mut self.shortage))?;
        call!(kvf_stats_read(self.cache, &mut stats))?;
        self.namespaces[usize::from(ns)] = id;
        self.names.opened(id, ns, stats.events);
        Ok(Outcome::OK)
    }

    pub(super) fn drain(&mut self) -> Called {
        let mut events = vec![blank(); self.spec.max_events()];
        let (mut count, mut lost) = (0, 0);
        call!(kvf_events_read(self.cache, events.as_mut_ptr(), events.len(), &mut count, &mut lost))?;
        let event = |event: &ffi::kvf_event| {
            Some(Event {
                kind: match event.kind {
                    ffi::KVF_EVENT_STORED => EventKind::Stored,
                    ffi::KVF_EVENT_REMOVED => EventKind::Removed,
                    _ => EventKind::Cleared,
                },
                group: event.group as u16,
                page: event.page,
                // The default namespace is open even where the scenario does not use it.
                ns: Some(self.names.at(event.namespace_slot, event.number)?),
                key: event.key,
                parent: event.parent_key,
            })
        };
        Ok(Outcome::ok(Value::Events(events[..count].iter().filter_map(event).collect(), lost)))
    }
}
