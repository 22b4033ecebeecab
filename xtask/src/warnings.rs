//! Collects what cbindgen warns of: anything that it leaves out must stop the header from being made.

use std::sync::Mutex;

static FOUND: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Collector;

impl log::Log for Collector {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        let text = record.args().to_string();
        if self.enabled(record.metadata())
            && !text.ends_with("(not `pub`).") // private constants are meant to be left out
            && let Ok(mut found) = FOUND.lock()
        {
            found.push(text);
        }
    }

    fn flush(&self) {}
}

/// Begins to collect.
pub(crate) fn collect() {
    if log::set_logger(&Collector).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
}

/// What was collected.
pub(crate) fn found() -> Vec<String> {
    FOUND.lock().map(|found| found.clone()).unwrap_or_default()
}
