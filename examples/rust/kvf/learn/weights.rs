//! Files of weights, which `kvf-chat --evict learned` reads: words with spaces or lines between them.
//!
//! `kvf-evict-mlp`, the version of features, features, hidden units and networks; then the weights of each network, in the order
//! of [`kvfolio::evict::Mlp`]. There is one network for each layer, or one for all.

use std::fs;
use std::path::Path;

use kvfolio::evict::{FEATURES, Mlp};

const NAME: &str = "kvf-evict-mlp";

/// Networks of one shape.
pub(super) struct Weights {
    pub(super) hidden: u32,
    pub(super) networks: Vec<Vec<f32>>,
}

impl Weights {
    pub(super) fn write(&self, path: &Path) -> Result<(), String> {
        let mut text = format!("{NAME} {} {FEATURES} {} {}\n", Mlp::VERSION, self.hidden, self.networks.len());
        for network in &self.networks {
            let words: Vec<String> = network.iter().map(f32::to_string).collect();
            text.push_str(&words.join(" "));
            text.push('\n');
        }
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let fault = |text: &str| format!("{}: {text}", path.display());
        let text = fs::read_to_string(path).map_err(|error| fault(&error.to_string()))?;
        let mut words = text.split_ascii_whitespace();
        if words.next() != Some(NAME) {
            return Err(fault("no weights of a learned policy"));
        }
        let mut number = || words.next().and_then(|word| word.parse::<u32>().ok()).ok_or_else(|| fault("no number"));
        let [version, features, hidden, networks] = [number()?, number()?, number()?, number()?];
        let rest = words.map(|word| word.parse().map_err(|_| fault(&format!("{word} is no number"))));
        let rest = rest.collect::<Result<Vec<f32>, _>>()?;
        let each = Mlp::len(hidden);
        if networks == 0 || rest.len() as u64 != u64::from(networks) * each as u64 {
            return Err(fault("another number of weights than it says"));
        }
        let networks: Vec<Vec<f32>> = rest.chunks(each).map(<[f32]>::to_vec).collect();
        for network in &networks {
            Mlp::new(version, features, hidden, network).map_err(|error| fault(&error.to_string()))?;
        }
        Ok(Self { hidden, networks })
    }

    /// The network of a layer.
    pub(super) fn of_layer(&self, layer: usize) -> Result<Mlp<'_>, String> {
        let network = if self.networks.len() == 1 { self.networks.first() } else { self.networks.get(layer) };
        let network = network.ok_or_else(|| format!("no weights for layer {layer}"))?;
        Mlp::new(Mlp::VERSION, FEATURES, self.hidden, network).map_err(|error| error.to_string())
    }
}
