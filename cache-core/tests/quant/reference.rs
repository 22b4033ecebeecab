//! The published formats once more, written as their definitions read, over random groups.

use kvfolio::quant::*;

use crate::support::*;

fn q8_0(x: &[f32]) -> Vec<u8> {
    let amax = x.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let d = amax / 127.0;
    let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
    let codes = x.iter().map(|x| (x * inverse).round() as i8 as u8);
    half::f16::from_f32(d).to_le_bytes().into_iter().chain(codes).collect()
}

fn q4_0(x: &[f32]) -> Vec<u8> {
    let (mut amax, mut most) = (0.0_f32, 0.0_f32);
    for &x in x {
        if amax < x.abs() {
            (amax, most) = (x.abs(), x);
        }
    }
    let d = most / -8.0;
    let inverse = if d == 0.0 { 0.0 } else { 1.0 / d };
    let code = |x: f32| ((x * inverse + 8.5) as i8).min(15) as u8;
    let codes = (0..16).map(|j| code(x[j]) | code(x[j + 16]) << 4);
    half::f16::from_f32(d).to_le_bytes().into_iter().chain(codes).collect()
}

#[test]
fn ggml_blocks() {
    let mut rng = Rng(1);
    for _ in 0..groups() {
        let mut x = [0.0; 32];
        rng.fill(&mut x);
        if rng.below(4) == 0 {
            x.iter_mut().for_each(|x| *x = (*x * 2.0).round() / 2.0);
        }
        // There the definition divides by what is no number.
        if amax(&x) != 0.0 && amax(&x) < 1e-35 {
            continue;
        }
        let mut block = [0; ggml::Q8_0_BYTES];
        assert!(ggml::q8_0_encode(&x, NonFinite::Reject, &mut block).unwrap().is_clean());
        assert_eq!(block[..], q8_0(&x), "{x:?}");
        let mut block = [0; ggml::Q4_0_BYTES];
        assert!(ggml::q4_0_encode(&x, NonFinite::Reject, &mut block).unwrap().is_clean());
        // The sign of a `d` of 0 is the only bit that is left open.
        let (got, want) = (block, q4_0(&x));
        if amax(&x) > 0.0 {
            assert_eq!(got[..], want, "{x:?}");
        } else {
            assert_eq!(got[2..], want[2..]);
        }
    }
}

#[test]
fn ggml_refusals() {
    let mut block = [0xaa; ggml::Q8_0_BYTES];
    let mut x = [1.0; 32];
    assert_eq!(ggml::q8_0_encode(&x[1..], NonFinite::Reject, &mut block), Err(QuantError::Length));
    assert_eq!(ggml::q8_0_encode(&x, NonFinite::Reject, &mut block[1..]), Err(QuantError::Length));
    x[9] = f32::NAN;
    assert_eq!(ggml::q8_0_encode(&x, NonFinite::Reject, &mut block), Err(QuantError::NonFinite { index: 9 }));
    assert_eq!(ggml::q4_0_encode(&x, NonFinite::Reject, &mut block[..18]), Err(QuantError::NonFinite { index: 9 }));
    assert_eq!(block, [0xaa; ggml::Q8_0_BYTES]);
    assert_eq!(ggml::q8_0_encode(&x, NonFinite::Sanitise, &mut block).unwrap(), Report { saturated: 0, replaced: 1 });
    x[9] = 1e9;
    assert_eq!(ggml::q8_0_encode(&x, NonFinite::Reject, &mut block).unwrap().saturated, 1);
    let mut out = [7.0; 32];
    ggml::q8_0_decode(&block, &mut out).unwrap();
    assert!(out.iter().all(|x| x.is_finite()));
    block[1] = 0x7c;
    block[0] = 0;
    out = [7.0; 32];
    assert_eq!(ggml::q8_0_decode(&block, &mut out), Err(QuantError::Scale { index: 0 }));
    assert_eq!(out, [7.0; 32]);
}

#[test]
fn codes_of_4_bits() {
    let table = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let mut rng = Rng(2);
    for _ in 0..20_000 {
        // The extreme fixes the scale at 1.
        let mut x = [0.0; 32];
        x.iter_mut().for_each(|x| *x = ((rng.unit() * 16.0 - 8.0) * 0.97) as f32);
        x.iter_mut().take(8).for_each(|x| *x = (*x * 8.0).round() / 8.0);
        x[31] = 6.0;
        let (mut codes, mut scales) = ([0; 16], [0]);
        assert!(fp4::mxfp4_encode(&x, NonFinite::Reject, &mut codes, &mut scales).unwrap().is_clean());
        assert_eq!(scales, [127]);
        let mut out = [0.0; 32];
        fp4::mxfp4_decode(&codes, &scales, &mut out).unwrap();
        for (i, (&x, &y)) in x.iter().zip(&out).enumerate() {
            let code = codes[i / 2] >> (i % 2 * 4) & 15;
            let value = table[usize::from(code & 7)];
            assert_eq!(y, if code & 8 == 0 { value } else { -value });
            assert_eq!(y.is_sign_negative(), x.is_sign_negative());
            let distance = |k: usize| ((x.abs() - table[k]).abs(), k & 1);
            let nearest = (0..8).min_by(|&a, &b| distance(a).partial_cmp(&distance(b)).unwrap()).unwrap();
            assert_eq!(usize::from(code & 7), nearest, "{x}");
        }
    }
}

#[test]
fn refusals_of_4_bits() {
    let x = [1.0; 32];
    let (mut codes, mut scales, mut out) = ([0xaa; 16], [0xaa; 2], [7.0; 32]);
    for t in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let result = fp4::nvfp4_encode(&x, t, NonFinite::Reject, &mut codes, &mut scales);
        assert_eq!(result, Err(QuantError::Scale { index: 0 }));
    }
    assert_eq!(fp4::nvfp4_encode(&x[1..], 1.0, NonFinite::Reject, &mut codes, &mut scales), Err(QuantError::Length));
    assert_eq!((codes, scales), ([0xaa; 16], [0xaa; 2]));
    assert_eq!(fp4::nvfp4_decode(&codes, &[0x38, 0x7f], 1.0, &mut out), Err(QuantError::Scale { index: 1 }));
    assert_eq!(fp4::nvfp4_decode(&codes, &[0x38, 0x80], 1.0, &mut out), Err(QuantError::Scale { index: 1 }));
    assert_eq!(fp4::mxfp4_decode(&codes, &[0xff], &mut out), Err(QuantError::Scale { index: 0 }));
    assert_eq!(out, [7.0; 32]);
    let report = fp4::nvfp4_encode(&[3000.0; 32], 1.0, NonFinite::Reject, &mut codes, &mut scales).unwrap();
    assert_eq!(report.saturated, 2);
}
