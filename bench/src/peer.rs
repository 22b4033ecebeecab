//! What a manager must offer to run a workload beside kvfolio.

use cpu_time::ThreadTime;
use kvfolio_examples::workload::{Kind, Workload};

/// A manager that keeps requests in pages and finds prefixes again.
pub trait Peer {
    /// What it keeps of a running request.
    type Request;
    /// A prefix that was found and is kept from eviction.
    type Pin;

    /// Pages for so many tokens whose ids nobody knows; `None` when there are too few.
    fn reserve(&mut self, tokens: u32) -> Option<Self::Request>;
    /// A request with this prompt: its cached prefix, and new pages for the rest; `None` when there are too few.
    fn admit(&mut self, prompt: &[u32]) -> Option<Self::Request>;
    /// Appends tokens; `None` when there is no page for them.
    fn grow(&mut self, request: &mut Self::Request, tokens: &[u32]) -> Option<()>;
    /// Appends one token to each request.
    fn step(&mut self, requests: &mut [Self::Request], tokens: &[u32]) -> Option<()> {
        requests.iter_mut().zip(tokens.chunks(1)).try_for_each(|(request, token)| self.grow(request, token))
    }
    /// Ends a request; its full pages stay cached.
    fn release(&mut self, request: Self::Request);
    /// Finds the cached prefix of a prompt and nothing more; `None` when it cannot be pinned.
    fn find(&mut self, prompt: &[u32]) -> Option<Self::Pin>;
    /// Lets a prefix go.
    fn unpin(&mut self, pin: Self::Pin);
    /// Tokens of prompts that were cached, so far.
    fn hit_tokens(&self) -> u64;
}

/// What a workload took.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// CPU time of the thread.
    pub seconds: f64,
    /// Tokens of prompts that were cached; `None` where the manager does not evict and so hits what others have lost.
    pub hit_tokens: Option<u64>,
}

/// Runs a workload; `None` when a request did not fit.
pub fn drive<P: Peer>(peer: &mut P, work: &Workload) -> Option<Measured> {
    let mut requests: Vec<Option<Box<P::Request>>> = (0..work.requests).map(|_| None).collect();
    let start = ThreadTime::now();
    for operation in &work.operations {
        let slot = &mut requests[operation.request as usize];
        match operation.kind {
            Kind::Admit if work.cached => *slot = Some(Box::new(peer.admit(work.tokens_of(operation))?)),
            Kind::Admit => *slot = Some(Box::new(peer.reserve(operation.count)?)),
            Kind::Grow => peer.grow(slot.as_mut()?, work.tokens_of(operation))?,
            Kind::Release => peer.release(*slot.take()?),
        }
    }
    Some(Measured { seconds: start.elapsed().as_secs_f64(), hit_tokens: Some(peer.hit_tokens()) })
}
