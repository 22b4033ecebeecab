//! Namespaces, and the events that name them, through the Rust API.

use super::{Answer, RustMachine, config, done};
use crate::machine::{Event, EventKind, Outcome, Value};

impl RustMachine {
    pub(super) fn open_space(&mut self, ns: u16) -> Answer {
        let key = config::namespace(&self.spec.namespaces[usize::from(ns)]);
        let id = self.cache().namespace_open(&key)?;
        let made = self.cache().stats().events;
        self.namespaces[usize::from(ns)] = id;
        self.names.opened(id.to_bits(), ns, made);
        Ok(Outcome::OK)
    }

    pub(super) fn close_space(&mut self, ns: u16) -> Answer {
        let id = self.ns(ns);
        done(self.cache().namespace_close(id))
    }

    pub(super) fn drain(&mut self) -> Outcome {
        let mut events = vec![kvfolio::Event::default(); self.spec.max_events()];
        let (count, lost) = self.cache().read_events(&mut events);
        events.truncate(count);
        let event = |event: kvfolio::Event| {
            Some(Event {
                kind: match event.kind {
                    kvfolio::EventKind::Stored => EventKind::Stored,
                    kvfolio::EventKind::Removed => EventKind::Removed,
                    _ => EventKind::Cleared,
                },
                group: event.group,
                page: event.page,
                // The default namespace is open even where the scenario does not use it.
                ns: Some(self.names.at(event.namespace, event.sequence)?),
                key: event.key,
                parent: event.parent_key,
            })
        };
        Outcome::ok(Value::Events(events.into_iter().filter_map(event).collect(), lost))
    }
}
