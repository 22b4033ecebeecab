//! `kvf train` and `kvf judge`: a learned policy of eviction from recorded attention, and what it loses on another text.

mod judge;
mod network;
mod recording;
mod replay;
mod samples;
#[cfg(test)]
mod tests;
mod weights;

use std::path::PathBuf;
use std::thread;

use clap::Args;

pub(crate) use judge::{Judge, judge};
use recording::Recording;
use weights::Weights;

#[derive(Args)]
pub(crate) struct Train {
    /// Attention over the text to learn from, of kvf-evict --record
    #[arg(long)]
    recording: PathBuf,
    /// The weights, one network for each layer
    #[arg(long)]
    out: PathBuf,
    /// Hidden units
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=32))]
    hidden: u32,
    /// Passes over the samples
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    passes: u32,
    /// What chance begins with
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn train(options: &Train) -> Result<String, String> {
    let recording = Recording::read(&options.recording)?;
    let plan = |layer| network::Plan {
        hidden: options.hidden as usize,
        passes: options.passes as usize,
        seed: options.seed.wrapping_add(layer as u64),
    };
    let networks = by_layer(&recording, |layer| {
        let samples = samples::of_layer(&recording, layer).map_err(|error| error.to_string())?;
        if samples.is_empty() {
            return Err(format!("{} tokens are too few to learn from", recording.tokens));
        }
        Ok((network::train(&samples, plan(layer)), samples.len()))
    })?;
    let mut text = format!("{:>5}{:>10}{:>18}\n", "layer", "samples", "error of ln");
    for (layer, ((_, error), samples)) in networks.iter().enumerate() {
        text.push_str(&format!("{layer:>5}{samples:>10}{error:>18.4}\n"));
    }
    let networks = networks.into_iter().map(|((weights, _), _)| weights).collect();
    Weights { hidden: options.hidden, networks }.write(&options.out)?;
    text.push_str(&format!("written: {}\n", options.out.display()));
    Ok(text)
}

/// Does the same for each layer, on two threads; gives the results in order.
fn by_layer<T: Send>(
    recording: &Recording,
    work: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let layers: Vec<usize> = (0..recording.layers).collect();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let each = layers.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let spawn = |part: &'_ [usize]| {
            let part = part.to_vec();
            scope.spawn(|| part.into_iter().map(&work).collect::<Result<Vec<T>, String>>())
        };
        let running: Vec<_> = layers.chunks(each).map(spawn).collect();
        running.into_iter().try_fold(Vec::new(), |mut all, thread| {
            all.extend(thread.join().map_err(|_| "a thread panicked".to_owned())??);
            Ok(all)
        })
    })
}
