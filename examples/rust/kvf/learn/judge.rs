//! `kvf judge`: what policies of eviction lose on recorded attention.

use std::path::PathBuf;

use clap::Args;
use kvfolio::evict::{Meter, Protected, Random};

use super::by_layer;
use super::recording::Recording;
use super::replay::{self, Policy, Scores};
use super::weights::Weights;

#[derive(Args)]
pub(crate) struct Judge {
    /// Attention over the text to judge on
    #[arg(long)]
    pub(super) recording: PathBuf,
    /// Weights of kvf train
    #[arg(long)]
    pub(super) weights: Option<PathBuf>,
    /// Budgets, in tokens of a hundred
    #[arg(long, value_delimiter = ',', default_value = "25,50", value_parser = clap::value_parser!(u32).range(1..=99))]
    pub(super) budgets: Vec<u32>,
    /// Fail where the learned policy loses as much as chance with the first tokens protected
    #[arg(long, requires = "weights")]
    pub(super) check: bool,
}

/// A line of the table of `kvf judge`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Window,
    Sinks,
    Random,
    H2o,
    Learned,
}

impl Row {
    const ALL: [Self; 5] = [Self::Window, Self::Sinks, Self::Random, Self::H2o, Self::Learned];

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
    let mut faults = String::new();
    for &share in &options.budgets {
        let budget = (recording.tokens as u64 * u64::from(share) / 100) as u32;
        let mut chance = f64::NAN;
        for row in Row::ALL.into_iter().filter(|&row| row != Row::Learned || weights.is_some()) {
            let meters = by_layer(&recording, |layer| of_layer(&recording, layer, budget, row, weights.as_ref()))?;
            let lost = meters.iter().fold(Meter::default(), |sum, &meter| sum.plus(meter)).mean();
            let most = meters.iter().map(Meter::mean).fold(0.0, f64::max);
            text.push_str(&format!("{:<8}{:<14}{lost:>14.4}{most:>26.4}\n", format!("{share} %"), row.name()));
            match row {
                Row::Random => chance = lost,
                Row::Learned if options.check && lost >= chance => {
                    faults.push_str(&format!("\nlearned loses {lost:.4} at {share} %, chance {chance:.4}"));
                }
                _ => {}
            }
        }
    }
    text.push_str(
        "Evicted mass: what a query of the full cache pays to tokens that the policy has not; mean over queries and heads.\n",
    );
    if faults.is_empty() { Ok(text) } else { Err(format!("{text}{faults}")) }
}

/// The evicted mass of all heads of a layer.
fn of_layer(
    recording: &Recording,
    layer: usize,
    budget: u32,
    row: Row,
    weights: Option<&Weights>,
) -> Result<Meter, String> {
    let scores = |head| match (row, weights) {
        (Row::Random, _) => Ok(Scores::Random(Random { seed: 1, stream: (layer * recording.kv_heads + head) as u64 })),
        (Row::H2o, _) => Ok(Scores::H2o),
        (Row::Learned, Some(weights)) => weights.of_layer(layer).map(Scores::Learned),
        _ => Ok::<_, String>(Scores::Oldest),
    };
    (0..recording.kv_heads).try_fold(Meter::default(), |sum, head| {
        let policy = Policy { budget, scores: scores(head)?, protected: row.protected(budget) };
        let lost =
            replay::replay(&recording.head(layer, head), &policy, |_, _| ()).map_err(|error| error.to_string())?;
        Ok(sum.plus(lost))
    })
}
