//! Integer codecs beyond the bounds: axes, policies, refusals, properties.

use kvfolio::quant::*;

use crate::support::*;

pub(crate) const BITS: [IntBits; 3] = [IntBits::B8, IntBits::B4, IntBits::B2];

/// Encoded rows that own their sections.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Encoded {
    pub(crate) format: IntFormat,
    pub(crate) codes: Vec<u8>,
    pub(crate) scales: Vec<u16>,
    pub(crate) zeros: Vec<u16>,
}

impl Encoded {
    pub(crate) fn room(format: IntFormat, elements: usize) -> Self {
        let groups = format.groups().count(elements).unwrap();
        let codes = vec![0xaa; format.bits().bytes(elements)];
        Self { format, codes, scales: vec![0xaaaa; groups], zeros: vec![0xaaaa; groups] }
    }

    pub(crate) fn of(format: IntFormat, x: &[f32]) -> Self {
        let mut to = Self::room(format, x.len());
        assert!(int::encode(format, x, NonFinite::Reject, to.sections()).unwrap().is_clean());
        to
    }

    pub(crate) fn sections(&mut self) -> int::GroupsMut<'_> {
        int::GroupsMut { codes: &mut self.codes, scales: &mut self.scales, zeros: &mut self.zeros }
    }

    pub(crate) fn view(&self) -> int::GroupsRef<'_> {
        int::GroupsRef { codes: &self.codes, scales: &self.scales, zeros: &self.zeros }
    }

    pub(crate) fn unpacked(&self) -> Vec<u8> {
        let mut codes = vec![0; self.codes.len() * self.format.bits().per_byte()];
        pack::unpack(self.format.bits(), &self.codes, &mut codes).unwrap();
        codes
    }

    pub(crate) fn decoded(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.codes.len() * self.format.bits().per_byte()];
        int::decode(self.format, self.view(), &mut out).unwrap();
        out
    }
}

pub(crate) fn format(bits: IntBits, row: u32, group: u32) -> IntFormat {
    IntFormat::new(bits, row, group).unwrap()
}

#[test]
fn groups_are_of_listed_sizes_or_the_row() {
    for (row, group, is_ok) in [
        (128, 16, true),
        (128, 128, true),
        (80, 16, true),
        (80, 80, true),
        (80, 32, false),
        (128, 8, false),
        (128, 0, false),
        (0, 0, false),
        (1, 1, false),
        (64, 128, false),
        (576, 576, true),
    ] {
        assert_eq!(IntFormat::new(IntBits::B8, row, group).is_ok(), is_ok, "{row} {group}");
    }
    assert_eq!(IntFormat::new(IntBits::B4, 81, 81), Err(QuantError::Group));
    assert_eq!(IntFormat::new(IntBits::B2, 82, 82), Err(QuantError::Group));
    assert!(IntFormat::new(IntBits::B4, 82, 82).is_ok());
}

#[test]
#[allow(clippy::approx_constant)]
fn a_constant_is_within_its_own_step() {
    let x = Encoded::of(format(IntBits::B4, 4, 4), &[3.14159; 4]);
    assert_eq!((x.zeros[0], x.scales[0], x.unpacked()), (0x4248, 0x0438, vec![15; 4]));
    assert!(x.decoded().iter().all(|x| (x - 3.141_590_6).abs() < 1e-7), "{:?}", x.decoded());
    let exact = Encoded::of(format(IntBits::B4, 4, 4), &[-1.5; 4]);
    assert_eq!((exact.scales[0], exact.unpacked(), exact.decoded()), (0, vec![0; 4], vec![-1.5; 4]));
}

#[test]
fn a_group_of_negative_zeros_decodes() {
    for bits in BITS {
        let x = Encoded::of(format(bits, 16, 16), &[-0.0; 16]);
        assert_eq!((x.scales[0], x.zeros[0], x.decoded()), (0, 0, vec![0.0; 16]));
    }
}

#[test]
fn a_larger_value_has_no_smaller_code() {
    let mut rng = Rng(1);
    for _ in 0..2000 {
        let mut x = [0.0; 64];
        rng.fill(&mut x);
        x.sort_by(f32::total_cmp);
        for bits in BITS {
            let encoded = Encoded::of(format(bits, 64, 64), &x);
            assert!(encoded.unpacked().is_sorted());
            assert!(encoded.decoded().is_sorted());
            let is_exact = encoded.scales[0] == 0;
            assert!(
                is_exact || encoded.unpacked()[0] == 0 || x[0] - x[63] == 0.0 || x[0] > f16(encoded.zeros[0]) as f32
            );
        }
    }
}

/// Without subnormal parameters: codes stay, parameters are multiplied.
#[test]
fn powers_of_two_scale() {
    let mut rng = Rng(2);
    for _ in 0..2000 {
        let x = rng.gaussians(32);
        for bits in BITS {
            let one = Encoded::of(format(bits, 32, 32), &x);
            for power in [4.0, 0.25] {
                let scaled: Vec<f32> = x.iter().map(|x| x * power).collect();
                let two = Encoded::of(format(bits, 32, 32), &scaled);
                assert_eq!(one.codes, two.codes);
                assert_eq!(f16(one.zeros[0]) * f64::from(power), f16(two.zeros[0]));
            }
        }
    }
}

#[test]
fn a_permutation_permutes_codes() {
    let mut rng = Rng(3);
    for _ in 0..2000 {
        let mut x = vec![0.0; 32];
        rng.fill(&mut x);
        let turned: Vec<f32> = x.iter().rev().copied().collect();
        for bits in BITS {
            let (one, mut two) = (Encoded::of(format(bits, 32, 32), &x), Encoded::of(format(bits, 32, 32), &turned));
            let codes: Vec<u8> = two.unpacked().into_iter().rev().collect();
            assert_eq!(one.unpacked(), codes);
            two.codes.clone_from(&one.codes);
            assert_eq!(one, two);
        }
    }
}

#[test]
fn channels_are_the_rows_of_the_transposed() {
    let mut rng = Rng(4);
    for (tokens, group, channels, stride) in [(32, 16, 5, 7), (64, 64, 16, 16), (16, 16, 1, 3), (12, 12, 3, 3)] {
        let x = rng.gaussians(tokens * stride);
        let held = &x[..(tokens - 1) * stride + channels];
        let transposed: Vec<f32> =
            (0..channels).flat_map(|c| (0..tokens).map(move |t| (t, c))).map(|(t, c)| x[t * stride + c]).collect();
        for bits in BITS {
            let format = format(bits, tokens as u32, group);
            let rows = Encoded::of(format, &transposed);
            let mut columns = Encoded::room(format, tokens * channels);
            let report = int::encode_channels(format, held, stride, NonFinite::Reject, columns.sections());
            assert_eq!(report, Ok(Report::default()));
            assert_eq!(rows, columns);

            let mut out = vec![7.0; held.len()];
            int::decode_channels(format, columns.view(), &mut out, stride).unwrap();
            for (i, &value) in out.iter().enumerate() {
                let (t, c) = (i / stride, i % stride);
                let want = if c < channels { rows.decoded()[c * tokens + t] } else { 7.0 };
                assert_eq!(value, want);
            }
        }
    }
}

#[test]
fn rejected_input_writes_nothing_and_says_where() {
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut x = vec![1.0; 128];
        x[77] = bad;
        x[100] = f32::NAN;
        for bits in BITS {
            let format = format(bits, 64, 32);
            let mut to = Encoded::room(format, 128);
            let result = int::encode(format, &x, NonFinite::Reject, to.sections());
            assert_eq!(result, Err(QuantError::NonFinite { index: 77 }));
            // 64 tokens of 2 channels.
            let result = int::encode_channels(format, &x, 2, NonFinite::Reject, to.sections());
            assert_eq!(result, Err(QuantError::NonFinite { index: 77 }));
            let Encoded { ref scales, ref zeros, .. } = to.clone();
            let result = int::encode_with(format, &x, &[0x3c00; 4], &[0; 4], &mut to.codes);
            assert_eq!(result, Err(QuantError::NonFinite { index: 77 }));
            assert_eq!((scales, zeros), (&vec![0xaaaa; 4], &vec![0xaaaa; 4]));
            assert_eq!(to, Encoded::room(format, 128));
        }
    }
    // Between channels anything may lie.
    let x = [1.0, f32::NAN, 2.0, f32::NAN, 3.0, f32::NAN, 4.0];
    let format = format(IntBits::B8, 4, 4);
    let mut to = Encoded::room(format, 4);
    assert!(int::encode_channels(format, &x, 2, NonFinite::Reject, to.sections()).unwrap().is_clean());
    assert_eq!(to, Encoded::of(format, &[1.0, 2.0, 3.0, 4.0]));
}

#[test]
fn sanitised_input_is_that_of_its_group() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    for (dirty, clean, replaced) in [
        ([nan, -1.0, 2.0, inf], [0.0, -1.0, 2.0, 2.0], 2),
        ([-inf, 3.0, 4.0, nan], [3.0, 3.0, 4.0, 3.0], 2),
        ([-inf, -3.0, -4.0, -nan], [-4.0, -3.0, -4.0, -3.0], 2),
        ([nan, inf, -inf, nan], [0.0; 4], 4),
        ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], 0),
    ] {
        for bits in BITS {
            let format = format(bits, 4, 4);
            let mut to = Encoded::room(format, 4);
            let report = int::encode(format, &dirty, NonFinite::Sanitise, to.sections()).unwrap();
            assert_eq!(report, Report { saturated: 0, replaced });
            assert_eq!(to, Encoded::of(format, &clean), "{dirty:?}");
        }
    }
}

#[test]
fn what_f16_cannot_hold_is_reported() {
    let format = format(IntBits::B8, 32, 16);
    let mut x = [0.5; 64];
    let saturated = |x: &[f32]| {
        let mut to = Encoded::room(format, 64);
        let report = int::encode(format, x, NonFinite::Reject, to.sections()).unwrap();
        assert!(to.decoded().iter().all(|x| x.is_finite()));
        report.saturated
    };
    x[3] = 65_504.0;
    assert_eq!(saturated(&x), 0);
    x[3] = 1e7; // a step of 39,000
    assert_eq!(saturated(&x), 0);
    x[3] = 1e8;
    x[63] = -65_505.0;
    assert_eq!(saturated(&x), 2);
    x[3] = f32::MAX;
    x[63] = f32::MIN;
    assert_eq!(saturated(&x), 2);
}

#[test]
fn f16_output_saturates() {
    let x = Encoded::of(format(IntBits::B8, 4, 4), &[65_504.0, -65_504.0, 0.0, 1.0]);
    let mut out = [0; 4];
    int::decode_f16(x.format, x.view(), &mut out).unwrap();
    assert!(x.decoded()[0] > 65_504.0);
    assert_eq!(out[..2], [0x7bff, 0xfbff]);
    for (&got, &x) in out.iter().zip(&x.decoded()) {
        assert_eq!(got, half::f16::from_f32(x.clamp(-65_504.0, 65_504.0)).to_bits());
    }
}

#[test]
fn unusable_parameters_are_refused() {
    let good = Encoded::of(format(IntBits::B4, 32, 16), &[0.25; 64]);
    let mut out = [7.0; 64];
    for bad in [0x7c00, 0x7e00, 0xfc00, 0xfe01, 0x8001, 0x8000, 0xbc00] {
        let mut x = good.clone();
        x.scales[2] = bad;
        assert_eq!(int::decode(x.format, x.view(), &mut out), Err(QuantError::Scale { index: 2 }));
    }
    for bad in [0x7c00, 0x7e00, 0xfc00, 0xfe01] {
        let mut x = good.clone();
        x.zeros[3] = bad;
        assert_eq!(int::decode(x.format, x.view(), &mut out), Err(QuantError::Scale { index: 3 }));
        assert_eq!(int::decode_f16(x.format, x.view(), &mut [0; 64]), Err(QuantError::Scale { index: 3 }));
    }
    assert_eq!(out, [7.0; 64]);
}

#[test]
fn lengths_must_agree() {
    let format = format(IntBits::B4, 32, 16);
    for (x, codes, scales, zeros) in
        [(64, 32, 4, 3), (64, 32, 3, 4), (64, 31, 4, 4), (63, 32, 4, 4), (48, 24, 3, 3), (16, 8, 1, 1)]
    {
        let (mut codes, mut scales, mut zeros) = (vec![0; codes], vec![0; scales], vec![0; zeros]);
        let mut x = vec![0.0; x];
        let into = int::GroupsMut { codes: &mut codes, scales: &mut scales, zeros: &mut zeros };
        assert_eq!(int::encode(format, &x, NonFinite::Reject, into), Err(QuantError::Length));
        let from = int::GroupsRef { codes: &codes, scales: &scales, zeros: &zeros };
        assert_eq!(int::decode(format, from, &mut x), Err(QuantError::Length));
    }
    let mut nothing = Encoded::room(format, 0);
    assert!(int::encode(format, &[], NonFinite::Reject, nothing.sections()).unwrap().is_clean());
    assert!(int::encode_channels(format, &[], 0, NonFinite::Reject, nothing.sections()).unwrap().is_clean());
    let mut two = Encoded::room(format, 64);
    for (held, stride) in [(62, 2), (63, 2), (64, 1), (64, 0), (93, 3)] {
        let result = int::encode_channels(format, &vec![0.0; held], stride, NonFinite::Reject, two.sections());
        assert_eq!(result, Err(QuantError::Length), "{held} {stride}");
    }
    let long = IntFormat::new(IntBits::B8, 256, 256).unwrap();
    let mut row = Encoded::room(long, 256);
    let result = int::encode_channels(long, &[0.0; 256], 1, NonFinite::Reject, row.sections());
    assert_eq!(result, Err(QuantError::Group));
}

/// Rows longer than a block of work.
#[test]
fn whole_rows_of_any_length() {
    let mut rng = Rng(5);
    for row in [2_u32, 12, 80, 132, 256, 576, 1000] {
        for bits in BITS {
            let Ok(format) = IntFormat::new(bits, row, row) else { continue };
            let x = rng.gaussians(3 * row as usize);
            let encoded = Encoded::of(format, &x);
            assert_eq!(encoded.scales.len(), 3);
            let step = encoded.scales.iter().map(|&s| f16(s)).fold(0.0, f64::max);
            let errors = x.iter().zip(encoded.decoded()).map(|(&x, y)| (f64::from(x) - f64::from(y)).abs());
            assert!(errors.fold(0.0, f64::max) <= step * 0.5001);
        }
    }
}

/// All 65,536 patterns, and what lies between.
#[test]
fn directed_rounding_to_f16() {
    use kvfolio::quant::rounding::*;
    for bits in 0..=u16::MAX {
        let x = half::f16::from_bits(bits);
        if !x.is_finite() {
            continue;
        }
        let x = x.to_f32();
        assert_eq!(f16_to_f32(bits).to_bits(), x.to_bits());
        assert_eq!((f16_floor(x), f16_ceil(x)), ((bits, false), (bits, false)));
        assert_eq!(f16_nearest_saturating(x), bits);
    }
    let mut rng = Rng(6);
    for i in 0..1_000_000 {
        let x = if i % 2 == 0 { rng.finite() } else { (rng.gaussian() * 10_f64.powi((i % 13) - 8)) as f32 };
        let ((low, below), (high, above)) = (f16_floor(x), f16_ceil(x));
        assert_eq!((below, above), (x < -65_504.0, x > 65_504.0), "{x:e}");
        let (low, high) = (f16(low) as f32, f16(high) as f32);
        assert!((below || low <= x) && (above || x <= high), "{x:e} {low:e} {high:e}");
        let nearest = half::f16::from_f32(x.clamp(-65_504.0, 65_504.0));
        assert_eq!(f16_nearest_saturating(x), nearest.to_bits(), "{x:e}");
        // One of them is the nearest, and between them there is no other.
        assert!(low == nearest.to_f32() || high == nearest.to_f32(), "{x:e}");
        let is_next =
            low == high || half::f16::from_f32(low).to_bits().abs_diff(half::f16::from_f32(high).to_bits()) == 1;
        assert!(is_next || low == 0.0 || high == 0.0, "{x:e} {low:e} {high:e}");
    }
    assert_eq!(f16_floor(-1e-45), (0x8001, false));
    assert_eq!(f16_ceil(1e-45), (0x0001, false));
    assert_eq!((f16_floor(1e-45).0, f16_ceil(-1e-45).0), (0, 0x8000));
}
