//! The models and cards that have names: `catalog.json`, compiled in.
//!
//! Sizes of cards are nominal; drivers and other programs leave less. A card of 0 bytes has no size of its own.

use serde::Deserialize;

/// Shapes of a model, as far as its cache depends on them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) layers: u32,
    /// 0 with MLA.
    #[serde(default)]
    pub(crate) kv_heads: u32,
    #[serde(default)]
    pub(crate) head_dim: u32,
    /// MLA: elements of the latent part; 0 = no MLA.
    #[serde(default)]
    pub(crate) latent: u32,
    /// MLA: elements of the rope part.
    #[serde(default)]
    pub(crate) rope: u32,
    /// Tokens that a query of the windowed layers reads, its own included.
    #[serde(default)]
    pub(crate) window: u32,
    /// How many layers have that window.
    #[serde(default)]
    pub(crate) window_layers: u32,
}

/// Memory with a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Card {
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Catalog {
    pub(crate) models: Vec<Model>,
    pub(crate) cards: Vec<Card>,
}

impl Catalog {
    pub(crate) fn read() -> Result<Self, String> {
        serde_json::from_str(include_str!("catalog.json")).map_err(|error| format!("catalog.json: {error}"))
    }

    pub(crate) fn model(&self, name: &str) -> Result<&Model, String> {
        let known = || self.models.iter().map(|model| model.name.as_str()).collect();
        self.models.iter().find(|model| model.name == name).ok_or_else(|| unknown("model", name, known()))
    }

    pub(crate) fn card(&self, name: &str) -> Result<&Card, String> {
        let known = || self.cards.iter().map(|card| card.name.as_str()).collect();
        self.cards.iter().find(|card| card.name == name).ok_or_else(|| unknown("card", name, known()))
    }
}

/// What to say of a name that is not in a list.
pub(crate) fn unknown(kind: &str, name: &str, known: Vec<&str>) -> String {
    format!("no {kind} is called \"{name}\"; known are {}", known.join(", "))
}
