//! Rows of pages: every format writes what its layout says, where it says so, and reads the same back.

use kvfolio::layout::{
    Axis, ElementCode, Order, PageLayout, PageLayoutSpec, Rotation, ScaleMode, Tensor, TensorFormat,
};
use kvfolio::quant::{NonFinite, QuantError, RowCodec};

use crate::support::Rng;

const P: u32 = 32;
const HEADS: u32 = 3;
const DIM: u32 = 64;
const GUARD: u8 = 0xa5;

fn formats() -> Vec<TensorFormat> {
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

/// Integer formats, by the address of every element.
fn assert_decodes_element_by_element(layout: &PageLayout, _: &[f32], bytes: &[u8], out: &[f32]) {
    let element = layout.v.format.element;
    if ![ElementCode::INT8, ElementCode::INT4, ElementCode::INT2].contains(&element) {
        return;
    }
    let f16 = |at: u64| {
        let at = at as usize;
        half::f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
    };
    for (nth, &x) in out.iter().enumerate() {
        let (row, channel) = (nth as u32 / DIM, nth as u32 % DIM);
        let place = layout.element(1, Tensor::V, row / P, row % P, channel).unwrap();
        let code = bytes[place.byte as usize] >> place.bit & ((1_u32 << place.bits) - 1) as u8;
        assert_eq!(x, f32::from(code) * f16(place.scale) + f16(place.zero), "{:?}", layout.v.format);
    }
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
