//! FP8: E4M3FN, E5M2 and E4M3FNUZ, converted with integers only.
//!
//! Encoding rounds to nearest, ties to even, and saturates: infinities and what rounds beyond the largest value become the
//! largest value. NaN becomes NaN with its sign (0x7f or 0xff; E4M3FNUZ: 0x80), subnormals are kept, and -0 where the kind
//! has it. Relative error of a normal value: at most 1/17 (E4M3), 1/9 (E5M2).
//!
//! With scales: `c = encode(x / s)`, `x' = decode(c) s`.

use super::error::QuantError;
use super::format::Fp8Kind;
use super::slices::{each, pieces, pieces_mut};

/// What an encoding is made of.
trait Layout {
    /// Bits of fraction.
    const FRACTION: u32;
    /// Bias of the exponent.
    const BIAS: u32;
    /// The code of the greatest value.
    const MOST: u32;
    /// Whether the codes above are infinity and NaN, or NaN alone.
    const INFINITE: bool = false;
    /// Whether 0x80 is the only NaN.
    const UNSIGNED_ZERO: bool = false;

    /// f32 bits to the left of which the code's lie.
    const SHIFT: u32 = 23_u32.wrapping_sub(Self::FRACTION);
    /// The f32 exponent of the least normal value.
    const NORMAL: u32 = 128_u32.wrapping_sub(Self::BIAS);
    /// What moves the bias, at the place of the code.
    const REBIAS: u32 = Self::NORMAL.wrapping_sub(1) << Self::FRACTION;

    #[inline(always)]
    fn encode(x: f32) -> u8 {
        let magnitude = x.to_bits() & 0x7fff_ffff;
        let sign = x.to_bits() >> 24 & 0x80;
        let below_half = (1_u32 << Self::SHIFT >> 1).wrapping_sub(1);
        let odd = magnitude >> Self::SHIFT & 1;
        let normal = magnitude.wrapping_add(below_half).wrapping_add(odd) >> Self::SHIFT;
        let normal = normal.wrapping_sub(Self::REBIAS);
        // Subnormal: the significand moves right once more for each exponent below. 25 places leave nothing.
        let exponent = magnitude >> 23;
        let shift = Self::SHIFT.wrapping_add(Self::NORMAL).wrapping_sub(exponent).min(25);
        let significand = magnitude & 0x7f_ffff | 0x80_0000;
        let odd = significand.wrapping_shr(shift) & 1;
        let below_half = (1_u32.wrapping_shl(shift) >> 1).wrapping_sub(1);
        let small = significand.wrapping_add(below_half).wrapping_add(odd).wrapping_shr(shift);

        let value = if exponent < Self::NORMAL { small } else { normal };
        let value = if value < Self::MOST { value } else { Self::MOST };
        let is_nan = magnitude > 0x7f80_0000;
        let code = if Self::UNSIGNED_ZERO {
            let signed = if value == 0 { 0 } else { sign | value };
            if is_nan { 0x80 } else { signed }
        } else {
            sign | if is_nan { 0x7f } else { value }
        };
        let [code, ..] = code.to_le_bytes();
        code
    }

    #[inline(always)]
    fn decode(code: u8) -> f32 {
        let magnitude = u32::from(code & 0x7f);
        let sign = u32::from(code & 0x80) << 24;
        let normal = magnitude.wrapping_add(Self::REBIAS) << Self::SHIFT;
        // Subnormal: the code counts units of 2^(1 - bias - fraction).
        let unit = f32::from_bits(Self::NORMAL.wrapping_sub(Self::FRACTION) << 23);
        let small = (f32::from(code & 0x7f) * unit).to_bits();
        let value = if magnitude >> Self::FRACTION == 0 { small } else { normal };
        let value = if magnitude > Self::MOST {
            let is_infinite = Self::INFINITE && magnitude == Self::MOST.wrapping_add(1);
            if is_infinite { 0x7f80_0000 } else { 0x7fc0_0000 }
        } else {
            value
        };
        if Self::UNSIGNED_ZERO && code == 0x80 { f32::NAN } else { f32::from_bits(sign | value) }
    }
}

struct E4m3Fn;
impl Layout for E4m3Fn {
    const FRACTION: u32 = 3;
    const BIAS: u32 = 7;
    const MOST: u32 = 0x7e;
}

struct E5m2;
impl Layout for E5m2 {
    const FRACTION: u32 = 2;
    const BIAS: u32 = 15;
    const MOST: u32 = 0x7b;
    const INFINITE: bool = true;
}

struct E4m3Fnuz;
impl Layout for E4m3Fnuz {
    const FRACTION: u32 = 3;
    const BIAS: u32 = 8;
    const MOST: u32 = 0x7f;
    const UNSIGNED_ZERO: bool = true;
}

impl Fp8Kind {
    /// The greatest value: 448, 57,344, 240.
    pub const fn greatest(self) -> f32 {
        match self {
            Self::E4m3Fn => 448.0,
            Self::E5m2 => 57_344.0,
            Self::E4m3Fnuz => 240.0,
        }
    }

    /// The code of one value, unscaled. O(1).
    #[inline(always)]
    pub fn encode(self, x: f32) -> u8 {
        match self {
            Self::E4m3Fn => E4m3Fn::encode(x),
            Self::E5m2 => E5m2::encode(x),
            Self::E4m3Fnuz => E4m3Fnuz::encode(x),
        }
    }

    /// The value of a code, exactly. A NaN is quiet. O(1).
    #[inline(always)]
    pub fn decode(self, code: u8) -> f32 {
        match self {
            Self::E4m3Fn => E4m3Fn::decode(code),
            Self::E5m2 => E5m2::decode(code),
            Self::E4m3Fnuz => E4m3Fnuz::decode(code),
        }
    }
}

/// Encodes rows of `row` elements; row r is divided by scale `r mod scales`. One scale is per tensor; one per head, for rows
/// that are all heads of a token, then those of the next, is per head; one per row is per token and head
/// ([`row_scales`](super::fp8_scale::row_scales)). NaN and infinity: see the module. O(x).
///
/// # Errors
/// `Length` for rows that are not whole, or that the scales do not divide; `Scale` for one that is not finite and above 0.
#[inline(always)]
pub fn encode(kind: Fp8Kind, x: &[f32], row: usize, scales: &[f32], codes: &mut [u8]) -> Result<(), QuantError> {
    are_usable(x.len(), codes.len(), row, scales)?;
    let rows = pieces(x, row).zip(pieces_mut(codes, row)).zip(scales.iter().cycle());
    for ((x, codes), &scale) in rows {
        match kind {
            Fp8Kind::E4m3Fn => encode_row::<E4m3Fn>(x, scale, codes),
            Fp8Kind::E5m2 => encode_row::<E5m2>(x, scale, codes),
            Fp8Kind::E4m3Fnuz => encode_row::<E4m3Fnuz>(x, scale, codes),
        }
    }
    Ok(())
}

/// Decodes what [`encode`] wrote. Codes of NaN give NaN. O(out).
///
/// # Errors
/// As there.
#[inline(always)]
pub fn decode(kind: Fp8Kind, codes: &[u8], row: usize, scales: &[f32], out: &mut [f32]) -> Result<(), QuantError> {
    are_usable(codes.len(), out.len(), row, scales)?;
    let rows = pieces_mut(out, row).zip(pieces(codes, row)).zip(scales.iter().cycle());
    for ((out, codes), &scale) in rows {
        match kind {
            Fp8Kind::E4m3Fn => decode_row::<E4m3Fn>(codes, scale, out),
            Fp8Kind::E5m2 => decode_row::<E5m2>(codes, scale, out),
            Fp8Kind::E4m3Fnuz => decode_row::<E4m3Fnuz>(codes, scale, out),
        }
    }
    Ok(())
}

/// Turns codes of E4M3FN into those of E4M3FNUZ with the same values; NaN stays NaN, -0 becomes 0. O(codes).
///
/// # Errors
/// `Code` for a value above 240.
pub fn fn_to_fnuz(codes: &mut [u8]) -> Result<(), QuantError> {
    let convert = |code: u8| match code & 0x7f {
        0 => Some(0),
        // Both are linear up to here, with units of 2^-9 and 2^-10.
        small @ 1..8 => Some(code & 0x80 | small << 1),
        0x7f => Some(0x80),
        _ => (code & 0x7f <= 0x77).then_some(code.wrapping_add(8)),
    };
    convert_all(codes, convert)
}

/// The inverse of [`fn_to_fnuz`]. O(codes).
///
/// # Errors
/// `Code` for an odd multiple of 2^-10, which E4M3FN does not have.
pub fn fnuz_to_fn(codes: &mut [u8]) -> Result<(), QuantError> {
    let convert = |code: u8| match code & 0x7f {
        0 => Some(if code == 0x80 { 0x7f } else { 0 }),
        small @ 1..16 => (small & 1 == 0).then_some(code & 0x80 | small >> 1),
        _ => Some(code.wrapping_sub(8)),
    };
    convert_all(codes, convert)
}

fn convert_all(codes: &mut [u8], convert: impl Fn(u8) -> Option<u8>) -> Result<(), QuantError> {
    if let Some(index) = codes.iter().position(|&code| convert(code).is_none()) {
        return Err(QuantError::Code { index });
    }
    codes.iter_mut().for_each(|code| *code = convert(*code).unwrap_or(*code));
    Ok(())
}

#[inline(always)]
fn are_usable(from: usize, to: usize, row: usize, scales: &[f32]) -> Result<(), QuantError> {
    let rows = from.checked_div(row).filter(|_| from.checked_rem(row) == Some(0) && from == to);
    match rows.and_then(|rows| rows.checked_rem(scales.len())) {
        Some(0) => is_scale(scales),
        _ => Err(QuantError::Length),
    }
}

/// Refuses scales that are not finite and above 0.
#[inline(always)]
pub(super) fn is_scale(scales: &[f32]) -> Result<(), QuantError> {
    let is_bad = |&scale: &f32| !(scale > 0.0 && scale < f32::INFINITY);
    scales.iter().position(is_bad).map_or(Ok(()), |index| Err(QuantError::Scale { index }))
}

#[inline(always)]
fn encode_row<L: Layout>(x: &[f32], scale: f32, codes: &mut [u8]) {
    each(x, codes, |x| L::encode(x / scale));
}

#[inline(always)]
fn decode_row<L: Layout>(codes: &[u8], scale: f32, out: &mut [f32]) {
    each(codes, out, |code| L::decode(code) * scale);
}
