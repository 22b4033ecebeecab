//! `kvf train` and `kvf judge`: a learned policy of eviction from recorded attention, and what it loses on another text.

mod network;
mod recording;
mod replay;
mod samples;
mod weights;

use std::path::PathBuf;
use std::thread;

use clap::Args;
use kvfolio::evict::{Meter, Protected, Random};

use recording::Recording;
use replay::Scores;
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

#[derive(Args)]
pub(crate) struct Judge {
    /// Attention over the text to judge on
    #[arg(long)]
    recording: PathBuf,
    /// Weights of kvf train
    #[arg(long)]
    weights: Option<PathBuf>,
    /// Budgets, in tokens of a hundred
    #[arg(long, value_delimiter = ',', default_value = "25,50", value_parser = clap::value_parser!(u32).range(1..=99))]
    budgets: Vec<u32>,
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

/// A line of the table of `kvf judge`.
#[derive(Clone, Copy, PartialEq)]
enum Row {
    Window,
    Sinks,
    Random,
    H2o,
    Learned,
}

impl Row {
    const fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Sinks => "sinks",
            Self::Random => "random-sinks",
            Self::H2o => "h2o",
            Self::Learned => "learned",
        }
    }

    /// The first tokens and the newest that always stay.
    fn protected(self, budget: u32) -> Protected<'static> {
        let (sinks, recent) = match self {
            Self::Window => (0, 1),
            Self::Sinks => (4, 1),
            Self::H2o => (0, budget / 2),
            Self::Random | Self::Learned => (4, budget / 2),
        };
        Protected { pins: &[], sinks, recent: recent.max(1) }
    }
}

pub(crate) fn judge(options: &Judge) -> Result<String, String> {
    let recording = Recording::read(&options.recording)?;
    let weights = options.weights.as_deref().map(Weights::read).transpose()?;
    if weights.as_ref().is_some_and(|weights| weights.networks.len() > 1 && weights.networks.len() != recording.layers)
    {
        return Err("the weights are of a model with another number of layers".to_owned());
    }
    let mut text = format!("{:<8}{:<14}{:>14}{:>26}\n", "budget", "policy", "evicted mass", "greatest of a layer");
    for &share in &options.budgets {
        let budget = (recording.tokens as u64 * u64::from(share) / 100) as u32;
        for row in [Row::Window, Row::Sinks, Row::Random, Row::H2o, Row::Learned] {
            if row == Row::Learned && weights.is_none() {
                continue;
            }
            let meters = by_layer(&recording, |layer| {
                let mut meter = Meter::default();
                for head in 0..recording.kv_heads {
                    let stream = (layer * recording.kv_heads + head) as u64;
                    let scores = match (row, &weights) {
                        (Row::Random, _) => Scores::Random(Random { seed: 1, stream }),
                        (Row::H2o, _) => Scores::H2o,
                        (Row::Learned, Some(weights)) => Scores::Learned(weights.of_layer(layer)?),
                        _ => Scores::Oldest,
                    };
                    let of = recording.head(layer, head);
                    let how = (scores, &row.protected(budget));
                    let lost = replay::replay(&of, recording.group, (recording.tokens, budget), how, |_, _| ());
                    meter = meter.plus(lost.map_err(|error| error.to_string())?);
                }
                Ok(meter)
            })?;
            let all = meters.iter().fold(Meter::default(), |sum, &meter| sum.plus(meter));
            let most = meters.iter().map(Meter::mean).fold(0.0, f64::max);
            text.push_str(&format!("{:<8}{:<14}{:>14.4}{most:>26.4}\n", format!("{share} %"), row.name(), all.mean()));
        }
    }
    text.push_str("Evicted mass: what a query of the full cache pays to tokens that the policy has not; mean over queries and heads.\n");
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
