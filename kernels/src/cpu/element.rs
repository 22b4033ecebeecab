//! Element types of keys and values, and their conversion to and from f32.
//!
//! Invariant: to f32 is exact; from f32 rounds to nearest even, keeps the top
//! payload bits of a NaN and makes it quiet, exactly as hardware F16C does.
//! The code has no branch, so that loops over it become SIMD code, and never
//! makes a subnormal f32, so that flush-to-zero modes cannot change it.

use super::isa::{Isa, per_isa};
use super::lanes::LANES;
use crate::error::{Error, ensure};

/// Element type of stored keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Dtype {
    /// IEEE binary32.
    F32 = 1,
    /// IEEE binary16.
    F16 = 2,
    /// The upper half of an IEEE binary32.
    Bf16 = 3,
}

impl Dtype {
    /// The type with a C number.
    pub const fn from_code(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::F32),
            2 => Some(Self::F16),
            3 => Some(Self::Bf16),
            _ => None,
        }
    }

    /// Bytes of one element, which is also its alignment.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// Run an expression with `$E` bound to the element type of a [`Dtype`].
macro_rules! with_element {
    ($dtype:expr, $E:ident => $body:expr) => {
        match $dtype {
            $crate::cpu::element::Dtype::F32 => {
                type $E = f32;
                $body
            }
            $crate::cpu::element::Dtype::F16 => {
                type $E = $crate::cpu::element::F16;
                $body
            }
            $crate::cpu::element::Dtype::Bf16 => {
                type $E = $crate::cpu::element::Bf16;
                $body
            }
        }
    };
}
pub(crate) use with_element;

/// A stored element.
pub(crate) trait Element: Copy {
    fn to_f32(self) -> f32;
    fn from_f32(x: f32) -> Self;
    /// Whether it is NaN or infinite.
    fn is_extreme(self) -> bool;

    /// Elements that are floats already.
    #[inline(always)]
    fn as_floats(_: &[Self]) -> Option<&[f32]> {
        None
    }

    /// Read one block of [`LANES`] elements.
    ///
    /// # Safety
    /// `src` is aligned and valid for reads of `LANES` initialised elements.
    #[inline(always)]
    unsafe fn load(src: *const Self) -> [f32; LANES] {
        // SAFETY: the caller's promise; an array has the alignment of its element.
        let block = unsafe { &*src.cast::<[Self; LANES]>() };
        let mut out = [0.0; LANES];
        for (o, e) in out.iter_mut().zip(block) {
            *o = e.to_f32();
        }
        out
    }

    /// [`Element::load`] with the instructions of AVX2 and F16C.
    ///
    /// # Safety
    /// As [`Element::load`]; the CPU has them.
    #[inline(always)]
    unsafe fn load_avx2(src: *const Self) -> [f32; LANES] {
        // SAFETY: the caller's promise.
        unsafe { Self::load(src) }
    }

    /// Read the first `n` < [`LANES`] elements of a block; the others are +0.
    ///
    /// # Safety
    /// `src` is aligned and valid for reads of `n` initialised elements.
    #[inline(always)]
    unsafe fn load_tail(src: *const Self, n: usize) -> [f32; LANES] {
        let mut out = [0.0; LANES];
        for (i, o) in out.iter_mut().enumerate().take(n) {
            // SAFETY: i < n, the caller's promise.
            *o = unsafe { *src.add(i) }.to_f32();
        }
        out
    }
}

impl Element for f32 {
    #[inline(always)]
    fn as_floats(x: &[f32]) -> Option<&[f32]> {
        Some(x)
    }

    #[inline(always)]
    fn is_extreme(self) -> bool {
        !self.is_finite()
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
    #[inline(always)]
    fn from_f32(x: f32) -> Self {
        x
    }
}

/// IEEE binary16 bits.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F16(pub(crate) u16);

impl Element for F16 {
    #[inline(always)]
    fn is_extreme(self) -> bool {
        self.0 & 0x7c00 == 0x7c00
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load_avx2(src: *const Self) -> [f32; LANES] {
        use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm256_cvtph_ps, _mm256_storeu_ps};
        let mut out = [0.0; LANES];
        let src = src.cast::<__m128i>();
        // SAFETY: 16 elements are two vectors of 16 bytes, 16 floats two of 32; the caller's promise.
        unsafe {
            _mm256_storeu_ps(out.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(src)));
            _mm256_storeu_ps(out.as_mut_ptr().add(8), _mm256_cvtph_ps(_mm_loadu_si128(src.add(1))));
        }
        out
    }

    #[inline(always)]
    unsafe fn load(src: *const Self) -> [f32; LANES] {
        // SAFETY: the caller's promise; an array has the alignment of its element.
        let block = unsafe { &*src.cast::<[Self; LANES]>() };
        let mut out = [0.0; LANES];
        // Exponents 0 and 31 fall to 0 here. They are rare, and the others are converted fast.
        let rare = |e: &Self| e.0.wrapping_add(0x400) & 0x7800 == 0;
        if block.iter().fold(false, |any, e| any | rare(e)) {
            for (o, e) in out.iter_mut().zip(block) {
                *o = e.to_f32();
            }
        } else {
            for (o, e) in out.iter_mut().zip(block) {
                // An arithmetic shift puts exponent and fraction in place; the sign stays.
                let placed = ((e.0 as u32) << 16) as i32 >> 3;
                *o = f32::from_bits((placed as u32 & 0x8fff_ffff) + (112 << 23));
            }
        }
        out
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        // Exponent and fraction move into place; then the bias is put right.
        let sign = ((self.0 as u32) & 0x8000) << 16;
        let shifted = ((self.0 as u32) & 0x7fff) << 13;
        let exponent = shifted & 0x0f80_0000;
        let normal = shifted + (112 << 23);
        // Infinity and NaN: the largest exponent; a NaN also gets the quiet bit.
        let quiet = ((shifted > 0x0f80_0000) as u32) << 22;
        let special = (shifted + (224 << 23)) | quiet;
        // Zero and subnormal: 2^-14 + fraction, less 2^-14, is exact and normal or zero.
        let small = (f32::from_bits(shifted + (113 << 23)) - f32::from_bits(113 << 23)).to_bits();
        let magnitude = if exponent == 0 { small } else { normal };
        let magnitude = if exponent == 0x0f80_0000 { special } else { magnitude };
        f32::from_bits(sign | magnitude)
    }

    #[inline(always)]
    fn from_f32(x: f32) -> Self {
        let bits = x.to_bits();
        let sign = (bits >> 16) & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        // Normal: new bias, round half to even by adding just under a half, or a half if odd.
        let odd = (magnitude >> 13) & 1;
        let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
        // Subnormal: adding 0.5 puts the unit of the result at 2^-24; the addition rounds.
        let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
        let nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
        let special = if magnitude > 0x7f80_0000 { nan } else { 0x7c00 };
        let value = if magnitude < (113 << 23) { small } else { normal };
        let value = if magnitude >= (143 << 23) { special } else { value };
        Self((sign | value) as u16)
    }
}

/// Upper half of IEEE binary32 bits.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Bf16(pub(crate) u16);

impl Element for Bf16 {
    #[inline(always)]
    fn is_extreme(self) -> bool {
        self.0 & 0x7f80 == 0x7f80
    }

    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from_bits((self.0 as u32) << 16)
    }

    #[inline(always)]
    fn from_f32(x: f32) -> Self {
        let bits = x.to_bits();
        let odd = (bits >> 16) & 1;
        let rounded = bits.wrapping_add(0x7fff + odd) >> 16;
        let nan = (bits >> 16) | 0x40;
        let value = if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { rounded };
        Self(value as u16)
    }
}

/// Store `n` floats as elements.
///
/// # Safety
/// `src` and `dst` are aligned and valid for `n` elements, and do not overlap.
#[inline(always)]
pub(crate) unsafe fn store_row<E: Element>(src: *const f32, dst: *mut E, n: usize) {
    for i in 0..n {
        // SAFETY: i < n, the caller's promise.
        unsafe { dst.add(i).write(E::from_f32(*src.add(i))) };
    }
}

/// Read `n` elements as floats.
///
/// # Safety
/// `src` and `dst` are aligned and valid for `n` elements, and do not overlap.
#[inline(always)]
pub(crate) unsafe fn load_row<E: Element>(src: *const E, dst: *mut f32, n: usize) {
    for i in 0..n {
        // SAFETY: i < n, the caller's promise.
        unsafe { dst.add(i).write((*src.add(i)).to_f32()) };
    }
}

/// Whether all of `n` elements are finite.
///
/// # Safety
/// `src` is aligned and valid for reads of `n` elements; `isa` is resolved.
pub(crate) unsafe fn is_row_finite(isa: Isa, dtype: Dtype, src: *const u8, n: usize) -> bool {
    // SAFETY: the caller's promise.
    with_element!(dtype, E => unsafe { are_finite_for::<E>(isa, core::slice::from_raw_parts(src.cast(), n)) })
}

per_isa! {
    /// # Safety
    /// `isa` is resolved.
    unsafe fn are_finite_for[E: Element][E](src: &[E]) -> bool {
        are_finite(src)
    }
}

/// A fold without an early end, which becomes SIMD code.
#[inline(always)]
fn are_finite<E: Element>(src: &[E]) -> bool {
    !src.iter().fold(false, |any, x| any | x.is_extreme())
}

/// Whether an address is a multiple of the element size.
pub(crate) fn is_aligned<T>(ptr: *const T, bytes: u64) -> bool {
    (ptr as usize as u64) & (bytes - 1) == 0
}

/// Check a float or integer array: present if it has elements, and aligned.
pub(crate) fn check_array<T>(ptr: *const T, n: usize) -> Result<(), Error> {
    ensure(n == 0 || !ptr.is_null(), Error::Null)?;
    ensure(n == 0 || is_aligned(ptr, align_of::<T>() as u64), Error::Align)
}

/// Convert `n` floats to elements.
///
/// # Errors
/// [`Error::Null`], [`Error::Align`].
///
/// # Safety
/// If not NULL, `src` is valid for reads and `dst` for writes of `n` elements, without overlap.
pub unsafe fn convert_from_f32_raw(dtype: Dtype, src: *const f32, dst: *mut u8, n: usize) -> Result<(), Error> {
    check_array(src, n)?;
    check_array(dst, n)?;
    ensure(n == 0 || is_aligned(dst, dtype.bytes()), Error::Align)?;
    // SAFETY: aligned as checked; the rest is the caller's promise.
    with_element!(dtype, E => unsafe { store_row(src, dst.cast::<E>(), n) });
    Ok(())
}

/// Convert `n` elements to floats.
///
/// # Errors
/// [`Error::Null`], [`Error::Align`].
///
/// # Safety
/// If not NULL, `src` is valid for reads and `dst` for writes of `n` elements, without overlap.
pub unsafe fn convert_to_f32_raw(dtype: Dtype, src: *const u8, dst: *mut f32, n: usize) -> Result<(), Error> {
    check_array(src, n)?;
    check_array(dst, n)?;
    ensure(n == 0 || is_aligned(src, dtype.bytes()), Error::Align)?;
    // SAFETY: aligned as checked; the rest is the caller's promise.
    with_element!(dtype, E => unsafe { load_row(src.cast::<E>(), dst, n) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn to_f32_is_that_of_half_for_all_bits() {
        for bits in 0..=u16::MAX {
            let f16 = half::f16::from_bits(bits).to_f32().to_bits();
            assert_eq!(F16(bits).to_f32().to_bits(), f16, "f16 {bits:#06x}");
            let bf16 = half::bf16::from_bits(bits).to_f32();
            let ours = Bf16(bits).to_f32();
            // A signalling NaN stays as it is here; half makes it quiet.
            assert!(ours.to_bits() == bf16.to_bits() || (ours.is_nan() && bf16.is_nan()));
        }
    }

    #[test]
    fn from_f32_is_that_of_half() {
        let check = |bits: u32| {
            let x = f32::from_bits(bits);
            assert_eq!(F16::from_f32(x).0, half::f16::from_f32(x).to_bits(), "f16 {bits:#010x}");
            assert_eq!(Bf16::from_f32(x).0, half::bf16::from_f32(x).to_bits(), "bf16 {bits:#010x}");
        };
        let step = if cfg!(miri) { 10_000_019 } else { 1009 };
        (0..u32::MAX).step_by(step).for_each(check);
        // Around every f16 value and every half-way point between two of them.
        for bits in (0..=u16::MAX).step_by(if cfg!(miri) { 1009 } else { 1 }) {
            let value = F16(bits).to_f32().to_bits();
            for around in [value, value.wrapping_add(0x1000), value.wrapping_add(0x8000)] {
                for delta in [u32::MAX, 0, 1] {
                    check(around.wrapping_add(delta));
                }
            }
        }
    }
}
