//! Rows of pages: every format writes what its layout says, where it says so, and reads the same back.

use kvfolio::layout::{
    Axis, ElementCode, Order, PageLayout, PageLayoutSpec, Rotation, ScaleMode, Tensor, TensorFormat,
};
use kvfolio::quant::rounding::bf16_nearest_saturating;
use kvfolio::quant::{Fp8Kind, NonFinite, QuantError, RowCodec};

use crate::support::Rng;

const P: u32 = 32;
const HEADS: u32 = 3;
const DIM: u32 = 64;
const GUARD: u8 = 0xa5;

pub(crate) fn formats() -> Vec<TensorFormat> {
    let mut all: Vec<_> = [ElementCode::F32, ElementCode::F16, ElementCode::BF16].map(TensorFormat::of).to_vec();
    for code in [ElementCode::INT8, ElementCode::INT4, ElementCode::INT2, ElementCode::INT8_SYMMETRIC] {
        all.extend([0, 16, 32, 64].map(|group| TensorFormat::per_token(code, group)));
        all.extend([16, 32].map(|group| TensorFormat::per_channel(code, group)));
    }
    for code in [ElementCode::FP8_E4M3FN, ElementCode::FP8_E4M3FNUZ, ElementCode::FP8_E5M2] {
        all.extend([ScaleMode::TENSOR, ScaleMode::HEAD, ScaleMode::TOKEN_HEAD].map(|s| TensorFormat::fp8(code, s)));
        let two = TensorFormat { flags: TensorFormat::POWER_OF_TWO, ..TensorFormat::fp8(code, ScaleMode::TOKEN_HEAD) };
        all.push(two);
    }
    all.extend([TensorFormat::Q8_0, TensorFormat::Q4_0, TensorFormat::NVFP4, TensorFormat::MXFP4]);
    all
}

/// Groups along tokens have one order.
fn layout(format: TensorFormat, order: Order, layers: u32) -> PageLayout {
    let order = if format.axis == Axis::CHANNEL { Order::HEADS } else { order };
    PageLayout::new(&PageLayoutSpec { page_tokens: P, order, ..PageLayoutSpec::new(layers, HEADS, DIM, format) })
        .unwrap()
}

fn scales(layout: &PageLayout, tensor: Tensor) -> Vec<f32> {
    let n = layout.layers * layout.part(tensor).static_scales;
    (0..n).map(|i| 0.01 * (1.0 + i as f32)).collect()
}

/// A page in memory as aligned as real ones.
fn page(layout: &PageLayout) -> Vec<u64> {
    vec![u64::from_ne_bytes([GUARD; 8]); layout.page_bytes as usize / 8]
}

#[test]
fn rows_come_back_however_they_were_written_and_nothing_else_changes() {
    let mut rng = Rng(11);
    for format in formats() {
        let mut values = Vec::new();
        for order in [Order::HEADS, Order::TOKENS] {
            let layout = layout(format, order, 2);
            let given = scales(&layout, Tensor::V);
            let codec = RowCodec::new(&layout, Tensor::V, &given).unwrap();
            let (mut whole, mut single) = (page(&layout), page(&layout));
            let x = rng_rows(&mut Rng(5));
            let block = codec.block_tokens();
            for head in 0..HEADS {
                let at = |token: u32| ((head * P + token) * DIM) as usize;
                let rows = x[at(0)..at(P)].to_vec();
                let bytes = bytemuck::cast_slice_mut(&mut whole);
                let _ = codec.write(bytes, 1, head, 0..P, &rows, NonFinite::Reject).unwrap();
                for token in (0..P).step_by(block as usize).rev() {
                    let rows = x[at(token)..at(token + block)].to_vec();
                    let bytes = bytemuck::cast_slice_mut(&mut single);
                    let _ = codec.write(bytes, 1, head, token..token + block, &rows, NonFinite::Reject).unwrap();
                }
            }
            assert_eq!(whole, single, "{format:?} {order:?}");
            let bytes: &[u8] = bytemuck::cast_slice(&whole);
            assert_outside_is_untouched(&layout, bytes, Tensor::V, 1);
            let mut out = vec![0.0; x.len()];
            for head in 0..HEADS {
                let rows = &mut out[(head * P * DIM) as usize..((head + 1) * P * DIM) as usize];
                codec.read(bytes, 1, head, 0..P, rows).unwrap();
                let from = rng.below((P / block) as usize) as u32 * block;
                let mut some = vec![0.0; (block * DIM) as usize];
                codec.read(bytes, 1, head, from..from + block, &mut some).unwrap();
                assert_eq!(some, rows[(from * DIM) as usize..((from + block) * DIM) as usize], "{format:?}");
            }
            assert_decodes_element_by_element(&layout, &given, bytes, &out);
            assert_near(format, &x, &out);
            values.push(out);
        }
        assert_eq!(values[0], values[1], "{format:?}: the order of heads and tokens changes no value");
    }
}

fn rng_rows(rng: &mut Rng) -> Vec<f32> {
    rng.gaussians((HEADS * P * DIM) as usize)
}

/// Bytes outside the part's sections of the layer are as they were.
fn assert_outside_is_untouched(layout: &PageLayout, bytes: &[u8], tensor: Tensor, layer: u32) {
    let mut inside = vec![false; bytes.len()];
    for section in layout.sections().filter(|s| s.tensor == tensor && s.layer == layer) {
        inside[section.offset as usize..][..section.bytes as usize].fill(true);
    }
    assert!(bytes.iter().zip(inside).all(|(&byte, inside)| inside || byte == GUARD));
}

/// By the address of every element, its scale and its zero.
fn assert_decodes_element_by_element(layout: &PageLayout, given: &[f32], bytes: &[u8], out: &[f32]) {
    let part = &layout.v;
    let f16 = |at: u64| half::f16::from_le_bytes([bytes[at as usize], bytes[at as usize + 1]]).to_f32();
    let f32_at = |at: u64| f32::from_le_bytes(*bytes[at as usize..].first_chunk().unwrap());
    for (nth, &x) in out.iter().enumerate() {
        let (row, channel) = (nth as u32 / DIM, nth as u32 % DIM);
        let (head, token) = (row / P, row % P);
        let place = layout.element(1, Tensor::V, head, token, channel).unwrap();
        let first = bytes[place.byte as usize];
        let code = first >> place.bit & ((1_u32 << place.bits.min(8)) - 1) as u8;
        // Scales outside pages: of layer 1, and of its head where each has one.
        let outside = match part.static_scales {
            0 => 1.0,
            1 => given[1],
            heads => given[(heads + head) as usize],
        };
        let fp8 = |kind: Fp8Kind| kind.decode(code) * if place.scale == 0 { outside } else { f32_at(place.scale) };
        let e2m1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(code & 7)] * if code < 8 { 1.0 } else { -1.0 };
        // The scale in front of a block's codes.
        let inline = || {
            let row = layout.row(1, Tensor::V, head, token).unwrap().codes;
            f16(row + u64::from(channel / 32 * part.group_bytes))
        };
        let expected = match part.format.element {
            ElementCode::F32 => f32_at(place.byte),
            ElementCode::F16 => f16(place.byte),
            ElementCode::BF16 => f32::from_le_bytes([0, 0, first, bytes[place.byte as usize + 1]]),
            ElementCode::INT8 | ElementCode::INT4 | ElementCode::INT2 => {
                f32::from(code) * f16(place.scale) + f16(place.zero)
            }
            ElementCode::INT8_SYMMETRIC => f32::from(code as i8) * f16(place.scale),
            ElementCode::FP8_E4M3FN => fp8(Fp8Kind::E4m3Fn),
            ElementCode::FP8_E4M3FNUZ => fp8(Fp8Kind::E4m3Fnuz),
            ElementCode::FP8_E5M2 => fp8(Fp8Kind::E5m2),
            ElementCode::Q8_0 => f32::from(code as i8) * inline(),
            ElementCode::Q4_0 => (f32::from(code) - 8.0) * inline(),
            ElementCode::NVFP4 => e2m1 * (Fp8Kind::E4m3Fn.decode(bytes[place.scale as usize]) * outside),
            ElementCode::MXFP4 => e2m1 * 2_f32.powi(i32::from(bytes[place.scale as usize]) - 127),
            other => panic!("{other:?}"),
        };
        assert_eq!(x.to_bits(), expected.to_bits(), "{:?} {row} {channel}", part.format);
    }
}

/// What comes back is near what went in.
fn assert_near(format: TensorFormat, x: &[f32], out: &[f32]) {
    let norm = |x: &mut dyn Iterator<Item = f32>| x.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let error = norm(&mut x.iter().zip(out).map(|(a, b)| a - b)) / norm(&mut x.iter().copied());
    let bound = match format.element {
        ElementCode::F32 => 0.0,
        ElementCode::F16 | ElementCode::BF16 => 0.003,
        ElementCode::INT8 | ElementCode::INT8_SYMMETRIC | ElementCode::Q8_0 => 0.02,
        ElementCode::INT2 => 0.6,
        ElementCode::FP8_E4M3FN | ElementCode::FP8_E4M3FNUZ => 0.05,
        ElementCode::FP8_E5M2 => 0.1,
        _ => 0.2,
    };
    assert!(error <= bound, "{format:?}: {error}");
}

#[test]
fn rotated_rows_come_back_rotated_back() {
    for (format, bound) in [(TensorFormat::F32, 1e-5), (TensorFormat::per_token(ElementCode::INT8, 0), 0.05)] {
        let spec = PageLayoutSpec {
            rotation: Rotation::HADAMARD,
            rotation_size: 64,
            rotation_parts: PageLayoutSpec::ROTATE_K,
            rotation_seed: 7,
            page_tokens: P,
            ..PageLayoutSpec::new(1, HEADS, DIM, format)
        };
        let layout = PageLayout::new(&spec).unwrap();
        let codec = RowCodec::new(&layout, Tensor::K, &[]).unwrap();
        let mut memory = page(&layout);
        let x = Rng(3).gaussians(DIM as usize);
        let bytes = bytemuck::cast_slice_mut(&mut memory);
        let mut rotated = x.clone();
        codec.rotate(&mut rotated, 0, 2).unwrap();
        let _ = codec.write(bytes, 0, 2, 5..6, &rotated, NonFinite::Reject).unwrap();
        let mut out = vec![0.0; DIM as usize];
        codec.read(bytes, 0, 2, 5..6, &mut out).unwrap();
        assert!(x.iter().zip(&out).all(|(a, b)| (a - b).abs() < bound));
        let stored = layout.row(0, Tensor::K, 2, 5).unwrap().codes as usize;
        assert_ne!(&bytes[stored..stored + 4], &x[0].to_le_bytes(), "what is stored is rotated");
    }
}

#[test]
fn what_is_wrong_is_refused_and_nothing_is_written() {
    let format = TensorFormat::per_channel(ElementCode::INT4, 16);
    let layout = layout(format, Order::HEADS, 1);
    let codec = RowCodec::new(&layout, Tensor::K, &[]).unwrap();
    let mut memory = page(&layout);
    let before = memory.clone();
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
    let row = DIM as usize;
    let mut rows = vec![1.0; 16 * row];
    let write = |bytes: &mut [u8], layer, head, tokens, x: &[f32]| {
        codec.write(bytes, layer, head, tokens, x, NonFinite::Reject).err()
    };
    assert_eq!(write(bytes, 1, 0, 0..16, &rows), Some(QuantError::Length), "no such layer");
    assert_eq!(write(bytes, 0, 3, 0..16, &rows), Some(QuantError::Length), "no such head");
    assert_eq!(write(bytes, 0, 0, 8..24, &rows), Some(QuantError::Length), "half a group");
    assert_eq!(write(bytes, 0, 0, 32..48, &rows), Some(QuantError::Length), "behind the page");
    assert_eq!(write(bytes, 0, 0, 0..32, &rows), Some(QuantError::Length), "fewer rows than tokens");
    assert_eq!(write(&mut bytes[8..], 0, 0, 0..16, &rows), Some(QuantError::Length), "less than a page");
    rows[3 * row + 5] = f32::NAN;
    let index = 3 * row + 5;
    assert_eq!(write(bytes, 0, 0, 0..16, &rows), Some(QuantError::NonFinite { index }));
    assert_eq!(memory, before);

    let static_scale = TensorFormat::fp8(ElementCode::FP8_E4M3FN, ScaleMode::HEAD);
    let fp8 = self::layout(static_scale, Order::HEADS, 1);
    assert_eq!(RowCodec::new(&fp8, Tensor::K, &[]).err(), Some(QuantError::Length), "scales are missing");
    assert_eq!(RowCodec::new(&fp8, Tensor::K, &[1.0, 0.0, 1.0]).err(), Some(QuantError::Scale { index: 1 }));
    assert_eq!(RowCodec::new(&layout, Tensor::Rope, &[]).err(), Some(QuantError::Length), "there is no such part");
    assert_eq!(layout.k.format.axis, Axis::CHANNEL);
}

#[test]
fn given_scales_are_powers_of_two_where_the_format_says_so() {
    let flags = TensorFormat::POWER_OF_TWO;
    let format = TensorFormat { flags, ..TensorFormat::fp8(ElementCode::FP8_E4M3FN, ScaleMode::HEAD) };
    let layout = layout(format, Order::HEADS, 1);
    assert!(RowCodec::new(&layout, Tensor::K, &[1.0, 0.25, 8.0]).is_ok());
    assert_eq!(RowCodec::new(&layout, Tensor::K, &[1.0, 0.25, 3.0]).err(), Some(QuantError::Scale { index: 2 }));
}

#[test]
fn what_saturates_or_is_replaced_is_counted_in_rows() {
    let (low, high) = (-1.0, 2.0);
    let row = DIM as usize;
    let mut x = vec![low; 3 * row];
    x[1] = high;
    (x[row], x[row + 1]) = (f32::NAN, f32::NEG_INFINITY);
    (x[2 * row], x[2 * row + 1]) = (f32::MAX, f32::MIN);
    let fp8 = TensorFormat::fp8(ElementCode::FP8_E4M3FN, ScaleMode::TENSOR);
    let f16_most = 65_504.0;
    let bf16_most = f32::from_bits(0x7f7f_0000);
    // The greatest value, and the numbers of rows and elements.
    let kinds = [
        (TensorFormat::F32, f32::MAX, 0, 2),
        (TensorFormat::F16, f16_most, 1, 2),
        (TensorFormat::BF16, bf16_most, 1, 2),
        (fp8, 448.0, 1, 0),
    ];
    for (format, most, saturated, replaced) in kinds {
        let layout = layout(format, Order::TOKENS, 1);
        let given = vec![1.0; layout.k.static_scales as usize];
        let codec = RowCodec::new(&layout, Tensor::K, &given).unwrap();
        let mut memory = page(&layout);
        let bytes = bytemuck::cast_slice_mut(&mut memory);
        assert_eq!(
            codec.write(bytes, 0, 0, 0..3, &x, NonFinite::Reject).err(),
            Some(QuantError::NonFinite { index: row })
        );
        let report = codec.write(bytes, 0, 0, 0..3, &x, NonFinite::Sanitise).unwrap();
        assert_eq!((report.saturated, report.replaced), (saturated, replaced), "{format:?}");
        let mut out = vec![0.0; 3 * row];
        codec.read(bytes, 0, 0, 0..3, &mut out).unwrap();
        assert_eq!((out[0], out[1]), (low, high));
        assert_eq!((out[2 * row], out[2 * row + 1]), (most, -most));
        if replaced > 0 {
            assert_eq!((out[row], out[row + 1]), (low, low), "the nearest to 0, the least");
        } else {
            assert!(out[row].is_nan() && out[row + 1] == -most);
        }
    }
}

#[test]
fn what_no_encoder_writes_is_refused_with_its_group() {
    for format in [
        TensorFormat::per_token(ElementCode::INT4, 32),
        TensorFormat::per_channel(ElementCode::INT8, 16),
        TensorFormat::per_channel(ElementCode::INT8_SYMMETRIC, 16),
        TensorFormat::fp8(ElementCode::FP8_E5M2, ScaleMode::TOKEN_HEAD),
        TensorFormat::NVFP4,
        TensorFormat::Q8_0,
    ] {
        for order in [Order::HEADS, Order::TOKENS] {
            let layout = layout(format, order, 1);
            let given = scales(&layout, Tensor::K);
            let codec = RowCodec::new(&layout, Tensor::K, &given).unwrap();
            let mut memory = page(&layout);
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
            let x = Rng(9).gaussians((P * DIM) as usize);
            let _ = codec.write(bytes, 0, 1, 0..P, &x, NonFinite::Reject).unwrap();
            // The last group of the second block.
            let (part, token) = (&layout.k, codec.block_tokens());
            let at = layout.row(0, Tensor::K, 1, token).unwrap();
            let (at, size) = if at.scales == 0 { (at.codes, part.group_bytes) } else { (at.scales, part.scale_bytes) };
            let at = at as usize + ((part.groups - 1) * size) as usize;
            bytes[at..at + if part.scale_bytes == 1 { 1 } else { 2 }].fill(0xff);
            if part.scale_bytes == 4 {
                bytes[at..at + 4].fill(0xff);
            }
            let index = 2 * part.groups as usize - 1;
            let mut out = vec![0.0; x.len()];
            assert_eq!(codec.read(bytes, 0, 1, 0..P, &mut out), Err(QuantError::Scale { index }), "{format:?}");
            assert_eq!(codec.read(bytes, 0, 1, 0..token, &mut out[..(token * DIM) as usize]), Ok(()));
            assert_eq!(codec.read(bytes, 0, 1, 0..0, &mut []), Ok(()));
        }
    }
}

#[test]
fn odd_shapes_of_every_format_fit() {
    for (dim, format) in [
        (1, TensorFormat::F16),
        (2, TensorFormat::per_token(ElementCode::INT4, 0)),
        (4, TensorFormat::per_token(ElementCode::INT2, 0)),
        (6, TensorFormat::per_token(ElementCode::INT8_SYMMETRIC, 0)),
        (5, TensorFormat::per_channel(ElementCode::INT2, 16)),
        (1, TensorFormat::per_channel(ElementCode::INT8_SYMMETRIC, 128)),
        (3, TensorFormat::fp8(ElementCode::FP8_E4M3FN, ScaleMode::TOKEN_HEAD)),
        (80, TensorFormat::per_token(ElementCode::INT8, 16)),
        (96, TensorFormat::MXFP4),
    ] {
        let layout =
            PageLayout::new(&PageLayoutSpec { page_tokens: 128, ..PageLayoutSpec::new(1, 1, dim, format) }).unwrap();
        let codec = RowCodec::new(&layout, Tensor::K, &[]).unwrap();
        let mut memory = page(&layout);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
        let x = Rng(1).gaussians(128 * dim as usize);
        let _ = codec.write(bytes, 0, 0, 0..128, &x, NonFinite::Reject).unwrap();
        let mut out = vec![0.0; x.len()];
        codec.read(bytes, 0, 0, 0..128, &mut out).unwrap();
        assert_near(format, &x, &out);
    }
    let single = TensorFormat::per_token(ElementCode::INT8, 0);
    let layout = PageLayout::new(&PageLayoutSpec::new(1, 1, 1, single)).unwrap();
    assert_eq!(RowCodec::new(&layout, Tensor::K, &[]).err(), Some(QuantError::Group));
}

#[test]
fn mla_has_one_latent_part_and_a_rope_part() {
    let latent = TensorFormat::per_token(ElementCode::INT8, 64);
    let layout = PageLayout::new(&PageLayoutSpec::mla(2, 128, 64, latent, TensorFormat::BF16)).unwrap();
    let [k, v, rope] = [Tensor::K, Tensor::V, Tensor::Rope].map(|t| RowCodec::new(&layout, t, &[]).unwrap());
    let mut memory = page(&layout);
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
    let x = Rng(4).gaussians(128);
    let _ = k.write(bytes, 1, 0, 3..4, &x, NonFinite::Reject).unwrap();
    let _ = rope.write(bytes, 1, 0, 3..4, &x[..64], NonFinite::Reject).unwrap();
    let (mut keys, mut values, mut turned) = ([0.0; 128], [0.0; 128], [0.0; 64]);
    k.read(bytes, 1, 0, 3..4, &mut keys).unwrap();
    v.read(bytes, 1, 0, 3..4, &mut values).unwrap();
    rope.read(bytes, 1, 0, 3..4, &mut turned).unwrap();
    assert_eq!(keys, values);
    assert_near(latent, &x, &keys);
    assert_near(TensorFormat::BF16, &x[..64], &turned);
}

#[test]
fn bf16_is_nearest_and_saturates() {
    for bits in (0..=u32::MAX).step_by(0x101) {
        let x = f32::from_bits(bits);
        let nearest = half::bf16::from_f32(x);
        let expected = if x.is_nan() {
            (bits >> 16) as u16 & 0x8000 | 0x7fc0
        } else if nearest.is_infinite() {
            nearest.to_bits() - 1
        } else {
            nearest.to_bits()
        };
        assert_eq!(bf16_nearest_saturating(x), expected, "{bits:#x}");
    }
}
