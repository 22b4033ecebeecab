//! What a page costs: bytes, bits per element, and whether something is lost.

use super::address::Tensor;
use super::page::{PageLayout, PartLayout};

/// A quotient of whole numbers, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Above the line.
    pub numerator: u64,
    /// Below it; never 0.
    pub denominator: u64,
}

impl Ratio {
    /// The quotient in lowest terms; 0 over 0 counts as 0.
    #[must_use]
    pub fn new(numerator: u64, denominator: u64) -> Self {
        let (mut a, mut b) = (numerator, denominator);
        while b != 0 {
            (a, b) = (b, a.checked_rem(b).unwrap_or(0));
        }
        let part = |n: u64| n.checked_div(a).unwrap_or(0);
        Self { numerator: part(numerator), denominator: part(denominator).max(1) }
    }

    /// The number, where it is a whole one.
    #[must_use]
    pub const fn whole(&self) -> Option<u64> {
        if self.denominator == 1 { Some(self.numerator) } else { None }
    }
}

impl PartLayout {
    /// Bytes of codes, scales and zeros in one layer of a page.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.codes_bytes.saturating_add(self.scales_bytes).saturating_add(self.zeros_bytes)
    }
}

impl PageLayout {
    /// Whether what is read is not what was computed.
    #[must_use]
    pub const fn is_lossy(&self) -> bool {
        self.flags & Self::LOSSY != 0
    }

    /// Bytes of a page that mean something: codes, scales and zeros.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        let own = |part: &PartLayout| if part.is_own() { part.bytes() } else { 0 };
        let layer = own(&self.k).saturating_add(own(&self.v)).saturating_add(own(&self.rope_part));
        layer.saturating_mul(u64::from(self.layers))
    }

    /// Bytes of a page that only align others.
    #[must_use]
    pub fn padding_bytes(&self) -> u64 {
        self.page_bytes.saturating_sub(self.payload_bytes())
    }

    /// Bytes of one token in all layers, its share of scales included, padding apart.
    #[must_use]
    pub fn token_bytes(&self) -> Ratio {
        Ratio::new(self.payload_bytes(), u64::from(self.page_tokens))
    }

    /// Elements of one token in all layers. V of MLA is not counted again.
    #[must_use]
    pub fn token_elements(&self) -> u64 {
        let own = |part: &PartLayout| if part.is_own() { u64::from(part.dim) } else { 0 };
        let row = own(&self.k).saturating_add(own(&self.v)).saturating_add(own(&self.rope_part));
        row.saturating_mul(u64::from(self.kv_heads)).saturating_mul(u64::from(self.layers))
    }

    /// Bits of one element of a part, its share of scales and zeros included; 0 where the layout lacks the part.
    #[must_use]
    pub fn element_bits(&self, tensor: Tensor) -> Ratio {
        let part = self.part(tensor);
        let rows = u64::from(self.kv_heads).saturating_mul(u64::from(self.page_tokens));
        Ratio::new(part.bytes().saturating_mul(8), rows.saturating_mul(u64::from(part.dim)))
    }

    /// Bytes of the scales that lie outside pages, for all layers: f32 per tensor or head, once for the whole pool.
    #[must_use]
    pub fn static_scale_bytes(&self) -> u64 {
        let own = |part: &PartLayout| if part.is_own() { u64::from(part.static_scales) } else { 0 };
        let scales = own(&self.k).saturating_add(own(&self.v)).saturating_add(own(&self.rope_part));
        scales.saturating_mul(4).saturating_mul(u64::from(self.layers))
    }
}
