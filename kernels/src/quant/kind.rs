//! Formats that have loops of their own, and where the elements, codes and parameters of one call lie.

use kvfolio::layout::{Axis, ElementCode, ScaleMode, TensorFormat};

/// A format, as the loops tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Codes of so many bits, with scale and zero.
    Int(u32),
    /// INT8 with a scale.
    Symmetric,
    Q8_0,
    Q4_0,
    /// One f32 scale for each group, computed.
    E4m3,
    /// One scale for the call.
    E4m3Fixed,
}

/// What a [`Run`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) kind: Kind,
    /// Elements of a group.
    pub(super) group: usize,
    /// Elements of a row.
    pub(super) dim: usize,
    /// Whether groups are of tokens.
    pub(super) is_channel: bool,
}

impl Form {
    /// The form of rows of `dim` elements, if there are loops for the format.
    pub(super) fn of(format: &TensorFormat, dim: u32) -> Option<Self> {
        let TensorFormat { element, axis, group, scale, flags, .. } = *format;
        let dim = dim as usize;
        let kind = match element {
            ElementCode::INT8 => Kind::Int(8),
            ElementCode::INT4 => Kind::Int(4),
            ElementCode::INT2 => Kind::Int(2),
            ElementCode::INT8_SYMMETRIC => Kind::Symmetric,
            ElementCode::Q8_0 => Kind::Q8_0,
            ElementCode::Q4_0 => Kind::Q4_0,
            ElementCode::FP8_E4M3FN if scale != ScaleMode::TOKEN_HEAD => Kind::E4m3Fixed,
            ElementCode::FP8_E4M3FN if flags & TensorFormat::POWER_OF_TWO == 0 => Kind::E4m3,
            _ => return None,
        };
        let group = match kind {
            Kind::Q8_0 | Kind::Q4_0 => 32,
            Kind::E4m3Fixed => dim,
            _ if group == 0 => dim,
            _ => group as usize,
        };
        Some(Self { kind, group, dim, is_channel: axis == Axis::CHANNEL })
    }

    /// Whether groups are of whole vectors.
    pub(super) fn is_whole(&self) -> bool {
        let rows_fit = if self.is_channel {
            self.dim.is_multiple_of(8) && matches!(self.group, 16 | 32 | 64 | 128)
        } else {
            self.group > 0 && self.dim.is_multiple_of(self.group)
        };
        rows_fit && self.dim > 0 && self.group.is_multiple_of(16)
    }

    /// Tokens of a block.
    pub(super) fn block_tokens(&self) -> usize {
        if self.is_channel { self.group } else { 1 }
    }

    /// Groups of a block.
    pub(super) fn block_groups(&self) -> usize {
        if self.is_channel { self.dim } else { self.dim.checked_div(self.group).unwrap_or(0) }
    }

    /// Bytes of one group's codes.
    pub(super) fn group_bytes(&self) -> usize {
        match self.kind {
            Kind::Int(bits) => self.group * bits as usize / 8,
            Kind::Symmetric | Kind::E4m3 | Kind::E4m3Fixed => self.group,
            Kind::Q8_0 => 34,
            Kind::Q4_0 => 18,
        }
    }

    /// Bytes of one group's scale, where it does not lie among the codes.
    pub(super) fn scale_bytes(&self) -> usize {
        match self.kind {
            Kind::Int(_) | Kind::Symmetric => 2,
            Kind::E4m3 => 4,
            Kind::Q8_0 | Kind::Q4_0 | Kind::E4m3Fixed => 0,
        }
    }

    /// Bytes of one group's zero.
    pub(super) fn zero_bytes(&self) -> usize {
        if matches!(self.kind, Kind::Int(_)) { 2 } else { 0 }
    }
}

/// Blocks of one head, by address. What is read is never written, whatever the type of its address.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// Row 0 of plain elements, aligned for them.
    pub(super) x: *mut u8,
    /// Bytes from a row to the next, a multiple of the element.
    pub(super) x_step: usize,
    /// Codes of block 0.
    pub(super) codes: *mut u8,
    /// Bytes from a block's codes to the next block's.
    pub(super) codes_step: usize,
    /// Scales of block 0, where the form has them.
    pub(super) scales: *mut u8,
    /// Zeros of block 0, where the form has them.
    pub(super) zeros: *mut u8,
    /// Bytes from a block's scales to the next block's.
    pub(super) scales_step: usize,
    /// Bytes from a block's zeros to the next block's.
    pub(super) zeros_step: usize,
    pub(super) blocks: usize,
    /// The scale of [`Kind::E4m3Fixed`].
    pub(super) fixed: f32,
}
