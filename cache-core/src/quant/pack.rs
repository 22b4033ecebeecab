//! Packing: 4-bit codes two to a byte, 2-bit codes four to a byte, the first in the lowest bits. No float.
//!
//! ```text
//! B4   byte 0: code 1 | code 0        B2   byte 0: code 3 | code 2 | code 1 | code 0
//!               7..4     3..0                        7..6     5..4     3..2     1..0
//! ```
//! The same along channels and along tokens, so one kernel decodes both.

use super::error::QuantError;
use super::format::IntBits;

/// Packs codes, one per byte, into `packed`. Unused bits of the last byte are 0. O(codes).
///
/// # Errors
/// `Length` unless `packed` has [`IntBits::bytes`]; `Code` for one above [`IntBits::most`].
pub fn pack(bits: IntBits, codes: &[u8], packed: &mut [u8]) -> Result<(), QuantError> {
    if packed.len() != bits.bytes(codes.len()) {
        return Err(QuantError::Length);
    }
    if let Some(index) = codes.iter().position(|&code| code > bits.most()) {
        return Err(QuantError::Code { index });
    }
    pack_all(bits, codes, packed);
    Ok(())
}

/// The inverse of [`pack`]. O(codes).
///
/// # Errors
/// `Length`, as there.
pub fn unpack(bits: IntBits, packed: &[u8], codes: &mut [u8]) -> Result<(), QuantError> {
    if packed.len() != bits.bytes(codes.len()) {
        return Err(QuantError::Length);
    }
    unpack_all(bits, packed, codes);
    Ok(())
}

/// Codes fit, lengths agree.
#[inline(always)]
fn pack_all(bits: IntBits, codes: &[u8], packed: &mut [u8]) {
    match bits {
        IntBits::B8 => packed.iter_mut().zip(codes).for_each(|(byte, &code)| *byte = code),
        IntBits::B4 => {
            let (pairs, rest) = codes.as_chunks();
            let bytes = pairs.iter().map(|&[a, b]| a | b << 4);
            let last = rest.iter().copied();
            packed.iter_mut().zip(bytes.chain(last)).for_each(|(byte, value)| *byte = value);
        }
        IntBits::B2 => {
            let (quads, rest) = codes.as_chunks();
            let bytes = quads.iter().map(|&[a, b, c, d]| a | b << 2 | c << 4 | d << 6);
            let last = rest.iter().rev().copied().reduce(|high, low| high << 2 | low);
            packed.iter_mut().zip(bytes.chain(last)).for_each(|(byte, value)| *byte = value);
        }
    }
}

/// Lengths agree.
#[inline(always)]
fn unpack_all(bits: IntBits, packed: &[u8], codes: &mut [u8]) {
    match bits {
        IntBits::B8 => codes.iter_mut().zip(packed).for_each(|(code, &byte)| *code = byte),
        IntBits::B4 => {
            let (pairs, rest) = codes.as_chunks_mut();
            pairs.iter_mut().zip(packed).for_each(|(pair, &byte)| *pair = split4(byte));
            rest.iter_mut().zip(packed.last()).for_each(|(code, &byte)| *code = byte & 15);
        }
        IntBits::B2 => {
            let (quads, rest) = codes.as_chunks_mut();
            quads.iter_mut().zip(packed).for_each(|(quad, &byte)| *quad = split2(byte));
            let last = packed.last().map_or([0; 4], |&byte| split2(byte));
            rest.iter_mut().zip(last).for_each(|(code, value)| *code = value);
        }
    }
}

/// The codes of a byte.
#[inline(always)]
pub(super) const fn split4(byte: u8) -> [u8; 2] {
    [byte & 15, byte >> 4]
}

/// The codes of a byte.
#[inline(always)]
pub(super) const fn split2(byte: u8) -> [u8; 4] {
    [byte & 3, byte >> 2 & 3, byte >> 4 & 3, byte >> 6]
}
