//! Decoding to fixed point with integers only, for devices without a float unit. Nothing here names a float.
//!
//! A result is an i32 with `frac` fraction bits (Q format), nearest, ties to even, so off by at most half of `2^-frac`, and
//! exact wherever the value is a multiple of that. All of f16 is a multiple of `2^-24`: with 24 fraction bits every integer
//! code decodes exactly, while it fits. What does not fit saturates and is counted.

use super::error::{QuantError, Report};
use super::format::{Fp8Kind, IntBits, IntFormat};
use super::pack::{split2, split4};
use super::slices::{pieces, pieces_mut};

/// Most fraction bits: the unit of f16.
pub const FRACTION_MAX: u32 = 24;

/// Decodes rows of an integer format (`int`): `c s + z` with `frac` fraction bits. Parameters are f16 bits, as stored. The
/// report counts elements. O(out).
///
/// # Errors
/// `Length`, also for more than [`FRACTION_MAX`] fraction bits; `Scale` for a scale that is negative or not finite, or a zero
/// that is not finite, with the index of the group.
pub fn decode_int(
    format: IntFormat,
    codes: &[u8],
    scales: &[u16],
    zeros: &[u16],
    frac: u32,
    out: &mut [i32],
) -> Result<Report, QuantError> {
    let drop = FRACTION_MAX.checked_sub(frac).ok_or(QuantError::Length)?;
    if format.elements(codes.len(), scales.len(), zeros.len())? != out.len() {
        return Err(QuantError::Length);
    }
    let is_bad = |(&scale, &zero): (&u16, &u16)| scale >= 0x7c00 || f16_units(zero).is_none();
    if let Some(index) = scales.iter().zip(zeros).position(is_bad) {
        return Err(QuantError::Scale { index });
    }
    let groups = pieces(codes, format.group_bytes()).zip(scales.iter().zip(zeros));
    let mut saturated = 0_u32;
    for (out, (codes, (&scale, &zero))) in pieces_mut(out, format.groups().group()).zip(groups) {
        let (scale, zero) = (f16_units(scale).unwrap_or(0), f16_units(zero).unwrap_or(0));
        // Below 2^49: nothing wraps.
        let mut value =
            |code: u8| saturate(round(i64::from(code).wrapping_mul(scale).wrapping_add(zero), drop), &mut saturated);
        match format.bits() {
            IntBits::B8 => out.iter_mut().zip(codes).for_each(|(to, &code)| *to = value(code)),
            IntBits::B4 => {
                let pairs = out.as_chunks_mut().0.iter_mut();
                pairs.zip(codes).for_each(|(to, &byte)| *to = split4(byte).map(&mut value));
            }
            IntBits::B2 => {
                let quads = out.as_chunks_mut().0.iter_mut();
                quads.zip(codes).for_each(|(to, &byte)| *to = split2(byte).map(&mut value));
            }
        }
    }
    Ok(Report { saturated, replaced: 0 })
}

/// Decodes FP8 codes under the scale `2^exponent`, with `frac` fraction bits. The report counts elements. O(out).
///
/// # Errors
/// `Length`, also for more than 31 fraction bits; `NonFinite` for the code of a NaN or an infinity, with its index.
pub fn decode_fp8(
    kind: Fp8Kind,
    codes: &[u8],
    exponent: i32,
    frac: u32,
    out: &mut [i32],
) -> Result<Report, QuantError> {
    if codes.len() != out.len() || frac > 31 {
        return Err(QuantError::Length);
    }
    if let Some(index) = codes.iter().position(|&code| fp8_units(kind, code).is_none()) {
        return Err(QuantError::NonFinite { index });
    }
    // Places to the left that turn units of the kind into units of the result.
    let places = exponent.saturating_add(fp8_unit(kind)).saturating_add_unsigned(frac);
    let mut saturated = 0;
    for (to, &code) in out.iter_mut().zip(codes) {
        let units = fp8_units(kind, code).unwrap_or(0);
        let value = match u32::try_from(places) {
            Ok(left @ ..=31) => units.wrapping_shl(left),
            // All but 0 saturate.
            Ok(_) => units.signum() << 32,
            // After 62 places nothing is left.
            Err(_) => round(units, places.unsigned_abs().min(62)),
        };
        *to = saturate(value, &mut saturated);
    }
    Ok(Report { saturated, replaced: 0 })
}

/// The exponent of an f32 that is a power of two, from its bits: what [`decode_fp8`] takes.
///
/// # Errors
/// `Scale`, with index 0, for any other.
pub fn exponent_of(bits: u32) -> Result<i32, QuantError> {
    match (bits >> 23, bits & 0x7f_ffff) {
        (biased @ 1..=254, 0) => Ok(biased.cast_signed().wrapping_sub(127)),
        (0, fraction) if fraction.is_power_of_two() => Ok(fraction.trailing_zeros().cast_signed().wrapping_sub(149)),
        _ => Err(QuantError::Scale { index: 0 }),
    }
}

/// An f16 in units of 2^-24, exactly; none for NaN and infinity. O(1).
pub const fn f16_units(bits: u16) -> Option<i64> {
    let exponent = (bits >> 10 & 31) as u32;
    let fraction = (bits & 0x3ff) as i64;
    let magnitude = match exponent {
        31 => return None,
        0 => fraction,
        _ => (fraction | 0x400).wrapping_shl(exponent.wrapping_sub(1)),
    };
    Some(if bits >> 15 == 0 { magnitude } else { magnitude.wrapping_neg() })
}

/// log2 of the least subnormal.
const fn fp8_unit(kind: Fp8Kind) -> i32 {
    match kind {
        Fp8Kind::E4m3Fn => -9,
        Fp8Kind::E5m2 => -16,
        Fp8Kind::E4m3Fnuz => -10,
    }
}

/// A code in units of the least subnormal: below 2^32. None for NaN and infinity.
const fn fp8_units(kind: Fp8Kind, code: u8) -> Option<i64> {
    let (fraction_bits, most) = match kind {
        Fp8Kind::E4m3Fn => (3, 0x7e),
        Fp8Kind::E5m2 => (2, 0x7b),
        Fp8Kind::E4m3Fnuz => (3, 0x7f),
    };
    let magnitude = code & 0x7f;
    if magnitude > most || (matches!(kind, Fp8Kind::E4m3Fnuz) && code == 0x80) {
        return None;
    }
    let one = 1_i64.wrapping_shl(fraction_bits);
    let fraction = magnitude as i64 & one.wrapping_sub(1);
    let units = match (magnitude as u32).wrapping_shr(fraction_bits) {
        0 => fraction,
        exponent => (fraction | one).wrapping_shl(exponent.wrapping_sub(1)),
    };
    Some(if code >> 7 == 0 { units } else { units.wrapping_neg() })
}

/// `value / 2^drop`, nearest, ties to even; `drop` is at most 62 and `|value|` below 2^62.
#[inline]
fn round(value: i64, drop: u32) -> i64 {
    let odd = value.wrapping_shr(drop) & 1;
    let below_half = (1_i64.wrapping_shl(drop) >> 1).wrapping_sub(1).max(0);
    let odd = if drop == 0 { 0 } else { odd };
    value.wrapping_add(below_half).wrapping_add(odd).wrapping_shr(drop)
}

#[inline]
fn saturate(value: i64, saturated: &mut u32) -> i32 {
    i32::try_from(value).unwrap_or_else(|_| {
        *saturated = saturated.saturating_add(1);
        if value < 0 { i32::MIN } else { i32::MAX }
    })
}
