//! Formats: widths, groups within rows, kinds of FP8.

use super::error::QuantError;

/// Longest group along the token axis.
#[cfg(feature = "quant")]
pub(super) const BLOCK: usize = 128;

/// Bits of an integer code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IntBits {
    /// 8 bits, codes 0 to 255.
    B8 = 8,
    /// 4 bits, codes 0 to 15.
    B4 = 4,
    /// 2 bits, codes 0 to 3.
    B2 = 2,
}

impl IntBits {
    /// Codes in a byte.
    pub const fn per_byte(self) -> usize {
        match self {
            Self::B8 => 1,
            Self::B4 => 2,
            Self::B2 => 4,
        }
    }

    /// The highest code.
    pub const fn most(self) -> u8 {
        match self {
            Self::B8 => 255,
            Self::B4 => 15,
            Self::B2 => 3,
        }
    }

    /// Bytes of `codes` packed codes; the last byte may be partly used.
    pub const fn bytes(self, codes: usize) -> usize {
        codes.div_ceil(self.per_byte())
    }
}

/// How rows are cut into groups that share parameters: no group crosses a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    row: u32,
    group: u32,
}

impl Groups {
    /// Groups of 16, 32, 64 or 128 that divide the row, or the whole row as one group.
    ///
    /// # Errors
    /// `Group` for anything else, and for a row of less than 2: its group would cost more than its element.
    pub const fn new(row: u32, group: u32) -> Result<Self, QuantError> {
        let is_size = matches!(group, 16 | 32 | 64 | 128) && row & group.wrapping_sub(1) == 0;
        if row < 2 || !(is_size || group == row) {
            return Err(QuantError::Group);
        }
        Ok(Self { row, group })
    }

    /// Elements of a row.
    pub const fn row(self) -> usize {
        self.row as usize
    }

    /// Elements of a group.
    pub const fn group(self) -> usize {
        self.group as usize
    }

    /// Groups of a row.
    pub const fn per_row(self) -> usize {
        match self.row().checked_div(self.group()) {
            Some(groups) => groups,
            None => 0, // a group is never empty
        }
    }

    /// Groups of `elements` in whole rows: the length of the sections of scales and zeros.
    ///
    /// # Errors
    /// `Length` when the rows are not whole.
    pub const fn count(self, elements: usize) -> Result<usize, QuantError> {
        match (elements.checked_rem(self.row()), elements.checked_div(self.group())) {
            (Some(0), Some(groups)) => Ok(groups),
            _ => Err(QuantError::Length),
        }
    }
}

/// An integer format: bits, row and group. A row is what is contiguous in codes: the channels of a token and head, or the
/// tokens of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntFormat {
    bits: IntBits,
    groups: Groups,
}

impl IntFormat {
    /// See [`Groups::new`]; a group must also fill whole bytes.
    ///
    /// # Errors
    /// `Group`.
    pub const fn new(bits: IntBits, row: u32, group: u32) -> Result<Self, QuantError> {
        match Groups::new(row, group) {
            Ok(groups) if groups.group() & bits.per_byte().wrapping_sub(1) == 0 => Ok(Self { bits, groups }),
            _ => Err(QuantError::Group),
        }
    }

    /// Bits of a code.
    pub const fn bits(self) -> IntBits {
        self.bits
    }

    /// Rows and groups.
    pub const fn groups(self) -> Groups {
        self.groups
    }

    /// Bytes of codes of a group.
    pub(super) const fn group_bytes(self) -> usize {
        self.bits.bytes(self.groups.group())
    }

    /// Elements held by these sections, once their lengths are found to agree.
    pub(super) fn elements(self, codes: usize, scales: usize, zeros: usize) -> Result<usize, QuantError> {
        let elements = codes.checked_mul(self.bits.per_byte()).ok_or(QuantError::Length)?;
        let groups = self.groups.count(elements)?;
        if (scales, zeros) != (groups, groups) {
            return Err(QuantError::Length);
        }
        Ok(elements)
    }
}

/// The 8-bit floats. The bytes of one kind are not those of another: [`E4m3Fnuz`](Self::E4m3Fnuz) read as
/// [`E4m3Fn`](Self::E4m3Fn) gives twice the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fp8Kind {
    /// 4 bits of exponent with bias 7, 3 of fraction; up to 448; NaN 0x7f and 0xff, no infinity.
    E4m3Fn = 0,
    /// 5 bits of exponent with bias 15, 2 of fraction; up to 57,344; infinity 0x7c.
    E5m2 = 1,
    /// 4 bits of exponent with bias 8, 3 of fraction; up to 240; NaN 0x80, no infinity, no -0.
    E4m3Fnuz = 2,
}
