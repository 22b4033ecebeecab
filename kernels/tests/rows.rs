//! Plain rows: every instruction set gives the bits of the portable codec, for every format, shape and element type.

use kvfolio::layout::{ElementCode, ScaleMode, TensorFormat};
use kvfolio::quant::rounding::f16_nearest_saturating;
use kvfolio::quant::{IntBits, IntFormat, NonFinite, int};
use kvfolio_kernels::Error;
use kvfolio_kernels::cpu::{Dtype, Isa, convert_from_f32_raw};
use kvfolio_kernels::quant::{RawRows, RowReport, decode_rows_raw, encode_rows_raw};

const DIMS: [u32; 8] = [16, 32, 48, 64, 80, 96, 128, 256];

/// Groups of each format; `KVF_GROUPS` for more.
fn group_count() -> usize {
    let given = std::env::var("KVF_GROUPS").ok().and_then(|n| n.parse().ok());
    given.unwrap_or(if cfg!(debug_assertions) { 10_000 } else { 100_000 })
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = (self.0 ^ self.0 >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^ x >> 32
    }

    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 8_388_608.0 - 1.0
    }

    /// Values of one group, each kind of group now and then.
    fn group(&mut self, n: usize, has_non_finite: bool) -> Vec<f32> {
        let kind = self.next() % if has_non_finite { 20 } else { 18 };
        let power = |e: i32| 2.0_f32.powi(e);
        let mut x: Vec<f32> = (0..n).map(|_| self.float()).collect();
        let at = self.next() as usize % n;
        let scale = power((self.next() % 60) as i32 - 30);
        match kind {
            0 => x.fill(scale),
            1 => x.fill(if self.next() & 1 == 0 { 0.0 } else { -0.0 }),
            2 => x.iter_mut().for_each(|x| *x *= power(-140)),
            3 => x.iter_mut().for_each(|x| *x *= power(-24)),
            4 => x.iter_mut().for_each(|x| *x *= 65_504.0),
            5 => x.iter_mut().for_each(|x| *x *= f32::MAX),
            6 => x[at] = 3000.0,
            7 => x.iter_mut().for_each(|x| *x += 100.0),
            8 => x.iter_mut().for_each(|x| *x = (*x * 8.0).round() * scale),
            9 => x.iter_mut().for_each(|x| *x = (*x * 3.0).round() * 0.5),
            10 => (x[at], x[(at + 7) % n]) = (-1.5, 1.5),
            11 => x.iter_mut().for_each(|x| *x *= scale),
            12 => x.iter_mut().for_each(|x| *x = x.abs() * scale),
            13 => {
                x.fill(0.0);
                x[at] = scale;
            }
            14 => x.iter_mut().for_each(|x| *x = (*x * 127.0).round() + 0.5),
            18 => x[at] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][self.next() as usize % 3],
            19 => x.fill(f32::NAN),
            _ => {}
        }
        x
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Coded {
    codes: Vec<u8>,
    scales: Vec<u32>,
    zeros: Vec<u32>,
}

fn is_fp8_dynamic(format: &TensorFormat) -> bool {
    format.element == ElementCode::FP8_E4M3FN && format.scale == ScaleMode::TOKEN_HEAD
}

impl Coded {
    /// With room for all, and a few bytes more that must stay as they are.
    fn room(format: &TensorFormat, dim: u32, tokens: usize) -> Self {
        let elements = dim as usize * tokens;
        let (bytes, group) = match format.element {
            ElementCode::INT4 => (elements / 2, format.group),
            ElementCode::INT2 => (elements / 4, format.group),
            ElementCode::Q8_0 => (elements / 32 * 34, 32),
            ElementCode::Q4_0 => (elements / 32 * 18, 32),
            _ => (elements, format.group),
        };
        let groups = elements / if group == 0 { dim as usize } else { group as usize };
        let words = if is_fp8_dynamic(format) { groups } else { groups.div_ceil(2) };
        Self {
            codes: vec![0xa5; bytes + 40],
            scales: vec![0xa5a5_a5a5; words + 8],
            zeros: vec![0xa5a5_a5a5; words + 8],
        }
    }

    fn raw(&mut self, format: TensorFormat, dim: u32, tokens: usize) -> RawRows {
        RawRows {
            format,
            dim,
            tokens: tokens as u64,
            codes: self.codes.as_mut_ptr(),
            scales: self.scales.as_mut_ptr().cast(),
            zeros: self.zeros.as_mut_ptr().cast(),
            scale: 0.013,
        }
    }
}

/// Elements as they are stored.
fn stored(dtype: Dtype, x: &[f32]) -> Vec<u32> {
    let mut out = vec![0; x.len()];
    // SAFETY: there is room for all.
    unsafe { convert_from_f32_raw(dtype, x.as_ptr(), out.as_mut_ptr().cast(), x.len()) }.unwrap();
    out
}

type Encoded = (Result<RowReport, Error>, Coded);

fn encode(format: TensorFormat, dim: u32, dtype: Dtype, x: &[u32], n: usize, isa: Isa, on: NonFinite) -> Encoded {
    let tokens = n / dim as usize;
    let mut coded = Coded::room(&format, dim, tokens);
    let rows = coded.raw(format, dim, tokens);
    // SAFETY: the arrays have the sizes that the rows say.
    let result = unsafe { encode_rows_raw(&rows, isa, on, dtype, x.as_ptr().cast()) };
    (result, coded)
}

fn decode(
    format: TensorFormat,
    dim: u32,
    dtype: Dtype,
    coded: &mut Coded,
    n: usize,
    isa: Isa,
) -> (Result<(), Error>, Vec<u32>) {
    let rows = coded.raw(format, dim, n / dim as usize);
    let mut out = vec![0xa5a5_a5a5; n + 4];
    // SAFETY: as above.
    let result = unsafe { decode_rows_raw(&rows, isa, dtype, out.as_mut_ptr().cast()) };
    (result, out)
}

/// All formats that have loops, with the groups that fit rows of `dim`.
fn formats(dim: u32) -> Vec<TensorFormat> {
    let mut all = vec![];
    for element in [ElementCode::INT8, ElementCode::INT4, ElementCode::INT2, ElementCode::INT8_SYMMETRIC] {
        for group in [0, 16, 32, 64, 128] {
            if group == 0 || dim.is_multiple_of(group) {
                all.push(TensorFormat::per_token(element, group));
            }
            if group > 0 {
                all.push(TensorFormat::per_channel(element, group));
            }
        }
    }
    if dim.is_multiple_of(32) {
        all.extend([TensorFormat::Q8_0, TensorFormat::Q4_0]);
    }
    for scale in [ScaleMode::TOKEN_HEAD, ScaleMode::HEAD] {
        all.push(TensorFormat::fp8(ElementCode::FP8_E4M3FN, scale));
    }
    all
}

/// Rows of groups of every kind, in tens of thousands over the calls.
fn check(dim: u32, format: TensorFormat, rounds: usize, random: &mut Random) -> usize {
    let is_channel = format.axis == kvfolio::layout::Axis::CHANNEL;
    let tokens = if is_channel { format.group as usize * 3 } else { 67 };
    let n = tokens * dim as usize;
    let group = match format.group {
        0 if matches!(format.element, ElementCode::Q8_0 | ElementCode::Q4_0) => 32,
        0 => dim as usize,
        group => group as usize,
    };
    for round in 0..rounds {
        let is_dirty = round % 4 == 3;
        let mut x = Vec::with_capacity(n);
        if is_channel {
            x.resize(n, 0.0);
            for (block, x) in x.chunks_mut(group * dim as usize).enumerate() {
                // A group beyond f16 leaves the rest of the call to the codec: not in every block.
                for channel in 0..dim as usize {
                    let values = if block == 0 { random.group(group, is_dirty) } else { tame(random, group) };
                    values.iter().enumerate().for_each(|(t, &value)| x[t * dim as usize + channel] = value);
                }
            }
        } else {
            while x.len() < n {
                let is_tame = round % 2 == 0 && !random.next().is_multiple_of(64);
                x.extend(if is_tame { tame(random, group) } else { random.group(group, is_dirty) });
            }
        }
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            let what = format!("{format:?} d {dim} {dtype:?}");
            let x = stored(dtype, &x);
            let on = if is_dirty { NonFinite::Sanitise } else { NonFinite::Reject };
            let (must, mut portable) = encode(format, dim, dtype, &x, n, Isa::Portable, on);
            let (is, best) = encode(format, dim, dtype, &x, n, Isa::Auto, on);
            assert_eq!(must, is, "{what}");
            if must.is_ok() {
                assert!(portable == best, "{what}");
            }
            let (must, out) = decode(format, dim, dtype, &mut portable, n, Isa::Portable);
            let (is, best) = decode(format, dim, dtype, &mut portable, n, Isa::Auto);
            assert_eq!(must, is, "{what}");
            if must.is_ok() {
                assert!(out == best, "{what}");
            }
        }
    }
    rounds * n / group
}

/// A group that every format holds: several kinds, none beyond f16.
fn tame(random: &mut Random, n: usize) -> Vec<f32> {
    loop {
        let x = random.group(n, false);
        if x.iter().all(|x| x.abs() <= 30_000.0) {
            return x;
        }
    }
}

#[test]
fn every_instruction_set_gives_the_bits_of_the_codec() {
    let mut random = Random(1);
    for dim in DIMS {
        for format in formats(dim) {
            let per_round = check(dim, format, 4, &mut random);
            let wanted = group_count() / DIMS.len() / 3;
            check(dim, format, (wanted / (per_round / 4).max(1)).div_ceil(4) * 4, &mut random);
        }
    }
}

#[test]
fn shapes_that_have_no_vectors_are_left_to_the_codec() {
    let mut random = Random(2);
    for dim in [2, 8, 20, 24, 40, 100, 136] {
        for element in [ElementCode::INT8, ElementCode::INT8_SYMMETRIC] {
            check(dim, TensorFormat::per_token(element, 0), 4, &mut random);
            check(dim, TensorFormat::per_channel(element, 32), 4, &mut random);
        }
        check(dim, TensorFormat::fp8(ElementCode::FP8_E4M3FN, ScaleMode::TOKEN_HEAD), 4, &mut random);
    }
}

#[test]
fn rows_are_those_of_the_core_codec() {
    let (dim, tokens, mut random) = (96, 40, Random(3));
    let x: Vec<f32> = (0..tokens * dim / 32).flat_map(|_| tame(&mut random, 32)).collect();
    for (bits, element) in
        [(IntBits::B8, ElementCode::INT8), (IntBits::B4, ElementCode::INT4), (IntBits::B2, ElementCode::INT2)]
    {
        let format = IntFormat::new(bits, dim as u32, 32).unwrap();
        let groups = x.len() / 32;
        let (mut codes, mut scales, mut zeros) = (vec![0; bits.bytes(x.len())], vec![0; groups], vec![0; groups]);
        let into = int::GroupsMut { codes: &mut codes, scales: &mut scales, zeros: &mut zeros };
        let _ = int::encode(format, &x, NonFinite::Reject, into).unwrap();
        let halves = |words: &[u32]| words.iter().flat_map(|&w| [w as u16, (w >> 16) as u16]).collect::<Vec<_>>();

        let mut out = vec![0.0; x.len()];
        let from = int::GroupsRef { codes: &codes, scales: &scales, zeros: &zeros };
        int::decode(format, from, &mut out).unwrap();
        let out16: Vec<u16> = out.iter().map(|&x| f16_nearest_saturating(x)).collect();
        for isa in [Isa::Portable, Isa::Auto] {
            let token = TensorFormat::per_token(element, 32);
            let words = stored(Dtype::F32, &x);
            let (result, mut coded) = encode(token, dim as u32, Dtype::F32, &words, x.len(), isa, NonFinite::Reject);
            assert_eq!(result, Ok(RowReport::default()));
            assert_eq!(coded.codes[..codes.len()], codes);
            assert_eq!(halves(&coded.scales)[..groups], scales);
            assert_eq!(halves(&coded.zeros)[..groups], zeros);
            let (_, is) = decode(token, dim as u32, Dtype::F32, &mut coded, x.len(), isa);
            assert!(is.iter().zip(&out).all(|(is, x)| *is == x.to_bits()));
            let (_, is) = decode(token, dim as u32, Dtype::F16, &mut coded, x.len(), isa);
            assert_eq!(halves(&is)[..x.len()], out16);
        }
    }
}

#[test]
fn damaged_parameters_are_refused_alike() {
    let mut random = Random(4);
    for format in formats(64) {
        let n = 64 * 128;
        let x: Vec<f32> = (0..n / 64).flat_map(|_| tame(&mut random, 64)).collect();
        let words = stored(Dtype::F32, &x);
        let (_, coded) = encode(format, 64, Dtype::F32, &words, n, Isa::Auto, NonFinite::Reject);
        for bad in [0x7c00_7c00, 0x8400_8400, 0xfe00_fe00, 0xffff_ffff] {
            let mut broken = [coded.clone(), coded.clone(), coded.clone()];
            broken[0].scales[5] = bad;
            broken[1].zeros[6] = bad;
            broken[2].codes[68..72].copy_from_slice(&bad.to_le_bytes());
            for mut coded in broken {
                let [must, is] =
                    [Isa::Portable, Isa::Auto].map(|isa| decode(format, 64, Dtype::F32, &mut coded, n, isa));
                assert_eq!(must.0, is.0, "{format:?}");
                if must.0.is_ok() {
                    assert!(must.1 == is.1, "{format:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_wrong_is_refused() {
    let format = TensorFormat::per_channel(ElementCode::INT4, 32);
    let mut coded = Coded::room(&format, 64, 64);
    let good = coded.raw(format, 64, 64);
    let x = vec![0_u32; 64 * 64];
    let try_encode = |rows: RawRows, x: *const u32| {
        // SAFETY: the arrays have the sizes that the rows say, or are refused.
        unsafe { encode_rows_raw(&rows, Isa::Auto, NonFinite::Reject, Dtype::F32, x.cast()) }
    };
    assert_eq!(try_encode(good, x.as_ptr()), Ok(RowReport::default()));
    assert_eq!(try_encode(good, core::ptr::null()), Err(Error::Null));
    assert_eq!(try_encode(good, x.as_ptr().wrapping_byte_add(2)), Err(Error::Align));
    assert_eq!(try_encode(RawRows { zeros: core::ptr::null_mut(), ..good }, x.as_ptr()), Err(Error::Null));
    assert_eq!(try_encode(RawRows { tokens: 48, ..good }, x.as_ptr()), Err(Error::Shape));
    assert_eq!(try_encode(RawRows { tokens: !31, ..good }, x.as_ptr()), Err(Error::Shape));
    assert_eq!(try_encode(RawRows { dim: 0, ..good }, x.as_ptr()), Err(Error::Shape));
    for format in [
        TensorFormat::NVFP4,
        TensorFormat::F16,
        TensorFormat::per_token(ElementCode::INT4, 24),
        TensorFormat::per_channel(ElementCode::INT4, 256),
        TensorFormat::per_channel(ElementCode::INT4, 24),
        TensorFormat::per_channel(ElementCode::Q8_0, 32),
    ] {
        assert_eq!(try_encode(RawRows { format, ..good }, x.as_ptr()), Err(Error::Layout), "{format:?}");
    }
    let fp8 = TensorFormat::fp8(ElementCode::FP8_E4M3FN, ScaleMode::TENSOR);
    assert_eq!(try_encode(RawRows { format: fp8, scale: 0.0, ..good }, x.as_ptr()), Err(Error::Scale));
    let mut x = x;
    x[100] = f32::NAN.to_bits();
    assert_eq!(try_encode(good, x.as_ptr()), Err(Error::NonFinite));
}
