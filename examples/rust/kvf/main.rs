//! `kvf`: a tool around kvfolio. `kvf plan` says what a cache takes and how much of it fits; `kvf bound` what a format costs the
//! attention of a model's layers, at most and in fact.
//!
//! ```text
//! kvf plan --model llama-2-7b --format int4:g32 --card a100-80g --tokens 4096
//! kvf bound --formats int8,int4:channel:g32
//! ```

mod bound;
mod catalog;
mod format;
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
}

fn main() -> ExitCode {
    let done = match Command::parse().task {
        Task::Plan(options) => plan::run(&options),
        Task::Bound(options) => bound::run(&options),
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
