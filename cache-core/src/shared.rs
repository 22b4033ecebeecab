//! A cache that several threads share, behind a spin lock.
//!
//! **Hazard.** A spin lock waits by running. An interrupt handler (or a thread of higher priority on the same core) that
//! asks for the lock while the code it interrupted holds it waits for ever. On a single core do not call this from an
//! interrupt: mask interrupts around the calls instead, or hand the work to thread level. On a desktop a waiting thread
//! burns its time slice while the holder may be descheduled; an engine with one scheduler thread needs no lock at all.

use crate::cache::Cache;

/// A cache behind a spin lock.
pub struct Shared<'m>(spin::Mutex<Cache<'m>>);

impl<'m> Shared<'m> {
    /// Wraps a cache.
    #[must_use]
    pub const fn new(cache: Cache<'m>) -> Self {
        Self(spin::Mutex::new(cache))
    }

    /// Runs `work` with the cache, waiting for it by spinning. Hold it for one step, not for a model's forward pass.
    pub fn with<R>(&self, work: impl FnOnce(&mut Cache<'m>) -> R) -> R {
        work(&mut self.0.lock())
    }

    /// Runs `work` with the cache unless someone else has it.
    pub fn try_with<R>(&self, work: impl FnOnce(&mut Cache<'m>) -> R) -> Option<R> {
        self.0.try_lock().map(|mut cache| work(&mut cache))
    }

    /// Gives the cache back.
    pub fn into_inner(self) -> Cache<'m> {
        self.0.into_inner()
    }
}
