//! The sections of a page, one after the other.

use super::address::Tensor;
use super::page::PageLayout;

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SectionKind {
    /// Codes, or plain elements.
    Codes = 0,
    /// Scales.
    Scales = 1,
    /// Zeros.
    Zeros = 2,
}

/// A run of bytes with one meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its layer.
    pub layer: u32,
    /// Its part.
    pub tensor: Tensor,
    /// What it holds.
    pub kind: SectionKind,
    /// First byte, from the page's start.
    pub offset: u64,
    /// Bytes, at least 1. What lies between this section and the next is padding.
    pub bytes: u64,
}

/// All sections of a page in ascending order. V of MLA, which is K again, does not come.
#[derive(Clone, Debug)]
pub struct Sections<'a> {
    layout: &'a PageLayout,
    layer: u32,
    step: usize,
}

/// The order within a layer.
const STEPS: [(Tensor, SectionKind); 9] = {
    use SectionKind::{Codes, Scales, Zeros};
    [
        (Tensor::K, Codes),
        (Tensor::K, Scales),
        (Tensor::K, Zeros),
        (Tensor::V, Codes),
        (Tensor::V, Scales),
        (Tensor::V, Zeros),
        (Tensor::Rope, Codes),
        (Tensor::Rope, Scales),
        (Tensor::Rope, Zeros),
    ]
};

impl PageLayout {
    /// The sections of a page.
    #[must_use]
    pub const fn sections(&self) -> Sections<'_> {
        Sections { layout: self, layer: 0, step: 0 }
    }
}

impl Iterator for Sections<'_> {
    type Item = Section;

    fn next(&mut self) -> Option<Section> {
        while self.layer < self.layout.layers {
            let (layer, step) = (self.layer, STEPS.get(self.step));
            let Some(&(tensor, kind)) = step else {
                (self.layer, self.step) = (layer.saturating_add(1), 0);
                continue;
            };
            self.step = self.step.saturating_add(1);
            let part = self.layout.part(tensor);
            let (offset, bytes) = match kind {
                SectionKind::Codes => (part.codes, part.codes_bytes),
                SectionKind::Scales => (part.scales, part.scales_bytes),
                SectionKind::Zeros => (part.zeros, part.zeros_bytes),
            };
            if part.is_own() && bytes != 0 {
                let start = u64::from(layer).wrapping_mul(self.layout.layer_bytes); // below page_bytes
                return Some(Section { layer, tensor, kind, offset: start.wrapping_add(offset), bytes });
            }
        }
        None
    }
}
