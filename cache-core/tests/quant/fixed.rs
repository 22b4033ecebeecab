//! Fixed point against f64.

use kvfolio::quant::*;

use crate::int::{BITS, Encoded, format};
use crate::support::*;

fn nearest(x: f64) -> (i32, bool) {
    let x = x.round_ties_even();
    (x as i32, x > f64::from(i32::MAX) || x < f64::from(i32::MIN))
}

#[test]
fn integers() {
    let mut rng = Rng(1);
    for _ in 0..20_000 {
        let mut x = [0.0; 64];
        rng.fill(&mut x);
        let bits = BITS[rng.below(3)];
        let frac = rng.below(25) as u32;
        let encoded = Encoded::of(format(bits, 64, 32), &x);
        let Encoded { ref codes, ref scales, ref zeros, .. } = encoded;
        let mut out = [0; 64];
        let report = fixed::decode_int(encoded.format, codes, scales, zeros, frac, &mut out).unwrap();
        let mut saturated = 0;
        for (i, (&got, code)) in out.iter().zip(encoded.unpacked()).enumerate() {
            let exact = f64::from(code) * f16(scales[i / 32]) + f16(zeros[i / 32]);
            let (want, is_beyond) = nearest(exact * 2_f64.powi(frac as i32));
            assert_eq!(got, want);
            saturated += u32::from(is_beyond);
        }
        assert_eq!(report, Report { saturated, replaced: 0 });
    }
}

#[test]
fn floats_of_8_bits() {
    for kind in [Fp8Kind::E4m3Fn, Fp8Kind::E5m2, Fp8Kind::E4m3Fnuz] {
        for code in 0..=u8::MAX {
            for exponent in [-200, -60, -20, -8, -1, 0, 3, 20, 100, i32::MIN, i32::MAX] {
                for frac in [0, 7, 16, 31] {
                    let mut out = [7];
                    let result = fixed::decode_fp8(kind, &[code], exponent, frac, &mut out);
                    let value = f64::from(kind.decode(code));
                    if !value.is_finite() {
                        assert_eq!((result, out), (Err(QuantError::NonFinite { index: 0 }), [7]));
                        continue;
                    }
                    let exponent = exponent.clamp(-1000, 900);
                    let (want, is_beyond) = nearest(value * 2_f64.powi(exponent + frac as i32));
                    assert_eq!(
                        (result.unwrap().saturated, out),
                        (is_beyond.into(), [want]),
                        "{kind:?} {code:#04x} {exponent} {frac}"
                    );
                }
            }
        }
    }
}

#[test]
fn exponents_of_scales() {
    for exponent in -149..=127 {
        let scale = 2_f64.powi(exponent) as f32;
        assert_eq!(fixed::exponent_of(scale.to_bits()), Ok(exponent));
    }
    for bad in [0.0, -1.0, 3.0, f32::INFINITY, f32::NAN] {
        assert_eq!(fixed::exponent_of(f32::to_bits(bad)), Err(QuantError::Scale { index: 0 }));
    }
}

#[test]
fn units_of_f16() {
    for bits in 0..=u16::MAX {
        let want = half::f16::from_bits(bits).is_finite().then(|| (f16(bits) * 2_f64.powi(24)) as i64);
        assert_eq!(fixed::f16_units(bits), want);
    }
}

#[test]
fn refusals() {
    let format = format(IntBits::B8, 4, 4);
    let mut out = [7; 4];
    let mut decode = |scale, zero, frac| fixed::decode_int(format, &[1; 4], &[scale], &[zero], frac, &mut out);
    assert_eq!(decode(0x7c00, 0, 16), Err(QuantError::Scale { index: 0 }));
    assert_eq!(decode(0xbc00, 0, 16), Err(QuantError::Scale { index: 0 }));
    assert_eq!(decode(0x3c00, 0xfe00, 16), Err(QuantError::Scale { index: 0 }));
    assert_eq!(decode(0x3c00, 0, 25), Err(QuantError::Length));
    assert_eq!(out, [7; 4]);
    assert_eq!(fixed::decode_fp8(Fp8Kind::E5m2, &[0; 3], 0, 0, &mut out), Err(QuantError::Length));
    assert_eq!(fixed::decode_fp8(Fp8Kind::E5m2, &[0; 4], 0, 32, &mut out), Err(QuantError::Length));
}

/// What a device without a float unit builds: feature `quant-int`.
#[test]
fn no_float_is_named() {
    for source in [
        include_str!("../../src/quant/error.rs"),
        include_str!("../../src/quant/fixed.rs"),
        include_str!("../../src/quant/format.rs"),
        include_str!("../../src/quant/pack.rs"),
        include_str!("../../src/quant/slices.rs"),
    ] {
        for line in source.lines().map(|line| line.split("//").next().unwrap_or("")) {
            assert!(!line.contains("f32") && !line.contains("f64"), "{line}");
        }
    }
}
