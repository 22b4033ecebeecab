//! What each workload and operation may cost, as ratios to other managers in the same run.

use core::fmt::{self, Display, Formatter};

/// Which floor a workload is held against.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Floor {
    /// The one that trusts hashes.
    Plain,
    /// The one that compares tokens.
    Verifying,
}

/// What a workload may cost.
#[derive(Clone, Copy)]
pub struct Budget {
    /// The floor that counts.
    pub floor: Floor,
    /// Most of the floor's time that it must take.
    pub must: f64,
    /// What it aims at.
    pub aim: f64,
    /// How many times faster than kvbm-logical it must be.
    pub kvbm: f64,
    /// Fewest tokens of prompts that must be hit: what page-wise LRU gives.
    pub hits: u64,
}

/// The budget of a workload.
pub fn of(name: &str) -> Budget {
    let (floor, must, aim, kvbm, hits) = match name {
        "W1" => (Floor::Plain, 1.0, 0.6, 4.0, 0),
        "W2" => (Floor::Plain, 1.0, 0.5, 5.0, 0),
        "W3" => (Floor::Verifying, 0.6, 0.33, 25.0, 8_315_584),
        "W4" => (Floor::Plain, 0.5, 0.3, 15.0, 5_779_648),
        "W5" => (Floor::Verifying, 0.7, 0.4, 25.0, 1_370_752),
        _ => (Floor::Verifying, 0.6, 0.33, 25.0, 2_451_504),
    };
    Budget { floor, must, aim, kvbm, hits }
}

/// How a figure stands to what it must and aims to be, lower being better.
pub struct Verdict {
    /// The figure.
    pub is: f64,
    /// What it must not exceed.
    pub must: f64,
    /// What it aims at.
    pub aim: f64,
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let word = match self.is {
            is if is <= self.aim => "aim met",
            is if is <= self.must => "must met",
            _ => "MISSED",
        };
        write!(f, "{:.2} (must {}, aim {}): {word}", self.is, self.must, self.aim)
    }
}
