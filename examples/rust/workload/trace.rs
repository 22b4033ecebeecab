//! Real request traces: lengths and shared blocks, without tokens.
//!
//! A line names the prompt's blocks of 512 tokens by ids; equal ids at equal places are equal prefixes. Each block becomes
//! 32 tokens drawn from its id, lengths shrink by the same factor of 16, and replies are drawn from the request's number.

use std::{env, fs, io, path::Path};

use serde::Deserialize;

use super::{Kind, Workload, segment, tokens};

/// Tokens of the trace for each token of the workload.
const SCALE: u64 = 16;
/// Tokens of the workload for each block of the trace.
const BLOCK: u64 = 512 / SCALE;

/// One request of a trace, as its line has it; times are not used.
#[derive(Clone, Debug, Deserialize)]
pub struct Request {
    /// Tokens of the prompt.
    pub input_length: u64,
    /// Tokens of the reply.
    pub output_length: u64,
    /// Ids of the prompt's blocks.
    pub hash_ids: Vec<u64>,
}

/// A trace in the order of arrival.
pub struct Trace {
    /// Its requests.
    pub requests: Vec<Request>,
}

impl Trace {
    /// The file of conversations.
    pub const CONVERSATIONS: &'static str = "mooncake_fast25_conversation_trace.jsonl";
    /// The file of made-up requests.
    pub const SYNTHETIC: &'static str = "mooncake_fast25_synthetic_trace.jsonl";

    /// Reads a trace of the reference data; `None` where it is not there.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn find(file: &str) -> io::Result<Option<Self>> {
        let data = env::var_os("KVF_DATA").unwrap_or_else(|| "../shared/data".into());
        let path = Path::new(&data).join("traces").join(file);
        path.exists().then(|| Self::read(&path)).transpose()
    }

    /// Reads a file with one JSON object a line.
    ///
    /// # Errors
    /// What reading or a line that is no request gives.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(path)?;
        let requests = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Self { requests })
    }

    /// The prompt of a request.
    #[must_use]
    pub fn prompt(&self, request: usize) -> Vec<u32> {
        let Request { input_length, hash_ids, .. } = &self.requests[request];
        let length = input_length.div_ceil(SCALE).min(BLOCK * hash_ids.len() as u64).max(1);
        let mut prompt: Vec<u32> = hash_ids.iter().flat_map(|&id| tokens(segment(6, 0, id), 0..BLOCK)).collect();
        prompt.truncate(length as usize);
        prompt
    }

    /// Its reply.
    #[must_use]
    pub fn reply(&self, request: usize) -> Vec<u32> {
        let length = self.requests[request].output_length.div_ceil(SCALE).max(1);
        tokens(segment(6, 1, request as u64), 0..length)
    }

    /// The trace as a workload with so many requests in flight over a pool of so many pages.
    #[must_use]
    pub fn workload(&self, name: &'static str, pages: u32, in_flight: usize, expected: u64) -> Workload {
        let count = self.requests.len();
        let mut work = Workload::new(name, pages, count as u32, expected);
        for request in 0..count {
            if let Some(done) = request.checked_sub(in_flight) {
                work.finish(done as u64, &self.reply(done));
            }
            work.put_tokens(Kind::Admit, request as u64, &self.prompt(request));
        }
        for request in count.saturating_sub(in_flight)..count {
            work.finish(request as u64, &self.reply(request));
        }
        work
    }
}

impl Workload {
    /// The conversation trace, 64 requests in flight, over 32,768 pages.
    #[must_use]
    pub fn w6(conversations: &Trace) -> Self {
        conversations.workload("W6", 32_768, 64, 0x3bc2_dfed_a42f_1dc2)
    }
}
