//! Faults that other libraries have had. The numbers are those of a list of public reports that is not in this repository; those
//! of kernels (30, 39, 40, 42) are in `kernels/tests/faults.rs`, those of an engine (32, 41) in `examples/c/check_layers.c` and
//! `check_formats.c`.

use kvfolio::SealSchedule;
use kvfolio::layout::{ElementCode, PageLayout, PageLayoutSpec, Tensor, TensorFormat};
use kvfolio::quant::fp8_scale::{ScaleRule, row_scales};
use kvfolio::quant::*;

use crate::int::{BITS, Encoded, format};
use crate::support::*;

fn fp8_bytes(kind: Fp8Kind, x: &[f32], row: usize, scales: &[f32]) -> Vec<u8> {
    let mut codes = vec![0xaa; x.len()];
    fp8::encode(kind, x, row, scales, &mut codes).unwrap();
    codes
}

/// 15: large keys gave NaN logits, as something between was f16.
#[test]
fn f15_large_keys_stay_numbers() {
    let k: Vec<f32> = Rng(15).gaussians(128).iter().map(|x| x * 20_000.0).collect();
    for bits in BITS {
        let decoded = Encoded::of(format(bits, 128, 32), &k).decoded();
        let dot = |k: &[f32]| k.iter().map(|k| k * 500.0).sum::<f32>();
        assert!(dot(&decoded).is_finite());
        assert!(bits == IntBits::B2 || relative_l2(&k, &decoded) < 0.1);
    }
}

/// 16: bytes of E4M3FN read as E4M3FNUZ: half of every value.
#[test]
fn f16_kinds_differ_by_two() {
    for code in 1..0x7f {
        assert_eq!(Fp8Kind::E4m3Fn.decode(code), 2.0 * Fp8Kind::E4m3Fnuz.decode(code));
    }
    assert_eq!((Fp8Kind::E4m3Fn as u8, Fp8Kind::E5m2 as u8, Fp8Kind::E4m3Fnuz as u8), (0, 1, 2));
}

/// 17: the order of block scales, wrong at one end.
#[test]
fn f17_block_scales_are_linear() {
    let mut rng = Rng(17);
    // 64 rows of 4 blocks, whose magnitudes differ.
    let x: Vec<f32> = (0..64 * 4)
        .flat_map(|_| {
            let m = rng.unit() as f32 * 8.0;
            rng.gaussians(16).into_iter().map(move |x| x * m)
        })
        .collect();
    let t = fp4::nvfp4_tensor_scale(&x);
    let (mut codes, mut scales, mut out) = (vec![0; x.len() / 2], vec![0; x.len() / 16], vec![0.0; x.len()]);
    assert!(fp4::nvfp4_encode(&x, t, NonFinite::Reject, &mut codes, &mut scales).unwrap().is_clean());
    fp4::nvfp4_decode(&codes, &scales, t, &mut out).unwrap();
    assert!(relative_l2(&x, &out) < 0.15);
    let swizzled: Vec<u8> = (0..scales.len()).map(|i| scales[i / 16 * 16 + i % 4 * 4 + i % 16 / 4]).collect();
    fp4::nvfp4_decode(&codes, &swizzled, t, &mut out).unwrap();
    assert!(relative_l2(&x, &out) > 0.5);
}

/// 18: a layout changed and all output was garbage. The bytes of a row, of its channels, and of both widths.
#[test]
fn f18_golden_bytes() {
    let x: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let four = Encoded::of(format(IntBits::B4, 16, 16), &x);
    assert_eq!(four.codes, [0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe]);
    assert_eq!((four.scales[0], four.zeros[0]), (0x3c00, 0));
    let by_four: Vec<f32> = (0..16).map(|i| (i % 4) as f32).collect();
    assert_eq!(Encoded::of(format(IntBits::B2, 16, 16), &by_four).codes, [0xe4; 4]);
    let mut columns = Encoded::room(format(IntBits::B4, 16, 16), 16);
    assert!(int::encode_channels(columns.format, &x, 1, NonFinite::Reject, columns.sections()).unwrap().is_clean());
    assert_eq!(columns, four);
}

/// 19: E5M2 in place of E4M3 without a word: twice the error, more range.
#[test]
fn f19_outliers_and_kinds() {
    let mut x = Rng(19).gaussians(1 << 14);
    x.chunks_mut(32).for_each(|x| x[7] *= 30.0);
    let error = |kind: Fp8Kind| {
        let mut scales = vec![0.0; x.len() / 32];
        row_scales(kind, ScaleRule::Exact, &x, 32, NonFinite::Reject, &mut scales).unwrap();
        let mut out = vec![0.0; x.len()];
        fp8::decode(kind, &fp8_bytes(kind, &x, 32, &scales), 32, &scales, &mut out).unwrap();
        relative_l2(&x, &out)
    };
    let (fine, coarse) = (error(Fp8Kind::E4m3Fn), error(Fp8Kind::E5m2));
    assert!(fine < 0.03 && coarse < 0.06 && coarse > 1.7 * fine, "{fine} {coarse}");
}

/// 20, 26: no scale, where one was needed, was taken for 1.
#[test]
fn f20_f26_no_scale_is_an_error() {
    let mut codes = [0xaa; 8];
    assert_eq!(fp8::encode(Fp8Kind::E4m3Fn, &[1.0; 8], 8, &[], &mut codes), Err(QuantError::Length));
    assert_eq!(fp8::decode(Fp8Kind::E4m3Fn, &codes, 8, &[], &mut [0.0; 8]), Err(QuantError::Length));
    assert_eq!(codes, [0xaa; 8]);
    let x = [0.3, 17.0, -448.0, 0.001];
    assert_eq!(fp8_bytes(Fp8Kind::E4m3Fn, &x, 4, &[1.0]), x.map(|x| Fp8Kind::E4m3Fn.encode(x)));
}

/// 21, 27: a scale that was ignored, and the same results with and without.
#[test]
fn f21_f27_the_scale_changes_bytes_and_values() {
    let x = Rng(21).gaussians(64);
    let (one, two) = (fp8_bytes(Fp8Kind::E4m3Fn, &x, 64, &[1.0]), fp8_bytes(Fp8Kind::E4m3Fn, &x, 64, &[0.3]));
    assert!(one.iter().zip(&two).filter(|(a, b)| a == b).count() < 8);
    let (mut a, mut b) = ([0.0; 64], [0.0; 64]);
    fp8::decode(Fp8Kind::E4m3Fn, &one, 64, &[1.0], &mut a).unwrap();
    fp8::decode(Fp8Kind::E4m3Fn, &one, 64, &[0.3], &mut b).unwrap();
    assert_eq!(a.map(|x| x * 0.3), b);
}

/// 22, 37: results that depended on how heads were spread over devices, or on H in place of Hk.
#[test]
fn f22_f37_heads_can_be_sharded() {
    let (tokens, heads, dim) = (5, 6, 32);
    let x = Rng(22).gaussians(tokens * heads * dim);
    let shard: Vec<f32> = x.chunks(heads * dim).flat_map(|token| token[2 * dim..4 * dim].to_vec()).collect();
    let of_shard = |bytes: &[u8], row: usize| -> Vec<u8> {
        bytes.chunks(heads * row).flat_map(|token| token[2 * row..4 * row].to_vec()).collect()
    };
    let scales = [0.5, 1.0, 0.25, 2.0, 0.7, 0.9];
    let whole = fp8_bytes(Fp8Kind::E4m3Fn, &x, dim, &scales);
    assert_eq!(of_shard(&whole, dim), fp8_bytes(Fp8Kind::E4m3Fn, &shard, dim, &scales[2..4]));
    let whole = Encoded::of(format(IntBits::B4, dim as u32, 16), &x);
    assert_eq!(of_shard(&whole.codes, dim / 2), Encoded::of(whole.format, &shard).codes);
}

/// 23: a mask of two bits on codes of three.
#[test]
fn f23_every_code_of_every_width() {
    for bits in BITS {
        let codes: Vec<u8> = (0..4096_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8 & bits.most()).collect();
        let mut seen = [false; 256];
        codes.iter().for_each(|&code| seen[usize::from(code)] = true);
        assert!(seen.iter().take(usize::from(bits.most()) + 1).all(|&is| is));
        let (mut packed, mut back) = (vec![0; bits.bytes(codes.len())], vec![0; codes.len()]);
        pack::pack(bits, &codes, &mut packed).unwrap();
        pack::unpack(bits, &packed, &mut back).unwrap();
        assert_eq!(back, codes);
        let format = format(bits, 4096, 4096);
        let mut out = vec![0.0; 4096];
        int::decode(format, int::GroupsRef { codes: &packed, scales: &[0x4000], zeros: &[0xc200] }, &mut out).unwrap();
        assert!(out.iter().zip(&codes).all(|(&x, &code)| x == f32::from(code) * 2.0 - 3.0));
        if bits != IntBits::B8 {
            let too_many = [0, bits.most() + 1, 0, 0];
            assert_eq!(
                pack::pack(bits, &too_many, &mut packed[..4 / bits.per_byte()]),
                Err(QuantError::Code { index: 1 })
            );
        }
    }
}

/// 24: calibration gave scales of 0.
#[test]
fn f24_scales_are_above_zero() {
    for bad in [0.0, -0.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let (mut codes, mut out) = ([0xaa; 8], [7.0; 8]);
        let wanted = Err(QuantError::Scale { index: 1 });
        assert_eq!(fp8::encode(Fp8Kind::E5m2, &[1.0; 8], 4, &[1.0, bad], &mut codes), wanted);
        assert_eq!(fp8::decode(Fp8Kind::E5m2, &[0; 8], 4, &[1.0, bad], &mut out), wanted);
        assert_eq!((codes, out), ([0xaa; 8], [7.0; 8]));
    }
    let mut scales = [0.0];
    row_scales(Fp8Kind::E4m3Fn, ScaleRule::Exact, &[0.0; 4], 4, NonFinite::Reject, &mut scales).unwrap();
    assert_eq!(scales, [1e-12]);
    row_scales(Fp8Kind::E4m3Fn, ScaleRule::PowerOfTwo, &[0.0; 4], 4, NonFinite::Reject, &mut scales).unwrap();
    assert_eq!(scales, [2_f32.powi(-39)]);
}

/// 25: the scale's reciprocal, at one end.
#[test]
fn f25_powers_of_two_come_back() {
    for scale in [0.25, 1.0, 8.0] {
        let x: Vec<f32> = (-5..8).map(|power| 2_f32.powi(power) * scale).collect();
        for kind in [Fp8Kind::E4m3Fn, Fp8Kind::E5m2, Fp8Kind::E4m3Fnuz] {
            let mut out = vec![0.0; x.len()];
            fp8::decode(kind, &fp8_bytes(kind, &x, x.len(), &[scale]), x.len(), &[scale], &mut out).unwrap();
            assert_eq!(out, x);
        }
    }
}

/// 28: one layer spoilt the whole model, and nothing said which. The bound of each layer's logits does, and holds; the same layer
/// in a finer format of its own is no worse than the others.
#[test]
fn f28_the_layer_that_suffers_is_named() {
    const LAYERS: u32 = 6;
    const WORST: u32 = 4;
    let (tokens, dim) = (32, 64);
    // Keys of one layer have a channel that is far off in all tokens, as biases make them.
    let keys = |layer: u32| {
        let mut k = Rng(u64::from(layer)).gaussians(tokens * dim);
        k.iter_mut().skip(7).step_by(dim).filter(|_| layer == WORST).for_each(|x| *x += 200.0);
        k
    };
    let q = Rng(28).gaussians(dim);
    // What the page itself says of a layer, and how far its logits are off.
    let report = |format: TensorFormat, layer: u32| {
        let spec = PageLayoutSpec { page_tokens: tokens as u32, ..PageLayoutSpec::new(LAYERS, 1, dim as u32, format) };
        let layout = PageLayout::new(&spec).unwrap();
        let codec = RowCodec::new(&layout, Tensor::K, &[]).unwrap();
        let mut memory = vec![0_u64; layout.page_bytes as usize / 8];
        let page: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
        let (k, all) = (keys(layer), 0..tokens as u32);
        let _ = codec.write(page, layer, 0, all.clone(), &k, NonFinite::Reject).unwrap();
        let (mut read, mut errors) = (vec![0.0; k.len()], vec![0.0; k.len()]);
        codec.read(page, layer, 0, all.clone(), &mut read).unwrap();
        codec.error_bounds(page, layer, 0, all, &mut errors).unwrap();
        let logit = |row: &[f32]| row.iter().zip(&q).map(|(k, q)| f64::from(*k) * f64::from(*q)).sum::<f64>() / 8.0;
        let off = k.chunks(dim).zip(read.chunks(dim)).map(|(a, b)| (logit(a) - logit(b)).abs()).fold(0.0, f64::max);
        (logit_bound(&q, 0.125, &errors), off)
    };
    let coarse = TensorFormat::per_token(ElementCode::INT4, 0);
    let all: Vec<_> = (0..LAYERS).map(|layer| report(coarse, layer)).collect();
    assert!(all.iter().all(|&(bound, off)| off <= bound && bound.is_finite()), "{all:?}");
    let usual = (0..LAYERS).filter(|&layer| layer != WORST).map(|layer| all[layer as usize].0).fold(0.0, f64::max);
    assert!(all[WORST as usize].0 > 5.0 * usual, "{all:?}");
    let finer = report(TensorFormat::per_channel(ElementCode::INT8, 32), WORST);
    assert!(finer.1 <= finer.0 && finer.0 < usual, "{finer:?} {usual}");
}

/// 29, 31: keys with a large bias. A group with a zero of its own follows it.
#[test]
fn f29_f31_a_bias_costs_no_step() {
    let x: Vec<f32> =
        Rng(29).gaussians(4096).iter().enumerate().map(|(i, x)| x + if i % 64 < 32 { 605.0 } else { -921.0 }).collect();
    let encoded = Encoded::of(format(IntBits::B4, 64, 32), &x);
    let decoded = encoded.decoded();
    for (i, (&x, &y)) in x.iter().zip(&decoded).enumerate() {
        let step = f16(encoded.scales[i / 32]);
        assert!(step < 0.55 && (f64::from(x) - f64::from(y)).abs() <= step / 2.0 + 2.0 * ulp(921.0));
    }
}

/// 33: quantised again and again, the text fell apart. Under the same parameters the codes stay.
#[test]
fn f33_again_is_the_same() {
    let x = Rng(33).gaussians(1024);
    for bits in BITS {
        let first = Encoded::of(format(bits, 64, 32), &x);
        let mut codes = first.codes.clone();
        for _ in 0..32 {
            let mut values = vec![0.0; x.len()];
            let from = int::GroupsRef { codes: &codes, scales: &first.scales, zeros: &first.zeros };
            int::decode(first.format, from, &mut values).unwrap();
            int::encode_with(first.format, &values, &first.scales, &first.zeros, &mut codes).unwrap();
            assert_eq!(codes, first.codes);
        }
    }
}

/// 34: a codebook whose values were a constant factor too small. The tables and what they cost Gaussians; what a factor of the
/// root of 2 would cost is far beyond, and so is one in the norm of a rotation.
#[test]
fn f34_codebooks_and_norms_have_no_factor() {
    let table = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let codes: Vec<u8> = (0..16).map(|i| (i % 8 * 2) | ((i % 8 * 2 + 1) << 4)).collect();
    let mut out = [0.0; 32];
    fp4::mxfp4_decode(&codes, &[127], &mut out).unwrap();
    for (i, &x) in out.iter().enumerate() {
        assert_eq!(x, table[i % 8] * if i % 16 < 8 { 1.0 } else { -1.0 });
    }

    let x = Rng(34).gaussians(1 << 16);
    let t = fp4::nvfp4_tensor_scale(&x);
    let (mut codes, mut scales, mut out) = (vec![0; x.len() / 2], vec![0; x.len() / 16], vec![0.0; x.len()]);
    let mean_square = |out: &[f32]| relative_l2(&x, out).powi(2);
    assert!(fp4::nvfp4_encode(&x, t, NonFinite::Reject, &mut codes, &mut scales).unwrap().is_clean());
    fp4::nvfp4_decode(&codes, &scales, t, &mut out).unwrap();
    assert!((mean_square(&out) / 0.0952_f64.powi(2) - 1.0).abs() < 0.1, "{}", mean_square(&out));
    fp4::nvfp4_decode(&codes, &scales, t / 2_f32.sqrt(), &mut out).unwrap();
    assert!(mean_square(&out) > 0.08);
    let mut scales = vec![0; x.len() / 32];
    assert!(fp4::mxfp4_encode(&x, NonFinite::Reject, &mut codes, &mut scales).unwrap().is_clean());
    fp4::mxfp4_decode(&codes, &scales, &mut out).unwrap();
    assert!((mean_square(&out) / 0.1151_f64.powi(2) - 1.0).abs() < 0.1, "{}", mean_square(&out));

    let norm = |x: &[f32]| x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    for n in [2, 4, 8, 16, 32, 64, 128, 256] {
        let mut rotated = x[..4096].to_vec();
        Rotation::of(n, n).unwrap().apply(&mut rotated, n as usize, 0, 0).unwrap();
        assert!((norm(&rotated) / norm(&x[..4096]) - 1.0).abs() < 1e-6, "{n}");
    }
}

/// 35: one kind's greatest value used for the other.
#[test]
fn f35_each_kind_saturates_at_its_own() {
    for (kind, most) in [(Fp8Kind::E4m3Fn, 448.0), (Fp8Kind::E5m2, 57_344.0), (Fp8Kind::E4m3Fnuz, 240.0)] {
        assert_eq!(kind.greatest(), most);
        for x in [most, most * 1.01, most * 2.0, f32::MAX, f32::INFINITY] {
            assert_eq!((kind.decode(kind.encode(x)), kind.decode(kind.encode(-x))), (most, -most));
        }
        assert!(kind.decode(kind.encode(most * 0.9)) < most);
    }
}

/// 36: softmax weights as E4M3 lie among the subnormals, unless scaled.
#[test]
fn f36_small_weights_need_a_scale() {
    let mut rng = Rng(36);
    let p: Vec<f32> = (0..4096).map(|_| (0.5 + rng.unit()) as f32 / 4096.0).collect();
    let mut out = vec![0.0; p.len()];
    fp8::decode(Fp8Kind::E4m3Fn, &fp8_bytes(Fp8Kind::E4m3Fn, &p, 4096, &[1.0]), 4096, &[1.0], &mut out).unwrap();
    assert!(relative_l2(&p, &out) > 0.15);
    let mut scales = [0.0];
    row_scales(Fp8Kind::E4m3Fn, ScaleRule::PowerOfTwo, &p, 4096, NonFinite::Reject, &mut scales).unwrap();
    fp8::decode(Fp8Kind::E4m3Fn, &fp8_bytes(Fp8Kind::E4m3Fn, &p, 4096, &scales), 4096, &scales, &mut out).unwrap();
    assert!(relative_l2(&p, &out) < 0.03);
}

/// 43, 47: bytes that depended on the neighbours in the batch, or groups that spanned requests.
#[test]
fn f43_f47_neighbours_do_not_matter() {
    let mut rng = Rng(43);
    let mut x = rng.gaussians(8 * 64);
    for bits in BITS {
        let format = format(bits, 64, 32);
        let batch = Encoded::of(format, &x);
        for (row, values) in x.chunks(64).enumerate() {
            let alone = Encoded::of(format, values);
            let bytes = bits.bytes(64);
            assert_eq!(alone.codes, batch.codes[row * bytes..(row + 1) * bytes]);
            assert_eq!(alone.scales, batch.scales[row * 2..row * 2 + 2]);
        }
    }
    let before = Encoded::of(format(IntBits::B2, 64, 64), &x);
    x[64..].iter_mut().for_each(|x| *x *= 100.0);
    let after = Encoded::of(before.format, &x);
    assert_eq!((&before.codes[..16], before.scales[0]), (&after.codes[..16], after.scales[0]));
    // Along tokens: one channel does not change another.
    let mut columns = Encoded::room(format(IntBits::B4, 16, 16), 64);
    assert!(
        int::encode_channels(columns.format, &x[..64], 4, NonFinite::Reject, columns.sections()).unwrap().is_clean()
    );
    let first = columns.clone();
    x.iter_mut().skip(1).step_by(4).for_each(|x| *x -= 50.0);
    assert!(
        int::encode_channels(columns.format, &x[..64], 4, NonFinite::Reject, columns.sections()).unwrap().is_clean()
    );
    assert_ne!(first.scales[1], columns.scales[1]);
    assert_eq!((&first.codes[..8], &first.codes[16..]), (&columns.codes[..8], &columns.codes[16..]));
}

/// 44: sizes without the metadata.
#[test]
fn f44_bytes_are_what_the_formula_says() {
    for (bits, group, per_element) in [(IntBits::B4, 32, 5.0), (IntBits::B2, 32, 3.0), (IntBits::B8, 128, 8.25)] {
        let encoded = Encoded::of(format(bits, 128, group), &Rng(44).gaussians(1024));
        let bytes = encoded.codes.len() + 2 * (encoded.scales.len() + encoded.zeros.len());
        assert_eq!(bytes as f64 * 8.0 / 1024.0, per_element);
    }
    assert_eq!((ggml::Q8_0_BYTES as f64 / 4.0, ggml::Q4_0_BYTES as f64 / 4.0), (8.5, 4.5));
}

/// 45: groups of one token, lossless and larger than before.
#[test]
fn f45_groups_are_not_of_one_element() {
    for bits in BITS {
        assert_eq!(IntFormat::new(bits, 1, 1), Err(QuantError::Group));
        assert_eq!(IntFormat::new(bits, 64, 1), Err(QuantError::Group));
        let codes = Encoded::of(format(bits, 64, 32), &Rng(45).gaussians(1 << 14)).unpacked();
        let mut count = [0_u32; 256];
        codes.iter().for_each(|&code| count[usize::from(code)] += 1);
        assert!(count.iter().take(usize::from(bits.most()) + 1).all(|&n| n > 0));
        let most = count.iter().max().unwrap();
        assert!(*most < (1 << 14) / 2);
    }
}

/// 46: a residual that was never flushed while decoding, as tokens were counted for each call and not in all. Pages sealed as the
/// schedule says are the same ones, with the same bytes, in chunks of any size, and there are as many as tokens in all ask for.
#[test]
fn f46_chunks_do_not_change_what_is_sealed() {
    const P: u32 = 32;
    const TOKENS: u32 = 400;
    let dim = 16;
    let key = |token: u32| Rng(u64::from(token)).gaussians(dim);
    let spec = PageLayoutSpec::new(1, 1, dim as u32, TensorFormat::per_channel(ElementCode::INT2, 32));
    let layout = PageLayout::new(&PageLayoutSpec { page_tokens: P, ..spec }).unwrap();
    let codec = RowCodec::new(&layout, Tensor::K, &[]).unwrap();
    for recent in [0, 1, 31, 32, 100, 128] {
        let schedule = SealSchedule { page_tokens: P, recent };
        let run = |chunk: u32| {
            let (mut sealed, mut exact, mut at, mut most) = (Vec::new(), Vec::new(), 0, 0);
            while at < TOKENS {
                // Before a step: what its queries read as sealed.
                while (sealed.len() as u32) < schedule.sealed_at(at) {
                    let mut page = vec![0_u64; layout.page_bytes as usize / 8];
                    let rows: Vec<f32> = exact.drain(..P as usize * dim).collect();
                    let bytes = bytemuck::cast_slice_mut(&mut page);
                    let _ = codec.write(bytes, 0, 0, 0..P, &rows, NonFinite::Reject).unwrap();
                    sealed.push(page);
                }
                let n = schedule.run(at, chunk.min(TOKENS - at));
                assert!(n >= 1 && n <= chunk);
                (at..at + n).for_each(|token| exact.extend(key(token)));
                at += n;
                most = most.max(exact.len() / dim);
            }
            (sealed, exact, most)
        };
        let one = run(1);
        for chunk in [2, 7, 32, 64, TOKENS] {
            let many = run(chunk);
            assert!((&one.0, &one.1) == (&many.0, &many.1), "recent {recent} chunk {chunk}");
            assert!(many.2 < (recent + 2 * P) as usize + chunk as usize);
        }
        // The last token's query kept `recent` tokens exact, itself included, and no page more.
        assert_eq!(one.0.len() as u32, (TOKENS - 1 - recent.saturating_sub(1)) / P, "recent {recent}");
        assert!(one.2 <= (recent.max(1) + P) as usize, "recent {recent}: {} exact", one.2);
    }
}
