//! FP8: all codes, all roundings, scales, conversions.

use kvfolio::quant::fp8_scale::{ScaleRule, row_scales, scale_of};
use kvfolio::quant::*;

use crate::support::Rng;

const KINDS: [Fp8Kind; 3] = [Fp8Kind::E4m3Fn, Fp8Kind::E5m2, Fp8Kind::E4m3Fnuz];

/// The value by the definition, in f64.
fn defined(kind: Fp8Kind, code: u8) -> f64 {
    let (fraction_bits, bias) = match kind {
        Fp8Kind::E4m3Fn => (3, 7),
        Fp8Kind::E5m2 => (2, 15),
        Fp8Kind::E4m3Fnuz => (3, 8),
    };
    let magnitude = i32::from(code & 0x7f);
    match (kind, magnitude) {
        (Fp8Kind::E4m3Fn, 0x7f) | (Fp8Kind::E5m2, 0x7d..) => return f64::NAN,
        (Fp8Kind::E4m3Fnuz, 0) if code == 0x80 => return f64::NAN,
        _ => {}
    }
    let (exponent, fraction) = (magnitude >> fraction_bits, magnitude & ((1 << fraction_bits) - 1));
    let value = match (kind, exponent) {
        (Fp8Kind::E5m2, 31) => f64::INFINITY,
        (_, 0) => f64::from(fraction) * 2_f64.powi(1 - bias - fraction_bits),
        _ => f64::from(fraction + (1 << fraction_bits)) * 2_f64.powi(exponent - bias - fraction_bits),
    };
    if code >= 0x80 { -value } else { value }
}

#[test]
fn every_code_has_its_value_and_comes_back() {
    for kind in KINDS {
        for code in 0..=u8::MAX {
            let (value, want) = (kind.decode(code), defined(kind, code));
            if want.is_nan() {
                assert!(value.is_nan());
                assert_eq!(value.is_sign_negative(), code >= 0x80 && kind != Fp8Kind::E4m3Fnuz);
                assert_eq!(kind.encode(value), if kind == Fp8Kind::E4m3Fnuz { 0x80 } else { code & 0x80 | 0x7f });
                continue;
            }
            assert_eq!(f64::from(value).to_bits(), want.to_bits(), "{kind:?} {code:#04x}");
            let back = if want.is_infinite() { code & 0x80 | 0x7b } else { code };
            assert_eq!(kind.encode(value), back, "{kind:?} {code:#04x}");
        }
    }
}

/// Nearest, ties to even, against a search over all codes.
#[test]
fn encoding_is_nearest() {
    let mut rng = Rng(1);
    for kind in KINDS {
        let values: Vec<(f64, u8)> =
            (0..0x80).map(|code| (defined(kind, code), code)).filter(|(x, _)| x.is_finite()).collect();
        let nearest = |x: f64| {
            let distance = |&(y, code): &(f64, u8)| ((x - y).abs(), code & 1);
            values.iter().copied().min_by(|a, b| distance(a).partial_cmp(&distance(b)).unwrap()).unwrap().1
        };
        let ties = values.windows(2).map(|pair| ((pair[0].0 + pair[1].0) / 2.0) as f32);
        let around = ties.flat_map(|x| {
            [x, f32::from_bits(x.to_bits() + 1), f32::from_bits(x.to_bits().wrapping_sub(1) & 0x7fff_ffff)]
        });
        let random: Vec<f32> = (0..200_000)
            .map(|i| if i % 2 == 0 { rng.finite().abs() } else { 2_f64.powf(rng.unit() * 40.0 - 22.0) as f32 })
            .collect();
        for x in around.chain(random).chain([0.0, f32::MIN_POSITIVE, f32::MAX, 1e-45]) {
            let want = nearest(f64::from(x.min(kind.greatest())));
            assert_eq!(kind.encode(x), want, "{kind:?} {x:e}");
            let minus = if kind == Fp8Kind::E4m3Fnuz && want == 0 { 0 } else { want | 0x80 };
            assert_eq!(kind.encode(-x), minus, "{kind:?} -{x:e}");
        }
    }
}

#[test]
fn a_power_of_two_is_the_least_that_holds() {
    let mut rng = Rng(2);
    for kind in KINDS {
        let most = f64::from(kind.greatest());
        for i in 0..200_000 {
            let amax = match i {
                0 => 0.0,
                1 => f32::MAX,
                2 => kind.greatest(),
                3 => 1e-45,
                _ if i % 3 == 0 => kind.greatest() * 2_f32.powi(i % 17 - 8),
                _ => rng.finite().abs(),
            };
            let scale = f64::from(scale_of(kind, ScaleRule::PowerOfTwo, amax));
            assert_eq!(scale, 2_f64.powi(scale.log2() as i32));
            assert!(most * scale >= f64::from(amax), "{amax:e}");
            assert!(most * scale / 2.0 < f64::from(amax) || scale == 2_f64.powi(-39), "{amax:e} {scale:e}");
            let exact = f64::from(scale_of(kind, ScaleRule::Exact, amax));
            assert!(exact >= 1e-12_f32.into() && exact <= scale * (1.0 + 1e-7));
        }
    }
}

#[test]
fn scales_cycle_over_rows() {
    let mut rng = Rng(3);
    let (tokens, heads, dim) = (6, 3, 16);
    let x = rng.gaussians(tokens * heads * dim);
    let mut codes = vec![0; x.len()];
    let scales = [0.5, 1.0, 3.0];
    fp8::encode(Fp8Kind::E4m3Fn, &x, dim, &scales, &mut codes).unwrap();
    let mut out = vec![0.0; x.len()];
    fp8::decode(Fp8Kind::E4m3Fn, &codes, dim, &scales, &mut out).unwrap();
    for (i, &code) in codes.iter().enumerate() {
        let scale = scales[i / dim % heads];
        assert_eq!(code, Fp8Kind::E4m3Fn.encode(x[i] / scale));
        assert_eq!(out[i], Fp8Kind::E4m3Fn.decode(code) * scale);
    }
}

#[test]
fn lengths_must_agree() {
    let mut codes = [0; 32];
    for (len, row, scales) in [(32, 16, 3), (32, 0, 1), (32, 5, 1), (31, 16, 1), (32, 16, 0)] {
        let result = fp8::encode(Fp8Kind::E5m2, &vec![1.0; len], row, &vec![1.0; scales], &mut codes);
        assert_eq!(result, Err(QuantError::Length), "{len} {row} {scales}");
    }
    let result = row_scales(Fp8Kind::E5m2, ScaleRule::Exact, &[1.0; 32], 0, NonFinite::Reject, &mut [0.0; 2]);
    assert_eq!(result, Err(QuantError::Length));
}

#[test]
fn not_finite_rows() {
    let x = [1.0, f32::NAN, f32::INFINITY, -448.0];
    let mut scales = [7.0];
    let scale = |on, scales: &mut [f32]| row_scales(Fp8Kind::E4m3Fn, ScaleRule::Exact, &x, 4, on, scales);
    assert_eq!(scale(NonFinite::Reject, &mut scales), Err(QuantError::NonFinite { index: 1 }));
    assert_eq!(scales, [7.0]);
    scale(NonFinite::Sanitise, &mut scales).unwrap();
    assert_eq!(scales, [1.0]);
    let mut codes = [0; 4];
    fp8::encode(Fp8Kind::E4m3Fn, &x, 4, &scales, &mut codes).unwrap();
    assert_eq!(codes, [0x38, 0x7f, 0x7e, 0xfe]);
}

#[test]
fn conversions_keep_the_value_or_refuse() {
    for code in 0..=u8::MAX {
        let value = Fp8Kind::E4m3Fn.decode(code);
        let mut bytes = [0x38, code];
        match fp8::fn_to_fnuz(&mut bytes) {
            Ok(()) => {
                let got = Fp8Kind::E4m3Fnuz.decode(bytes[1]);
                assert!(got == value || got.is_nan() && value.is_nan(), "{code:#04x}");
                assert_eq!(bytes[0], 0x40);
                fp8::fnuz_to_fn(&mut bytes).unwrap();
                assert_eq!(
                    bytes,
                    [
                        0x38,
                        if value.is_nan() {
                            0x7f
                        } else if value == 0.0 {
                            0
                        } else {
                            code
                        }
                    ]
                );
            }
            Err(error) => {
                assert_eq!((error, bytes), (QuantError::Code { index: 1 }, [0x38, code]));
                assert!(value.abs() > 240.0);
            }
        }
        let value = Fp8Kind::E4m3Fnuz.decode(code);
        let mut bytes = [code];
        match fp8::fnuz_to_fn(&mut bytes) {
            Ok(()) => {
                let got = Fp8Kind::E4m3Fn.decode(bytes[0]);
                assert!(got == value || got.is_nan() && value.is_nan(), "{code:#04x}");
            }
            Err(_) => assert!((value * 512.0).fract() != 0.0, "{code:#04x}"),
        }
    }
}
