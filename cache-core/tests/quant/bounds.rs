//! No error above the bound, no NaN, over random groups: `KVF_GROUPS` of them for each codec. And the errors of Gaussians.

use kvfolio::quant::*;

use crate::int::{BITS, Encoded, format};
use crate::support::*;

const GROUP: usize = 32;

fn random_groups(seed: u64, mut each: impl FnMut(&[f32])) {
    let mut rng = Rng(seed);
    for _ in 0..groups() {
        let mut x = [0.0; GROUP];
        rng.fill(&mut x);
        each(&x);
    }
}

fn is_within(x: &[f32], y: &[f32], bound: f64) {
    for (&x, &y) in x.iter().zip(y) {
        let error = (f64::from(x) - f64::from(y)).abs();
        assert!(error <= bound, "{x:e} became {y:e}: {error:e} is above {bound:e}");
    }
}

fn int(bits: IntBits) {
    let format = format(bits, GROUP as u32, GROUP as u32);
    random_groups(bits as u64, |x| {
        let encoded = Encoded::of(format, x);
        let decoded = encoded.decoded();
        let (step, unit) = (f16(encoded.scales[0]), ulp(amax(x)));
        is_within(x, &decoded, step / 2.0 + 2.0 * unit);
        // Nothing is clamped: the extremes are between the ends.
        let end = f16(encoded.zeros[0]) + step * f64::from(bits.most());
        assert!(x.iter().all(|&x| f16(encoded.zeros[0]) <= f64::from(x) && f64::from(x) <= end + 2.0 * unit));
        // Once decoded, it is what it was.
        if step >= 4.0 * unit || step == 0.0 {
            let mut again = vec![0; encoded.codes.len()];
            int::encode_with(format, &decoded, &encoded.scales, &encoded.zeros, &mut again).unwrap();
            assert_eq!(again, encoded.codes);
        }
    });
}

#[test]
fn int8() {
    int(IntBits::B8);
}

#[test]
fn int4() {
    int(IntBits::B4);
}

#[test]
fn int2() {
    int(IntBits::B2);
}

#[test]
fn symmetric_int8() {
    let shape = Groups::new(32, 32).unwrap();
    random_groups(18, |x| {
        let (mut codes, mut scales, mut out) = ([0; GROUP], [0], [0.0; GROUP]);
        assert!(symmetric::encode(shape, x, NonFinite::Reject, &mut codes, &mut scales).unwrap().is_clean());
        symmetric::decode(shape, &codes, &scales, &mut out).unwrap();
        is_within(x, &out, f16(scales[0]) / 2.0 + 2.0 * ulp(amax(x)));
        assert!(codes.iter().all(|&code| code > -128));
        let negated: Vec<f32> = x.iter().map(|x| -x).collect();
        let (mut mirrored, mut same) = ([0; GROUP], [0]);
        assert!(symmetric::encode(shape, &negated, NonFinite::Reject, &mut mirrored, &mut same).unwrap().is_clean());
        assert_eq!((mirrored, same), (codes.map(|code| -code), scales));
    });
}

#[test]
fn q8_0() {
    random_groups(80, |x| {
        let (mut block, mut out) = ([0; ggml::Q8_0_BYTES], [0.0; GROUP]);
        assert!(ggml::q8_0_encode(x, NonFinite::Reject, &mut block).unwrap().is_clean());
        ggml::q8_0_decode(&block, &mut out).unwrap();
        let d = f16(u16::from_le_bytes([block[0], block[1]]));
        // Half a step, and 127 times what rounding the step to f16 moved it by: half a unit.
        let unit = (d * 2_f64.powi(-10)).max(2_f64.powi(-24));
        is_within(x, &out, d / 2.0 + 127.0 * unit * 0.5 + 2.0 * ulp(amax(x)) + unit);
    });
}

#[test]
fn q4_0() {
    random_groups(40, |x| {
        let (mut block, mut out) = ([0; ggml::Q4_0_BYTES], [0.0; GROUP]);
        assert!(ggml::q4_0_encode(x, NonFinite::Reject, &mut block).unwrap().is_clean());
        ggml::q4_0_decode(&block, &mut out).unwrap();
        let d = f16(u16::from_le_bytes([block[0], block[1]])).abs();
        let unit = (d * 2_f64.powi(-10)).max(2_f64.powi(-24));
        is_within(x, &out, d + 8.0 * unit + 2.0 * ulp(amax(x)));
    });
}

#[test]
fn fp8() {
    for (kind, relative, absolute) in [
        (Fp8Kind::E4m3Fn, 1.0 / 17.0, 2_f64.powi(-10)),
        (Fp8Kind::E5m2, 1.0 / 9.0, 2_f64.powi(-17)),
        (Fp8Kind::E4m3Fnuz, 1.0 / 17.0, 2_f64.powi(-11)),
    ] {
        for rule in [fp8_scale::ScaleRule::Exact, fp8_scale::ScaleRule::PowerOfTwo] {
            random_groups(kind as u64 + 300, |x| {
                let (mut scales, mut codes, mut out) = ([0.0], [0; GROUP], [0.0; GROUP]);
                fp8_scale::row_scales(kind, rule, x, GROUP, NonFinite::Reject, &mut scales).unwrap();
                fp8::encode(kind, x, GROUP, &scales, &mut codes).unwrap();
                fp8::decode(kind, &codes, GROUP, &scales, &mut out).unwrap();
                let scale = f64::from(scales[0]);
                for (&x, &y) in x.iter().zip(&out) {
                    let error = (f64::from(x) - f64::from(y)).abs();
                    let bound = (f64::from(x.abs()) * relative * (1.0 + 1e-6)).max(absolute * scale * (1.0 + 1e-6));
                    assert!(error <= bound + 2.0 * ulp(amax(&[x])), "{kind:?} {rule:?}: {x:e} became {y:e}");
                }
            });
        }
    }
}

#[test]
fn fp4() {
    random_groups(400, |x| {
        let t = fp4::nvfp4_tensor_scale(x);
        let (mut codes, mut scales, mut out) = ([0; GROUP / 2], [0; 2], [0.0; GROUP]);
        assert!(fp4::nvfp4_encode(x, t, NonFinite::Reject, &mut codes, &mut scales).unwrap().is_clean());
        fp4::nvfp4_decode(&codes, &scales, t, &mut out).unwrap();
        for ((x, y), scale) in x.chunks(16).zip(out.chunks(16)).zip(scales) {
            // Half the widest gap, and what the scale's rounding leaves out above 6.
            let step = f64::from(Fp8Kind::E4m3Fn.decode(scale)) * f64::from(t);
            let clipped = (amax(x) - 6.0 * step).max(0.0);
            assert!(clipped <= amax(x) / 17.0 + 6.0 * 2_f64.powi(-10) * f64::from(t), "{clipped:e} of {:e}", amax(x));
            is_within(x, y, (step * (1.0 + 1e-6)).max(clipped) + 2.0 * ulp(amax(x)));
        }
        let mut scale = [0];
        assert!(fp4::mxfp4_encode(x, NonFinite::Reject, &mut codes, &mut scale).unwrap().is_clean());
        fp4::mxfp4_decode(&codes, &scale, &mut out).unwrap();
        // The extreme is below 8 steps, of which 6 are left.
        is_within(x, &out, 2.0 * 2_f64.powi(i32::from(scale[0]) - 127));
    });
}

#[test]
fn errors_of_gaussians() {
    let x = Rng(7).gaussians(1 << 18);
    let mut out = vec![0.0; x.len()];
    for (bits, want) in BITS.into_iter().zip([0.0046, 0.0782, 0.393]) {
        assert_near(relative_l2(&x, &Encoded::of(format(bits, 128, 32), &x).decoded()), want);
    }

    let mut bytes = vec![0; x.len() / 32 * ggml::Q8_0_BYTES];
    assert!(ggml::q8_0_encode(&x, NonFinite::Reject, &mut bytes).unwrap().is_clean());
    ggml::q8_0_decode(&bytes, &mut out).unwrap();
    assert_near(relative_l2(&x, &out), 0.0053);
    let mut bytes = vec![0; x.len() / 32 * ggml::Q4_0_BYTES];
    assert!(ggml::q4_0_encode(&x, NonFinite::Reject, &mut bytes).unwrap().is_clean());
    ggml::q4_0_decode(&bytes, &mut out).unwrap();
    assert_near(relative_l2(&x, &out), 0.0858);

    for (kind, want) in [(Fp8Kind::E4m3Fn, 0.0265), (Fp8Kind::E5m2, 0.0528), (Fp8Kind::E4m3Fnuz, 0.0265)] {
        let mut codes = vec![0; x.len()];
        fp8::encode(kind, &x, 128, &[1.0], &mut codes).unwrap();
        fp8::decode(kind, &codes, 128, &[1.0], &mut out).unwrap();
        assert_near(relative_l2(&x, &out), want);
    }

    let t = fp4::nvfp4_tensor_scale(&x);
    let (mut codes, mut scales) = (vec![0; x.len() / 2], vec![0; x.len() / 16]);
    assert!(fp4::nvfp4_encode(&x, t, NonFinite::Reject, &mut codes, &mut scales).unwrap().is_clean());
    fp4::nvfp4_decode(&codes, &scales, t, &mut out).unwrap();
    assert_near(relative_l2(&x, &out), 0.0952);
    let mut scales = vec![0; x.len() / 32];
    assert!(fp4::mxfp4_encode(&x, NonFinite::Reject, &mut codes, &mut scales).unwrap().is_clean());
    fp4::mxfp4_decode(&codes, &scales, &mut out).unwrap();
    assert_near(relative_l2(&x, &out), 0.1151);
}

/// Where metadata rounded after the codes would be off by four steps.
#[test]
fn a_mean_of_100_costs_nothing() {
    let x: Vec<f32> = Rng(8).gaussians(1 << 14).iter().map(|x| x + 100.0).collect();
    for bits in BITS {
        let encoded = Encoded::of(format(bits, 32, 32), &x);
        let decoded = encoded.decoded();
        for ((x, y), &scale) in x.chunks(32).zip(decoded.chunks(32)).zip(&encoded.scales) {
            is_within(x, y, f16(scale) / 2.0 + 2.0 * ulp(amax(x)));
        }
    }
}
