//! `kvf`: a tool around kvfolio. `kvf plan` says what a cache takes and how much of it fits; `kvf bound` what a format costs the
//! attention of a model's layers, at most and in fact; `kvf train` learns which tokens to evict, and `kvf judge` says what that loses.
//!
//! ```text
//! kvf plan --model llama-2-7b --format int4:g32 --card a100-80g --tokens 4096
//! kvf bound --formats int8,int4:channel:g32
//! kvf train --recording a.attention --out a.weights
//! kvf judge --recording b.attention --weights a.weights
//! ```

mod bound;
mod catalog;
mod format;
mod learn;
mod plan;
mod show;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tools around kvfolio, the KV-cache manager
#[derive(Parser)]
#[command(name = "kvf", version)]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// What the cache of a model takes, and how many sequences fit
    Plan(plan::Options),
    /// What a format costs the attention over recorded activations: certified bounds beside what was measured
    Bound(bound::Options),
    /// Learns from recorded attention which tokens of each layer to evict
    Train(learn::Train),
    /// What policies of eviction lose on recorded attention
    Judge(learn::Judge),
}

fn main() -> ExitCode {
    let done = match Command::parse().task {
        Task::Plan(options) => plan::run(&options),
        Task::Bound(options) => bound::run(&options),
        Task::Train(options) => learn::train(&options),
        Task::Judge(options) => learn::judge(&options),
    };
    match done {
        // A reader that has gone away is no failure of the plan.
        Ok(text) => {
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("kvf: {message}");
            ExitCode::from(2)
        }
    }
}
