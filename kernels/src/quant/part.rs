//! One part of quantised pages, K or V.

use core::ops::{Deref, Range};

use kvfolio::layout::{PageLayout, Tensor};
use kvfolio::quant::{QuantError, RowCodec};

use super::kind::{Form, Run};

/// Where one head of one page is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) layer: u32,
    pub(super) head: u32,
}

/// The codec of a part, and what the loops for its form want to know.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    codec: RowCodec<'a>,
    layout: &'a PageLayout,
    tensor: Tensor,
    form: Option<Form>,
    scales: &'a [f32],
}

impl<'a> Part<'a> {
    /// As [`RowCodec::new`].
    pub(super) fn new(layout: &'a PageLayout, tensor: Tensor, scales: &'a [f32]) -> Result<Self, QuantError> {
        let codec = RowCodec::new(layout, tensor, scales)?;
        let part = layout.part(tensor);
        let form = Form::of(&part.format, part.dim).filter(Form::is_whole);
        Ok(Self { codec, layout, tensor, form, scales })
    }

    /// Tokens of one head of a page as a run, if there are loops for the form and the tokens are whole blocks. Its elements are
    /// still to be named. `page` is the page's address and length.
    #[inline]
    pub(super) fn run(
        &self,
        (page, bytes): (*mut u8, usize),
        place: Place,
        tokens: &Range<u32>,
    ) -> Option<(Form, Run)> {
        let form = self.form?;
        let part = self.layout.part(self.tensor);
        let (layer, block) = (place.layer, part.block_tokens);
        let is_whole = tokens.start.is_multiple_of(block) && tokens.end.is_multiple_of(block);
        let is_there = tokens.start < tokens.end && tokens.end <= self.layout.page_tokens;
        if !is_whole || !is_there || (bytes as u64) < self.layout.page_bytes {
            return None;
        }
        let row = self.layout.row(layer, self.tensor, place.head, tokens.start).ok()?;
        let nth = layer * part.static_scales + if part.static_scales > 1 { place.head } else { 0 };
        let at = |offset: u64| page.wrapping_add(offset as usize);
        let run = Run {
            x: core::ptr::null_mut(),
            x_step: 0,
            codes: at(row.codes),
            codes_step: part.codes_block as usize,
            scales: at(row.scales),
            zeros: at(row.zeros),
            scales_step: part.params_block as usize,
            zeros_step: part.params_block as usize,
            blocks: tokens.len().checked_div(block as usize)?,
            fixed: self.scales.get(nth as usize).copied().unwrap_or(1.0),
        };
        Some((form, run))
    }
}

impl<'a> Deref for Part<'a> {
    type Target = RowCodec<'a>;

    fn deref(&self) -> &RowCodec<'a> {
        &self.codec
    }
}
